"""Moving a cluster to another group: who may, what is recorded, and what becomes of what was computed."""

from __future__ import annotations

import time

import pytest
from django.core.exceptions import PermissionDenied, ValidationError

from tests.support import clusters, fleet
from tests.support.burst_models import worked_example
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.bursts import deriving, moving, selectors, services, surveys
from webapp.bursts.models import Cluster
from webapp.bursts.policies import groups_to_move_to, visible_clusters
from webapp.bursts.rebalancing import jobs_in
from webapp.jobs.models import Job, JobGroup, Membership, Role

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def groups() -> tuple[JobGroup, JobGroup]:
    return JobGroup.objects.create(name="here"), JobGroup.objects.create(name="there")


def admin(name: str, *groups: JobGroup, role: Role = Role.ADMIN) -> User:
    person = User.objects.create_user(name)
    for group in groups:
        Membership.objects.create(user=person, group=group, role=role)
    return person


def in_group(person: User, group: JobGroup | None) -> Cluster:
    cluster = services.create_cluster(person, "prod", worked_example(), group=group)
    services.set_rates(person, cluster, {"app1": 0.05, "app2": 0.05}, time.time_ns())
    clusters.survey_here()
    cluster.refresh_from_db()
    return cluster


def test_an_admin_of_both_groups_moves_it_and_that_is_recorded(groups: tuple[JobGroup, JobGroup]) -> None:
    here, there = groups
    ada = admin("ada", here, there)
    cluster = in_group(ada, here)
    assert list(groups_to_move_to(ada, cluster)) == [there]
    moved = moving.move(ada, cluster, moving.target_named(ada, cluster, "there"))
    assert (moved.group, moved.guards) == (there, True)
    event = AuditEvent.objects.get(action="cluster.move", object_id=cluster.pk)
    assert (event.actor_name, event.outcome) == ("ada", "done")
    assert event.detail == {"name": "prod", "before": "here", "after": "there"}
    member = admin("vera", here, role=Role.VIEWER)
    assert not visible_clusters(member).exists(), "those of the group before see it no longer"
    again = moving.move(ada, moved, there)
    assert again.versions.count() == 2, "where it is already, nothing changes"


def test_operators_and_admins_of_one_of_the_groups_are_refused_and_that_is_recorded(
    groups: tuple[JobGroup, JobGroup],
) -> None:
    here, there = groups
    cluster = in_group(User.objects.create_superuser("boss"), here)
    people = [
        admin("olga", here, there, role=Role.OPERATOR), admin("anna", here), admin("theo", there),
        User.objects.create_user("sam"),
    ]  # fmt: skip
    for person in people:
        with pytest.raises(PermissionDenied, match="only an admin of both groups"):
            moving.move(person, cluster, there)
        with pytest.raises(PermissionDenied, match="only an admin of both groups"):
            moving.target_named(person, cluster, "there")
    with pytest.raises(PermissionDenied):
        moving.move(people[0], cluster, None)
    refused = AuditEvent.objects.filter(action="cluster.move", outcome="refused", object_id=cluster.pk)
    assert set(refused.values_list("actor_name", flat=True)) == {"olga", "anna", "theo", "sam"}
    cluster.refresh_from_db()
    assert (cluster.group, cluster.versions.count()) == (here, 1)


def test_who_made_one_in_no_group_moves_it_into_their_own_and_a_superuser_anywhere(
    groups: tuple[JobGroup, JobGroup],
) -> None:
    here, there = groups
    ada, anna = admin("ada", here), admin("anna", here)
    cluster = in_group(ada, None)
    assert cluster.guards is False
    with pytest.raises(PermissionDenied):
        moving.move(anna, cluster, here)
    assert moving.move(ada, cluster, here).guards is True
    boss = User.objects.create_superuser("boss")
    assert moving.move(boss, cluster, there).group == there
    assert moving.move(admin("theo", there), cluster, None).guards is False
    assert visible_clusters(User.objects.create_user("sam")).get() == cluster


def test_after_a_move_answers_are_told_to_be_stale_until_a_worker_has_answered(
    groups: tuple[JobGroup, JobGroup],
) -> None:
    here, there = groups
    ada = admin("ada", here, there)
    cluster = in_group(ada, here)
    before = cluster.versions.get()
    assert not selectors.standing(cluster).stale
    moved = moving.move(ada, cluster, there)
    standing = selectors.standing(moved)
    assert standing.stale
    assert standing.model is not None
    assert (standing.model.number, standing.model.version) == (2, before.version), "the model says the same"
    assert standing.model.index_points == before.index_points, "and so does its index"
    assert standing.model.made_at == before.made_at
    assert moved.rates == {"app1": 0.05, "app2": 0.05}, "given rates are the cluster's own"
    assert clusters.survey_here().stored == 1
    assert not selectors.standing(moved).stale


def measured(group: JobGroup) -> Job:
    job = fleet.store(fleet.measured(3, time.time_ns(), operators=3, instances=4))
    job.group = group
    job.save()
    return job


def test_rates_of_jobs_of_the_group_before_do_not_count_any_more(groups: tuple[JobGroup, JobGroup]) -> None:
    here, there = groups
    ada = admin("ada", here, there)
    job = measured(here)
    document = worked_example()
    document["applications"] = {job.name: document["applications"]["app1"]}
    cluster = services.create_cluster(ada, "prod", document, group=here)
    assert clusters.survey_here().stored == 1
    assert set(jobs_in(cluster)) == {job.name}
    moved = moving.move(ada, cluster, there)
    assert jobs_in(moved) == {}
    assert clusters.survey_here().failed == 1
    standing = selectors.standing(moved)
    assert standing.survey is not None
    assert standing.survey.error == f"the input rate of {job.name} is not known"
    assert standing.stale, "what is shown is of before the move"


def test_one_whose_model_is_derived_from_jobs_goes_only_where_these_can_be_read(
    groups: tuple[JobGroup, JobGroup],
) -> None:
    here, there = groups
    ada = admin("ada", here, there)
    job = measured(here)
    cluster = deriving.create_derived(ada, "prod", {"jobs": [job.name]}, group=here)
    with pytest.raises(
        ValidationError, match=f"derived from the job {job.name}, which is not in the group there"
    ):
        moving.move(ada, cluster, there)
    Job.objects.filter(pk=job.pk).update(group=there)
    moved = moving.move(ada, cluster, there)
    assert moved.group == there
    assert deriving.refresh_due(time.time_ns() + 1) == 0, "the model is as good as it was"


def test_a_model_derived_while_the_cluster_was_moved_is_not_kept(groups: tuple[JobGroup, JobGroup]) -> None:
    here, there = groups
    ada = admin("ada", here, there)
    cluster = in_group(ada, here)
    moving.move(ada, Cluster.objects.get(), there)
    with pytest.raises(ValidationError, match="moved to another group meanwhile"):
        services.upload_model(ada, cluster, worked_example(6.5))
    assert surveys.due(time.time_ns())[0][0] == cluster.pk
