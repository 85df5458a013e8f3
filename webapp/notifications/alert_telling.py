"""One message about all that changed for a rule to every channel of its group; the caller holds the rule's row."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime

from django.db.models import Q, QuerySet

from analytics.alerting.machine import Told, to_tell
from webapp.notifications import alert_selectors, channels
from webapp.notifications.alert_models import Alert, AlertRule
from webapp.notifications.alert_words import message
from webapp.notifications.models import Channel

PATH = "/notifications?tab=alerts"


def silenced_of(rule: AlertRule, now: datetime) -> Set[int]:
    """The alerts of a rule about which channels hear nothing now."""
    return set(_unsaid(rule).filter(alert_selectors.is_silenced(now)).values_list("pk", flat=True))


def _unsaid(rule: AlertRule) -> QuerySet[Alert]:
    """Those about which there may be something to tell, now or later."""
    return rule.alerts.filter(Q(told=Told.NOTHING, resolved_at=None) | Q(told=Told.FIRED))


def tell(rule: AlertRule, silenced: Set[int], why: str = "") -> None:
    """Tell all that people do not know yet, but for the alerts that are ``silenced``.

    What people believe to fire keeps the incident open, also while it is silenced; what they have not heard of does
    not.
    """
    news: dict[Told, list[Alert]] = {Told.FIRED: [], Told.RESOLVED: []}
    still: list[Alert] = []
    hushed: list[Alert] = []
    for row in _unsaid(rule).order_by("fired_at", "pk"):
        row.rule = rule
        wanted = to_tell(Told(row.told), row.resolved_at is None, row.pk in silenced)
        if wanted is not None:
            news[wanted].append(row)
        elif row.told == Told.FIRED:
            (hushed if row.pk in silenced else still).append(row)
    if not any(news.values()):
        return
    for told, changed in news.items():
        Alert.objects.filter(pk__in=[row.pk for row in changed]).update(told=told)
    title, text = message(rule, news[Told.FIRED], news[Told.RESOLVED], still, hushed, why)
    over = not (news[Told.FIRED] or still or hushed)
    for channel in Channel.objects.filter(group=rule.group_id).select_related("group"):
        channels.post(
            channel, title=title, text=text, path=PATH, severity=rule.severity, key=f"weir-alert-{rule.pk}",
            action="resolve" if over else "trigger",
        )  # fmt: skip
