"""Flink's answers, damaged: whatever comes, there are values and diagnostics or one clear error."""

from collections.abc import Callable
from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode.flink_counters import decode_listed_counters, decode_metric_list, decode_vertex
from analytics.decode.flink_rest import (
    decode_checkpoints,
    decode_job,
    decode_jobs_overview,
    decode_requirements,
    decode_rescales,
    decode_settings,
    refusal,
)
from analytics.decode.flink_samples import (
    checkpoint_records,
    rescale_annotations,
    topology_samples,
    window_samples,
)
from analytics.decode.flink_windows import instance_windows
from analytics.decode.limits import UnreadableFileError
from analytics.model.topology import InstanceCounters, JobPoll, Operator, Topology
from tests.support.flink import answer

Decode = Callable[[bytes], object]


def job(body: bytes) -> object:
    return topology_samples(decode_job(body)[0], 1)


def vertex(body: bytes) -> object:
    return [item.clock_ms for item in decode_vertex(body, 1)[0]]


def checkpoints(body: bytes) -> object:
    return checkpoint_records(decode_checkpoints(body)[0])


def rescales(body: bytes) -> object:
    return rescale_annotations(decode_job(answer("get_job"))[0], decode_rescales(body)[0])


DECODERS: dict[str, Decode] = {
    "get_job": job,
    "get_vertex_detail": vertex,
    "get_checkpoints": checkpoints,
    "rescale_details": rescales,
    "get_requirements": decode_requirements,
    "get_jobs_overview": decode_jobs_overview,
    "get_metrics_missing_subtask": decode_metric_list,
}
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["id", "vertices", "parallelism", "now", "plan", "nodes", "inputs", "jobs", "jid", "history", "counts",
             "subtasks", "subtask", "metrics", "value", "errors", "rescaleUuid", "key", "lowerBound", "timestamps"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=30,
)  # fmt: skip


def survived(decode: Decode, body: bytes) -> bool:
    """True if the body could be used; else it gave one clear line."""
    why = None
    try:
        decode(body)
    except UnreadableFileError as error:
        why = str(error)
    assert why is None or (why and "\n" not in why)
    return why is None


@pytest.mark.parametrize("name", DECODERS)
def test_an_answer_cut_anywhere_is_refused(name: str) -> None:
    body = answer(name)
    assert survived(DECODERS[name], body)
    for length in range(len(body)):
        assert not survived(DECODERS[name], body[:length])


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_answer_never_fails(name: str, data: st.DataObject) -> None:
    body = bytearray(answer(name))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    survived(DECODERS[name], bytes(body))
    refusal(bytes(body))


@pytest.mark.parametrize("decode", [*DECODERS.values(), decode_settings, refusal])
@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=60) | json.map(orjson.dumps))
def test_any_bytes_and_any_json_are_survived(decode: Decode, body: bytes) -> None:
    survived(decode, body)


counter = st.none() | st.floats(0, 1e6, allow_nan=False)
OPERATOR = Operator("o", "op", 2, 128, "RUNNING", 5)
TOPOLOGY = Topology("j", "job", "RUNNING", 10**6, (OPERATOR,), ())
one_poll = st.lists(
    st.builds(
        InstanceCounters,
        st.just("o"),
        st.integers(0, 2),
        st.just(0),
        counter,
        counter,
        counter,
        counter,
        counter,
        st.none() | st.integers(0, 2),
        st.none() | st.integers(0, 10**7),
    ),
    max_size=3,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(one_poll, min_size=1, max_size=8))
def test_windows_are_known_and_never_negative_or_unknown_with_a_reason(
    told: list[list[InstanceCounters]],
) -> None:
    polls = [
        JobPoll(at * 10**10, TOPOLOGY, tuple(_at(item, at * 10**10) for item in counters))
        for at, counters in enumerate(told)
    ]
    windows, _ = instance_windows(polls)
    assert [(item.operator_id, item.instance) for item in windows] == [("o", 0), ("o", 1)]
    for window in windows:
        amounts = (window.records_in, window.records_out, window.busy_ms, window.idle_ms)
        if window.unknown:
            assert {*amounts, window.observed_ms} == {None}
        else:
            assert window.observed_ms is not None
            assert window.observed_ms >= 15_000
            assert all(amount is None or amount >= 0 for amount in amounts)
            assert polls[0].at_ns <= window.from_ns < window.until_ns <= polls[-1].at_ns
    assert all(sample.value >= 0 for sample in window_samples(TOPOLOGY, windows))


@settings(max_examples=50, deadline=None)
@given(
    rates=st.lists(st.floats(0, 1_000), min_size=1, max_size=4),
    busy_ratio=st.floats(0.01, 1),
    steps_s=st.lists(st.integers(2, 9), min_size=4, max_size=12),
)
def test_a_steady_job_has_its_own_rates(rates: list[float], busy_ratio: float, steps_s: list[int]) -> None:
    operator = Operator("o", "op", len(rates), 128, "RUNNING", 5)
    topology = Topology("j", "job", "RUNNING", None, (operator,), ())
    times_s = [sum(steps_s[:at]) + 20 for at in range(len(steps_s))]
    polls = [
        JobPoll(
            at_s * 10**9,
            topology,
            tuple(
                InstanceCounters(
                    "o", instance, at_s * 10**9, rate * at_s, 2 * rate * at_s,
                    1_000 * busy_ratio * at_s, 1_000 * (1 - busy_ratio) * at_s, 0.0,
                )
                for instance, rate in enumerate(rates)
            ),
        )
        for at_s in times_s
    ]  # fmt: skip
    assert all(a < b for a, b in pairwise(times_s))
    windows, diagnostics = instance_windows(polls)
    assert diagnostics == ()
    for window, rate in zip(windows, rates, strict=True):
        if times_s[-1] - times_s[0] > 15:
            assert window.per_s(window.records_in) == pytest.approx(rate, abs=1e-6)
            assert window.per_s(window.records_out) == pytest.approx(2 * rate, abs=1e-6)
            assert window.ratio(window.busy_ms) == pytest.approx(busy_ratio)


def _at(item: InstanceCounters, at_ns: int) -> InstanceCounters:
    values = {name: getattr(item, name) for name in item.__slots__}
    return InstanceCounters(**(values | {"at_ns": at_ns}))


def test_listed_counters_of_no_answers_are_none() -> None:
    assert decode_listed_counters([], OPERATOR, TOPOLOGY, 1) == ((), ())
