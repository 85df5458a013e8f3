"""The Spark decoder gives the same for every way of cutting a log, and never fails on a damaged one."""

import itertools
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode.batch import merge_batches
from analytics.decode.event_log_follower import Follower
from analytics.decode.spark_event_log import SparkEventLogDecoder
from analytics.model.trace import TraceBatch
from tests.support.spark_log import (
    application_start,
    executor_added,
    getting_result,
    metrics,
    rows,
    stage,
    task_end,
    task_start,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "spark_event_log"
LOGS = [
    list(Follower(GOLDEN / name).remaining())
    for name in ("app-20261121111734-0000", "eventlog_v2_local-1795259882760")
]


def whole(lines: list[bytes]) -> TraceBatch:
    decoder = SparkEventLogDecoder()
    return merge_batches([decoder.feed(lines), decoder.finish()])


def in_pieces(lines: list[bytes], cuts: list[int]) -> TraceBatch:
    """Fed piece by piece, the state written as JSON and read again between any two."""
    decoder, batches, bounds = SparkEventLogDecoder(), [], [0, *sorted(cuts), len(lines)]
    for begin, end in itertools.pairwise(bounds):
        batches.append(decoder.feed(lines[begin:end]))
        decoder = SparkEventLogDecoder.restore(json.loads(json.dumps(decoder.state())))
    return merge_batches([*batches, decoder.finish()])


def assert_same(lines: list[bytes], cuts: list[int]) -> None:
    at_once, cut = whole(lines), in_pieces(lines, cuts)
    assert rows(cut) == rows(at_once)
    assert {(item.code, item.count) for item in cut.diagnostics} == {
        (item.code, item.count) for item in at_once.diagnostics
    }
    assert cut.metrics == at_once.metrics
    assert cut.annotations == at_once.annotations
    assert set(cut.workers) == set(at_once.workers)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_real_log_in_any_pieces_gives_the_same(data: st.DataObject) -> None:
    lines = LOGS[data.draw(st.integers(0, 1))]
    assert_same(lines, data.draw(st.lists(st.integers(0, len(lines)), max_size=6)))


@st.composite
def untidy_logs(draw: st.DrawFn) -> list[bytes]:
    """Tasks on too few cores, in nearly any order, some ends missing."""
    events = []
    for task in range(draw(st.integers(1, 12))):
        launch = draw(st.integers(1_000, 4_000))
        finish = launch + draw(st.integers(0, 1_500))
        times = metrics(*draw(st.tuples(*[st.integers(0, 400)] * 3)))
        executor = draw(st.sampled_from("12"))
        events.append((launch, task_start(task, launch, executor, task % 3)))
        getting = draw(st.sampled_from([0, launch, finish]))
        if getting:
            events.append((getting, getting_result(task, launch, getting, executor)))
        if draw(st.booleans()):
            late = draw(st.sampled_from([0, 5, 1_800]))
            end = task_end(task, launch, finish, times, executor=executor, stage_id=task % 3, getting=getting)
            events.append((finish + late, end))
    events.sort(key=lambda event: event[0])
    head = [application_start(), executor_added(cores=draw(st.integers(1, 3))), stage(0, "a"), stage(1, "b")]
    return [*head, *(event for _, event in events)]


@settings(max_examples=80, deadline=None)
@given(untidy_logs(), st.lists(st.integers(0, 30), max_size=5))
def test_an_untidy_log_in_any_pieces_gives_the_same(lines: list[bytes], cuts: list[int]) -> None:
    assert_same(lines, [min(cut, len(lines)) for cut in cuts])


@settings(max_examples=80, deadline=None)
@given(untidy_logs())
def test_whatever_the_log_says_no_core_does_two_things_at_once(lines: list[bytes]) -> None:
    by_worker: dict[str, list[tuple[int, int]]] = {}
    for _, worker, peer, _, start_ns, end_ns in rows(whole(lines)):
        assert start_ns <= end_ns
        if peer is None:
            by_worker.setdefault(worker, []).append((start_ns, end_ns))
    for spans in by_worker.values():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def damage(data: st.DataObject, value: Any) -> Any:
    """The value with something inside replaced by other JSON."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        return value | {key: damage(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], damage(data, value[place]), *value[place + 1 :]]
    return data.draw(JSON)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_damaged_log_is_decoded_as_far_as_it_goes(data: st.DataObject) -> None:
    lines = list(LOGS[data.draw(st.integers(0, 1))])
    for place in data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=12, unique=True)):
        if data.draw(st.booleans()):
            lines[place] = json.dumps(damage(data, json.loads(lines[place]))).encode()
        else:
            lines[place] = lines[place][: data.draw(st.integers(0, len(lines[place])))]
    batch = whole(lines)
    records = batch.records
    assert all(end >= start for start, end in zip(records.start_ns, records.end_ns, strict=True))
    assert records.worker.max(initial=-1) < len(batch.workers)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=5))
def test_bytes_that_are_no_log_at_all_are_reported(lines: list[bytes]) -> None:
    assert len(whole(lines).records) == 0
