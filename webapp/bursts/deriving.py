"""Models of clusters whose jobs Weir measures: cost per record, selectivities and caps from stored rates."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from analytics.bursts.derive import CPU, MeasuredJob, Setup, derive
from analytics.model.bursts import NETWORK, BurstModel
from analytics.model.diagnostics import Diagnostic
from analytics.model.topology import Topology
from webapp.accounts.models import User
from webapp.audit.services import Entry, record
from webapp.bursts.models import Cluster, ModelVersion, Origin
from webapp.bursts.policies import jobs_of
from webapp.bursts.revisions import locked
from webapp.bursts.services import create_cluster, keep_model, read_document, require_change
from webapp.jobs import reports
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reports import Measured

logger = logging.getLogger(__name__)

RENEWED_AFTER_S = 3600.0
LOOK_BACK_NS = 3_600_000_000_000
"""How old the windows may be that a model is derived from."""

MOST_WINDOWS = 120
MOST_JOBS = 200


def checked_setup(setup: Any) -> dict[str, Any]:
    """A setup as it is stored: ``{"jobs", "nodes", "placement", "margin_ratio"}``.

    Raises
    ------
    ValidationError
        If it is none; the message names the place.
    """
    if not isinstance(setup, dict):
        raise ValidationError({"setup": "expected an object with jobs"})
    _check_storable(setup)
    jobs, nodes = setup.get("jobs"), setup.get("nodes", {})
    if not isinstance(jobs, list) or not jobs or len(jobs) > MOST_JOBS or not all(map(_is_name, jobs)):
        raise ValidationError({"setup": f"jobs: expected a list of 1 to {MOST_JOBS} names of jobs"})
    if not isinstance(nodes, dict) or not all(
        _is_name(name) and _is_node(one) for name, one in nodes.items()
    ):
        wanted = f'{{"name": {{"{CPU}": cores}}}} for every node, maybe with {NETWORK} above 0'
        raise ValidationError({"setup": f"nodes: expected {wanted}"})
    margin = setup.get("margin_ratio", 0.0)
    if not _is_amount(margin) or margin >= 1:
        raise ValidationError({"setup": "margin_ratio: expected a share of at least 0 and below 1"})
    placement = setup.get("placement", {})
    _check_placement(placement, set(nodes))
    return {"jobs": jobs, "nodes": nodes, "placement": placement, "margin_ratio": margin}


def _check_storable(setup: dict[str, Any]) -> None:
    try:
        text = json.dumps(setup, ensure_ascii=False)
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:  # half a character of two is a ValueError
        raise ValidationError({"setup": f"it is no JSON that can be stored: {error}"}) from error
    if "\\u0000" in text:
        raise ValidationError({"setup": "there must be no null character in it"})


def _check_placement(placement: Any, nodes: set[str]) -> None:
    expected = 'placement: expected {"job": {"operator": ["node of each instance", …]}}'
    if not isinstance(placement, dict) or not all(isinstance(one, dict) for one in placement.values()):
        raise ValidationError({"setup": expected})
    for one in placement.values():
        for places in one.values():
            if not isinstance(places, list) or not places:
                raise ValidationError({"setup": expected})
            for node in places:
                if not isinstance(node, str) or node not in nodes:
                    raise ValidationError({"setup": f"placement: there is no node {str(node)[:100]!r}"})


def _is_node(value: Any) -> bool:
    if not isinstance(value, dict) or not {CPU} <= set(value) <= {CPU, NETWORK}:
        return False
    return all(map(_is_amount, value.values())) and value.get(NETWORK) != 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and "\0" not in value


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300


def create_derived(actor: User, name: str, setup: Any, group: JobGroup | None = None) -> Cluster:
    """A cluster whose model follows what its jobs report, with its first version.

    Raises
    ------
    PermissionDenied
        If the actor may not make one in this group.
    ValidationError
        If the setup makes no sense, or no job of it has rates yet.
    """
    wanted = checked_setup(setup)
    probe = Cluster(group=group, setup=wanted)
    made = _derived(probe, time.time_ns())
    cluster = create_cluster(actor, name, group=group, setup=wanted)
    _keep(cluster, made, actor)
    return cluster


def refresh_derived(actor: User, cluster: Cluster, setup: Any = None) -> ModelVersion:
    """Derive the model again from the newest rates, as a new version if it is another one.

    With another ``setup`` that is what it is made of from now on, if a model follows from it.

    Raises
    ------
    PermissionDenied
        If the actor may not change the cluster.
    ValidationError
        If its models are uploaded, the setup makes no sense, or no job of it has rates.
    """
    require_change(actor, cluster, "cluster.derive")
    if cluster.setup is None:
        raise ValidationError({"model": "the models of this cluster are uploaded, not derived"})
    if setup is None or (wanted := checked_setup(setup)) == cluster.setup:
        return _keep(cluster, _derived(cluster, time.time_ns()), actor)
    made = _derived(Cluster(group=cluster.group, setup=wanted), time.time_ns())
    with transaction.atomic():
        row = _keep(cluster, made, actor)
        Cluster.objects.filter(pk=cluster.pk).update(setup=wanted)
        detail = {"before": cluster.setup, "after": wanted}
        record(Entry(actor, "cluster.setup", "cluster", cluster.pk, detail=detail))
    return row


def refresh_due(now_ns: int) -> int:
    """Derive again the models whose jobs run with another parallelism now, or that are old; how many were."""
    count = 0
    rows = ModelVersion.objects.filter(superseded_at=None, origin=Origin.DERIVED).select_related("cluster")
    for row in rows.defer("payload", "index"):
        old = (timezone.now() - row.made_at).total_seconds() > RENEWED_AFTER_S
        if not old and shapes_now(row.cluster, now_ns) == row.basis:
            continue
        try:
            kept = _renewed(row, _derived(row.cluster, now_ns))
        except (
            ValidationError
        ) as error:  # its jobs are gone or silent, or somebody was faster: the model stays
            logger.info("bursts.not_derived cluster=%d %s", row.cluster_id, error.messages)
            continue
        if kept.pk == row.pk:
            ModelVersion.objects.filter(pk=row.pk).update(made_at=timezone.now())
        count += 1
    return count


def _renewed(row: ModelVersion, made: _Made) -> ModelVersion:
    """Keep a model in place of a version, unless somebody else replaced that, or what it is made of, meanwhile."""
    with transaction.atomic():
        now = locked(row.cluster_id)
        if now.setup != row.cluster.setup or not now.versions.filter(pk=row.pk, superseded_at=None).exists():
            raise ValidationError({"setup": "somebody changed the model meanwhile"})
        return _keep(row.cluster, made, "weir")


def shapes_now(cluster: Cluster, now_ns: int) -> dict[str, dict[str, int]]:
    """The parallelism of each operator id by job, of the jobs with rates of the last hour."""
    found = {}
    for job in jobs_of(cluster).filter(name__in=(cluster.setup or {}).get("jobs", [])):
        newest = reports.newest_rates(job)
        if newest is not None and newest.window.end_ns >= now_ns - LOOK_BACK_NS:
            found[job.name] = _shape(newest.topology)
    return found


@dataclass(frozen=True)
class _Made:
    model: BurstModel
    diagnostics: tuple[Diagnostic, ...]
    basis: dict[str, dict[str, int]]


def _keep(cluster: Cluster, made: _Made, who: User | str) -> ModelVersion:
    return keep_model(cluster, made.model, made.diagnostics, Origin.DERIVED, who, made.basis)


def _derived(cluster: Cluster, now_ns: int) -> _Made:
    setup = cluster.setup or {}
    found = {job.name: job for job in jobs_of(cluster).filter(name__in=setup["jobs"])}
    missing = [name for name in setup["jobs"] if name not in found]
    if missing:
        raise ValidationError({"setup": f"there is no job {missing[0]!r} in this group or in none"})
    measured = (measured_job(found[name], now_ns) for name in setup["jobs"])
    jobs = [one for one in measured if one is not None]
    document, odd = derive(jobs, Setup(setup["nodes"], setup["placement"], setup["margin_ratio"]))
    reporting = {job.name for job in jobs}
    silent = [name for name in setup["jobs"] if name not in reporting]
    if not document["applications"]:
        without = silent + [item.example for item in odd if item.code == "no_rates"]
        raise ValidationError({"setup": f"no job has rates of the last hour: {', '.join(without)}"})
    model, more = read_document(document)
    flags = odd + more + tuple(Diagnostic("no_rates", 1, name) for name in silent)
    return _Made(model, flags, {job.name: _shape(job.topology) for job in jobs})


def _shape(topology: Topology) -> dict[str, int]:
    return {operator.id: operator.parallelism for operator in topology.operators}


def measured_job(job: Job, now_ns: int) -> MeasuredJob | None:
    """The job as it ran last, with the windows in which it ran so; None without rates of the last hour."""
    found = reports.rates(job, now_ns - LOOK_BACK_NS, now_ns)[-MOST_WINDOWS:]
    return of_measured(job.name, found)


def of_measured(name: str, found: list[Measured]) -> MeasuredJob | None:
    """The job of some rates, the newest last; windows of another parallelism are left out."""
    if not found:
        return None
    newest = found[-1].topology
    shape = _shape(newest)
    windows = [one.window for one in found if _shape(one.topology) == shape]
    return MeasuredJob(name, newest, tuple(windows))
