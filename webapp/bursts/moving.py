"""Moving a cluster to another group of jobs, and what that does to its model and answers.

Which jobs a cluster's applications may be depends on its group, so everything computed before rests on rates that
may not count any more. The model therefore becomes a new version, though it says the same: answers of the version
before are stale until a worker has answered with the rates that count now. BARRE's index follows from the model
alone and is taken along, and so are rates given by hand and the history.
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import Entry, record, record_refused
from webapp.bursts.models import Cluster, ModelVersion
from webapp.bursts.policies import groups_to_move_to, jobs_of, may_move
from webapp.bursts.revisions import locked
from webapp.jobs.models import JobGroup

ACTION = "cluster.move"
REFUSAL = (
    "only an admin of both groups may move a cluster from one to the other; one in no group also needs to have been"
    " made by who moves it"
)


def target_named(actor: User, cluster: Cluster, name: str | None) -> JobGroup | None:
    """The group that somebody wants to move a cluster to; None: out of any.

    Raises
    ------
    PermissionDenied
        If there is no such group, or the actor is no admin of it: which of these is not told. It is in the audit
        record.
    """
    if not name:
        return None
    if cluster.group is not None and name == cluster.group.name:
        return cluster.group
    found = None if "\0" in name else groups_to_move_to(actor, cluster).filter(name=name).first()
    if found is None:
        _refuse(actor, cluster, name)
    return found


def move(actor: User, cluster: Cluster, group: JobGroup | None) -> Cluster:
    """Put a cluster into another group, or with None out of any; where it is already, nothing changes.

    In a group it guards the group's jobs from then on, and only members see it. Out of any, everybody who signs in
    sees it, who made it changes it, and it guards jobs of no group only if a superuser moved it.

    Raises
    ------
    PermissionDenied
        Unless the actor administers both groups; the attempt is in the audit record.
    ValidationError
        If its model is derived from jobs that could not be read from there.
    """
    with transaction.atomic():
        row = locked(cluster.pk)
        if row.group == group:
            return row
        if not may_move(actor, row, group):
            _refuse(actor, row, group.name if group else None)
        before, row.group = row.group, group
        _check_jobs(row)
        row.guards = group is not None or actor.is_superuser
        row.save(update_fields=["group", "guards"])
        _renumber(row)
        detail = {"before": before.name if before else None, "after": group.name if group else None}
        record(Entry(actor, ACTION, "cluster", row.pk, detail={"name": row.name, **detail}))
    return row


def _check_jobs(moved: Cluster) -> None:
    names = (moved.setup or {}).get("jobs", [])
    readable = set(jobs_of(moved).filter(name__in=names).values_list("name", flat=True))
    if hidden := [name for name in names if name not in readable]:
        where = f"in the group {moved.group.name} or in none" if moved.group else "in no group"
        raise ValidationError(
            {
                "group": f"its model is derived from the job {hidden[0]}, which is not {where}: move the job first"
            }
        )


def _renumber(moved: Cluster) -> None:
    """The same model once more, so that answers with other jobs' rates count as those of a model before."""
    row = moved.versions.filter(superseded_at=None).first()
    if row is None:
        return
    made_at = row.made_at
    last = moved.versions.order_by("-number").values_list("number", flat=True)[0]
    ModelVersion.objects.filter(pk=row.pk).update(superseded_at=timezone.now())
    row.pk, row.number = None, last + 1
    row._state.adding = True
    row.save()
    ModelVersion.objects.filter(pk=row.pk).update(made_at=made_at)  # what it was derived from got no younger


def _refuse(actor: User, cluster: Cluster, wanted: str | None) -> None:
    detail = {"name": cluster.name, "after": wanted}
    record_refused(Entry(actor, ACTION, "cluster", cluster.pk, reason=REFUSAL, detail=detail))
    raise PermissionDenied(REFUSAL)
