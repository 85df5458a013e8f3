"""OTLP spans: who did what, which messages follow, and the forms in which files hold them."""

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from analytics.decode.formats import read_files
from analytics.decode.halves import match_halves
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.decode.otlp_files import request_from_json
from analytics.decode.otlp_traces import decode_otlp_traces
from analytics.model.trace import TraceBatch
from tests.support.formats import codes, read, said

GOLDEN = Path(__file__).parents[1] / "golden" / "otlp"
TRACE = "5b8efff798038103d269b633813fc60c"
INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = 1, 2, 3, 4, 5
T0 = 1_700_000_000_000_000_001


def attributes(**values: str | int) -> list[dict[str, Any]]:
    def told(value: str | int) -> dict[str, str]:
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

    return [{"key": key.replace("__", "."), "value": told(value)} for key, value in values.items()]


def span(
    number: int, name: str, start: int, end: int, kind: int = INTERNAL, parent: int = 0,
    links: tuple[int, ...] = (), **told: str | int,
) -> dict[str, Any]:  # fmt: skip
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(T0 + start),
        "endTimeUnixNano": str(T0 + end),
        "attributes": attributes(**told),
        "links": [{"traceId": TRACE, "spanId": f"{link:016x}"} for link in links],
    }


def service(name: str, *spans: dict[str, Any], **told: str | int) -> dict[str, Any]:
    resource = {"attributes": attributes(service__name=name, service__instance__id="1", **told)}
    return {"resource": resource, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}


def document(*services: dict[str, Any]) -> bytes:
    return orjson.dumps({"resourceSpans": list(services)})


def decode(*services: dict[str, Any]) -> TraceBatch:
    return decode_otlp_traces(request_from_json(document(*services)))


def relative(batch: TraceBatch) -> list[tuple[object, ...]]:
    return [(*row[:4], row[4] - T0, row[5] - T0) for row in said(batch)]


def test_the_attributes_of_weir_say_all() -> None:
    told = {"weir__worker": "w1", "weir__operator": "map", "weir__activity": "serialization"}
    batch = decode(service("s", span(1, "x", 0, 5, **told), span(2, "y", 5, 6, weir__activity=5)))
    assert said(batch)[1:] == [("serialization", "w1", None, "map", T0, T0 + 5)]
    assert said(batch)[0][:4] == ("barrier", "s/1", None, "y")


def test_without_them_service_instance_and_thread_are_the_worker_and_the_name_the_operator() -> None:
    batch = decode(
        service("s", span(1, "map", 0, 5, thread__name="main", thread__id=7), host__name="h1"),
        service("s", span(2, "map", 0, 5, thread__id=8)),
    )
    assert relative(batch) == [
        ("processing", "s/1/8", None, "map", 0, 5),
        ("processing", "s/1/main-7", None, "map", 0, 5),
    ]
    assert [worker.host for worker in batch.workers] == ["h1", ""]


def test_attributes_of_the_resource_and_the_scope_hold_for_their_spans() -> None:
    of_resource = service("s", span(1, "x", 0, 5), weir__worker="w1")
    of_resource["scopeSpans"][0]["scope"]["attributes"] = attributes(weir__operator="map")
    assert relative(decode(of_resource)) == [("processing", "w1", None, "map", 0, 5)]


def test_nested_spans_of_a_worker_stay_nested_and_make_no_message() -> None:
    batch = decode(service("s", span(1, "outer", 0, 9), span(2, "inner", 2, 4, parent=1)))
    assert [row[3:] for row in relative(batch)] == [("inner", 2, 4), ("outer", 0, 9)]
    assert batch.halves == ()


def test_a_consumer_receives_from_the_producer_it_links_to() -> None:
    batch = decode(
        service("a", span(1, "send", 0, 5, PRODUCER)),
        service("b", span(2, "poll", 9, 12, CONSUMER, links=(1,))),
    )
    assert ("data_message", "a/1", "b/1", None, 5, 9) in relative(batch)


def test_a_consumer_receives_from_its_parent_and_several_are_a_broadcast() -> None:
    batch = decode(
        service("a", span(1, "send", 0, 5, PRODUCER)),
        service("b", span(2, "poll", 9, 12, CONSUMER, parent=1)),
        service("c", span(3, "poll", 7, 8, CONSUMER, parent=1, links=(1,))),
    )
    messages = [row for row in relative(batch) if row[0] == "data_message"]
    assert messages == [
        ("data_message", "a/1", "b/1", None, 5, 9),
        ("data_message", "a/1", "c/1", None, 5, 7),
    ]


def test_a_producer_that_waits_for_an_acknowledgement_has_sent_when_the_first_consumer_begins() -> None:
    batch = decode(
        service("a", span(1, "send", 0, 20, PRODUCER)),
        service(
            "b", span(2, "poll", 9, 12, CONSUMER, links=(1,)), span(3, "poll", 12, 14, CONSUMER, links=(1,))
        ),
    )
    messages = [row[4:] for row in relative(batch) if row[0] == "data_message"]
    assert messages == [(9, 9), (9, 12)]


def test_producer_and_consumer_may_come_in_different_requests() -> None:
    sent = decode(service("a", span(1, "send", 0, 5, PRODUCER)))
    received = decode(service("b", span(2, "poll", 9, 12, CONSUMER, links=(1,))))
    (pair,), unmatched, _ = match_halves([*sent.halves, *received.halves])
    assert (pair[0].at_ns - T0, pair[1].at_ns - T0, unmatched) == (5, 9, [])


def test_a_call_is_a_message_a_wait_and_an_answer() -> None:
    batch = decode(
        service("a", span(1, "work", 0, 20), span(2, "call", 3, 15, CLIENT, parent=1)),
        service("b", span(3, "serve", 5, 12, SERVER, parent=2)),
    )
    assert relative(batch) == [
        ("control_message", "a/1", "b/1", "serve", 3, 5),
        ("control_message", "b/1", "a/1", "serve", 12, 15),
        ("processing", "a/1", None, "work", 0, 20),
        ("processing", "b/1", None, "serve", 5, 12),
        ("waiting", "a/1", None, "call", 3, 15),
    ]


def test_client_and_server_may_come_in_different_requests() -> None:
    client = decode(service("a", span(2, "call", 3, 15, CLIENT)))
    server = decode(service("b", span(3, "serve", 5, 12, SERVER, parent=2)))
    assert relative(client) == [("input", "a/1", None, "call", 3, 15)]
    pairs, unmatched, _ = match_halves([*client.halves, *server.halves])
    assert [(sent.at_ns - T0, got.at_ns - T0) for sent, got in pairs] == [(3, 5), (12, 15)]
    assert unmatched == []


def test_a_task_handed_to_another_thread_is_asked_for_and_answers_while_its_parent_runs() -> None:
    def handed(start: int, end: int) -> list[tuple[object, ...]]:
        batch = decode(
            service(
                "a",
                span(1, "submit", 0, 20, thread__id=1),
                span(2, "run", start, end, parent=1, thread__id=2),
            )
        )
        return [row[1:3] + row[4:] for row in relative(batch) if row[0] == "control_message"]

    assert handed(5, 12) == [("a/1/1", "a/1/2", 4, 5), ("a/1/2", "a/1/1", 12, 13)]
    assert handed(25, 30) == [("a/1/1", "a/1/2", 20, 25)]  # after its parent: nobody waits for it
    assert handed(-5, 3)[0] == ("a/1/1", "a/1/2", 0, -5)  # clocks disagree, and that is not hidden


def test_a_span_that_is_a_message_needs_a_peer() -> None:
    told = {"weir__worker": "w1", "weir__activity": "data_message"}
    batch = decode(
        service("s", span(1, "shuffle", 0, 5, weir__peer="w2", **told), span(2, "y", 0, 5, **told))
    )
    assert relative(batch) == [("data_message", "w1", "w2", "shuffle", 0, 5)]
    assert codes(batch) == {"message_without_peer": 1}


def test_spans_that_cannot_be_used_are_counted() -> None:
    late = span(4, "late", 0, 1) | {"endTimeUnixNano": str(2**63)}
    batch = decode(
        service(
            "s",
            span(1, "good", 0, 5),
            span(1, "again", 0, 5),
            span(2, "backwards", 5, 4),
            span(3, "never", -T0, 5),
            late,
            span(5, "odd", 6, 7, weir__activity="dancing"),
        )
    )
    assert relative(batch) == [
        ("processing", "s/1", None, "good", 0, 5),
        ("unknown", "s/1", None, "odd", 6, 7),
    ]
    assert codes(batch) == {
        "duplicate_span": 1,
        "negative_duration": 1,
        "missing_time": 1,
        "time_out_of_range": 1,
        "unknown_type": 1,
    }


ONE = service("s", span(1, "a", 0, 5))
TWO = service("s", span(2, "b", 5, 6))


def frame(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


@pytest.mark.parametrize("form", ["json", "pretty", "lines", "protobuf", "frames", "base64 ids"])
def test_every_form_of_file_says_the_same(tmp_path: Path, form: str) -> None:
    one, two = document(ONE), document(TWO)
    both = document(ONE, TWO)
    with_base64 = orjson.loads(both)
    for item in with_base64["resourceSpans"]:
        (told,) = item["scopeSpans"][0]["spans"]
        for field in ("traceId", "spanId"):
            told[field] = base64.b64encode(bytes.fromhex(told[field])).decode()
    data = {
        "json": both,
        "pretty": orjson.dumps(orjson.loads(both), option=orjson.OPT_INDENT_2),
        "lines": one + b"\n\n" + two + b"\n",
        "protobuf": request_from_json(both).SerializeToString(),
        "frames": b"".join(frame(request_from_json(item).SerializeToString()) for item in (one, two)),
        "base64 ids": orjson.dumps(with_base64),
    }[form]
    batch = read(tmp_path, data, "otlp")
    assert relative(batch) == [("processing", "s/1", None, "a", 0, 5), ("processing", "s/1", None, "b", 5, 6)]
    assert batch.diagnostics == ()


def test_ids_are_hexadecimal() -> None:
    request = request_from_json(document(ONE))
    assert request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex() == TRACE


def test_a_bad_line_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    batch = read(tmp_path, document(ONE) + b'\n{"x":\n{"resourceSpans":7}\n' + document(TWO), "otlp")
    assert len(batch.records) == 2
    assert codes(batch) == {"not_a_request": 2}
    assert batch.diagnostics[0].example.startswith("line 2: no JSON")


def test_links_are_found_across_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(document(service("a", span(1, "work", 0, 20, thread__id=1))))
    (tmp_path / "b").write_bytes(document(service("a", span(2, "run", 5, 12, parent=1, thread__id=2))))
    batch = read_files([tmp_path / "b", tmp_path / "a"], "otlp")
    assert sum(row[0] == "control_message" for row in said(batch)) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"hello", b"\x0a\xff", b"{}", b"[]", b"{", b"\0\0\0\x09abc", b'{"resourceSpans":[7]}',
        b'{"resourceSpans":{"scopeSpans":1}}', b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":3}]}]}]}',
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"' + b"z" * 32 + b'"}]}]}]}',
        b'{"resourceSpans":' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)  # fmt: skip
def test_something_else_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableFileError) as refused:
        read(tmp_path, data, "otlp")
    assert "\n" not in str(refused.value)


def test_more_than_the_limits_is_refused(tmp_path: Path) -> None:
    data = document(ONE, TWO)
    with pytest.raises(TooLargeError, match="max-records"):
        read(tmp_path, data, "otlp", Limits(len(data), 1))
    with pytest.raises(TooLargeError, match="max-bytes"):
        read(tmp_path, data, "otlp", Limits(len(data) - 1, 2))


def test_spans_that_flink_sent(tmp_path: Path) -> None:
    binary = (GOLDEN / "flink_traces_001.bin").read_bytes()
    batch = read(tmp_path, binary, "otlp")
    assert said(batch) == said(read(tmp_path, (GOLDEN / "flink_traces_001.json").read_bytes(), "otlp"))
    assert {row[3] for row in said(batch)} == {"JobInitialization", "Checkpoint"}
    assert {(worker.name, worker.host) for worker in batch.workers} == {("unknown_service:java", "")}
    assert batch.diagnostics == ()
    initialization = next(row for row in said(batch) if row[3] == "JobInitialization")
    assert initialization[4:] == (1_795_253_300_829_000_000, 1_795_253_301_430_000_000)


def test_what_protobufs_own_writer_makes_is_read(tmp_path: Path) -> None:
    request = ExportTraceServiceRequest.FromString((GOLDEN / "flink_traces_001.bin").read_bytes())
    compact = json_format.MessageToJson(request, indent=None).encode()
    assert len(read(tmp_path, compact, "otlp").records) == 2
