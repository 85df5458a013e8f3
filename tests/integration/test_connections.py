"""Connections: who may change them, what can be wrong, how each stands, and that jobs outlive them."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from tests.support.api import Caller, person, problem_of
from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_token
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.jobs.services import ensure_job
from webapp.telemetry import backoff, flink, sources
from webapp.telemetry.connections import services
from webapp.telemetry.connections.selectors import Connection, State, connections, described
from webapp.telemetry.connections.wanted import Wanted
from webapp.telemetry.models import Source, SourceKind
from workers.tasks import collect

pytestmark = pytest.mark.django_db(transaction=True)
FLINK = Wanted("flink", "http://jobmanager:8081")


def admin(name: str = "root") -> User:
    found = person(name)
    User.objects.filter(pk=found.pk).update(is_staff=True)
    return User.objects.get(pk=found.pk)


def stand(actor: User) -> dict[str, Connection]:
    """The connections a person sees, by place."""
    return {item.source.location: item for item in described(actor, list(connections(actor)))}


def caller(owner: User, *scopes: Scope, jobs: tuple[str, ...] = ()) -> Caller:
    return Caller(create_token(owner, "test", scopes, jobs=jobs)[1])


CHANGES: tuple[Callable[[User, int], Any], ...] = (
    lambda actor, _: services.add_connection(actor, Wanted("flink", "http://other:8081")),
    lambda actor, pk: services.pause_connection(actor, pk, True),
    lambda actor, pk: services.pause_connection(actor, pk, False),
    services.poll_now,
    services.remove_connection,
)


@pytest.mark.parametrize("change", CHANGES, ids=["add", "pause", "resume", "poll", "remove"])
def test_only_an_administrator_changes_connections_and_every_try_is_recorded(
    change: Callable[[User, int], Any],
) -> None:
    source = services.add_connection(admin(), FLINK)
    ann, gone = person("ann"), admin("gone")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    gone.refresh_from_db()
    before = Source.objects.values().get()
    for actor in (ann, gone):
        with pytest.raises(PermissionDenied, match="administrators"):
            change(actor, source.pk)
    with pytest.raises(PermissionDenied):
        change(AnonymousUser(), source.pk)  # type: ignore[arg-type]
    assert Source.objects.values().get() == before
    refused = AuditEvent.objects.filter(outcome="refused", actor_id__in=(ann.pk, gone.pk))
    assert sorted(refused.values_list("actor_name", flat=True)) == ["ann", "gone"]
    change(admin(), source.pk)
    assert set(stand(ann)) <= {"http://jobmanager:8081", "http://other:8081"}


def test_a_stranger_sees_no_connections() -> None:
    with pytest.raises(PermissionDenied):
        connections(AnonymousUser())


def test_what_was_done_is_in_the_audit_record() -> None:
    root = admin()
    source = services.add_connection(root, FLINK)
    services.pause_connection(root, source.pk, True)
    services.pause_connection(root, source.pk, True)
    services.pause_connection(root, source.pk, False)
    services.remove_connection(root, source.pk)
    events = AuditEvent.objects.filter(object_type="source", object_id=source.pk).order_by("id")
    done = list(events.values_list("action", "object_id", "detail__location"))
    actions = ["source.add", "source.pause", "source.resume", "source.remove"]
    assert done == [(action, source.pk, FLINK.location) for action in actions]


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (Wanted("flink-job", "http://a"), "kind"),
        (Wanted("", "http://a"), "kind"),
        (Wanted("flink", "/logs"), "location"),
        (Wanted("spark-event-log-directory", "http://a"), "location"),
        (Wanted("flink", "http://a", "job"), "job"),
        (Wanted("openmetrics", "http://a"), "job"),
        (Wanted("openmetrics", "http://a", "x" * 201), "job"),
        (Wanted("openmetrics", "http://a", "a\0b"), "job"),
        (Wanted("openmetrics", "http://a", "job", 4), "interval_s"),
        (Wanted("openmetrics", "http://a", "job", 3601), "interval_s"),
    ],
)
def test_each_mistake_is_told_at_its_field(wanted: Wanted, field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        services.add_connection(admin(), wanted)
    assert list(refused.value.message_dict) == [field]
    assert len(refused.value.message_dict[field]) == 1
    assert not Source.objects.exists()


def test_a_place_is_connected_once_however_it_is_written() -> None:
    root = admin()
    source = services.add_connection(root, FLINK)
    with pytest.raises(ValidationError, match="connected already, as Flink cluster"):
        services.add_connection(root, Wanted("flink", " HTTP://JobManager:8081/ "))
    services.pause_connection(root, source.pk, True)
    with pytest.raises(ValidationError, match=r"\(paused\)"):
        services.add_connection(root, Wanted("openmetrics", FLINK.location, "job"))
    sources.add_source(SourceKind.FLINK_JOB, f"{FLINK.location}/jobs/1", source)
    with pytest.raises(ValidationError, match="part of another connection"):
        services.add_connection(root, Wanted("openmetrics", f"{FLINK.location}/jobs/1", "job"))


def test_an_unreachable_address_is_added_without_being_asked_and_its_state_tells() -> None:
    root = admin()
    source = services.add_connection(root, Wanted("flink", "http://127.0.0.1:9"))
    assert stand(root)[source.location].state is State.WAITING
    backoff.failed(source, "cannot be reached: connection refused")
    found = stand(root)[source.location]
    assert (found.state, found.failures) == (State.FAILING, 1)
    assert found.next_try is not None
    backoff.answered(source)
    assert stand(root)[source.location].state is State.CONNECTED
    Source.objects.update(polled_at=timezone.now() - timedelta(minutes=2))
    assert stand(root)[source.location].state is State.UNASKED


def test_the_wait_after_failures_doubles_up_to_five_minutes_and_an_answer_ends_it() -> None:
    source = services.add_connection(admin(), FLINK)
    waits = []
    for _ in range(200):
        now = timezone.now()
        backoff.failed(source, "no answer\0")
        until = backoff.not_before(source)
        assert until is not None
        waits.append((until - now).total_seconds())
    assert [round(wait) for wait in waits[:8]] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert round(waits[-1]) == 300
    assert not backoff.may_poll(source)
    backoff.answered(source)
    assert backoff.may_poll(source)
    assert backoff.failures(source) == 0


def test_asking_now_ends_the_wait_here_and_in_what_was_found_here() -> None:
    root = admin()
    source = services.add_connection(root, FLINK)
    child = sources.add_source(SourceKind.FLINK_JOB, "http://jobmanager:8081/jobs/1", source)
    for row in (source, child):
        backoff.failed(row, "no answer")
    assert stand(root)[FLINK.location].failing_count == 1
    services.poll_now(root, source.pk)
    for row in Source.objects.all():
        assert (row.state, row.error, row.polled_at) == (None, "", None)
        assert backoff.may_poll(row)
    services.pause_connection(root, source.pk, True)
    with pytest.raises(ValidationError, match="resume it first"):
        services.poll_now(root, source.pk)


def test_a_paused_cluster_and_its_jobs_are_not_asked_until_it_goes_on() -> None:
    root = admin()
    source = services.add_connection(root, FLINK)
    child = sources.add_source(SourceKind.FLINK_JOB, "http://jobmanager:8081/jobs/1", source)
    services.pause_connection(root, source.pk, True)
    assert stand(root)[FLINK.location].state is State.PAUSED
    for kind in (SourceKind.FLINK, SourceKind.FLINK_JOB):
        assert sources.due(kind, not_since=timedelta(0)) == []
    with transaction.atomic():
        assert sources.claim(source.pk) is None
        assert sources.claim(child.pk) is None
    services.pause_connection(root, source.pk, False)
    assert sources.due(SourceKind.FLINK_JOB, not_since=timedelta(0)) == [child.pk]


def test_a_removed_cluster_leaves_its_jobs_and_connected_again_it_goes_on() -> None:
    root = admin()
    source = services.add_connection(root, FLINK)
    child = sources.add_source(SourceKind.FLINK_JOB, "http://jobmanager:8081/jobs/1", source)
    child.job = ensure_job("ad-events")
    child.save()
    found = stand(root)[FLINK.location]
    assert ([job.name for job in found.jobs], found.job_count) == (["ad-events"], 1)
    services.remove_connection(root, source.pk)
    assert stand(root) == {}
    assert Job.objects.filter(name="ad-events").exists()
    assert sources.due(SourceKind.FLINK_JOB, not_since=timedelta(0)) == []
    with pytest.raises(Source.DoesNotExist):
        services.remove_connection(root, source.pk)
    again = services.add_connection(root, FLINK)
    assert again.pk == source.pk
    assert stand(root)[FLINK.location].job_count == 1
    services.remove_connection(root, again.pk)
    other = services.add_connection(root, Wanted("openmetrics", FLINK.location, "orders"))
    assert other.kind == "openmetrics"
    assert Job.objects.filter(name="ad-events").exists()


def test_a_directory_that_was_removed_and_added_again_is_read_on_from_its_positions(tmp_path: Path) -> None:
    root = admin()
    wanted = Wanted("spark-event-log-directory", str(tmp_path))
    source = services.add_connection(root, wanted)
    (tmp_path / "app-1").write_text('{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}\n')
    collect.poll_directory(source.pk)
    log = Source.objects.get(parent=source)
    collect.poll_event_log(log.pk)
    log.refresh_from_db()
    position = log.state
    assert position is not None
    services.remove_connection(root, source.pk)
    services.add_connection(root, wanted)
    services.poll_now(root, source.pk)
    log.refresh_from_db()
    assert log.state == position
    assert sources.due(SourceKind.SPARK_EVENT_LOG, not_since=timedelta(0)) == [log.pk]


def test_a_connection_that_stays_locked_by_a_poll_is_busy_and_nothing_changes() -> None:
    root = admin()
    source = services.add_connection(root, FLINK)
    settings = connection.settings_dict
    address = {key: settings[key.upper()] for key in ("host", "port", "user", "password")}
    with psycopg.connect(**address, dbname=settings["NAME"]) as other:
        other.execute("SELECT 1 FROM telemetry_source WHERE id = %s FOR UPDATE", (source.pk,))
        with pytest.raises(services.BusyError, match="try again"):
            services.pause_connection(root, source.pk, True)
        patched = caller(root, Scope.ADMIN).call("DELETE", f"/api/v1/sources/{source.pk}")
        assert problem_of(patched, 503) == "busy"
        assert patched["Retry-After"]
    assert not Source.objects.get().paused


def test_jobs_of_other_groups_stay_hidden_behind_a_connection() -> None:
    root, ann = admin(), person("ann")
    team = JobGroup.objects.create(name="team")
    hidden = ensure_job("secret-job")
    Job.objects.filter(pk=hidden.pk).update(group=team)
    source = services.add_connection(root, FLINK)
    child = sources.add_source(SourceKind.FLINK_JOB, "http://jobmanager:8081/jobs/1", source)
    Source.objects.filter(pk=child.pk).update(job=hidden)
    sources.add_source(SourceKind.OPENMETRICS, "http://metrics:9249")
    Source.objects.filter(location="http://metrics:9249").update(job=hidden)
    seen = stand(ann)
    assert set(seen) == {FLINK.location}
    assert (seen[FLINK.location].jobs, seen[FLINK.location].job_count) == ((), 0)
    with pytest.raises(ValidationError, match="may not give metrics"):
        services.add_connection(root, Wanted("openmetrics", "http://more:9249", "secret-job"))
    Membership.objects.create(user=ann, group=team, role=Role.VIEWER)
    assert set(stand(ann)) == {FLINK.location, "http://metrics:9249"}
    assert [job.name for job in stand(ann)[FLINK.location].jobs] == ["secret-job"]


def test_flink_still_notes_what_ended() -> None:
    source = services.add_connection(admin(), FLINK)
    child = sources.add_source(SourceKind.FLINK_JOB, "http://jobmanager:8081/jobs/1", source)
    flink.gone(child)
    child.refresh_from_db()
    assert child.finished


def test_over_the_api_a_source_is_added_read_paused_asked_and_removed() -> None:
    root = admin()
    program = caller(root, Scope.ADMIN, Scope.READ)
    body = {"kind": "openmetrics", "location": "http://tm:9249/metrics/", "job": "orders", "interval_s": 30}
    made = program.post("/api/v1/sources", body, Idempotency_Key="k1")
    assert made.status_code == 201, made.content
    assert made["Location"] == f"/api/v1/sources/{made.json()['id']}"
    replayed = program.post("/api/v1/sources", body, Idempotency_Key="k1")
    assert replayed.json() == made.json()
    shown = program.get(made["Location"])
    told = shown.json()
    assert (told["location"], told["state"], told["interval_s"]) == ("http://tm:9249/metrics", "waiting", 30)
    assert [job["name"] for job in told["jobs"]] == ["orders"]
    twice = program.post("/api/v1/sources", body)
    assert problem_of(twice, 400) == "invalid"
    assert twice.json()["errors"][0]["field"] == "location"
    assert problem_of(program.call("PATCH", made["Location"], {"paused": True}), 428)
    assert problem_of(program.call("PATCH", made["Location"], {"paused": True}, If_Match='"x"'), 412)
    paused = program.call("PATCH", made["Location"], {"paused": True}, If_Match=shown["ETag"])
    assert (paused.status_code, paused.json()["state"]) == (200, "paused")
    assert paused["ETag"] != shown["ETag"]
    assert problem_of(program.post(f"{made['Location']}/poll", None), 400) == "invalid"
    program.call("PATCH", made["Location"], {"paused": False}, If_Match="*")
    assert program.post(f"{made['Location']}/poll", None).status_code == 202
    assert program.call("DELETE", made["Location"]).status_code == 204
    assert problem_of(program.get(made["Location"]), 404) == "not_found"
    assert problem_of(program.call("DELETE", made["Location"]), 404) == "not_found"
    assert Job.objects.filter(name="orders").exists()


ADDRESSES = (
    ("GET", "/api/v1/sources", Scope.READ), ("GET", "/api/v1/sources/{id}", Scope.READ),
    ("POST", "/api/v1/sources", Scope.ADMIN), ("PATCH", "/api/v1/sources/{id}", Scope.ADMIN),
    ("POST", "/api/v1/sources/{id}/poll", Scope.ADMIN), ("DELETE", "/api/v1/sources/{id}", Scope.ADMIN),
)  # fmt: skip


@pytest.mark.parametrize(("method", "path", "scope"), ADDRESSES)
def test_who_may_call_what(method: str, path: str, scope: Scope) -> None:
    root, ann = admin(), person("ann")
    source = services.add_connection(root, FLINK)
    address = path.format(id=source.pk)
    body = {"kind": "flink", "location": "http://other:8081", "paused": True}
    assert problem_of(Caller(None).call(method, address, body, If_Match="*"), 401)
    others = caller(root, *(item for item in Scope if item != scope))
    refused = others.call(method, address, body, If_Match="*")
    assert problem_of(refused, 403) == "permission_denied"
    assert scope.value in refused.json()["detail"]
    hers = caller(ann, *Scope).call(method, address, body, If_Match="*")
    limited = caller(root, *Scope, jobs=("orders",)).call(method, address, body, If_Match="*")
    if scope is Scope.READ:
        assert hers.status_code == 200
        assert limited.json().get("items") == [] or problem_of(limited, 404)
    else:
        assert problem_of(hers, 403) == "permission_denied"
        assert problem_of(limited, 403) == "permission_denied"
        assert not Source.objects.get().paused
    assert caller(root, scope).call(method, address, body, If_Match="*").status_code < 300


def test_sources_are_listed_in_pages_with_few_queries(django_assert_max_num_queries: Any) -> None:
    root = admin()
    for number in range(30):
        services.add_connection(root, Wanted("openmetrics", f"http://tm{number}:9249", "orders"))
    program = caller(root, Scope.READ)
    program.get("/api/v1/sources")
    with django_assert_max_num_queries(8):
        first = program.get("/api/v1/sources?limit=20").json()
    rest = program.get(f"/api/v1/sources?limit=20&after={first['next']}").json()
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (20, 10, None)
    assert [job["name"] for job in rest["items"][0]["jobs"]] == ["orders"]


def test_an_operator_connects_addresses_as_the_page_does_and_paths_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call_command("add_source", "flink", "HTTP://JobManager:8081/", stdout=io.StringIO())
    call_command("add_source", "spark-event-log-directory", "logs", stdout=io.StringIO())
    database = "postgresql://reader@database/autoscaler"
    call_command("add_source", "flink-autoscaler", database, stdout=io.StringIO())
    assert set(Source.objects.values_list("kind", "location")) == {
        ("flink", "http://jobmanager:8081"),
        ("spark-event-log-directory", str(tmp_path.resolve() / "logs")),
        ("flink-autoscaler", "postgresql://reader@database:5432/autoscaler"),
    }
    for wrong in ("jobmanager:8081", "http://169.254.169.254", "http://me:secret@jobmanager:8081"):
        with pytest.raises(CommandError):
            call_command("add_source", "flink", wrong, stdout=io.StringIO())
    assert Source.objects.count() == 3
