"""The first line of a job's page: what limits it, how sure that is, or why nobody can tell."""

from __future__ import annotations

import json
from typing import Any

from dash import html

from analytics.model.activity import ActivityType
from analytics.model.answers import Answer, Target, TargetKind, WhatIfRanking
from frontend import words
from frontend.components.facts import link
from frontend.state import View, iso
from webapp.analysis.selectors import Limits

LATE_S = 10
"""The newest windows of a live job always wait for a moment; longer is worth saying."""

MUCH_UNKNOWN = 0.5
"""Above this share of unknown activity the rest says little: the instrumentation is too thin."""


def sentence(limits: Limits, view: View, newest_ns: int | None) -> list[Any]:
    """What limits the job, as the children of a paragraph."""
    name = html.Em(limits.job.name)
    if limits.coverage.window_count == 0:
        return ["Cannot tell what limits ", name, ": ", *_why_nothing(limits, view, newest_ns)]
    if limits.limiter is None or not _is_known(limits):
        unknown = unknown_share(limits)
        return [
            "Cannot tell what limits ", name,
            f": {words.percent(unknown)} of its critical paths {view.span_words} are time nobody recorded."
            " The source must report more of what its workers do.",
        ]  # fmt: skip
    limiter = limits.limiter
    kind = words.activity(limiter.activity)
    total = recorded_time(limits)
    profile = limiter.conventional / total if total else 0.0
    subject = (
        [html.Strong(limiter.operator), f" ({kind})"]
        if limiter.operator
        else [html.Strong(kind.capitalize())]
    )
    return [
        *subject, " limits ", name, ": ", html.Strong(words.percent(limiter.cp)),
        f" of critical paths {view.span_words} (profile says {words.percent(profile)}).",
    ]  # fmt: skip


def _is_known(limits: Limits) -> bool:
    if limits.limiter is None or limits.coverage.window_count == 0:
        return False
    return limits.limiter.activity != ActivityType.UNKNOWN and unknown_share(limits) <= MUCH_UNKNOWN


def more(limits: Limits, ranking: Answer | None) -> list[Any]:
    """What follows the sentence: what a faster limiter would save, if that is known, and the way to why."""
    if not _is_known(limits):
        return []
    parts: list[Any] = [" "]
    target = _target(limits)
    rows = ranking.rows if isinstance(ranking, WhatIfRanking) else ()
    row = next((row for row in rows if row.target == target), None)
    if row is not None and isinstance(ranking, WhatIfRanking) and ranking.length_ns:
        saved = row.saved_ns[ranking.factors.index(2.0)] / ranking.length_ns
        kept = html.Strong(words.percent(saved)) if saved else html.Strong("nothing")
        parts += ["Making it 2× faster would save ", kept, ". "]
    return [*parts, link("Why?", {"tab": "why", "window": None, "worker": None, "at": None})]


def _target(limits: Limits) -> Target | None:
    """The limiter as what could be made faster: its operator, else its activity type."""
    limiter = limits.limiter
    if limiter is None:
        return None
    number = next((n for n, name in limits.operator_names.items() if name == limiter.operator), None)
    if number is not None and limiter.operator:
        return Target(TargetKind.OPERATOR, number)
    return Target(TargetKind.ACTIVITY, int(limiter.activity))


def recorded_time(limits: Limits) -> float:
    """Sum of the conventional profile without waiting and unknown: what a profiler would have seen."""
    silent = (ActivityType.WAITING, ActivityType.UNKNOWN)
    return sum(share.conventional for share in limits.activities if share.key[0] not in silent)


def unknown_share(limits: Limits) -> float:
    """The unknown part of the critical paths."""
    return next((s.cp for s in limits.activities if s.key[0] == ActivityType.UNKNOWN), 0.0)


def _why_nothing(limits: Limits, view: View, newest_ns: int | None) -> list[Any]:
    cover = limits.coverage
    if cover.without_result:
        why = max(cover.without_result, key=lambda code: cover.without_result[code])
        detail = f" ({cover.reason})" if cover.reason else ""
        return [f"no window {view.span_words} has a result, mostly because {words.status(why)}{detail}."]
    if newest_ns is None:
        if limits.job.first_ns is None:
            if limits.job.last_received_at is None:
                return ["it has not reported anything yet."]
            told = "it reports rates, but not what its workers do, so it has no critical paths. "
            return [told, link("How many instances it needs", {"tab": "scaling"})]
        return ["its first windows are still being analysed."]
    half_ns = 450_000_000_000
    range_ = {"from": iso(newest_ns - half_ns), "to": iso(newest_ns + limits.job.window_ns), "live": None}
    at = f"{view.time(newest_ns):%Y-%m-%d %H:%M:%S} {view.zone_label}"
    return [
        f"it has no window {view.span_words}. Its newest is of {at}. ",
        html.Button("Show that time", className="link", id="show-newest", **{"data-set": json.dumps(range_)}),
    ]


def completeness(limits: Limits, view: View, ranges_waiting: int, waiting_s: float) -> list[Any]:
    """What the page rests on: windows with a result and without, the unknown share, and what still waits."""
    cover = limits.coverage
    parts: list[Any] = [html.Span(f"{words.count(cover.window_count, 'window')} with a result")]
    lost = sum(cover.without_result.values())
    if lost:
        reasons = [
            f"{number:,} {words.status(code)}"
            for code, number in sorted(cover.without_result.items(), key=lambda item: -item[1])
        ]
        parts.append(html.Span(f"{lost:,} without ({words.series(reasons)})", title=cover.reason))
    if cover.window_count:
        parts.append(html.Span(f"Unknown: {words.percent(unknown_share(limits))} of critical paths"))
    parts.append(html.Span(f"{cover.record_count:,} records"))
    if cover.last_window_ns is not None:
        parts.append(html.Span(f"newest window {view.time(cover.last_window_ns):%H:%M:%S} {view.zone_label}"))
    if ranges_waiting:
        late = waiting_s > LATE_S
        since = f" for {waiting_s:.0f} s" if late else ""
        text = f"{words.count(ranges_waiting, 'range')} waiting for analysis{since}"
        parts.append(html.Span(text, className="warn" if late else ""))
    return parts
