"""One message about all that changed for a rule to every channel of its group; the caller holds the rule's row."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime

from django.db.models import Q, QuerySet

from analytics.alerting.machine import Told, to_tell
from webapp.notifications import alert_selectors, channels
from webapp.notifications.alert_models import Alert, AlertRule
from webapp.notifications.alert_words import looked_after, message
from webapp.notifications.models import Channel, ChannelKind

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
    rows = list(_unsaid(rule).order_by("fired_at", "pk"))
    for row in rows:
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
    _post(rule, _channels(rule), title, text, "resolve" if over else "trigger")
    heard = [row.acknowledged_at for row in rows if row.told == Told.FIRED]
    if not (heard and all(heard)) and nobody_is_missing(
        rule
    ):  # acknowledged in silence, or the others are over
        tell_acknowledged(rule)


def nobody_is_missing(rule: AlertRule) -> bool:
    """Whether somebody looks after each alert that people were told of and that fires; False without any."""
    known = rule.alerts.filter(told=Told.FIRED, resolved_at=None)
    return known.exists() and not known.filter(acknowledged_at=None).exists()


def tell_acknowledged(rule: AlertRule) -> None:
    """PagerDuty hears that its incident is looked after and wakes nobody else, in silence too; others do not."""
    known = rule.alerts.filter(told=Told.FIRED, resolved_at=None).order_by("fired_at", "pk")
    title, text = looked_after(rule, list(known))
    _post(rule, _channels(rule).filter(kind=ChannelKind.PAGERDUTY), title, text, "acknowledge")


def tell_taken_back(alert: Alert, who: str) -> None:
    """PagerDuty hears that nobody looks after an alert any more. It knows no way back from an acknowledgement, and
    takes what fires again for more of the same: so its incident ends, and a new one begins."""
    rule = alert.rule
    known = list(rule.alerts.filter(told=Told.FIRED, resolved_at=None).order_by("fired_at", "pk"))
    for row in known:
        row.rule = rule
    title, text = message(
        rule, known, [], [], [], f"{who} took back that somebody looks after {alert.subject_name}."
    )
    to = _channels(rule).filter(kind=ChannelKind.PAGERDUTY)
    for action in ("resolve", "trigger"):
        _post(rule, to, title, text, action)


def _channels(rule: AlertRule) -> QuerySet[Channel]:
    return Channel.objects.filter(group=rule.group_id).select_related("group")


def _post(rule: AlertRule, to: QuerySet[Channel], title: str, text: str, action: str) -> None:
    for channel in to:
        channels.post(
            channel, title=title, text=text, path=PATH, severity=rule.severity, key=f"weir-alert-{rule.pk}",
            action=action,
        )  # fmt: skip
