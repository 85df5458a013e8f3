"""What a page of the policy lab compares: per policy the steps it took, when targets were missed, and the cost.

`of_history` replays a stored history, `of_published` a dataflow of the DS2 paper, `nexmark_table` the paper's
table 4. A `Lab` is small whatever the length of the runs: it has what changed, not every interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from typing import Any

from analytics.model.decisions import Move
from analytics.model.diagnostics import Diagnostic
from analytics.model.rates import Observation
from analytics.scaling import ds2, published
from analytics.scaling.dataflow import Dataflow
from analytics.scaling.ds2 import Ds2Settings
from analytics.scaling.ds2_manager import MEETS_TARGET, ManagerSettings
from analytics.scaling.policies import POLICIES
from analytics.scaling.published import NEXMARK, NexmarkQuery
from analytics.scaling.replay import replay
from analytics.scaling.simulate import Run, Timing, simulate

PUBLISHED_S = 3600.0
_PAPER = ManagerSettings(Ds2Settings(target_rate_ratio=1.0), rollback_loss_ratio=None)
"""As in the paper's evaluation, which knows no rollback."""

_TABLE_INTERVALS = 14


@dataclass(frozen=True, slots=True)
class LabStep:
    """A change after ``at_s`` seconds: ``(operator id, before, after)``."""

    at_s: float
    changes: tuple[tuple[str, int, int], ...]
    rolled_back: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One policy's run: the parallelism it began with, its steps, and the stretches ``(from_s, to_s)`` of intervals
    in which a source delivered less than its target. Restarts are such stretches.

    ``least_achieved`` is the smallest share of its target that a source delivered in the last interval.
    """

    policy: str
    start: tuple[tuple[str, int], ...]
    steps: tuple[LabStep, ...]
    missed: tuple[tuple[float, float], ...]
    length_s: float
    under_target_s: float
    instance_hours: float
    least_achieved: float

    @property
    def final(self) -> tuple[tuple[str, int], ...]:
        """The parallelism at the end, by operator id."""
        known = dict(self.start)
        for step in self.steps:
            known |= {name: after for name, _, after in step.changes}
        return tuple(known.items())

    @property
    def converged_s(self) -> float:
        """When the last step was taken; 0 if there was none."""
        return self.steps[-1].at_s if self.steps else 0.0


@dataclass(frozen=True, slots=True)
class Lab:
    """Several policies on the same rates. ``operators`` are ``(id, name)`` of those that are scaled.

    ``start_ns`` is when the history began (ns since 1970), None for a dataflow that never ran. Without anything to
    replay there are no lanes but the history's own, and ``diagnostics`` say why.
    """

    operators: tuple[tuple[str, str], ...]
    start_ns: int | None
    interval_s: float
    interval_count: int
    restart_s: float
    lanes: tuple[Lane, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


def of_history(history: Sequence[Observation], settings: Mapping[str, Any], restart_s: float) -> Lab:
    """Policies, by name with their settings, on what a job's windows told; the first lane is what really happened.

    Parameters
    ----------
    history
        One job's observations in the order of time. At least one.
    """
    runs, diagnostics = replay(history, settings, restart_s)
    named = {item.id: item.name for item in history[0].topology.operators}
    count = max((len(run.intervals) for run in runs), default=0)
    interval_s = runs[0].intervals[0].end_s if runs else 0.0
    scaled = tuple((key, named[key]) for key, _ in runs[0].final) if runs else ()
    lanes = tuple(_lane(run, interval_s) for run in runs)
    start_ns = history[0].window.start_ns
    return Lab(scaled, start_ns, interval_s, count, restart_s, lanes, diagnostics)


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A dataflow of the paper's evaluation, where it may start, and how the policies are set for it."""

    key: str
    name: str
    flow: Dataflow
    interval_s: float
    starts: tuple[tuple[tuple[str, int], ...], ...]
    warm_up_intervals: int


def _nexmark(query: NexmarkQuery) -> PublishedModel:
    starts = tuple((("main", start),) for start, _ in query.published)
    key, name = f"nexmark-{query.name.lower()}", f"Nexmark {query.name}"
    return PublishedModel(key, name, published.nexmark(query), published.NEXMARK_INTERVAL_S, starts, 1)


_HERON = PublishedModel(
    "heron",
    "Heron word count",
    published.heron_word_count(),
    published.HERON_INTERVAL_S,
    (tuple(published.HERON_START.items()),),
    0,
)
MODELS = {model.key: model for model in (_HERON, *map(_nexmark, NEXMARK))}


def of_published(key: str, start: int = 0) -> Lab:
    """All policies on a published dataflow for an hour, from one of its starts (by position).

    Raises
    ------
    KeyError, IndexError
        If there is no such dataflow or start.
    """
    model = MODELS[key]
    count = round(PUBLISHED_S / model.interval_s)
    lanes = tuple(
        _lane(_run(model, name, dict(model.starts[start]), count), model.interval_s) for name in POLICIES
    )
    operators = tuple((item.id, item.id) for item in model.flow.operators)
    return Lab(operators, None, model.interval_s, count, 0.0, lanes)


@dataclass(frozen=True, slots=True)
class NexmarkRow:
    """DS2's decisions for a query from one start, as published and as on the model."""

    query: str
    start: int
    published: tuple[int, ...]
    found: tuple[int, ...]


def nexmark_table() -> tuple[NexmarkRow, ...]:
    """Table 4 of the paper beside the model's decisions. A run without a change has decided for where it starts."""
    rows = []
    for query in NEXMARK:
        model = MODELS[f"nexmark-{query.name.lower()}"]
        for start, decisions in query.published:
            run = _run(model, ds2.NAME, {"main": start}, _TABLE_INTERVALS)
            found = tuple(dict(step.action.changes)["main"] for step in run.steps)
            rows.append(NexmarkRow(query.name, start, decisions, found or (start,)))
    return tuple(rows)


def _run(model: PublishedModel, policy: str, start: Mapping[str, int], count: int) -> Run:
    settings = POLICIES[policy].settings()
    if policy == ds2.NAME:
        settings = replace(_PAPER, warm_up_intervals=model.warm_up_intervals)
    timing = Timing(model.interval_s)
    return simulate(repeat(model.flow, count), start, POLICIES[policy], settings, timing)


def _lane(run: Run, interval_s: float) -> Lane:
    intervals = run.intervals
    steps = []
    for item in intervals:
        if item.action.move in (Move.RESCALE, Move.ROLL_BACK):
            now = dict(item.parallelism)
            changes = tuple((name, now[name], after) for name, after in item.action.changes if name in now)
            steps.append(LabStep(item.end_s, changes, item.action.move is Move.ROLL_BACK))
    missed = [(item.end_s - interval_s, item.end_s) for item in intervals if item.achieved < MEETS_TARGET]
    stops = [(one.end_s, other.end_s - interval_s) for one, other in pairwise(intervals)]
    missed += [stop for stop in stops if stop[1] - stop[0] > interval_s * 1e-6]
    return Lane(
        run.policy,
        intervals[0].parallelism,
        tuple(steps),
        _joined(sorted(missed)),
        intervals[-1].end_s,
        run.under_target_s,
        run.instance_hours,
        intervals[-1].achieved,
    )


def _joined(stretches: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Stretches that touch, as one."""
    found: list[tuple[float, float]] = []
    for low, high in stretches:
        if found and low <= found[-1][1] + 1e-6:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)
