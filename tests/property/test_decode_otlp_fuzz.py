"""OTLP files: what was written is read; cut or damaged at any byte, they never fail."""

from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.decode.limits import UnreadableFileError
from analytics.decode.otlp_files import request_from_json
from analytics.model.activity import ActivityType
from tests.support.formats import every_cut_is_understood, every_flip_is_survived, read, said
from tests.support.random_traces import random_rows

T0 = 1_700_000_000_000_000_001
TRACE = "5b8efff798038103d269b633813fc60c"
per_case = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def told(**values: str) -> list[dict[str, object]]:
    return [{"key": f"weir.{key}", "value": {"stringValue": value}} for key, value in values.items()]


def as_request(rows: list[tuple[int, ...]]) -> bytes:
    spans = []
    for at, (kind, worker, peer, operator, start_ns, end_ns) in enumerate(rows, start=1):
        values = {"worker": f"w{worker}", "activity": ActivityType(kind).label}
        if peer >= 0:
            values["peer"] = f"w{peer}"
        spans.append(
            {
                "traceId": TRACE,
                "spanId": f"{at:016x}",
                "name": f"op{operator}",
                "kind": 1,
                "startTimeUnixNano": str(T0 + start_ns),
                "endTimeUnixNano": str(T0 + end_ns),
                "attributes": told(**values),
            }
        )
    return orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


SMALL = as_request([(4, 0, -1, 7, 0, 9), (10, 0, 1, 7, 3, 5)])
CALL = orjson.loads(SMALL)
CALL["resourceSpans"][0]["scopeSpans"][0]["spans"][1] |= {
    "kind": 5, "parentSpanId": "00000000000000aa", "attributes": [],
    "links": [{"traceId": TRACE, "spanId": "0000000000000001"}],
}  # fmt: skip
FORMS = {
    "json": SMALL,
    "protobuf": request_from_json(SMALL).SerializeToString(),
    "linked": request_from_json(orjson.dumps(CALL)).SerializeToString(),
    "lines": SMALL + b"\n" + orjson.dumps(CALL),
}


@per_case
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_a_random_trace_is_read_back(tmp_path: Path, seed: int, workers: int, binary: bool) -> None:
    rows = [row for row in random_rows(np.random.default_rng(seed), workers, 12) if row[4] <= row[5]]
    data = as_request(rows)
    batch = read(tmp_path, request_from_json(data).SerializeToString() if binary else data, "otlp")
    assert batch.diagnostics == ()
    expected = [
        (
            ActivityType(kind).label,
            f"w{worker}",
            f"w{peer}" if peer >= 0 else None,
            f"op{operator}",
            T0 + start_ns,
            T0 + end_ns,
        )
        for kind, worker, peer, operator, start_ns, end_ns in rows
    ]
    assert said(batch) == sorted(expected, key=repr)


@pytest.mark.parametrize("form", FORMS)
def test_cut_at_every_byte(tmp_path: Path, form: str) -> None:
    lengths = (0, len(SMALL), len(SMALL) + 1)
    outcomes = every_cut_is_understood(tmp_path, FORMS[form], "otlp", lengths)
    assert all(isinstance(outcome, str) for outcome in outcomes[1 : len(SMALL)])


@per_case
@given(st.sampled_from(sorted(FORMS)), st.integers(0, 2000), st.integers(1, 255))
def test_damaged_at_any_byte(tmp_path: Path, form: str, at: int, value: int) -> None:
    every_flip_is_survived(tmp_path, FORMS[form], "otlp", at, value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
PLACES = (
    ("resourceSpans",), ("resourceSpans", 0), ("resourceSpans", 0, "resource"), ("resourceSpans", 0, "scopeSpans"),
    ("resourceSpans", 0, "scopeSpans", 0), ("resourceSpans", 0, "scopeSpans", 0, "spans"),
    *(("resourceSpans", 0, "scopeSpans", 0, "spans", 1, field) for field in (
        "traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes",
        "links",
    )),
)  # fmt: skip


@per_case
@given(st.sampled_from(PLACES), JSON)
def test_any_value_in_any_place_gives_spans_or_one_error(place: tuple[str | int, ...], value: object) -> None:
    document = orjson.loads(orjson.dumps(CALL))
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    try:
        data = orjson.dumps(document)
    except TypeError:  # an integer that JSON readers refuse
        return
    try:
        request_from_json(data)
    except UnreadableFileError as error:
        why = str(error)
    else:
        return
    assert why.startswith("no ")
