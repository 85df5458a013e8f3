"""Jobs over the API: pages, topology, settings that two people change, results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import seed
from tests.support.api import Caller, person, problem_of, secret, superuser
from webapp.accounts.models import Scope
from webapp.analysis.models import PendingRange, Run, RunState, Window
from webapp.analysis.services import RunLostError, claim_work, finish_run
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.jobs.services import ensure_job

pytestmark = pytest.mark.django_db

S = 1_000_000_000


@pytest.fixture
def caller() -> Caller:
    superuser("ada")
    return Caller(secret(Scope.READ, Scope.ADMIN))


def everything(caller: Caller, path: str, limit: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after = ""
    while True:
        answer = caller.get(f"{path}{'&' if '?' in path else '?'}limit={limit}{after}").json()
        assert len(answer["items"]) <= limit
        items += answer["items"]
        if answer["next"] is None:
            return items
        after = f"&after={answer['next']}"


def test_pages_hold_every_job_once_even_if_jobs_come_meanwhile(caller: Caller) -> None:
    names = [f"job {number}" for number in range(7)]
    for name in names:
        ensure_job(name)
    assert [item["name"] for item in everything(caller, "/api/v1/jobs", 3)] == names
    assert [item["name"] for item in everything(caller, "/api/v1/jobs", 7)] == names
    assert [item["name"] for item in caller.get("/api/v1/jobs?name=job 3").json()["items"]] == ["job 3"]


@pytest.mark.django_db(transaction=True)  # the analysis reads over a connection of its own
def test_a_program_reads_topology_and_results(caller: Caller) -> None:
    job = seed.make_job("ad-events")
    seed.stream(job, 1_000, 7)  # the last two seconds are still open
    address = f"/api/v1/jobs/{job.pk}"
    shown = caller.get(address).json()
    assert (shown["name"], shown["engine"], shown["first_ns"]) == ("ad-events", "spark", 1_000 * S)
    assert [item["name"] for item in everything(caller, f"{address}/operators", 1)] == ["split", "count"]
    workers = everything(caller, f"{address}/workers", 2)
    assert [item["number"] for item in workers] == [0, 1, 2, 3, 4]
    windows = everything(caller, f"{address}/windows", 2)[:5]
    assert [item["start_ns"] for item in windows] == [second * S for second in range(1_000, 1_005)]
    for window in windows:
        assert window["status"] == "ok"
        assert sum(item["cp"] for item in window["activities"]) == pytest.approx(1)
        assert sum(item["cp"] for item in window["workers"]) <= 1 + 1e-9
        assert {item["operator"] for item in window["operators"]} <= {0, 1, -1}
    within = caller.get(f"{address}/windows?from_ns={1_001 * S}&to_ns={1_003 * S}").json()["items"]
    assert [item["start_ns"] for item in within] == [1_001 * S, 1_002 * S]


def test_of_two_people_who_change_settings_the_second_must_look_first(caller: Caller) -> None:
    address = f"/api/v1/jobs/{ensure_job('ad-events').pk}/settings"
    seen = caller.get(address)
    assert problem_of(caller.call("PATCH", address, {"lateness_ns": 5 * S}), 428) == "if_match_required"
    first = caller.call("PATCH", address, {"lateness_ns": 5 * S}, If_Match=seen["ETag"])
    assert (first.status_code, first.json()["lateness_ns"], first.json()["window_ns"]) == (200, 5 * S, S)
    second = caller.call("PATCH", address, {"lateness_ns": 9 * S}, If_Match=seen["ETag"])
    assert problem_of(second, 412) == "changed_meanwhile"
    assert caller.get(address).json()["lateness_ns"] == 5 * S
    assert caller.get(address)["ETag"] == first["ETag"] != seen["ETag"]
    again = caller.call("PATCH", address, {"lateness_ns": 9 * S}, If_Match=f'"x", {first["ETag"]}')
    assert again.json()["lateness_ns"] == 9 * S


@pytest.mark.django_db(transaction=True)  # a refusal is recorded over a connection of its own
def test_settings_are_changed_by_operators_only_and_every_try_is_recorded(caller: Caller) -> None:
    job = ensure_job("ad-events")
    address = f"/api/v1/jobs/{job.pk}/settings"
    viewer = Caller(secret(Scope.READ, Scope.ADMIN, owner="eve"))
    refused = viewer.call("PATCH", address, {"lateness_ns": S}, If_Match="*")
    assert problem_of(refused, 403) == "permission_denied"
    group = JobGroup.objects.create(name="ads")
    Membership.objects.create(group=group, user=person("eve"), role=Role.OPERATOR)
    Job.objects.update(group=group)
    assert viewer.call("PATCH", address, {"lateness_ns": S}, If_Match="*").status_code == 200
    tried = AuditEvent.objects.filter(action="job.settings", actor_name="eve").order_by("id")
    assert [(item.outcome, item.detail) for item in tried] == [
        ("refused", {"lateness_ns": S}),
        ("done", {"lateness_ns": S}),
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"window_ns": 0}, {"lateness_ns": -1}, {"window_ns": "wide"}, {"colour": 1}, {"window_ns": 2**63}],
)
def test_wrong_settings_change_nothing(caller: Caller, wrong: dict[str, object]) -> None:
    address = f"/api/v1/jobs/{ensure_job('ad-events').pk}/settings"
    before = caller.get(address).json()
    refused = caller.call("PATCH", address, {"lateness_ns": 1, **wrong}, If_Match="*")
    assert problem_of(refused, 400) == "invalid"
    assert caller.get(address).json() == before


@pytest.mark.django_db(transaction=True)  # the analysis reads over a connection of its own
def test_another_window_width_gives_up_what_is_computed_with_the_old_one(caller: Caller) -> None:
    job = seed.make_job("ad-events")
    seed.stream(job, 1_000, 6)
    seed.store_batch(job, seed.batch(1_006, 4), seed.digest_of("more"))
    claimed = claim_work(seed.ALGORITHM_VERSION, "tests")
    assert claimed is not None
    changed = caller.call("PATCH", f"/api/v1/jobs/{job.pk}/settings", {"window_ns": 2 * S}, If_Match="*")
    assert changed.status_code == 200
    assert not Window.objects.exists()
    with pytest.raises(RunLostError):
        finish_run(*claimed, [])
    assert Run.objects.get(pk=claimed[0].pk).state == RunState.FAILED
    assert PendingRange.objects.filter(job=job, run=None).exists()
    seed.analyse()
    assert set(Window.objects.values_list("width_ns", flat=True)) == {2 * S}


@pytest.mark.django_db(transaction=True)
def test_a_program_reads_back_what_was_stored_page_by_page_and_by_time(caller: Caller) -> None:
    job = seed.make_job("ad-events")
    seed.stream(job, 1_000, 4)
    address = f"/api/v1/jobs/{job.pk}/activities"
    items = everything(caller, address, 7)
    assert len(items) == sum(job.segments.values_list("record_count", flat=True))
    assert len({tuple(item.values()) for item in items}) == len(items)
    assert {item["operator"] for item in items} <= {"split", "count", None}
    assert any(item["peer"] for item in items), "messages name who received them"
    second = caller.get(f"{address}?from_ns={1_001 * S}&to_ns={1_002 * S}&limit=10000").json()["items"]
    assert second == [item for item in items if item["end_ns"] >= 1_001 * S and item["start_ns"] <= 1_002 * S]
    assert 0 < len(second) < len(items)
    span = f"from_ns={1_001 * S}&to_ns={1_002 * S}"
    assert everything(caller, f"{address}?{span}", 3) == second, "pages end within a segment"
    assert Caller(secret(Scope.INGEST)).get(address).status_code == 403
