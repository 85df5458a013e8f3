"""The autoscaler's published tests, and what its documentation says about each setting."""

import math
from dataclasses import replace

import pytest

from analytics.model.decisions import Decision, Reason
from analytics.model.rates import Observation
from analytics.model.topology import Edge, Topology
from analytics.scaling.flink_autoscaler import Alignment, AutoscalerOptions, BusyAggregator, decide
from analytics.scaling.flink_autoscaler.alignment import align
from analytics.scaling.flink_autoscaler.capacity import band, capacity
from analytics.scaling.flink_autoscaler.metrics import VertexMetrics, evaluate
from analytics.scaling.flink_autoscaler.vertex import PastScaling, scalability, scale_vertex, was_ineffective
from analytics.scaling.graph import graph_of
from analytics.scaling.rates import source_targets, totals
from tests.support.dataflows import chain, observation, rates

NO_CATCH_UP = AutoscalerOptions(catch_up_s=0.0, scale_down_interval_s=0.0)


# JobVertexScalerTest.testParallelismScaling: parallelism, target, true rate, settings, new parallelism.
@pytest.mark.parametrize(
    ("current", "target", "true_rate", "options", "new"),
    [
        (10, 50, 100, {"utilization_target": 1.0}, 5),
        (10, 50, 100, {"utilization_target": 0.8}, 8),
        (10, 80, 100, {"utilization_target": 0.8}, 10),
        (10, 60, 100, {"utilization_target": 0.8}, 8),
        (10, 59, 100, {"utilization_target": 0.8}, 8),
        (2, 100, 40, {"utilization_target": 0.5}, 10),
        (2, 100, 100, {"utilization_target": 0.6}, 4),
        (10, 10, 100, {"utilization_target": 1.0, "scale_down_max_factor": 0.5}, 5),
        (10, 10, 100, {"utilization_target": 1.0, "scale_down_max_factor": 0.6}, 4),
        (10, 200, 10, {"utilization_target": 1.0, "scale_up_max_factor": 0.5}, 15),
        (10, 200, 10, {"utilization_target": 1.0, "scale_up_max_factor": 0.6}, 16),
    ],
)
def test_the_published_scalings(
    current: int, target: float, true_rate: float, options: dict[str, float], new: int
) -> None:
    settings = replace(NO_CATCH_UP, **options)  # type: ignore[arg-type]
    scaled = scale_vertex(current, 720, True, VertexMetrics(target, 0.0, true_rate), settings)
    assert scaled.parallelism == new


# ScalingMetricEvaluatorTest.testUtilizationBoundaryComputation, target 700.
@pytest.mark.parametrize(
    ("catch_up_s", "catch_up", "in_backlog", "bounds"),
    [
        (0.0, 0.0, False, (778, 1000)),
        (2.0, 350.0, False, (1128, 1700)),
        (2.0, 0.0, False, (778, 1350)),
        (2.0, 350.0, True, (1050, math.inf)),
        (2.0, 0.0, True, (700, math.inf)),
    ],
)
def test_the_published_bands(
    catch_up_s: float, catch_up: float, in_backlog: bool, bounds: tuple[float, float]
) -> None:
    options = AutoscalerOptions(
        utilization_max=0.9, utilization_min=0.7, restart_s=1.0, catch_up_s=catch_up_s
    )
    assert band(700.0, catch_up, options, in_backlog=in_backlog) == bounds


# ScalingMetricEvaluatorTest.testLagBasedSourceScaling: in 1 s the lag grows from 950 to 1000, 100 in, 200 out.
@pytest.mark.parametrize(("catch_up_s", "source", "sink"), [(2.0, 500, 1000), (1.0, 1000, 2000), (0.0, 0, 0)])
def test_the_published_targets_from_growing_lag(catch_up_s: float, source: float, sink: float) -> None:
    graph = chain(source=1, sink=1)
    read = replace(rates("source", 200.0, 400.0, observed=(100.0, 200.0)), lag_first=950.0, lag_last=1000.0)
    seen = observation(graph, read, rates("sink", 400.0, 0.0, observed=(200.0, 0.0)))
    window = replace(seen.window, end_ns=1_000_000_000)
    seen = replace(seen, window=window, targets=source_targets(graph, window, {}))
    found = [totals(operator, item, source=operator.id == "source")
             for operator, item in zip(graph.operators, window.operators, strict=True)]  # fmt: skip
    evaluated = evaluate(seen, graph_of(graph), found, AutoscalerOptions(catch_up_s=catch_up_s), {})
    assert [(item.target, item.catch_up) for item in evaluated if not isinstance(item, Reason)] == [
        (150.0, source),
        (300.0, sink),
    ]


@pytest.mark.parametrize(
    ("target", "current", "groups", "limit", "mode", "aligned"),
    [
        (24, 10, 128, 200, Alignment.BALANCED, 26),
        (24, 10, 128, 200, Alignment.EVENLY_SPREAD, 32),
        (24, 10, 128, 200, Alignment.OFF, 24),
        (24, 10, 128, 30, Alignment.EVENLY_SPREAD, 24),
        (24, 10, None, 200, Alignment.BALANCED, 24),
        (7, 10, 720, 200, Alignment.BALANCED, 8),
        (65, 70, 128, 200, Alignment.EVENLY_SPREAD, 65),
        (65, 10, 128, 200, Alignment.EVENLY_SPREAD, 128),
    ],
)
def test_a_parallelism_is_aligned_upwards_or_stands(
    target: int, current: int, groups: int | None, limit: int, mode: Alignment, aligned: int
) -> None:
    assert align(target, current, groups, limit, mode) == aligned


def test_capacity_is_infinite_for_idleness_and_unknown_for_the_unknown() -> None:
    assert capacity(1.0, 0.0, 0.0, AutoscalerOptions(), with_restart=False) == math.inf
    assert math.isnan(capacity(math.nan, 0.0, 0.7, AutoscalerOptions(), with_restart=False))
    assert capacity(60.0, 0.0, 1.0, AutoscalerOptions(), with_restart=True) == 70.0


def word_count(target: float, *, a: int = 10, b: int = 10, strategy: str = "") -> Observation:
    graph = chain(s=1, a=a, b=b)
    return observation(
        replace(graph, edges=(graph.edges[0], Edge("a", "b", strategy)), max_parallelism=128),
        rates("s", 0.0, 1000.0, observed=(0.0, 100.0)),
        rates("a", 10.0, 10.0, instances=a, observed=(100 / a, 100 / a)),
        rates("b", 10.0, 0.0, instances=b, observed=(100 / b, 0.0)),
        s=target,
    )


def asked(decision: Decision) -> dict[str, int | None]:
    return {item.operator_id: item.parallelism for item in decision.operators}


def test_nothing_moves_within_the_band_and_everything_if_one_vertex_is_outside() -> None:
    inside = decide(word_count(80.0), NO_CATCH_UP)
    assert asked(inside) == {"s": 1, "a": 10, "b": 10}
    assert inside.operators[1].note.endswith("within its band, so kept")
    assert inside.operators[1].need == pytest.approx(11.4)
    outside = decide(word_count(80.0, b=6), NO_CATCH_UP)
    assert asked(outside) == {"s": 1, "a": 12, "b": 12}
    assert outside.note == "outside the utilisation band: b"


def test_only_hash_inputs_are_aligned() -> None:
    assert asked(decide(word_count(165.0), NO_CATCH_UP)) == {"s": 1, "a": 24, "b": 24}
    assert asked(decide(word_count(165.0, strategy="HASH"), NO_CATCH_UP)) == {"s": 1, "a": 24, "b": 26}


def test_an_excluded_vertex_stays() -> None:
    assert asked(decide(word_count(165.0), replace(NO_CATCH_UP, excluded_ids=("a",))))["a"] == 10


def test_the_busiest_instance_stands_for_its_vertex_unless_told_otherwise() -> None:
    seen = word_count(165.0, a=2)
    busy = replace(seen.window.operators[1].instances[1], busy_ratio=1.0)
    calm = replace(seen.window.operators[1].instances[0], busy_ratio=0.5)
    skewed = replace(seen.window.operators[1], instances=(calm, busy))
    window = replace(seen.window, operators=(seen.window.operators[0], skewed, seen.window.operators[2]))
    true_rates = {
        mode: decide(replace(seen, window=window), replace(NO_CATCH_UP, busy_aggregator=mode))
        .operators[1]
        .true_processing_per_s
        for mode in BusyAggregator
    }
    assert true_rates == {
        BusyAggregator.MAX: 100.0, BusyAggregator.MIN: 200.0, BusyAggregator.AVG: pytest.approx(100 / 0.75),
    }  # fmt: skip


def test_a_source_with_a_backlog_is_not_followed_by_scaling_down() -> None:
    graph = Topology("j", "j", "RUNNING", 0, chain(s=1, a=10).operators, (Edge("s", "a"),))
    calm = observation(
        graph,
        replace(rates("s", 100.0, 100.0), lag_first=0.0, lag_last=0.0),
        rates("a", 100.0, 0.0, instances=10, observed=(10.0, 0.0)),
        s=100.0,
    )
    options = AutoscalerOptions(catch_up_s=1e9)
    assert asked(decide(calm, options))["a"] == 4
    behind = replace(calm.window.operators[0], lag_first=31_000.0, lag_last=31_000.0)
    window = replace(calm.window, operators=(behind, calm.window.operators[1]))
    assert asked(decide(replace(calm, window=window), options))["a"] == 10


def test_a_lagging_sources_busy_time_is_not_believed_over_what_was_observed() -> None:
    graph = chain(s=2, a=1)
    source = replace(rates("s", 100.0, 100.0, instances=2, observed=(100.0, 100.0), busy=0.1), lag_last=1e5)
    seen = observation(graph, source, rates("a", 1000.0, 0.0, observed=(200.0, 0.0)), s=400.0)
    options = AutoscalerOptions(catch_up_s=0.0)
    assert decide(seen, options).operators[0].true_processing_per_s == 2000.0
    assert decide(seen, options, observed={"s": (200.0,)}).operators[0].true_processing_per_s == 2000.0
    observed = decide(seen, options, observed={"s": (210.0, 190.0)})
    assert observed.operators[0].true_processing_per_s == 200.0
    assert observed.operators[0].parallelism == 6


def test_what_cannot_be_told_is_kept_with_a_reason() -> None:
    seen = word_count(165.0)
    missing = replace(seen.window.operators[1], instances=seen.window.operators[1].instances[1:])
    window = replace(seen.window, operators=(seen.window.operators[0], missing, seen.window.operators[2]))
    decision = decide(replace(seen, window=window), NO_CATCH_UP)
    assert [item.reason for item in decision.operators] == [
        None, Reason.MISSING_INSTANCE, Reason.UPSTREAM_UNDECIDED,
    ]  # fmt: skip
    assert decide(replace(seen, targets=()), NO_CATCH_UP).changes == {}


def past(*levels: tuple[int, float]) -> list[PastScaling]:
    return [PastScaling("a", 0, level, level, rate, rate) for level, rate in levels]


@pytest.mark.parametrize(
    ("levels", "coefficient"),
    [
        ([(1, 100), (2, 200), (4, 400)], 1.0),
        ([(1, 100), (2, 200)], 1.0),
        ([(1, 100), (2, 160), (4, 320)], 0.81),
        ([(1, 100), (8, 100), (16, 100)], 0.5),
    ],
)
def test_how_a_vertex_scaled_before_is_told_from_three_scalings_on(
    levels: list[tuple[int, float]], coefficient: float
) -> None:
    options = AutoscalerOptions(observed_scalability=True)
    assert scalability(past(*levels), options) == coefficient


def test_a_scale_up_that_gave_too_little_is_ineffective() -> None:
    history = [PastScaling("a", 0, 5, 10, 100.0, 200.0)]
    assert was_ineffective(10, 109.0, history, AutoscalerOptions())
    assert not was_ineffective(10, 111.0, history, AutoscalerOptions())
    assert not was_ineffective(9, 100.0, history, AutoscalerOptions())
    seen = word_count(165.0)
    blocked = decide(seen, replace(NO_CATCH_UP, ineffective_blocks=True), {"a": tuple(history)})
    assert asked(blocked) == {"s": 1, "a": 10, "b": 24}
    assert decide(seen, NO_CATCH_UP, {"a": tuple(history)}).operators[1].parallelism == 24
