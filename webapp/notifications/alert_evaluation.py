"""Evaluating rules: new values, what they change, and having it told.

A rule is evaluated by whoever holds its row, in one transaction with the rows that say what fires and with the
messages to be sent (ADR 17): ten workers tell once, and one that dies loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import transaction

from analytics.alerting.machine import Change, Point, Turn, follow
from webapp.notifications import alert_reading
from webapp.notifications.alert_models import Alert, AlertRule, AlertWatch
from webapp.notifications.alert_reading import EVERY, Series
from webapp.notifications.alert_telling import silenced_of, tell

logger = logging.getLogger(__name__)

GONE = "there is nothing to watch any more"


def evaluate_due(now: datetime, most: int = 1_000) -> int:
    """Evaluate the rules that are due, each for itself; returns how many."""
    done = 0
    while done < most and _evaluate_next(now):
        done += 1
    return done


def _evaluate_next(now: datetime) -> bool:
    with transaction.atomic():
        due = (
            AlertRule.objects.filter(due_at__lte=now).order_by("due_at", "pk").select_related("group", "job")
        )
        rule = due.select_for_update(of=("self",), skip_locked=True).first()
        if rule is None:
            return False
        error = ""
        try:
            with transaction.atomic():
                _evaluate(rule, now)
        except Exception as failure:  # a rule that cannot be evaluated must not hold up the others
            logger.exception("alerts.not_evaluated rule=%d", rule.pk)
            error = f"it could not be evaluated: {failure!r}"[:500]
        AlertRule.objects.filter(pk=rule.pk).update(due_at=now + EVERY, error=error)
    return True


def _evaluate(rule: AlertRule, now: datetime) -> None:
    watches = {row.subject: row for row in rule.watches.all()}
    open_ = {row.subject: row for row in rule.alerts.filter(resolved_at=None)}
    found = alert_reading.current(rule, {key: row.seen_ns for key, row in watches.items()}, now)
    moved = []
    for series in found:
        points = series.points
        if not points:
            continue
        row = watches.get(series.key) or AlertWatch(rule=rule, subject=series.key)
        after, changes = follow(rule.terms, row.watch, points)
        row.firing, row.row, row.seen_ns = after.firing, after.row, points[-1].at_ns
        moved.append(row)
        _keep(rule, series, changes, open_)
    fields = ["firing", "row", "seen_ns"]
    AlertWatch.objects.bulk_create(
        moved, update_conflicts=True, unique_fields=["rule", "subject"], update_fields=fields
    )
    _end_gone(rule, {series.key for series in found}, open_, now)
    tell(rule, silenced_of(rule, now))


def _keep(rule: AlertRule, series: Series, changes: Sequence[Change], open_: dict[str, Alert]) -> None:
    """Open and close the alerts of a subject in the order of its turns, and keep their worst values."""
    turns = {change.at_ns: change for change in changes}
    for point in series.points:
        alert, turn = open_.get(series.key), turns.get(point.at_ns)
        if turn is not None and turn.turn is Turn.FIRED:
            open_[series.key] = _fire(rule, series, turn)
        elif turn is not None and alert is not None:
            alert.resolved_at, alert.last = _time(turn.at_ns), turn.value
            alert.save(update_fields=["resolved_at", "worst", "last"])
            del open_[series.key]
        elif alert is not None:
            _deepen(rule, alert, point)
    if (alert := open_.get(series.key)) is not None:
        alert.save(update_fields=["worst", "last"])


def _fire(rule: AlertRule, series: Series, turn: Change) -> Alert:
    return Alert.objects.create(
        rule=rule, subject=series.key, subject_name=series.name[:300], path=series.path,
        job_id=series.job_id, fired_at=_time(turn.at_ns), worst=turn.value, last=turn.value,
    )  # fmt: skip


def _deepen(rule: AlertRule, alert: Alert, point: Point) -> None:
    if point.value is not None and point.value == point.value:
        alert.last = point.value
        alert.worst = rule.terms.worse(alert.worst, point.value)


def _end_gone(rule: AlertRule, keys: set[str], open_: dict[str, Alert], now: datetime) -> None:
    """Nobody waits for values of what is gone: a decided proposal, a finished job, one of another group now."""
    for key, alert in open_.items():
        if key not in keys:
            alert.resolved_at, alert.ended_by = now, GONE
            alert.save(update_fields=["resolved_at", "ended_by"])
    rule.watches.exclude(subject__in=keys).delete()


def _time(at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns / 1e9, UTC)
