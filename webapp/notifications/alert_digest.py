"""What digests say about alerts: those that fire, then those that fired in the period."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from webapp.notifications.alert_models import Alert
from webapp.notifications.alert_words import condition, state_of, value
from webapp.notifications.digest import Item, Tone

MOST_READ = 200


def alerts(found: QuerySet[Alert], zone: ZoneInfo) -> list[Item]:
    """An item for each; what fires now comes first."""
    return [_item(row, zone) for row in found[:MOST_READ]]


def _item(row: Alert, zone: ZoneInfo) -> Item:
    fired = f"{row.fired_at.astimezone(zone):%a %d %b %H:%M}"
    if row.resolved_at is None:
        state = state_of(row)
        line, tone = f"Fires since {fired}{', ' if state else ''}{state}.", Tone.HARM
    else:
        worst = value(row.rule.kind, row.worst)
        to = f"{row.resolved_at.astimezone(zone):%a %d %b %H:%M}"
        line, tone = f"Fired from {fired} to {to}{', worst ' if worst else ''}{worst}.", Tone.WARN
    lines = [line, condition(row.rule)]
    if row.acknowledged_by_name:
        lines.append(f"{row.acknowledged_by_name} looks after it.")
    return Item(f"{row.rule.name}: {row.subject_name}", row.path, tuple(lines), tone)
