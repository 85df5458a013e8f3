"""Answers to the questions people ask about critical paths, in a form that can be stored and read by pages.

Every answer is frozen and holds numbers only: workers and operators by their job-wide ids (``NONE`` for none),
activity types by code. Names are looked up where the answer is shown. `to_json` and `from_json` go to and from
what JSON can say, without losing a nanosecond or an infinite factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_args

from analytics.model.diagnostics import Diagnostic
from analytics.model.plain import from_plain, to_plain
from analytics.model.results import WindowStatus


@dataclass(frozen=True, slots=True)
class EdgeExample:
    """One edge of a window's graph, to lead from a number to an activity or message behind it."""

    src: int
    src_ns: int
    dst: int
    dst_ns: int


@dataclass(frozen=True, slots=True)
class WhyGroup:
    """Edges some waits waited for, ``hop`` steps back from their ends, that share type, operator and worker.

    ``worker`` is where the edge begins, so a message's sender. ``count`` is how many (wait, edge) pairs there are,
    ``duration_ns`` the sum of the edges' durations over these pairs, ``during_ns`` the part of that which lies
    within the wait itself. ``example`` is the longest of the edges.
    """

    hop: int
    type: int
    operator: int
    worker: int
    count: int
    duration_ns: int
    during_ns: int
    example: EdgeExample


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """What the waits of one window waited for.

    ``wait_count`` waits of together ``wait_ns`` are explained by ``groups``. ``cut_*`` are those that reach the
    window's end, so that what ended them lies outside; ``uncaused_*`` those that no recorded message ended.
    ``begun_before_count`` of the explained began before the window: only the part inside counts.
    ``groups_left_out`` groups were too small to list; ``reached_start_count`` (wait, edge) pairs begin at the
    window's start, where their chain and perhaps the edge is cut; ``stopped_at_hop`` is the first hop that was
    too wide to follow, or 0.
    """

    start_ns: int
    end_ns: int
    status: WindowStatus
    reason: str
    hops: int
    wait_count: int
    wait_ns: int
    begun_before_count: int
    cut_count: int
    cut_ns: int
    uncaused_count: int
    uncaused_ns: int
    groups: tuple[WhyGroup, ...]
    groups_left_out: int
    reached_start_count: int
    stopped_at_hop: int


class TargetKind(StrEnum):
    """What can be made faster: an operator, a worker or a type of activity."""

    OPERATOR = "operator"
    WORKER = "worker"
    ACTIVITY = "activity"


@dataclass(frozen=True, slots=True)
class Target:
    """One operator or worker by id, or one activity type by code."""

    kind: TargetKind
    id: int


@dataclass(frozen=True, slots=True)
class PathStep:
    """A piece of the new critical path, at its new times and at those it had (``was_*``)."""

    src: int
    src_ns: int
    dst: int
    dst_ns: int
    was_src_ns: int
    was_dst_ns: int
    type: int
    operator: int


@dataclass(frozen=True, slots=True)
class PathPart:
    """How long the new critical path is spent in one kind of work; ``worker`` is a message's sender."""

    type: int
    operator: int
    worker: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class WhatIfWindow:
    """One window if something were faster: ``saved_ns`` of its length.

    Without status OK nothing is claimed: nothing saved, no path. ``limits`` is what the new critical path
    consists of, longest first, up to a bound; ``steps_left_out`` steps at the path's beginning are not listed.
    """

    index: int
    start_ns: int
    end_ns: int
    status: WindowStatus
    reason: str
    saved_ns: int
    limits: tuple[PathPart, ...]
    path: tuple[PathStep, ...]
    steps_left_out: int


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """All windows if ``target`` were ``factor`` times faster; ``length_ns`` is that of those with status OK."""

    target: Target
    factor: float
    saved_ns: int
    length_ns: int
    windows: tuple[WhatIfWindow, ...]


@dataclass(frozen=True, slots=True)
class WhatIfPaths:
    """One window's critical path as it is, and as it would be if ``target`` were ``factor`` times faster.

    ``now`` is the representative path; its times are both times of its steps. The new one is in ``window``.
    ``now_left_out`` steps at its beginning are not listed.
    """

    target: Target
    factor: float
    window: WhatIfWindow
    now: tuple[PathStep, ...]
    now_left_out: int


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """One candidate: its critical participation, and what is saved at each factor of the ranking."""

    target: Target
    cp: float
    saved_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WhatIfRanking:
    """What is worth optimising, best first.

    ``window_count`` windows of together ``length_ns`` were re-timed; ``windows_left_out`` had no critical path
    that could be trusted.
    """

    factors: tuple[float, ...]
    window_count: int
    length_ns: int
    windows_left_out: int
    rows: tuple[WhatIfRow, ...]


class Dimension(StrEnum):
    """What a compared number is a share of."""

    ACTIVITY = "activity"
    WORKER = "worker"
    OPERATOR = "operator"
    CHANNEL = "channel"


class Confidence(StrEnum):
    """Whether a difference stands out from how much the windows vary."""

    SURE = "sure"
    UNSURE = "unsure"
    TOO_FEW = "too_few_windows"


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """What a side of a comparison consists of: windows with a result, and those without."""

    window_count: int
    windows_left_out: int
    length_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Change:
    """One group before and after. ``peer`` is the receiver of a channel, else ``NONE``.

    ``cp_*`` and ``conventional_*`` are means over the windows, weighted with their effective lengths; ``*_error``
    is the standard error of the difference, ``cp_spread_*`` the weighted standard deviation between windows.
    ``peak_*_ns`` is when the window begins in which its participation was largest, None if it never had any.
    """

    dimension: Dimension
    id: int
    peer: int
    cp_before: float
    cp_after: float
    cp_error: float
    cp_spread_before: float
    cp_spread_after: float
    conventional_before: float
    conventional_after: float
    conventional_error: float
    confidence: Confidence
    peak_before_ns: int | None
    peak_after_ns: int | None

    @property
    def cp_change(self) -> float:
        """After minus before, in shares of 1."""
        return self.cp_after - self.cp_before

    @property
    def conventional_change(self) -> float:
        """After minus before, in shares of a window's length."""
        return self.conventional_after - self.conventional_before


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two ranges side by side; ``changes`` in the order in which they matter, ``left_out`` more are smaller."""

    before: RangeFacts
    after: RangeFacts
    changes: tuple[Change, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class CollocationPartner:
    """A worker on another host, and the critical participation of the messages with it, both ways.

    In the window that begins at ``peak_ns`` one channel of the two had more of it than in any other.
    """

    worker: int
    cp: float
    peak_ns: int


@dataclass(frozen=True, slots=True)
class CollocationProposal:
    """Put ``worker`` on the host of ``beside``.

    ``cp_removed`` is the participation of their messages, which would no longer cross hosts. ``best_host`` is
    where most of that lies (an index into the answer's ``hosts``): moving there alone removes
    ``cp_removed_at_best_host`` and puts ``cp_at_risk`` across hosts, the participation of messages with the
    workers that are beside it now.
    """

    worker: int
    host: int
    beside: tuple[CollocationPartner, ...]
    cp_removed: float
    best_host: int
    cp_removed_at_best_host: float
    cp_at_risk: float


@dataclass(frozen=True, slots=True)
class CollocationAnswer:
    """Which workers belong together. ``hosts`` are names; ``unknown_host_count`` workers count as a host each.

    ``cp_messages`` is the participation of all messages, ``cp_across_hosts`` of those between hosts.
    """

    window_count: int
    windows_left_out: int
    length_ns: int
    hosts: tuple[str, ...]
    unknown_host_count: int
    cp_messages: float
    cp_across_hosts: float
    proposals: tuple[CollocationProposal, ...]


class CheckState(StrEnum):
    """What a check of a trace came to."""

    PASSED = "passed"
    FAILED = "failed"
    MEASURED = "measured"
    NOT_ASKED = "not_asked"
    NOT_TESTABLE = "not_testable"


@dataclass(frozen=True, slots=True)
class TrustLimits:
    """What to hold a trace to; None: only measure. ``progress``: every worker owes its peers control messages."""

    operator_ns: int | None = None
    message_ns: int | None = None
    pause_ns: int | None = None
    progress: bool = False


@dataclass(frozen=True, slots=True)
class CheckExample:
    """Where a check failed: workers and operator (``NONE`` if it is not about one) and from when until when."""

    worker: int
    peer: int
    operator: int
    from_ns: int
    to_ns: int


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a trace: ``count`` violations among ``tested``; the first few as examples.

    ``worst_ns`` is the longest that was found where a duration is checked, else 0; ``limit_ns`` what was allowed,
    or 0 for no limit (then the state is MEASURED).
    """

    code: str
    state: CheckState
    count: int
    tested: int
    worst_ns: int
    limit_ns: int
    examples: tuple[CheckExample, ...]


@dataclass(frozen=True, slots=True)
class TrustAnswer:
    """Whether a trace can be trusted; ``unknown_share`` is the participation of what nobody reported."""

    start_ns: int
    end_ns: int
    window_count: int
    windows_ok: int
    unknown_share: float
    checks: tuple[Check, ...]
    diagnostics: tuple[Diagnostic, ...]


Answer = WhyAnswer | WhatIfAnswer | WhatIfPaths | WhatIfRanking | Comparison | CollocationAnswer | TrustAnswer
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Answer)}


class UnreadableAnswerError(ValueError):
    """The payload is no answer of this release."""


def to_json(answer: Answer) -> dict[str, Any]:
    """The answer as what JSON can say; ``kind`` names which answer it is."""
    return {"kind": type(answer).__name__, **to_plain(answer)}


def from_json(payload: dict[str, Any]) -> Answer:
    """The answer of `to_json`.

    Raises
    ------
    UnreadableAnswerError
        If it is of another release, or none at all.
    """
    kind = _KINDS.get(str(payload.get("kind")))
    if kind is None:
        raise UnreadableAnswerError(f"no such answer: {payload.get('kind')!r}")
    try:
        answer: Answer = from_plain(kind, payload)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableAnswerError(f"not a readable {kind.__name__}: {error!r}") from error
    return answer
