"""Prometheus remote write over the API: both versions, repeats, stale series, partial writes."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest

from tests.support import remote_write as rw
from tests.support.api import Caller, problem_of, secret
from webapp.accounts.models import Scope
from webapp.jobs.models import Job
from webapp.telemetry.models import MetricSample, Refused, Series

pytestmark = pytest.mark.django_db

STALE = struct.pack("<Q", 0x7FF0000000000002)
NOW_MS = time.time_ns() // 1_000_000
V1 = {"Content_Type": "application/x-protobuf", "Content_Encoding": "snappy"}
V2 = V1 | {"Content_Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"}


@pytest.fixture
def sender() -> Caller:
    return Caller(secret(Scope.INGEST))


def body(*series: bytes) -> bytes:
    return rw.packed(b"".join(series))


def series(name: str, *samples: tuple[Any, int], **labels: str) -> bytes:
    return rw.series_v1({"__name__": name, **labels}, samples)


def stored() -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for row in MetricSample.objects.select_related("series__job").order_by("at_ns"):
        found.setdefault((row.series.job.name, row.series.name), []).append(row.value)
    return found


def test_samples_go_to_the_job_of_their_label_whatever_their_order(sender: Caller) -> None:
    sent = body(
        series("up", (1.0, NOW_MS), (2.0, NOW_MS - 1_000), job="orders", instance="a"),
        series("up", (3.0, NOW_MS), job="payments", instance="a"),
    )
    answer = sender.post("/api/v1/write", sent, **V1)
    assert (answer.status_code, answer.content) == (204, b"")
    assert stored() == {("orders", "up"): [2.0, 1.0], ("payments", "up"): [3.0]}
    assert Series.objects.get(job__name="orders").labels == {"instance": "a", "job": "orders"}
    assert Job.objects.get(name="orders").last_received_at is not None


def test_a_body_sent_twice_is_stored_once_and_a_later_value_replaces_an_earlier(sender: Caller) -> None:
    first = body(series("up", (1.0, NOW_MS), job="j"))
    for _ in range(2):
        assert sender.post("/api/v1/write", first, **V1).status_code == 204
    other = body(series("up", (5.0, NOW_MS), (6.0, NOW_MS + 1), (7.0, NOW_MS + 1), job="j"))
    assert sender.post("/api/v1/write", other, **V1).status_code == 204
    assert stored() == {("j", "up"): [5.0, 7.0]}
    assert Series.objects.count() == 1


def test_a_stale_marker_ends_its_series(sender: Caller) -> None:
    sent = body(series("up", (1.0, NOW_MS), (STALE, NOW_MS + 5), job="j"))
    assert sender.post("/api/v1/write", sent, **V1).status_code == 204
    assert stored() == {("j", "up"): [1.0]}
    assert Series.objects.get().ended_ns == (NOW_MS + 5) * 1_000_000


def test_what_is_wrong_is_told_and_the_rest_is_stored(sender: Caller) -> None:
    sent = body(
        series("up", (1.0, NOW_MS), job="j"),
        series("", (1.0, NOW_MS), job="j"),
        series("lost", (1.0, NOW_MS), (2.0, NOW_MS + 1)),
        series("future", (1.0, NOW_MS + 10**9), job="j"),
        series("ancient", (1.0, 1_000), job="j"),
    )
    answer = sender.post("/api/v1/write", sent, **V2 | V1)
    assert problem_of(answer, 400) == "samples_rejected"
    for word in ("missing_name", "no_job", "time_in_the_future", "older_than_kept"):
        assert word in answer.json()["detail"]
        assert Refused.objects.filter(code=word).exists()
    assert answer["X-Prometheus-Remote-Write-Samples-Written"] == "1"
    assert stored() == {("j", "up"): [1.0]}


def test_version_2_says_how_much_was_written(sender: Caller) -> None:
    request = rw.RequestV2()
    request.add({"__name__": "up", "job": "j"}, [(1.0, NOW_MS), (2.0, NOW_MS + 1)])
    answer = sender.post("/api/v1/write", rw.packed(request.data()), **V2)
    assert answer.status_code == 204, answer.content
    assert answer["X-Prometheus-Remote-Write-Samples-Written"] == "2"
    assert answer["X-Prometheus-Remote-Write-Histograms-Written"] == "0"
    assert answer["X-Prometheus-Remote-Write-Exemplars-Written"] == "0"


def test_another_format_is_refused_and_damage_is_not_to_be_sent_again(sender: Caller) -> None:
    good = body(series("up", (1.0, NOW_MS), job="j"))
    plain = {"Content_Type": "application/x-protobuf"}
    assert problem_of(sender.post("/api/v1/write", good, **plain), 415)
    other = V1 | {"Content_Type": "application/x-protobuf;proto=io.prometheus.write.v9.Request"}
    assert problem_of(sender.post("/api/v1/write", good, **other), 415)
    assert problem_of(sender.post("/api/v1/write", b"\xff" * 50, **V1), 400) == "unreadable"
    assert bytes(Refused.objects.get(code="unreadable").first_bytes) == b"\xff" * 50


def test_a_bomb_is_refused(sender: Caller, settings: Any) -> None:
    settings.WEIR_MAX_UNPACKED_BYTES = 100_000
    bomb = rw.packed(bytes(10_000_000))
    answer = sender.post("/api/v1/write", bomb, **V1)
    assert problem_of(answer, 413) == "too_large"
    assert answer["Retry-After"]


def test_the_only_job_of_a_token_takes_series_without_a_label(sender: Caller) -> None:
    limited = Caller(secret(Scope.INGEST, jobs=("mine",)))
    assert limited.post("/api/v1/write", body(series("up", (1.0, NOW_MS))), **V1).status_code == 204
    mixed = body(series("up", (1.0, NOW_MS + 1)), series("up", (1.0, NOW_MS), job="theirs"))
    assert problem_of(limited.post("/api/v1/write", mixed, **V1), 400) == "samples_rejected"
    only = body(series("up", (1.0, NOW_MS), job="theirs"))
    assert problem_of(limited.post("/api/v1/write", only, **V1), 403) == "job_refused"
    assert stored() == {("mine", "up"): [1.0, 1.0]}
    assert not Job.objects.filter(name="theirs").exists()
    assert Refused.objects.filter(job_name="theirs").exists()


def test_a_program_reads_series_and_points(sender: Caller) -> None:
    reader = Caller(secret(Scope.READ))
    sender.post(
        "/api/v1/write",
        body(series("up", (1.0, NOW_MS), (2.0, NOW_MS + 1), job="j"), series("down", (3.0, NOW_MS), job="j")),
        **V1,
    )
    address = f"/api/v1/jobs/{Job.objects.get().pk}/series"
    assert [item["name"] for item in reader.get(address).json()["items"]] == ["up", "down"]
    found = reader.get(f"{address}?name=up").json()["items"][0]
    points = f"{address}/{found['id']}/points"
    assert [item["value"] for item in reader.get(points).json()["items"]] == [1.0, 2.0]
    first = reader.get(f"{points}?limit=1").json()
    assert first["items"] == [{"at_ns": NOW_MS * 1_000_000, "value": 1.0}]
    assert reader.get(f"{points}?limit=1&after={first['next']}").json()["items"][0]["value"] == 2.0
    assert reader.get(f"{points}?from_ns={NOW_MS * 1_000_000 + 1}").json()["items"][0]["value"] == 2.0
    assert reader.get(f"{points}?resolution=hour").json()["items"] == []
    assert problem_of(reader.get(f"{points}?resolution=day"), 400) == "invalid"
    assert problem_of(reader.get(f"{address}/{found['id'] + 99}/points"), 404) == "not_found"
