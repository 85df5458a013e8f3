"""Which engine a job's rules name."""

from __future__ import annotations

from webapp.reconfigurations.models import ChangePolicy, EngineKind
from workers.engines.base import Engine, Note
from workers.engines.dry_run import DryRunEngine
from workers.engines.flink import FlinkEngine
from workers.engines.webhook import WebhookEngine


def engine_of(rules: ChangePolicy, note: Note | None = None, kind: str = "") -> Engine:
    """The engine, keeping its exchanges by ``note``; ``kind`` is an attempt's own, empty: the rules'."""
    kind = kind or rules.engine
    if kind == EngineKind.FLINK:
        return FlinkEngine(rules.engine_url, note)
    if kind == EngineKind.WEBHOOK:
        return WebhookEngine(rules.engine_url, rules.webhook_secret, note)
    return DryRunEngine()
