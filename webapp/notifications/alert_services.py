"""What people do about alerts: rules for admins; silences and acknowledgements for operators; previews for all."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from analytics.alerting.machine import Episode, Told, episodes, faults
from analytics.model.activity import BY_LABEL
from webapp.accounts.models import User
from webapp.api.etags import etag_of
from webapp.audit.services import Entry, record, record_refused
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.notifications import alert_reading
from webapp.notifications.alert_models import Alert, AlertRule, RuleKind, Severity, Silence
from webapp.notifications.alert_telling import (
    nobody_is_missing,
    silenced_of,
    tell,
    tell_acknowledged,
    tell_taken_back,
)
from webapp.notifications.alert_words import AT_ONCE, CP_KINDS, SHARES
from webapp.reconfigurations.errors import StaleViewError

PREVIEW = timedelta(days=1)
LONGEST_SILENCE = timedelta(days=30)
MOST_RULES = 100
"""Of a group."""
NO_SUCH = "there is no such rule, alert or group"
NO_SUCH_JOB = "the group has no such job"


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A rule as somebody wants it; ``job_id`` None: about all of the group. Units as in ``AlertRule``."""

    name: str
    kind: str
    threshold: float
    clear: float
    job_id: int | None = None
    target: str = ""
    fire_after: int = 1
    clear_after: int = 1
    severity: str = Severity.WARNING


@dataclass(frozen=True, slots=True)
class Previewed:
    """What a rule would have done to one subject, and on how many values that rests."""

    name: str
    path: str
    episodes: tuple[Episode, ...]
    value_count: int


def role_in(actor: User, group_id: int) -> Role | None:
    """The person's role in a group; a superuser is an admin everywhere."""
    if not actor.is_active:
        return None
    if actor.is_superuser:
        return Role.ADMIN
    found = Membership.objects.filter(user=actor, group_id=group_id).first()
    return Role(found.role) if found else None


def revision(rule: AlertRule) -> str:
    """Of what a rule says, not of how evaluating it goes: who changes it must have seen the last change."""
    return etag_of({"id": rule.pk, **{item.name: getattr(rule, item.name) for item in fields(RuleDraft)}})


def save_rule(
    actor: User, group: JobGroup, draft: RuleDraft, rule_id: int | None = None, seen: str | None = None
) -> AlertRule:
    """A new rule, or a changed one. What a changed rule no longer watches is over.

    Raises
    ------
    PermissionDenied
        Unless the actor is an admin of the group.
    ValidationError
        If a value makes no sense.
    StaleViewError
        If ``seen`` is the revision of an earlier state.
    """
    action = "alert_rule.create" if rule_id is None else "alert_rule.change"
    _require(actor, group.pk, Role.ADMIN, action, rule_id)
    row = checked(group, draft)
    row.created_by_name = actor.get_username()
    try:
        with transaction.atomic():
            if rule_id is None:
                if group.alert_rules.count() >= MOST_RULES:
                    raise ValidationError(f"a group can have {MOST_RULES} rules")
            else:
                old = _locked(group, rule_id)
                if seen is not None and seen != revision(old):
                    raise StaleViewError(
                        f"somebody changed the rule {old.name} since you began: begin again with Change"
                    )
                _take_place(row, old)
            row.save()
            record(Entry(actor, action, "alert_rule", row.pk, detail={"group": group.name, **asdict(draft)}))
    except IntegrityError:
        raise ValidationError({"name": "the group has a rule of this name already"}) from None
    return row


def _take_place(row: AlertRule, old: AlertRule) -> None:
    row.pk, row.created_at, row.created_by_name = old.pk, old.created_at, old.created_by_name
    if (row.kind, row.target, row.job_id) != (old.kind, old.target, old.job_id):
        old.watches.all().delete()
        changed = {"resolved_at": timezone.now(), "ended_by": "the rule was changed"}
        old.alerts.filter(resolved_at=None).update(**changed)
    else:
        old.watches.update(row=0)


def remove_rule(actor: User, rule_id: int) -> None:
    """Remove a rule with its history; channels that know of an alert of it hear that it is over.

    Raises
    ------
    PermissionDenied
        Unless the actor is an admin of the rule's group.
    """
    with transaction.atomic():
        rule = AlertRule.objects.select_for_update(of=("self",)).select_related("group").filter(pk=rule_id)
        row = rule.first()
        _require(actor, row.group_id if row else 0, Role.ADMIN, "alert_rule.remove", rule_id)
        assert row is not None
        now, why = timezone.now(), f"{actor.get_username()} removed the rule"
        row.alerts.filter(resolved_at=None).update(resolved_at=now, ended_by=why)
        tell(row, frozenset(), f"{why}.")  # what somebody still believes to be firing must not stay so
        detail = {"group": row.group.name, "name": row.name}
        record(Entry(actor, "alert_rule.remove", "alert_rule", row.pk, detail=detail))
        row.delete()


def acknowledge(actor: User, alert_id: int) -> Alert:
    """Say that one looks after an alert; the first who does stands there. PagerDuty hears when nobody is missing.

    Raises
    ------
    PermissionDenied
        Unless the actor is an operator of the alert's group.
    """
    with transaction.atomic():
        row = _held(actor, alert_id, "alert.acknowledge")
        if row.acknowledged_at is None:
            row.acknowledged_at, row.acknowledged_by_name = timezone.now(), actor.get_username()
            _note_attention(actor, row, "alert.acknowledge")
            if row.told == Told.FIRED and row.resolved_at is None and nobody_is_missing(row.rule):
                tell_acknowledged(row.rule)
    return row


def take_back(actor: User, alert_id: int) -> Alert:
    """Say that nobody looks after an alert any more. If PagerDuty heard that somebody did, it wakes people again.

    Raises
    ------
    PermissionDenied
        Unless the actor is an operator of the alert's group.
    ValidationError
        While it fires in silence: nobody would hear that somebody is missing.
    """
    with transaction.atomic():
        row = _held(actor, alert_id, "alert.take_back")
        if row.acknowledged_at is None or row.resolved_at is not None:
            return row
        if row.pk in silenced_of(row.rule, timezone.now()):
            raise ValidationError("it is silenced, so nobody would hear of it: end the silence first")
        known = row.told == Told.FIRED and nobody_is_missing(row.rule)
        row.acknowledged_at, row.acknowledged_by_name = None, ""
        _note_attention(actor, row, "alert.take_back")
        if known:
            tell_taken_back(row, actor.get_username())
    return row


def _held(actor: User, alert_id: int, action: str) -> Alert:
    """An alert that the actor is an operator of, under its rule's lock, which whoever evaluates holds too: what
    they tell meanwhile is seen here, or this by them."""
    rules = AlertRule.objects.select_for_update(of=("self",)).select_related("group")
    rule = rules.filter(alerts=alert_id).first()
    _require(actor, rule.group_id if rule else 0, Role.OPERATOR, action, alert_id)
    assert rule is not None
    row = rule.alerts.get(pk=alert_id)
    row.rule = rule
    return row


def _note_attention(actor: User, row: Alert, action: str) -> None:
    row.save(update_fields=["acknowledged_at", "acknowledged_by_name"])
    detail = {"rule": row.rule.name, "subject": row.subject_name}
    record(Entry(actor, action, "alert", row.pk, detail=detail))


def silence(
    actor: User, group: JobGroup, until: datetime, reason: str, rule: AlertRule | None = None,
    job: Job | None = None,
) -> Silence:  # fmt: skip
    """Tell channels nothing of a rule, or of all rules of the group, until a time; of a job, or of all.

    Raises
    ------
    PermissionDenied
        Unless the actor is an operator of the group.
    ValidationError
        Without a reason, if the time makes no sense, or if the rule finds nothing about the job.
    """
    _require(actor, group.pk, Role.OPERATOR, "silence.create", None)
    now, wrong = timezone.now(), {}
    if not reason.strip() or "\0" in reason or len(reason.strip()) > 300:
        wrong["reason"] = "a reason of 1 to 300 characters is needed"
    if not now < until <= now + LONGEST_SILENCE:
        wrong["until"] = "a silence lasts up to 30 days"
    if rule is not None and rule.group_id != group.pk:
        wrong["rule"] = NO_SUCH
    if job is not None and (why := _why_not_about(group, rule, job)):
        wrong["job"] = why
    if wrong:
        raise ValidationError(wrong)
    with transaction.atomic():
        row = Silence.objects.create(
            group=group, rule=rule, job=job, reason=reason.strip(), until=until, by=actor,
            by_name=actor.get_username(),
        )  # fmt: skip
        record(_silence_entry(actor, "silence.create", row, row.reason, until=until.isoformat()))
    return row


def _why_not_about(group: JobGroup, rule: AlertRule | None, job: Job) -> str:
    """Why nothing that the rule finds would be about the job; "" if something could be."""
    if job.group_id != group.pk:
        return NO_SUCH_JOB
    if rule is not None and rule.kind == RuleKind.HEADROOM:
        return "the rule watches clusters, not jobs"
    if rule is not None and rule.job_id not in (None, job.pk):
        return "the rule watches another job"
    return ""


def _silence_entry(actor: User, action: str, row: Silence, reason: str = "", **more: str) -> Entry:
    detail = {"group": row.group.name, "rule": row.rule.name if row.rule else None, **more}
    job_name = row.job.name if row.job else ""
    return Entry(actor, action, "silence", row.pk, row.job_id, job_name, reason, detail)


def end_silence(actor: User, silence_id: int) -> None:
    """End a silence now; what fires and was not told is told then.

    Raises
    ------
    PermissionDenied
        Unless the actor is an operator of the group.
    """
    row = Silence.objects.filter(pk=silence_id).select_related("group", "rule", "job").first()
    _require(actor, row.group_id if row else 0, Role.OPERATOR, "silence.end", silence_id)
    assert row is not None
    with transaction.atomic():
        ended = Silence.objects.filter(pk=row.pk, ended_at=None)
        if ended.update(ended_at=timezone.now(), ended_by_name=actor.get_username()):
            record(_silence_entry(actor, "silence.end", row))


def preview(actor: User, group: JobGroup, draft: RuleDraft, now: datetime) -> list[Previewed]:
    """What the rule would have done in the last 24 h, by the function that decides on new values.

    Raises
    ------
    PermissionDenied
        Unless the actor is in the group.
    ValidationError
        If a value makes no sense.
    """
    _require(actor, group.pk, Role.VIEWER, "alert_rule.preview", None)
    rule = checked(group, draft)
    told = []
    for series in alert_reading.past(rule, now - PREVIEW, now):
        found = episodes(rule.terms, series.points)
        if found and found[-1].to_ns is None and series.gone_ns is not None:
            found = (*found[:-1], Episode(found[-1].from_ns, series.gone_ns, found[-1].worst))
        told.append(Previewed(series.name, series.path, found, len(series.points)))
    return told


def checked(group: JobGroup, draft: RuleDraft) -> AlertRule:
    """The row of a draft, not stored.

    Raises
    ------
    ValidationError
        If a value makes no sense.
    """
    wrong: dict[str, str] = {}
    if not 0 < len(draft.name.strip()) <= 100 or "\0" in draft.name:
        wrong["name"] = "a name of 1 to 100 characters is needed"
    if draft.severity not in Severity.values:
        wrong["severity"] = f"expected one of {', '.join(Severity.values)}"
    if draft.kind not in RuleKind.values:
        raise ValidationError({"kind": f"expected one of {', '.join(RuleKind.values)}"})
    if draft.job_id is not None and not group.jobs.filter(pk=draft.job_id).exists():
        wrong["job"] = NO_SUCH_JOB
    if why := _why_no_target(draft):
        wrong["target"] = why
    given = _settled(group, draft)
    wrong |= faults(given.terms)
    if "threshold" not in wrong and draft.kind in CP_KINDS and not 0 <= draft.threshold < 1:
        wrong["threshold"] = "a share from 0 to below 100 % is needed"
    if "threshold" not in wrong and draft.kind not in SHARES and given.threshold < 0:
        wrong["threshold"] = "it must not be negative"
    if wrong:
        raise ValidationError(wrong)
    return given


def _settled(group: JobGroup, draft: RuleDraft) -> AlertRule:
    """The row, with what follows from the kind."""
    values: dict[str, Any] = asdict(draft) | {"name": draft.name.strip(), "target": draft.target.strip()}
    if draft.kind in AT_ONCE:
        values |= {"fire_after": 1, "clear_after": 1, "clear": draft.threshold}
    if draft.kind == RuleKind.REGRESSED:
        values |= {"threshold": 0.5, "clear": 0.5}
    if draft.kind not in (*CP_KINDS, RuleKind.BACKLOG):
        values["target"] = ""
    if draft.kind == RuleKind.HEADROOM:
        values["job_id"] = None
    return AlertRule(group=group, due_at=timezone.now(), **values)


def _why_no_target(draft: RuleDraft) -> str:
    target = draft.target.strip()
    if "\0" in target or len(target) > 500:
        return "a name of up to 500 characters is needed"
    if draft.kind == RuleKind.ACTIVITY_CP and target not in BY_LABEL:
        return f"expected one of {', '.join(BY_LABEL)}"
    if draft.kind in CP_KINDS and not target:
        return "a name is needed"
    return ""


def _locked(group: JobGroup, rule_id: int) -> AlertRule:
    found = AlertRule.objects.select_for_update(of=("self",)).filter(pk=rule_id, group=group).first()
    if found is None:
        raise ValidationError(NO_SUCH)
    return found


def _require(actor: User, group_id: int, least: Role, action: str, object_id: int | None) -> None:
    """Refuse who may not, and write that down. To strangers nothing is said of what there is."""
    role = role_in(actor, group_id)
    if role is not None and role.rank >= least.rank:
        return
    why = NO_SUCH if role is None else f"this needs the role {least.value}"
    record_refused(Entry(actor, action, "group", group_id or None, reason=why, detail={"id": object_id}))
    raise PermissionDenied(why)
