"""Stable, readable names for stages.

A stage's number grows with every micro-batch, so a chart by number would show nothing. Its name is made from
the scopes of its RDDs, in the order they compute: ``MicroBatchScan → Exchange``. A stage of the same batch
with the same name gets ``#2``; a named query's stages carry the query's name: ``… [counts]``. Outside of
streaming the call site tells stages apart: ``parallelize · count at report.py:12``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import orjson

from analytics.decode.json_fields import Event, items, mapping, text, whole

MAX_STEPS = 6
MAX_NAME_CHARS = 160
REMEMBERED_STAGES = 1_024
REMEMBERED_BATCHES = 32
REMEMBERED_TASKS = 16_384

_NUMBERED = re.compile(r" \(\d+\)$")
_CALL_SITE = re.compile(r"([\w.$]{1,60}) at (?:\S*/)?([\w.-]{1,80}:[1-9]\d*)")
_PLUMBING = frozenset({"WholeStageCodegen", "InputAdapter", "ColumnarToRow", "AQEShuffleRead"})


@dataclass
class StageNames:
    """Names of the stages seen lately, and the stages of the tasks that run.

    JSON values only, so that it is its own state.
    """

    names: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, int | None] = field(default_factory=dict)
    used: dict[str, dict[str, int]] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)

    def query_started(self, event: Event) -> None:
        """Learn a streaming query's name."""
        if text(event, "id") and text(event, "name"):
            self.queries[text(event, "id")] = text(event, "name")[:60]

    def submitted(self, event: Event) -> None:
        """Name a stage when it is submitted; a further attempt keeps its name."""
        info, properties = mapping(event, "Stage Info"), mapping(event, "Properties")
        stage = whole(info, "Stage ID")
        if stage is None or str(stage) in self.names:
            return
        query = text(properties, "sql.streaming.queryId")
        label = _label(info) if query else _label(info) + _call_site(info)
        counts = self.used.setdefault(_batch(query, properties, stage), {})
        counts[label] = counts.get(label, 0) + 1
        if counts[label] > 1:
            label += f" #{counts[label]}"
        self.names[str(stage)] = f"{label} [{self.queries[query]}]" if query in self.queries else label
        _forget(self.names, REMEMBERED_STAGES)
        _forget(self.used, REMEMBERED_BATCHES)

    def task_started(self, task: int, stage: int | None) -> None:
        """Remember a task's stage: the event that its result is being fetched does not say it."""
        self.tasks[str(task)] = stage
        _forget(self.tasks, REMEMBERED_TASKS)

    def task_ended(self, task: int) -> None:
        """Forget a task's stage."""
        self.tasks.pop(str(task), None)

    def of_task(self, task: int) -> str:
        """The name of a running task's stage."""
        return self.of(self.tasks.get(str(task)))

    def of(self, stage: int | None) -> str:
        """The stage's name, or its number if it was never announced."""
        return self.names.get(str(stage), "unknown stage" if stage is None else f"stage {stage}")


def _batch(query: str, properties: Event, stage: int) -> str:
    """What this stage belongs to: a micro-batch, else an SQL query, else only itself."""
    if query:
        return f"{query}/{text(properties, 'streaming.sql.batchId')}"
    execution = text(properties, "spark.sql.execution.root.id") or text(properties, "spark.sql.execution.id")
    return f"sql/{execution}" if execution else f"stage/{stage}"


def _label(info: Event) -> str:
    rdds = sorted(items(info, "RDD Info"), key=lambda rdd: whole(rdd, "RDD ID") or 0)
    steps: list[str] = []
    for scope in map(_scope, rdds):
        if scope and (not steps or steps[-1] != scope):
            steps.append(scope)
    # Plumbing says nothing, but Exchange → WholeStageCodegen → Exchange is more than one exchange.
    around = zip(["", *steps], steps, [*steps[1:], ""], strict=False)
    telling = [step for before, step, after in around if step not in _PLUMBING or before == after] or steps[
        :1
    ]
    if len(telling) > MAX_STEPS:
        telling = [*telling[: MAX_STEPS - 2], "…", telling[-1]]
    return (
        " → ".join(telling)[:MAX_NAME_CHARS] or text(info, "Stage Name")[:MAX_NAME_CHARS] or "unnamed stage"
    )


def _call_site(info: Event) -> str:
    """Where a batch program asked for this stage, if Spark knows; queries are told apart by their names."""
    match = _CALL_SITE.fullmatch(text(info, "Stage Name"))
    return f" · {match[1]} at {match[2]}" if match else ""


def _scope(rdd: Event) -> str:
    """The scope's name without its number, "" if the RDD has none."""
    try:
        scope = orjson.loads(text(rdd, "Scope") or "{}")
    except orjson.JSONDecodeError:
        return ""
    return _NUMBERED.sub("", text(scope, "name")) if isinstance(scope, dict) else ""


def _forget(remembered: dict[str, Any], keep: int) -> None:
    while len(remembered) > keep:
        del remembered[next(iter(remembered))]
