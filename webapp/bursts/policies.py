"""Who may see which clusters, and who may change them."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet

from webapp.accounts.models import User
from webapp.bursts.models import Cluster
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.jobs.policies import Actor

NEEDED_ROLE = Role.OPERATOR


def visible_clusters(actor: Actor) -> QuerySet[Cluster]:
    """The clusters of one's groups and those of none; all of them for a superuser.

    Raises
    ------
    PermissionDenied
        If nobody is signed in, or the account is disabled.
    """
    if not actor.is_authenticated or not actor.is_active:
        raise PermissionDenied("sign in to see clusters")
    if actor.is_superuser:
        return Cluster.objects.all()
    groups = Membership.objects.filter(user_id=actor.pk).values("group_id")
    return Cluster.objects.filter(Q(group=None) | Q(group_id__in=groups))


def may_create(actor: Actor, group: JobGroup | None) -> bool:
    """Everybody who is signed in may make a cluster of no group; of a group, its operators."""
    if not isinstance(actor, User) or not actor.is_active:
        return False
    return actor.is_superuser or group is None or _is_operator(actor, group)


def groups_for(actor: Actor) -> QuerySet[JobGroup]:
    """The groups in which this person may make a cluster, by name."""
    groups = JobGroup.objects.order_by("name")
    if not isinstance(actor, User) or not actor.is_active:
        return groups.none()
    if actor.is_superuser:
        return groups
    return groups.filter(pk__in=_operated(actor).values("group_id"))


def may_change(actor: Actor, cluster: Cluster) -> bool:
    """Operators of its group; of a cluster of no group, who made it. And superusers."""
    return _is_up_to(actor, cluster, _operated)


def may_leave(actor: Actor, cluster: Cluster) -> bool:
    """Admins of its group; of a cluster of no group, who made it. And superusers."""
    return _is_up_to(actor, cluster, _administered)


def may_move(actor: Actor, cluster: Cluster, group: JobGroup | None) -> bool:
    """Who may take it out of its group, and is an admin of the other one; out of any group, the former suffices."""
    if not may_leave(actor, cluster):
        return False
    return group is None or groups_to_move_to(actor, cluster).contains(group)


def groups_to_move_to(actor: Actor, cluster: Cluster) -> QuerySet[JobGroup]:
    """The other groups that this person may move a cluster to, by name."""
    groups = JobGroup.objects.order_by("name")
    if cluster.group is not None:
        groups = groups.exclude(pk=cluster.group.pk)
    if not isinstance(actor, User) or not may_leave(actor, cluster):
        return groups.none()
    return groups if actor.is_superuser else groups.filter(pk__in=_administered(actor).values("group_id"))


def jobs_of(cluster: Cluster) -> QuerySet[Job]:
    """The jobs that this cluster's applications may be: no rates of another group's jobs are shown in it."""
    return Job.objects.filter(Q(group=None) | Q(group_id=cluster.group_id))


def _is_operator(actor: User, group: JobGroup) -> bool:
    return _operated(actor).filter(group=group).exists()


def _is_up_to(actor: Actor, cluster: Cluster, in_groups: Callable[[User], QuerySet[Membership]]) -> bool:
    if not isinstance(actor, User) or not actor.is_active:
        return False
    if actor.is_superuser:
        return True
    if cluster.group is None:
        return cluster.created_by_id == actor.pk
    return in_groups(actor).filter(group=cluster.group).exists()


def _administered(actor: User) -> QuerySet[Membership]:
    return Membership.objects.filter(user=actor, role=Role.ADMIN)


def _operated(actor: User) -> QuerySet[Membership]:
    roles = [role.value for role in Role if role.rank >= NEEDED_ROLE.rank]
    return Membership.objects.filter(user=actor, role__in=roles)
