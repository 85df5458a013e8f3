"""The Flink autoscaler's states and events, as its JDBC plugin writes them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode.autoscaler_store import Event, decode_autoscaler
from analytics.model.metrics import Annotation, MetricSample

VERTEX = "ea632d67b7d595e5b851708ae9ad79d6"
T0 = 1_795_251_855 * 10**9
AT = "2026-11-21T09:04:15Z"
HISTORY = {VERTEX: {AT: {"currentParallelism": 2, "newParallelism": 5, "metrics": {}}}}
METRICS = {
    AT: {
        "vertexMetrics": {VERTEX: {"LOAD": 0.75, "NUM_RECORDS_IN": 1234.0, "LAG": "NaN"}},
        "globalMetrics": {"NUM_TASK_SLOTS_USED": 4},
    }
}


def test_a_vertex_that_got_another_parallelism_is_an_annotation_under_its_name() -> None:
    batch = decode_autoscaler([("scalingHistory", json.dumps(HISTORY))], [], {VERTEX: "split"})
    assert batch.annotations == (Annotation("autoscaler-scaling", f"{VERTEX} {AT}", "split: 2 → 5", T0, T0),)
    assert batch.diagnostics == ()


def test_what_it_collected_becomes_samples_and_nan_is_unknown() -> None:
    batch = decode_autoscaler([("collectedMetrics", json.dumps(METRICS))], [], {})
    assert batch.metrics == (
        MetricSample("autoscaler_load", (("operator", VERTEX),), T0, 0.75),
        MetricSample("autoscaler_num_records_in", (("operator", VERTEX),), T0, 1234.0),
        MetricSample("autoscaler_num_task_slots_used", (), T0, 4.0),
    )
    assert {item.code: item.count for item in batch.diagnostics} == {"not_finite": 1}


def test_an_event_says_when_it_was_first_and_last_seen_and_how_often() -> None:
    event = Event(7, T0, T0 + 60 * 10**9, "ScalingReport", "Scaling execution enabled,\n begin …", 3)
    (told,) = decode_autoscaler([], [event], {}).annotations
    assert told == Annotation(
        "autoscaler", "event 7", "ScalingReport (3 times): Scaling execution enabled, begin …", T0, T0 + 60 * 10**9
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "code"),
    [
        ("scalingHistory", "{", "bad_state"),
        ("scalingHistory", "[1]", "bad_state"),
        ("collectedMetrics", '{"2026-11-21T09:04:15Z": 3}', "bad_state"),
        ("scalingHistory", json.dumps({VERTEX: {AT: {"newParallelism": 5}}}), "bad_state"),
        ("scalingHistory", json.dumps({VERTEX: {"soon": HISTORY[VERTEX][AT]}}), "bad_time"),
        ("collectedMetrics", json.dumps({"2026-11-21T09:04:15": METRICS[AT]}), "bad_time"),
    ],
)
def test_what_cannot_be_used_is_counted(kind: str, value: str, code: str) -> None:
    batch = decode_autoscaler([(kind, value)], [], {})
    assert code in {item.code for item in batch.diagnostics}
    assert (batch.annotations, batch.metrics) == ((), ())


def test_other_states_are_passed_over() -> None:
    batch = decode_autoscaler([("parallelismOverrides", f"{VERTEX}:5"), ("delayedScaleDown", "{}")], [], {})
    assert (batch.annotations, batch.diagnostics) == ((), ())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(AT),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [AT, VERTEX, "vertexMetrics", "globalMetrics", "currentParallelism", "LOAD", "\0"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["scalingHistory", "collectedMetrics"]), json_values | st.text(max_size=30))
def test_any_json_and_any_text_is_survived(kind: str, value: object) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    batch = decode_autoscaler([(kind, text)], [], {})
    for note in batch.annotations:
        assert note.label
        assert "\0" not in note.label + note.key
    assert all(sample.name and "\0" not in sample.name for sample in batch.metrics)
