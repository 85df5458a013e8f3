"""Whether stored recommendations still follow from their evidence, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from analytics.model import packed
from analytics.scaling.advice import summary_of
from analytics.scaling.evidence import UnreadableEvidenceError, recompute
from webapp.analysis.models import Recommendation
from webapp.jobs.models import Job


def stored(job: Job | None) -> Iterator[Recommendation]:
    """Recommendations of a job, or with None of all, current and superseded, in the order they were made."""
    rows = Recommendation.objects.select_related("job").order_by("pk")
    return (rows if job is None else rows.filter(job=job)).iterator(chunk_size=500)


def difference(row: Recommendation) -> str | None:
    """In what a stored recommendation differs from what its evidence gives now; None: in nothing.

    Compared are the action's bytes, and what is stored beside it for lists and history.
    """
    try:
        payload = packed.unpack(row.payload)
        evidence, action = payload["evidence"], payload["action"]
        again = recompute(evidence)
        if orjson.dumps(again) != orjson.dumps(action):
            return f"the evidence gives another action: {_first(again, action)}"
        summary = summary_of(evidence, action)
        window = evidence["seen"]["window"]
    except (UnreadableEvidenceError, KeyError, TypeError, ValueError, AttributeError) as error:
        return f"cannot be read: {error}"
    beside = {
        "policy": evidence["policy"],
        "version": evidence["version"],
        "window_start_ns": window["start_ns"],
        "window_end_ns": window["end_ns"],
        "move": summary.move,
        "changes": summary.changes,
        "undecided": summary.undecided,
        "why": summary.why,
    }
    for name, value in beside.items():
        if getattr(row, name) != value:
            return f"{name} is stored as {getattr(row, name)!r}, the evidence gives {value!r}"
    return None


def _first(again: object, was: object, path: str = "") -> str:
    """Where two plain values differ first."""
    if isinstance(again, dict) and isinstance(was, dict) and again.keys() == was.keys():
        pairs = [(f"{path}.{name}" if path else str(name), again[name], was[name]) for name in again]
    elif isinstance(again, list) and isinstance(was, list) and len(again) == len(was):
        pairs = [(f"{path}[{k}]", *both) for k, both in enumerate(zip(again, was, strict=True))]
    else:
        return f"{path} is {orjson.dumps(was).decode()}, not {orjson.dumps(again).decode()}"
    return next(
        (_first(a, b, name) for name, a, b in pairs if orjson.dumps(a) != orjson.dumps(b)),
        f"{path}: the same in another order",
    )
