"""Rules and alerts in words, the same on the page, in messages and in digests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from webapp.notifications.alert_models import LOW_IS_BAD, Alert, AlertRule, RuleKind
from webapp.wording import count, percent, seconds

CP_KINDS = (RuleKind.ACTIVITY_CP, RuleKind.OPERATOR_CP, RuleKind.WORKER_CP)
SHARES = (*CP_KINDS, RuleKind.HEADROOM)
DURATIONS = (RuleKind.NO_DATA, RuleKind.EXPIRING)
AT_ONCE = (*DURATIONS, RuleKind.REGRESSED)
"""What is either so or not at a moment: nothing is counted in a row."""
MOST_SUBJECTS = 20
"""Told in a message; the rest is counted."""


def value(kind: str, found: float) -> str:
    """A value with its unit."""
    if kind in SHARES:
        return percent(found)
    if kind in DURATIONS:
        return seconds(max(0, round(found)))
    return count(round(found), "record") if kind == RuleKind.BACKLOG else ""


def subject_of(rule: AlertRule) -> str:
    """What is measured: ``CP of operator count``."""
    kind = RuleKind(rule.kind)
    if kind in CP_KINDS:
        return f"CP of {kind.value.removesuffix('_cp')} {rule.target.replace('_', ' ')}"
    if kind == RuleKind.BACKLOG:
        return f"Backlog ({rule.target})" if rule.target else "Backlog of the sources"
    return {
        RuleKind.HEADROOM: "Headroom", RuleKind.NO_DATA: "Time without data",
        RuleKind.EXPIRING: "Time until an undecided proposal expires",
        RuleKind.REGRESSED: "A change made things worse",
    }[kind]  # fmt: skip


def condition(rule: AlertRule) -> str:
    """When it fires and when that is over, as a sentence."""
    kind = RuleKind(rule.kind)
    if kind == RuleKind.REGRESSED:
        return "A change made things worse; over once it is taken back, or a day later."
    side, back = ("below", "or more") if kind in LOW_IS_BAD else ("above", "or less")
    fires = f"{subject_of(rule)} {side} {_limit(kind, rule.threshold)}{_row(kind, rule.fire_after)}"
    if kind == RuleKind.NO_DATA:
        return f"{fires}; over with new data."
    if kind == RuleKind.EXPIRING:
        return f"{fires}; over once it is decided or has expired."
    return f"{fires}; over at {_limit(kind, rule.clear)} {back}{_row(kind, rule.clear_after)}."


def _limit(kind: str, found: float) -> str:
    """A threshold as it was given; values are rounded for reading."""
    return f"{found * 100:.4g} %" if kind in SHARES else value(kind, found)


def _row(kind: str, values: int) -> str:
    if kind in AT_ONCE:
        return ""
    noun = "window" if kind in CP_KINDS else "value"
    return f" for {count(values, noun)} in a row" if values > 1 else ""


def state_of(alert: Alert) -> str:
    """Newest and worst value of an alert: ``now 71 %, worst 83 %``."""
    kind = alert.rule.kind
    last, worst = value(kind, alert.last), value(kind, alert.worst)
    if not last:
        return ""
    return f"now {last}" if last == worst else f"now {last}, worst {worst}"


def message(
    rule: AlertRule, fired: Sequence[Alert], resolved: Sequence[Alert], still: Sequence[Alert],
    hushed: Sequence[Alert], why: str = "",
) -> tuple[str, str]:  # fmt: skip
    """Title and text of the one message about all that changed for a rule: subjects that fire now, that are over,
    that go on firing, and of which nothing is said since they were silenced after they had fired."""
    about = f"{rule.name} ({rule.group.name})"
    if fired:
        title = f"FIRING: {about}: {_named(fired)}"
    elif still or hushed:
        title = f"PARTLY OVER: {about}: {_named(resolved)}"
    else:
        title = f"RESOLVED: {about}: {_named(resolved)}"
    lines = [condition(rule), *([why] if why else [])]
    for heading, rows in (("Fires now", fired), ("Over", resolved), ("Fires still", still)):
        lines += [f"{heading}: {_line(row)}" for row in rows[:MOST_SUBJECTS]]
        if len(rows) > MOST_SUBJECTS:
            lines.append(f"{heading}: and {len(rows) - MOST_SUBJECTS:,} more")
    if hushed:
        lines.append(f"Silenced after it had fired: {_named(hushed)}")
    return title, "\n".join(lines)


def looked_after(rule: AlertRule, rows: Sequence[Alert]) -> tuple[str, str]:
    """Title and text of the message that somebody looks after all that fires for a rule."""
    said = [f"{row.acknowledged_by_name} looks after {row.subject_name}" for row in rows[:MOST_SUBJECTS]]
    if len(rows) > MOST_SUBJECTS:
        said.append(f"and {len(rows) - MOST_SUBJECTS:,} more")
    return f"ACKNOWLEDGED: {rule.name} ({rule.group.name}): {_named(rows)}", "\n".join(said)


def _named(rows: Sequence[Alert]) -> str:
    return rows[0].subject_name if len(rows) == 1 else f"{len(rows):,} subjects"


def _line(row: Alert) -> str:
    parts = [row.subject_name, f"since {_at(row.fired_at)}"]
    if row.resolved_at is not None:
        parts = [row.subject_name, f"{_at(row.fired_at)} to {_at(row.resolved_at)}"]
        if worst := value(row.rule.kind, row.worst):
            parts.append(f"worst {worst}")
        if row.ended_by:
            parts.append(row.ended_by)
    elif state := state_of(row):
        parts.append(state)
    return ", ".join(parts)


def _at(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
