"""Setting the rules under which a job may be changed, and stopping all changes."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import Entry, record, record_refused, storable
from webapp.jobs.models import Job
from webapp.reconfigurations import change_windows, policies
from webapp.reconfigurations.errors import DecidedError, NotAllowedError, ReasonRequiredError, RefusedError
from webapp.reconfigurations.models import ChangePolicy, EngineKind, Freeze

SECRETS = ("webhook_secret",)
BOUNDS_S = {"expires_after_s": (60, 2_592_000), "apply_limit_s": (5, 3_600), "settle_s": (80, 3_600)}


def change_rules(actor: User, job: Job, **changes: Any) -> ChangePolicy:
    """Change some of a job's rules (fields of ``ChangePolicy``); both values go to the audit record.

    Raises
    ------
    RefusedError
        If the actor is no admin of the job.
    ValidationError
        If a value makes no sense; nothing has changed then.
    """
    unknown = changes.keys() - {item.name for item in ChangePolicy._meta.concrete_fields} - {"id", "job"}
    if unknown:
        raise ValidationError(f"there is no rule {', '.join(sorted(unknown))}")
    _require(actor, job, "configure", "rules.change")
    with transaction.atomic():
        ChangePolicy.objects.get_or_create(job=job)
        rules = ChangePolicy.objects.select_for_update().get(job=job)
        before = {name: _shown(name, getattr(rules, name)) for name in changes}
        for name, value in changes.items():
            setattr(rules, name, value)
        _check(rules)
        rules.save()
        after = {name: _shown(name, value) for name, value in changes.items()}
        detail = {"before": before, "after": after}
        record(Entry(actor, "rules.change", "job", job.pk, job.pk, job.name, detail=detail))
    return rules


def freeze(actor: User, job: Job | None, reason: str) -> Freeze:
    """Stop all changes of a job, or without one of every job (superusers only), until somebody lifts it.

    Raises
    ------
    RefusedError
        If the actor may not, gives no reason, or it is frozen already.
    """
    action = "freeze"
    if not reason.strip():
        raise _refuse(actor, job, action, ReasonRequiredError("say why nothing may be changed"))
    _require(actor, job, "freeze", action)
    try:
        with transaction.atomic():
            row = Freeze.objects.create(job=job, reason=storable(reason), by_name=actor.get_username())
            record(_entry(actor, job, action, reason, row.pk))
            return row
    except IntegrityError as error:
        raise _refuse(actor, job, action, DecidedError("it is frozen already")) from error


def lift_freeze(actor: User, job: Job | None, reason: str = "") -> None:
    """Allow changes again.

    Raises
    ------
    RefusedError
        If the actor may not, or nothing is frozen.
    """
    _require(actor, job, "freeze", "freeze.lift")
    with transaction.atomic():
        live = Freeze.objects.select_for_update(of=("self",)).filter(job=job, lifted_at=None).first()
        if live is not None:
            live.lifted_at, live.lifted_by_name = timezone.now(), actor.get_username()
            live.save(update_fields=["lifted_at", "lifted_by_name"])
            record(_entry(actor, job, "freeze.lift", reason, live.pk))
            return
    raise _refuse(actor, job, "freeze.lift", DecidedError("it is not frozen"))


def _require(actor: User, job: Job | None, needed: str, action: str) -> None:
    try:
        if job is not None:
            policies.require(actor, job, needed)
        elif not (actor.is_active and actor.is_superuser):
            raise NotAllowedError("only a superuser may do this for all jobs")
    except (RefusedError, PermissionDenied) as error:
        record_refused(_entry(actor, job, action, str(error), None))
        raise


def _refuse(actor: User, job: Job | None, action: str, error: RefusedError) -> RefusedError:
    record_refused(_entry(actor, job, action, str(error), None))
    return error


def _entry(actor: User, job: Job | None, action: str, reason: str, row: int | None) -> Entry:
    return Entry(
        actor, action, "freeze" if row else "job", row or (job.pk if job else None), job.pk if job else None,
        job.name if job else "", reason,
    )  # fmt: skip


def _shown(name: str, value: object) -> object:
    return ("set" if value else "not set") if name in SECRETS else value


def _check(rules: ChangePolicy) -> None:
    change_windows.parse(rules.windows)
    rules.full_clean(exclude=["job"])
    if not 1 <= rules.auto_max_factor < math.inf:
        raise ValidationError({"auto_max_factor": "a factor is a number of at least 1"})
    for name, (least, most) in BOUNDS_S.items():
        if not least <= getattr(rules, name) <= most:
            raise ValidationError({name: f"expected {least:,} to {most:,} seconds"})
    if rules.engine == EngineKind.DRY_RUN:
        return
    address = urlsplit(rules.engine_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ValidationError({"engine_url": "an address beginning with http:// or https:// is needed"})
    if rules.engine == EngineKind.WEBHOOK and not rules.webhook_secret.startswith("whsec_"):
        raise ValidationError({"webhook_secret": "a secret begins with whsec_, followed by base64"})
