"""What a program may send: sizes, cardinality, rates; and activities, with what becomes of a second delivery."""

from __future__ import annotations

import gzip
import time
from typing import Any

import orjson
import pyarrow as pa
import pytest

from tests.support import remote_write as rw
from tests.support.api import Caller, problem_of, secret
from tests.support.formats import activity_table
from webapp.accounts.models import Scope
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.services import ensure_job
from webapp.telemetry.models import Batch, Refused, Segment, Series

pytestmark = pytest.mark.django_db

NOW_MS = time.time_ns() // 1_000_000
V1 = {"Content_Type": "application/x-protobuf", "Content_Encoding": "snappy"}
ARROW = {"Content_Type": "application/vnd.apache.arrow.stream"}
NDJSON = {"Content_Type": "application/x-ndjson"}
LINE = b'{"type":"processing","worker":"w1","operator":"map","start_ns":1000000000,"end_ns":5000000000}\n'


@pytest.fixture
def sender() -> Caller:
    return Caller(secret(Scope.INGEST))


def arrow(rows: list[Any]) -> bytes:
    table = activity_table(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_activities_come_as_lines_or_arrow_and_a_second_time_they_change_nothing(sender: Caller) -> None:
    first = sender.post("/api/v1/activities?job=a", LINE, **NDJSON)
    assert first.status_code == 200
    told = first.json()
    assert (told["record_count"], told["duplicate"], told["diagnostics"]) == (1, False, [])
    packed = sender.post("/api/v1/activities?job=a", gzip.compress(LINE), Content_Encoding="gzip", **NDJSON)
    assert packed.json() == told | {"duplicate": True}
    rows = [("processing", "w1", None, "map", 6_000_000_000, 7_000_000_000)]
    other = sender.post("/api/v1/activities?job=a", arrow(rows), **ARROW)
    assert (other.json()["record_count"], other.json()["duplicate"]) == (1, False)
    assert Segment.objects.count() == 2


def test_one_idempotency_key_is_one_delivery(sender: Caller) -> None:
    address = "/api/v1/activities?job=a"
    first = sender.post(address, LINE, Idempotency_Key="k", **NDJSON)
    again = sender.post(address, LINE, Idempotency_Key="k", **NDJSON)
    assert again.json() == first.json()
    assert again["Idempotent-Replayed"] == "true"
    other = sender.post(address, LINE.replace(b"w1", b"w2"), Idempotency_Key="k", **NDJSON)
    assert problem_of(other, 422) == "idempotency_key_reused"
    assert Segment.objects.count() == 1


def test_what_is_refused_with_an_idempotency_key_is_kept_and_the_key_may_be_used_again(
    sender: Caller,
) -> None:
    address = "/api/v1/activities?job=a"
    assert problem_of(sender.post(address, b"junk", Idempotency_Key="k", **NDJSON), 400) == "unreadable"
    (kept,) = sender.get("/api/v1/refused").json()["items"]
    assert (kept["code"], kept["job_name"]) == ("unreadable", "a")
    assert not Job.objects.exists()
    again = sender.post(address, LINE, Idempotency_Key="k", **NDJSON)
    assert (again.status_code, again.json()["record_count"]) == (200, 1)


def test_bad_lines_are_told_and_good_ones_stored_but_nothing_good_is_an_error(sender: Caller) -> None:
    mixed = sender.post("/api/v1/activities?job=a", LINE + b"{}\n", **NDJSON).json()
    assert (mixed["record_count"], [item["code"] for item in mixed["diagnostics"]]) == (1, ["missing_field"])
    for body, kind in ((b"{}\n", NDJSON), (b"junk", NDJSON), (b"junk", ARROW), (arrow([])[:40], ARROW)):
        assert problem_of(sender.post("/api/v1/activities?job=b", body, **kind), 400) == "unreadable"
    assert not Job.objects.filter(name="b").exists()
    kept = Refused.objects.order_by("id")[0]
    assert (bytes(kept.first_bytes), kept.job_name) == (b"{}\n", "b")
    assert kept.reason.startswith("nothing can be used: missing_field (1): line 1: ")
    assert problem_of(sender.post("/api/v1/activities", LINE, **NDJSON), 400) == "invalid"
    assert problem_of(sender.post("/api/v1/activities?job=a", LINE, Content_Type="text/csv"), 415)


def test_a_body_too_large_is_refused_before_and_after_unpacking(sender: Caller, settings: Any) -> None:
    settings.WEIR_MAX_BODY_BYTES, settings.WEIR_MAX_UNPACKED_BYTES = 10_000, 50_000
    large = sender.post("/api/v1/activities?job=a", LINE * 200, **NDJSON)
    assert problem_of(large, 413) == "body_too_large"
    assert large["Retry-After"]
    bomb = gzip.compress(LINE * 1_000)
    assert len(bomb) < 10_000
    for path, kind in (
        ("/api/v1/activities?job=a", NDJSON),
        ("/v1/traces", {"Content_Type": "application/json"}),
    ):
        assert problem_of(sender.post(path, bomb, Content_Encoding="gzip", **kind), 413) == "body_too_large"
    assert Refused.objects.filter(code="body_too_large").exists()


def test_a_job_that_explodes_in_series_hurts_no_other(sender: Caller, settings: Any) -> None:
    settings.WEIR_MAX_SERIES_PER_JOB = 5

    def write(job: str, *numbers: int) -> Any:
        series = [
            rw.series_v1({"__name__": "m", "job": job, "id": str(number)}, [(1.0, NOW_MS)])
            for number in numbers
        ]
        return sender.post("/api/v1/write", rw.packed(b"".join(series)), **V1)

    assert write("wild", *range(5)).status_code == 204
    partly = write("wild", 4, 5, 6)
    assert problem_of(partly, 400) == "samples_rejected"
    assert "too_many_series" in partly.json()["detail"]
    wholly = write("wild", *range(10, 20))
    assert problem_of(wholly, 429) == "too_many_series"
    assert wholly["Retry-After"]
    assert write("calm", 1, 2, 3).status_code == 204
    assert Series.objects.filter(job__name="wild").count() == 5
    assert Refused.objects.filter(code="too_many_series", job_name="wild").exists()


def test_a_job_that_explodes_in_names_hurts_no_other(sender: Caller, settings: Any) -> None:
    settings.WEIR_MAX_NAMES_PER_JOB = 5
    many = b"".join(LINE.replace(b"w1", f"w{number}".encode()) for number in range(6))
    answer = sender.post("/api/v1/activities?job=wild", many, **NDJSON)
    assert problem_of(answer, 429) == "too_many_names"
    assert sender.post("/api/v1/activities?job=calm", LINE, **NDJSON).status_code == 200
    assert not Batch.objects.filter(job__name="wild").exists()


def test_there_is_an_end_to_new_jobs(sender: Caller, settings: Any) -> None:
    settings.WEIR_MAX_JOBS = 1
    assert sender.post("/api/v1/activities?job=a", LINE, **NDJSON).status_code == 200
    assert problem_of(sender.post("/api/v1/activities?job=b", LINE, **NDJSON), 403) == "job_refused"
    assert sender.post("/api/v1/activities?job=a", LINE + LINE, **NDJSON).status_code == 200


def test_a_token_sends_to_no_job_but_its_own_nor_to_one_its_owner_cannot_see() -> None:
    limited = Caller(secret(Scope.INGEST, jobs=("mine",)))
    assert problem_of(limited.post("/api/v1/activities?job=theirs", LINE, **NDJSON), 403) == "job_refused"
    assert limited.post("/api/v1/activities", LINE, **NDJSON).status_code == 200
    hidden = ensure_job("hidden")
    Job.objects.filter(pk=hidden.pk).update(group=JobGroup.objects.create(name="others"))
    stranger = Caller(secret(Scope.INGEST))
    assert problem_of(stranger.post("/api/v1/activities?job=hidden", LINE, **NDJSON), 403) == "job_refused"
    assert not Segment.objects.filter(job=hidden).exists()


def test_only_the_owner_sees_what_was_refused(sender: Caller) -> None:
    sender.post("/v1/traces", b"\xff\xff", Content_Type="application/x-protobuf")
    mine = sender.get("/api/v1/refused").json()["items"]
    assert [(item["kind"], item["code"], item["first_bytes"]) for item in mine] == [
        ("otlp-traces", "unreadable", "ffff")
    ]
    assert Caller(secret(Scope.INGEST, owner="eve")).get("/api/v1/refused").json()["items"] == []
    other_token = Caller(secret(Scope.INGEST, jobs=("x",)))
    assert other_token.get("/api/v1/refused").json()["items"] == []


def test_a_flood_of_bad_bodies_is_kept_as_one(sender: Caller) -> None:
    for number in range(5):
        sender.post("/v1/traces", orjson.dumps(number), Content_Type="application/json")
    assert Refused.objects.count() == 1


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/traces", {"Content_Type": "application/x-protobuf"}),
        ("/v1/metrics", {"Content_Type": "application/json"}),
        ("/api/v1/write", V1),
        ("/api/v1/activities?job=a", NDJSON),
    ],
)
def test_nobody_sends_without_a_token_of_scope_ingest(path: str, headers: dict[str, str]) -> None:
    assert problem_of(Caller(None).post(path, b"", **headers), 401) == "not_authenticated"
    refused = Caller(secret(Scope.READ, Scope.DECIDE, Scope.ADMIN)).post(path, b"", **headers)
    assert problem_of(refused, 403) == "permission_denied"
    assert problem_of(Caller(secret(Scope.INGEST)).get(path), 405) == "method_not_allowed"
