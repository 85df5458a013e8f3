"""Clusters and their models: making, uploading, deriving, and giving rates. Every change is in the audit record."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from analytics.model import packed
from analytics.model.bursts import BurstModel, to_document
from analytics.model.bursts_json import burst_model
from analytics.model.diagnostics import Diagnostic, merge
from webapp.accounts.models import User
from webapp.audit.services import Entry, record, record_refused
from webapp.bursts import surveys
from webapp.bursts.models import Cluster, ModelVersion, Origin
from webapp.bursts.policies import groups_for, may_change, may_create
from webapp.jobs.models import JobGroup

MOST_COMPONENTS = 5_000
"""Of a model: more than some hundred applications on some hundred nodes."""

MOST_APPLICATIONS = 400
MOST_NAME = 200
AHEAD_NS = 3_600_000_000_000
"""How far clocks may disagree: rates of a later time would hide what is measured until then."""

MOST_CHARS = 1_000
"""Of names in a model: those of derived components have a job and an operator in them."""


def read_document(document: Any) -> tuple[BurstModel, tuple[Diagnostic, ...]]:
    """The model that a document is.

    Raises
    ------
    ValidationError
        If it is none, or too large; the message names the place.
    """
    try:
        if "\\u0000" in json.dumps(document):
            raise ValidationError({"model": "there must be no null character in it"})
    except (TypeError, RecursionError) as error:  # half a character of two, or a whole number beyond 64 bits
        raise ValidationError({"model": f"it is no JSON that can be stored: {error}"}) from error
    try:
        model, odd = burst_model(document)
    except ValueError as error:
        raise ValidationError({"model": str(error)}) from error
    if len(model.applications) > MOST_APPLICATIONS or sum(1 for _ in model.components()) > MOST_COMPONENTS:
        most = f"{MOST_APPLICATIONS} applications and {MOST_COMPONENTS:,} components"
        raise ValidationError({"model": f"a model may have at most {most}"})
    if any(len(name) > MOST_CHARS for name in _names(model)):
        raise ValidationError({"model": f"names may have at most {MOST_CHARS} characters"})
    return model, odd


def _names(model: BurstModel) -> Iterable[str]:
    yield from (node.name for node in model.nodes)
    yield from (one.name for one in model.applications)
    yield from (component.name for _, _, component in model.components())


def create_cluster(
    actor: User, name: str, document: Any = None, *, group: JobGroup | None = None, setup: Any = None
) -> Cluster:
    """A new cluster, with its model if a document is given; with a setup its model is derived from rates.

    Raises
    ------
    PermissionDenied
        If the actor may not make one in this group.
    ValidationError
        If the name is empty, too long or taken, or the document is no model.
    """
    if not may_create(actor, group):
        _refuse(
            Entry(actor, "cluster.create", "cluster", None, detail={"name": name}),
            "make a cluster in this group",
        )
    wanted = name.strip()
    if not wanted or len(wanted) > MOST_NAME or "\0" in wanted:
        raise ValidationError({"name": f"expected 1 to {MOST_NAME} characters"})
    found = None if document is None else read_document(document)
    guards = group is not None or actor.is_superuser
    try:
        with transaction.atomic():
            cluster = Cluster.objects.create(
                name=wanted, group=group, setup=setup, created_by=actor, guards=guards
            )
            record(Entry(actor, "cluster.create", "cluster", cluster.pk, detail={"name": wanted}))
            if found is not None:
                keep_model(cluster, found[0], found[1], Origin.UPLOADED, actor)
    except IntegrityError as error:
        raise ValidationError({"name": f"there is a cluster {wanted} already"}) from error
    return cluster


def group_named(actor: User, name: str) -> JobGroup | None:
    """The group in which somebody wants a cluster; none if the name is empty.

    Raises
    ------
    ValidationError
        If there is no such group, or the actor is no operator of it: which of these is not told.
    """
    if not name:
        return None
    found = None if "\0" in name else groups_for(actor).filter(name=name).first()
    if found is None:
        raise ValidationError(
            {"group": f"there is no group {name[:MOST_NAME]!r} of which you are an operator"}
        )
    return found


def upload_model(actor: User, cluster: Cluster, document: Any) -> ModelVersion:
    """Make a document the cluster's current model; the same document again changes nothing.

    Raises
    ------
    PermissionDenied
        If the actor may not change the cluster.
    ValidationError
        If the document is no model.
    """
    require_change(actor, cluster, "cluster.model")
    model, odd = read_document(document)
    return keep_model(cluster, model, odd, Origin.UPLOADED, actor)


@transaction.atomic
def keep_model(
    cluster: Cluster,
    model: BurstModel,
    diagnostics: tuple[Diagnostic, ...],
    origin: Origin,
    who: User | str,
    basis: dict[str, dict[str, int]] | None = None,
) -> ModelVersion:
    """Store a model as the current version, unless it is that already.

    Raises
    ------
    ValidationError
        If the cluster was moved to another group since it was read: the model may be derived from jobs that do not
        count there, and who made it may not be asked there.
    """
    now = Cluster.objects.select_for_update().get(pk=cluster.pk)  # one numbers versions at a time
    if now.group_id != cluster.group_id:
        raise ValidationError({"group": "the cluster was moved to another group meanwhile"})
    current = cluster.versions.filter(superseded_at=None).first()
    odd = [asdict(item) for item in merge(diagnostics)]
    if current is not None and current.version == model.version:
        ModelVersion.objects.filter(pk=current.pk).update(diagnostics=odd, basis=basis or {})
        return current
    if current is not None:
        ModelVersion.objects.filter(pk=current.pk).update(superseded_at=timezone.now())
    last = cluster.versions.order_by("-number").values_list("number", flat=True).first() or 0
    row = ModelVersion.objects.create(
        cluster=cluster, number=last + 1, version=model.version, origin=origin,
        payload=packed.pack(to_document(model)), node_count=len(model.nodes), diagnostics=odd,
        basis=basis or {},
        applications=[one.name for one in model.applications],
        made_by_name=who.get_username() if isinstance(who, User) else who,
    )  # fmt: skip
    detail = {"number": row.number, "version": row.version, "origin": row.origin}
    record(Entry(who, "cluster.model", "cluster", cluster.pk, detail=detail))
    return row


def set_rates(actor: User, cluster: Cluster, rates: Mapping[str, Any], at_ns: int) -> Cluster:
    """Say what the inputs are at a time; they go before measured ones. None takes a rate back.

    Raises
    ------
    PermissionDenied
        If the actor may not change the cluster.
    ValidationError
        If the model has no such application, a rate is none, or the time is before 1970 or more than an hour ahead.
    """
    require_change(actor, cluster, "cluster.rates")
    if not 0 <= at_ns <= time.time_ns() + AHEAD_NS:
        raise ValidationError({"at_ns": "expected nanoseconds since 1970, at most an hour ahead of now"})
    current = cluster.versions.filter(superseded_at=None).first()
    known = set(current.applications) if current else set()
    for name, rate in rates.items():
        if name not in known:
            raise ValidationError({"rates": f"the model has no application {name[:100]!r}"})
        if rate is not None and not _is_rate(rate):
            raise ValidationError({"rates": f"{name}: expected a number of at least 0"})
    with transaction.atomic():
        row = Cluster.objects.select_for_update().get(pk=cluster.pk)
        merged = {
            **row.rates,
            **{name: None if rate is None else float(rate) for name, rate in rates.items()},
        }
        row.rates = {name: rate for name, rate in merged.items() if rate is not None}
        row.rates_ns = max(at_ns, (row.rates_ns or 0) + 1)  # every change is looked at
        row.save(update_fields=["rates", "rates_ns"])
    return row


def _is_rate(rate: Any) -> bool:
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        return False
    return 0 <= rate < 1e300 and math.isfinite(rate)


def set_bounds(actor: User, cluster: Cluster, burst_ratio: float, alert_ratio: float) -> Cluster:
    """Say what burst the cluster must be able to take, and below what headroom there is an alert.

    Raises
    ------
    PermissionDenied
        If the actor may not change the cluster.
    ValidationError
        If one is no ratio from 0 to 100.
    """
    require_change(actor, cluster, "cluster.bounds")
    for name, ratio in (("burst_ratio", burst_ratio), ("alert_ratio", alert_ratio)):
        if not (_is_rate(ratio) and ratio <= 100):
            raise ValidationError({name: "expected a ratio from 0 to 100: 0.5 is half more"})
    with transaction.atomic():
        row = Cluster.objects.select_for_update().get(pk=cluster.pk)
        row.burst_ratio, row.alert_ratio = float(burst_ratio), float(alert_ratio)
        row.save(update_fields=["burst_ratio", "alert_ratio"])
        surveys.judge_again(row)
        detail = {"burst_ratio": row.burst_ratio, "alert_ratio": row.alert_ratio}
        record(Entry(actor, "cluster.bounds", "cluster", cluster.pk, detail=detail))
    return row


def remove_cluster(actor: User, cluster: Cluster) -> None:
    """Forget a cluster with all its models and history.

    Raises
    ------
    PermissionDenied
        If the actor may not change the cluster.
    """
    require_change(actor, cluster, "cluster.remove")
    with transaction.atomic():
        record(Entry(actor, "cluster.remove", "cluster", cluster.pk, detail={"name": cluster.name}))
        Cluster.objects.filter(pk=cluster.pk).delete()


def require_change(actor: User, cluster: Cluster, action: str) -> None:
    """Let through only who may change the cluster.

    Raises
    ------
    PermissionDenied
        If the actor may not; the attempt is in the audit record.
    """
    if not may_change(actor, cluster):
        entry = Entry(actor, action, "cluster", cluster.pk, detail={"name": cluster.name})
        _refuse(entry, f"change the cluster {cluster.name}")


def _refuse(entry: Entry, what: str) -> None:
    refusal = f"only its operators, or who made it, may {what}"
    record_refused(Entry(entry.who, entry.action, entry.object_type, entry.object_id, reason=refusal))
    raise PermissionDenied(refusal)
