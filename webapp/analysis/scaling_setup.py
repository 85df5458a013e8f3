"""How a job is advised on parallelism: what a person sets, and who may."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from analytics.scaling.settings import BadSettingsError, settings_of
from webapp.accounts.models import User
from webapp.analysis.models import ScalingSetup
from webapp.audit.services import Entry, record, record_refused
from webapp.jobs.models import Job, Role
from webapp.jobs.policies import may

NEEDED_ROLE = Role.OPERATOR
"""A setup changes only what is proposed; what is done stays under the job's rules (ADR 13)."""

MOST_TARGETS = 1_000


@dataclass(frozen=True)
class WantedSetup:
    """What a person can set (see ``ScalingSetup``)."""

    policy: str = "ds2"
    settings: Mapping[str, Any] = field(default_factory=dict)
    targets_per_s: Mapping[str, float] = field(default_factory=dict)
    enabled: bool = True


def setup_of(job: Job) -> ScalingSetup:
    """The job's setup; the defaults, not stored, if it has none."""
    return ScalingSetup.objects.filter(job=job).first() or ScalingSetup(job=job)


def change_setup(actor: User, job: Job, wanted: WantedSetup, reason: str = "") -> ScalingSetup:
    """Have the job advised this way from its next rates on.

    With another policy or other settings, what the policy remembered is forgotten.

    Raises
    ------
    PermissionDenied
        If the actor is less than an operator of the job.
    ValidationError
        If the policy, a setting or a target makes no sense.
    """
    if not may(actor, job, NEEDED_ROLE):
        refusal = f"this needs the role {NEEDED_ROLE.value} on {job.name}"
        record_refused(_entry(actor, job, refusal, {}))
        raise PermissionDenied(refusal)
    _check(wanted)
    with transaction.atomic():
        ScalingSetup.objects.get_or_create(job=job)
        setup = ScalingSetup.objects.select_for_update().get(job=job)
        before = _said(setup)
        if (setup.policy, setup.settings) != (wanted.policy, dict(wanted.settings)):
            setup.memory = None
        setup.policy, setup.settings, setup.enabled = wanted.policy, dict(wanted.settings), wanted.enabled
        setup.targets_per_s = {name: float(rate) for name, rate in wanted.targets_per_s.items()}
        setup.seen_ns, setup.error = None, ""  # the newest rates are looked at once more, with other eyes
        setup.revision += 1  # what is being computed with the setup of before is not stored
        setup.save()
        record(_entry(actor, job, reason, {"before": before, "after": _said(setup)}))
    return setup


def _check(wanted: WantedSetup) -> None:
    wrong = {}
    try:
        settings_of(wanted.policy, wanted.settings)
    except BadSettingsError as error:
        wrong["settings"] = str(error)
    rates = wanted.targets_per_s
    if len(rates) > MOST_TARGETS:
        wrong["targets_per_s"] = f"expected at most {MOST_TARGETS} sources"
    for name, rate in rates.items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not _is_rate(rate):
            wrong["targets_per_s"] = f"{name}: expected records per second, a number of at least 0"
    if wrong:
        raise ValidationError(wrong)


def _is_rate(rate: float) -> bool:
    try:
        return math.isfinite(rate) and rate >= 0
    except OverflowError:
        return False


def _said(setup: ScalingSetup) -> dict[str, Any]:
    return {
        "policy": setup.policy,
        "settings": setup.settings,
        "targets_per_s": setup.targets_per_s,
        "enabled": setup.enabled,
    }


def _entry(actor: User, job: Job, reason: str, detail: dict[str, Any]) -> Entry:
    return Entry(actor, "scaling.change_setup", "job", job.pk, job.pk, job.name, reason, detail)
