"""Clusters: uploaded and derived models, their versions, who may change them, answers, history and alerts."""

from __future__ import annotations

import threading
import time

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction

from analytics.bursts.fleet import answer
from analytics.model import packed
from analytics.model.burst_answers import Survey as Answers
from analytics.model.bursts import machines
from analytics.model.plain import from_plain
from analytics.spark.clusters import PostgresClusters
from tests.support import clusters, fleet
from tests.support.burst_models import worked_example
from tests.support.waiting import eventually
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.bursts import deriving, revisions, selectors, services, surveys
from webapp.bursts.models import HeadroomAlert, HeadroomPoint, ModelVersion, Survey
from webapp.bursts.policies import visible_clusters
from webapp.jobs.models import JobGroup, Membership, Role
from webapp.telemetry import segment_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss")


def answers_of(row: Survey) -> Answers:
    assert row.payload is not None
    found: Answers = from_plain(Answers, packed.unpack(row.payload))
    return found


def test_the_worked_example_is_answered_and_kept_with_the_version_it_is_for(boss: User) -> None:
    cluster = clusters.worked(boss)
    kept = clusters.survey_here()
    assert (kept.stored, kept.failed, kept.late) == (1, 0, 0)
    found = answers_of(cluster.survey)
    current = cluster.versions.get(superseded_at=None)
    assert found.headroom.version == current.version
    assert found.headroom.joint == pytest.approx(0.11, abs=1e-7)
    assert found.ratio == pytest.approx(2.2, abs=1e-7), "0.05 can grow to 0.16 in both"
    assert [loss.node for loss in found.losses] == ["A", "B", "dest1", "dest2"]
    assert [region.applications for region in found.maps] == [("app1", "app2")]
    assert current.index_points == 2
    point = cluster.history.get()
    assert (point.ratio, point.joint) == pytest.approx((2.2, 0.11), abs=1e-7)
    assert point.limit_node in ("A", "B")
    assert point.least_after_loss == pytest.approx(-1.0), "without dest1 application 1 cannot run"
    assert clusters.survey_here().stored == 0, "nothing is new"


def test_another_model_is_another_version_and_makes_what_was_computed_stale(boss: User) -> None:
    cluster = clusters.worked(boss)
    clusters.survey_here()
    same = services.upload_model(boss, cluster, worked_example())
    assert same.number == 1, "the same model again is no new version"
    faster = worked_example()
    faster["nodes"]["A"]["cpu"] = 2.0
    newer = services.upload_model(boss, cluster, faster)
    assert (newer.number, newer.version != same.version) == (2, True)
    cluster.survey.refresh_from_db()
    assert cluster.survey.model_id == same.pk, "stale: it names the model before"
    clusters.survey_here()
    cluster.survey.refresh_from_db()
    assert cluster.survey.model_id == newer.pk
    assert answers_of(cluster.survey).headroom.version == newer.version


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "the model: must be an object"),
        ({"nodes": {"A": {"cpu": 1}}}, "'applications' is missing"),
        ({"nodes": {"A": {"cpu": -1}}, "applications": {"a": {}}}, "nodes.A.cpu: must be a finite number"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused_with_the_place(boss: User, document: object, says: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        services.create_cluster(boss, "wrong", document)
    assert says in refusal.value.message_dict["model"][0]


def test_a_stranger_sees_no_cluster_of_a_group_and_a_viewer_changes_none(boss: User) -> None:
    group = JobGroup.objects.create(name="theirs")
    viewer, operator, stranger = (User.objects.create_user(name) for name in ("vera", "olga", "sam"))
    Membership.objects.create(user=viewer, group=group, role=Role.VIEWER)
    Membership.objects.create(user=operator, group=group, role=Role.OPERATOR)
    cluster = services.create_cluster(operator, "theirs", worked_example(), group=group)
    assert not visible_clusters(stranger).exists()
    assert visible_clusters(viewer).get() == cluster
    with pytest.raises(PermissionDenied):
        services.set_rates(viewer, cluster, {"app1": 1.0}, time.time_ns())
    with pytest.raises(PermissionDenied):
        services.create_cluster(viewer, "mine", worked_example(), group=group)
    assert AuditEvent.objects.filter(action="cluster.rates", outcome="refused", actor_name="vera").exists()
    services.set_rates(operator, cluster, {"app1": 0.1, "app2": 0.1}, time.time_ns())


def test_rates_are_those_of_the_model_and_no_nonsense(boss: User) -> None:
    cluster = clusters.worked(boss)
    for rates in ({"app3": 1.0}, {"app1": -1.0}, {"app1": "many"}, {"app1": float("nan")}, {"app1": True}):
        with pytest.raises(ValidationError):
            services.set_rates(boss, cluster, rates, time.time_ns())


def test_without_a_rate_the_reason_is_kept_and_the_answer_of_before_stays(boss: User) -> None:
    cluster = clusters.worked(boss)
    clusters.survey_here()
    services.set_rates(boss, cluster, {"app2": None}, time.time_ns())
    assert clusters.survey_here().failed == 1
    cluster.survey.refresh_from_db()
    assert cluster.survey.error == "the input rate of app2 is not known"
    assert answers_of(cluster.survey).headroom.joint == pytest.approx(0.11, abs=1e-7)


def test_alerts_open_deepen_and_close_with_headroom(boss: User) -> None:
    cluster = clusters.worked(boss)
    services.set_bounds(boss, cluster, burst_ratio=0.5, alert_ratio=0.25)
    now_ns = time.time_ns()
    for step, rate in enumerate((0.10, 0.14, 0.15, 0.127, 0.10)):  # 0.16 in both is the most
        services.set_rates(boss, cluster, {"app1": rate, "app2": rate}, now_ns + step)
        clusters.survey_here()
        alerts = list(HeadroomAlert.objects.filter(cluster=cluster))
        assert len(alerts) == (0 if step == 0 else 1)
        if step == 3:
            assert alerts[0].closed_ns is None, "26 % is above 25 %, but not by a tenth"
    assert alerts[0].closed_ns == now_ns + 4
    assert alerts[0].opened_ratio == pytest.approx(0.16 / 0.14 - 1)
    assert alerts[0].least_ratio == pytest.approx(0.16 / 0.15 - 1)
    assert "cpu of" in alerts[0].limit
    assert HeadroomPoint.objects.filter(cluster=cluster).count() == 5


def test_another_threshold_opens_and_closes_the_alert_at_once(boss: User) -> None:
    cluster = clusters.worked(boss, app1=0.14, app2=0.14)  # it can grow by a seventh
    clusters.survey_here()
    assert not HeadroomAlert.objects.exists()
    services.set_bounds(boss, cluster, burst_ratio=0.2, alert_ratio=0.3)
    opened = HeadroomAlert.objects.get()
    assert (opened.threshold_ratio, opened.closed_ns) == (0.3, None)
    assert opened.opened_ratio == pytest.approx(0.16 / 0.14 - 1)
    assert "cpu of" in opened.limit
    services.set_bounds(boss, cluster, burst_ratio=0.2, alert_ratio=0.05)
    opened.refresh_from_db()
    assert opened.closed_ns is not None
    services.upload_model(boss, cluster, worked_example(6.5))
    services.set_bounds(boss, cluster, burst_ratio=0.2, alert_ratio=0.3)
    assert HeadroomAlert.objects.count() == 1, "what is known is of another model: a worker's answer decides"


def test_the_slower_of_two_workers_writes_nothing(boss: User) -> None:
    cluster = clusters.worked(boss)
    source = PostgresClusters(segment_store.address())
    slow = [answer(one) for one in source.read(surveys.due(time.time_ns()))]
    services.set_rates(boss, cluster, {"app1": 0.1}, time.time_ns() + 5)
    assert clusters.survey_here().stored == 1
    assert surveys.keep(slow).late == 1
    assert answers_of(Survey.objects.get()).headroom.rates == (0.1, 0.05)


def test_a_model_is_derived_from_what_jobs_reported_and_follows_a_rescale(boss: User) -> None:
    now_ns = time.time_ns()
    seen = fleet.measured(3, now_ns, operators=3, instances=2)
    job = fleet.store(seen)
    cluster = deriving.create_derived(boss, "derived", {"jobs": [job.name], "margin_ratio": 0.1})
    model = cluster.versions.get()
    document = packed.unpack(model.payload)
    last = document["applications"][job.name]["stages"][-1]
    rates = {item.operator_id: item for item in seen.window.operators}["operator-2"].instances
    useful = sum(item.observed_processing_per_s / item.true_processing_per_s for item in rates)
    records = sum(item.observed_processing_per_s for item in rates)
    assert document["nodes"][f"{job.name}/operator-2"] == {"slots": 2.0}
    assert document["margins"][f"{job.name}/operator-2"] == 0.1
    assert machines(selectors.model_of(model)) == ()
    if records >= 0.9 * sum(
        item.observed_output_per_s for item in seen.window.operators[1].instances
    ):  # nothing is split off before it
        assert last["components"][0]["cost"]["slots"] == pytest.approx(useful / records)
    assert "little_rate_variation" in {item["code"] for item in model.diagnostics}, "one window tells little"
    assert clusters.survey_here().stored == 1, "the input rate is what the source sends"
    sent = sum(item.observed_output_per_s for item in seen.window.operators[0].instances)
    assert answers_of(Survey.objects.get(cluster=cluster)).headroom.rates == (pytest.approx(sent),)
    assert answers_of(Survey.objects.get(cluster=cluster)).losses == (), (
        "an operator's instances are no machine"
    )
    assert deriving.refresh_due(now_ns + 1) == 0
    fleet.store(fleet.measured(3, now_ns + 10, operators=3, instances=4), job.name)
    assert deriving.refresh_due(now_ns + 20) == 1
    newer = ModelVersion.objects.get(cluster=cluster, superseded_at=None)
    assert (newer.number, newer.made_by_name) == (2, "weir")
    assert packed.unpack(newer.payload)["nodes"][f"{job.name}/operator-2"] == {"slots": 4.0}


def test_a_derived_model_with_nodes_shares_them_and_says_what_it_assumed(boss: User) -> None:
    now_ns = time.time_ns()
    for seed in (1, 2):
        fleet.store(fleet.measured(seed, now_ns, operators=3, instances=4))
    nodes = {"n1": {"cpu": 8}, "n2": {"cpu": 8}}
    setup = {"jobs": ["job-1", "job-2"], "nodes": nodes, "placement": {"job-1": {"operator-1": ["n1"]}}}
    cluster = deriving.create_derived(boss, "shared", setup)
    document = packed.unpack(cluster.versions.get().payload)
    stage = document["applications"]["job-1"]["stages"][1]
    assert [one["node"] for one in stage["components"]] == ["n1"], "as it was said"
    assert stage["components"][0]["cap"] == pytest.approx(4 / stage["components"][0]["cost"]["cpu"])
    spread = document["applications"]["job-2"]["stages"][1]["components"]
    assert {one["node"] for one in spread} == {"n1", "n2"}
    flags = {item["code"]: item for item in cluster.versions.get().diagnostics}
    assert "assumed_placement" in flags


def test_nodes_and_networks_of_a_derived_cluster_can_be_named_later_and_that_is_recorded(boss: User) -> None:
    job = fleet.store(fleet.measured(3, time.time_ns(), operators=3, instances=2))
    cluster = deriving.create_derived(boss, "derived", {"jobs": [job.name]})
    clusters.survey_here()
    nodes = {"n1": {"cpu": 8, "network_bytes": 1e9}}
    with pytest.raises(ValidationError, match="there is no job"):
        deriving.refresh_derived(boss, cluster, {"jobs": ["nobody"], "nodes": nodes})
    cluster.refresh_from_db()
    assert cluster.setup["jobs"] == [job.name], "what makes no model is not kept"
    newer = deriving.refresh_derived(boss, cluster, {"jobs": [job.name], "nodes": nodes})
    cluster.refresh_from_db()
    assert (newer.number, cluster.setup["nodes"]) == (2, nodes)
    assert selectors.standing(cluster).stale
    assert "unknown_bytes" in {item["code"] for item in newer.diagnostics}, "this job reports no bytes"
    event = AuditEvent.objects.get(action="cluster.setup", object_id=cluster.pk)
    assert (event.detail["before"]["nodes"], event.detail["after"]["nodes"]) == ({}, nodes)
    assert deriving.refresh_derived(boss, cluster, cluster.setup).number == 2
    assert AuditEvent.objects.filter(action="cluster.setup", object_id=cluster.pk).count() == 1


def test_a_model_that_somebody_changes_while_weir_renews_it_stays_as_they_made_it(boss: User) -> None:
    now_ns = time.time_ns()
    job = fleet.store(fleet.measured(3, now_ns, operators=3, instances=2))
    cluster = deriving.create_derived(boss, "derived", {"jobs": [job.name]})
    fleet.store(fleet.measured(3, now_ns + 10, operators=3, instances=4), job.name)  # so it is due
    renewed: list[int] = []
    weir = threading.Thread(target=lambda: _in_own_connection(renewed, now_ns + 20))
    with transaction.atomic():
        row = revisions.locked(cluster.pk)
        weir.start()
        eventually(_somebody_waits, "the renewed model waits for the cluster")
        deriving.refresh_derived(boss, row, {"jobs": [job.name], "nodes": {"n1": {"cpu": 8}}})
    weir.join(30)
    assert renewed == [0]
    current = ModelVersion.objects.get(cluster=cluster, superseded_at=None)
    assert set(packed.unpack(current.payload)["nodes"]) == {"n1"}, "of the nodes that were just named"


def _in_own_connection(renewed: list[int], now_ns: int) -> None:
    try:
        renewed.append(deriving.refresh_due(now_ns))
    finally:
        connection.close()


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("setup", "says"),
    [
        ({"jobs": []}, "jobs: expected"),
        ({"jobs": ["x"], "nodes": {"a": {"cpu": 1, "disk": 1}}}, "nodes: expected"),
        ({"jobs": ["x"], "nodes": {"a": {"cpu": 1, "network_bytes": 0}}}, "network_bytes above 0"),
        ({"jobs": ["nobody"]}, "there is no job 'nobody'"),
        ({"jobs": ["x"], "nodes": {"a": {"memory": 1}}}, "nodes: expected"),
        ({"jobs": ["x"], "placement": {"x": {"op": ["b"]}}}, "there is no node 'b'"),
        ({"jobs": ["x"], "margin_ratio": 1}, "margin_ratio"),
        (
            {"jobs": ["x"], "nodes": {"a": {"cpu": 1}}, "placement": {"x": {"op": [["a"]]}}},
            "there is no node",
        ),
        ({"jobs": ["x"], "placement": {"x": {"\0": ["a"]}}}, "no null character"),
        ({"jobs": ["\ud800"]}, "no JSON that can be stored"),
    ],
)
def test_a_setup_that_makes_no_sense_is_refused(boss: User, setup: object, says: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        deriving.create_derived(boss, "wrong", setup)
    assert says in refusal.value.message_dict["setup"][0]


def test_jobs_of_another_group_lend_a_cluster_neither_rates_nor_models(boss: User) -> None:
    group = JobGroup.objects.create(name="theirs")
    job = fleet.store(fleet.measured(1, time.time_ns(), operators=2))
    job.group = group
    job.save()
    with pytest.raises(ValidationError):
        deriving.create_derived(boss, "spy", {"jobs": [job.name]})
    document = worked_example()
    document["applications"] = {job.name: document["applications"]["app1"]}
    services.create_cluster(boss, "spy", document)
    assert clusters.survey_here().failed == 1
    inside = services.create_cluster(boss, "inside", document, group=group)
    clusters.survey_here()
    assert Survey.objects.get(cluster=inside).error == ""


def test_those_with_least_headroom_are_listed_first_and_after_them_those_nobody_knows(boss: User) -> None:
    for name, rate in (("a-roomy", 0.05), ("b-tight", 0.14), ("c-over", 0.2)):
        clusters.cluster(boss, name, worked_example(), {"app1": rate, "app2": rate})
    services.create_cluster(boss, "d-unknown", worked_example())
    clusters.survey_here()
    listed = [one.cluster.name for one in selectors.standings(boss)]
    assert listed == ["c-over", "b-tight", "d-unknown", "a-roomy"]
