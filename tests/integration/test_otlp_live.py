"""OpenTelemetry's own Python exporters, pointed at a running Weir over HTTP and gRPC."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import orjson
import psycopg
import pytest
import zstandard
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from tests.support.services import Services
from tests.support.web import Web, web_on

GOLDEN = Path(__file__).parents[1] / "golden" / "flink"


@pytest.fixture(scope="module")
def web(services: Services) -> Iterator[Web]:
    # Recorded bodies grow old; here they are kept whatever their age.
    with web_on(
        services.home, services.postgres_url, services.valkey_url, WEIR_KEEP_RAW_DAYS="100000"
    ) as web:
        web.start("web")
        web.start("otlp")
        yield web


@pytest.fixture(scope="module")
def ingest(web: Web) -> str:
    return web.token("ingest")


@pytest.fixture(scope="module")
def reader(web: Web) -> httpx.Client:
    return web.client(web.token("read", "ingest"))


def job_of(reader: httpx.Client, name: str) -> dict[str, Any]:
    found = reader.get("/api/v1/jobs", params={"name": name}).json()["items"]
    assert len(found) == 1, name
    return dict(found[0])


def workers_of(reader: httpx.Client, name: str) -> set[str]:
    path = f"/api/v1/jobs/{job_of(reader, name)['id']}/workers"
    return {item["name"] for item in reader.get(path).json()["items"]}


def value_of(reader: httpx.Client, job: str, metric: str) -> list[float]:
    path = f"/api/v1/jobs/{job_of(reader, job)['id']}/series"
    found = reader.get(path, params={"name": metric}).json()["items"]
    assert len(found) == 1, found
    points = reader.get(f"{path}/{found[0]['id']}/points").json()["items"]
    return [item["value"] for item in points]


def send_spans(exporter: Any, service: str, spans: int = 3) -> None:
    resource = Resource({"service.name": service, "service.instance.id": "1"})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    for number in range(spans):
        with tracer.start_as_current_span(f"step {number}"):
            pass
    provider.shutdown()


def send_metric(exporter: Any, service: str) -> None:
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    provider = MeterProvider([reader], Resource({"service.name": service}))
    provider.get_meter("test").create_counter("records").add(42)
    provider.shutdown()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_http_exporters_just_work(
    web: Web, ingest: str, reader: httpx.Client, compression: Compression
) -> None:
    name = f"http-{compression.value}"
    headers = {"Authorization": f"Bearer {ingest}"}
    send_spans(HttpSpans(f"{web.address}/v1/traces", headers=headers, compression=compression), name)
    send_metric(HttpMetrics(f"{web.address}/v1/metrics", headers=headers, compression=compression), name)
    assert all(worker.startswith(f"{name}/1") for worker in workers_of(reader, name))
    assert job_of(reader, name)["last_ns"]
    assert value_of(reader, name, "records") == [42]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_grpc_exporters_just_work(web: Web, ingest: str, reader: httpx.Client, compression: str) -> None:
    name = f"grpc-{compression}"
    more: dict[str, Any] = {
        "endpoint": f"127.0.0.1:{web.otlp_port}",
        "insecure": True,
        "headers": (("authorization", f"Bearer {ingest}"),),
        "compression": grpc.Compression.Gzip if compression == "gzip" else grpc.Compression.NoCompression,
    }
    send_spans(GrpcSpans(**more), name)
    send_metric(GrpcMetrics(**more), name)
    assert all(worker.startswith(f"{name}/1") for worker in workers_of(reader, name))
    assert value_of(reader, name, "records") == [42]


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_an_exporter_without_a_good_token_is_told_so(web: Web, reader: httpx.Client, scheme: str) -> None:
    for header in (
        {},
        {"authorization": "Bearer weir_guess"},
        {"authorization": f"Bearer {web.token('read')}"},
    ):
        exporter: Any = (
            HttpSpans(f"{web.address}/v1/traces", headers=header)
            if scheme == "http"
            else GrpcSpans(f"127.0.0.1:{web.otlp_port}", insecure=True, headers=tuple(header.items()))
        )
        provider = TracerProvider(resource=Resource({"service.name": f"stranger-{scheme}"}))
        span = provider.get_tracer("t").start_span("s")
        span.end()
        assert exporter.export([span]) is SpanExportResult.FAILURE
        exporter.shutdown()
    assert reader.get("/api/v1/jobs", params={"name": f"stranger-{scheme}"}).json()["items"] == []


def test_flinks_own_bodies_are_read_and_one_sent_twice_is_stored_once(
    web: Web, ingest: str, reader: httpx.Client
) -> None:
    sender = web.client(web.token("ingest", jobs=("flink-job",)))
    body = (GOLDEN / "otlp_metrics_004.bin").read_bytes()
    for _ in range(2):
        answer = sender.post("/v1/metrics", content=body, headers={"Content-Type": "application/x-protobuf"})
        assert answer.status_code == 200, answer.text
        assert answer.content == b""
    traces = (GOLDEN.parent / "otlp" / "flink_traces_001.bin").read_bytes()
    answer = sender.post("/v1/traces", content=traces, headers={"Content-Type": "application/x-protobuf"})
    assert answer.status_code == 200
    job = job_of(reader, "flink-job")
    with psycopg.connect(web.database_url) as connection:
        series, samples, batches = connection.execute(
            "SELECT count(DISTINCT s.id), count(*), (SELECT count(*) FROM telemetry_batch WHERE job_id = %(job)s) "
            "FROM telemetry_series s JOIN telemetry_metricsample m ON m.series_id = s.id WHERE s.job_id = %(job)s",
            {"job": job["id"]},
        ).fetchone() or (0, 0, 0)
    assert series == samples > 30
    assert batches == 2


@pytest.mark.parametrize("encoding", ["gzip", "zstd", ""])
def test_json_is_answered_in_json_and_says_what_was_rejected(
    web: Web, ingest: str, reader: httpx.Client, encoding: str
) -> None:
    name = f"json-{encoding or 'plain'}"
    good = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "a",
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000000005"}  # fmt: skip
    bad = good | {"spanId": "eee19b7ec3c1b175", "endTimeUnixNano": "1"}
    resource = {"attributes": [{"key": "weir.job", "value": {"stringValue": name}}]}
    document = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [good, bad]}]}]}
    body = orjson.dumps(document)
    packed = {"gzip": gzip.compress, "zstd": zstandard.compress, "": bytes}[encoding](body)
    answer = web.client(ingest).post(
        "/v1/traces",
        content=packed,
        headers={"Content-Type": "application/json", "Content-Encoding": encoding},
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    told = answer.json()["partialSuccess"]
    assert told["rejectedSpans"] == "1"
    assert "negative_duration" in told["errorMessage"]
    assert job_of(reader, name)["first_ns"] == 1_700_000_000_000_000_000
    protobuf = web.client(ingest).post(
        "/v1/traces", content=b"", headers={"Content-Type": "application/x-protobuf"}
    )
    assert ExportTraceServiceResponse.FromString(protobuf.content) == ExportTraceServiceResponse()


def test_a_body_without_a_declared_length_is_read_to_its_end(
    web: Web, ingest: str, reader: httpx.Client
) -> None:
    body = (GOLDEN / "otlp_metrics_001.bin").read_bytes()
    answer = web.client(web.token("ingest", jobs=("chunked",))).post(
        "/v1/metrics",
        content=iter([body[:1000], body[1000:]]),
        headers={"Content-Type": "application/x-protobuf"},
    )
    assert answer.status_code == 200, answer.text
    assert reader.get(f"/api/v1/jobs/{job_of(reader, 'chunked')['id']}/series").json()["items"]
