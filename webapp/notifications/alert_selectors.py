"""What pages and digests ask about alerts."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from webapp.accounts.models import User
from webapp.jobs.models import JobGroup, Membership, Role
from webapp.notifications.alert_models import Alert, AlertRule, Silence
from webapp.notifications.policies import groups_of


def roles(actor: User) -> dict[int, Role]:
    """The person's role in each group they see."""
    if actor.is_superuser:
        return dict.fromkeys(groups_of(actor).values_list("pk", flat=True), Role.ADMIN)
    found = Membership.objects.filter(user=actor).values_list("group_id", "role")
    return {group_id: Role(role) for group_id, role in found}


def rules(actor: User) -> QuerySet[AlertRule]:
    """The rules of the groups that this person sees."""
    found = AlertRule.objects.filter(group__in=groups_of(actor)).select_related("group", "job")
    return found.order_by("group__name", "name")


def alerts(actor: User) -> QuerySet[Alert]:
    """The alerts of those groups, the newest first."""
    return (
        Alert.objects.filter(rule__in=rules(actor)).select_related("rule__group").order_by("-fired_at", "-pk")
    )


def firing(actor: User, now: datetime) -> QuerySet[Alert]:
    """Those that fire now, the oldest first, annotated with ``silenced``."""
    found = alerts(actor).filter(resolved_at=None).annotate(silenced=is_silenced(now))
    return found.order_by("fired_at", "pk")


def is_silenced(now: datetime) -> Exists:
    """Of an alert: whether a silence lies on its group or its rule, and on all jobs or on its own."""
    live = Silence.objects.filter(group=OuterRef("rule__group_id"), ended_at=None, until__gt=now)
    ruled = live.filter(Q(rule=None) | Q(rule=OuterRef("rule_id")))
    return Exists(ruled.filter(Q(job=None) | Q(job=OuterRef("job_id"))))


def silences(actor: User, now: datetime) -> QuerySet[Silence]:
    """The silences that hold now, those that end first before others."""
    found = Silence.objects.filter(group__in=groups_of(actor), ended_at=None, until__gt=now)
    return found.select_related("group", "rule", "job").order_by("until", "pk")


def in_period(groups: QuerySet[JobGroup], since: datetime, until: datetime) -> QuerySet[Alert]:
    """The alerts that fired at any time in the period, those that still do first."""
    over = Q(resolved_at=None) | Q(resolved_at__gt=since)
    found = Alert.objects.filter(over, rule__group__in=groups, fired_at__lte=until)
    return found.select_related("rule__group").order_by("-resolved_at", "fired_at")
