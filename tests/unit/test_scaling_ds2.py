"""DS2 gives what the paper and its authors' tests say, and a reason where they have none to give."""

import math
from dataclasses import replace

import pytest

from analytics.model.decisions import Decision, Reason, Status
from analytics.model.rates import Observation, OperatorRates
from analytics.scaling.ds2 import MOST_PARALLELISM, Ds2Settings, decide, whole
from analytics.scaling.explain import explain
from tests.support.dataflows import chain, observation, rates, topology

# Epoch, the source's true output, true processing and output of the first operator, true processing of the second,
# parallelism of both behind one source and behind two. From the tests of the authors' controller.
VECTORS = [
    (0, 100.0, 50.0, 400.0, 100.0, (2, 8), (4, 16)),
    (1, 200.0, 40.0, 700.0, 99.0, (5, 36), (10, 71)),
    (7, 200.0, 10.0, 700.0, 201.0, (20, 70), (40, 140)),
]


def asked(decision: Decision) -> dict[str, int | None]:
    return {item.operator_id: item.parallelism for item in decision.operators}


def reasons(decision: Decision) -> dict[str, Reason | None]:
    return {item.operator_id: item.reason for item in decision.operators}


@pytest.mark.parametrize(("epoch", "source", "in1", "out1", "in2", "one", "two"), VECTORS)
def test_the_authors_vectors(
    epoch: int, source: float, in1: float, out1: float, in2: float, one: tuple[int, int], two: tuple[int, int]
) -> None:
    behind = rates("o1", in1, out1), rates("o2", in2, 0.0)
    seen = observation(chain(s=1, o1=1, o2=1), rates("s", 0.0, source), *behind, s=source)
    assert asked(decide(seen)) == {"s": 1, "o1": one[0], "o2": one[1]}
    graph = topology({"s1": 1, "s2": 1, "o1": 1, "o2": 1}, ("s1", "o1"), ("s2", "o1"), ("o1", "o2"))
    seen = observation(
        graph, rates("s1", 0.0, source), rates("s2", 0.0, source), *behind, s1=source, s2=source
    )
    assert asked(decide(seen)) == {"s1": 1, "s2": 1, "o1": two[0], "o2": two[1]}


def test_the_papers_figure_2_whatever_the_observed_rates_are() -> None:
    for seen_output in (100.0, 7.0, 0.0):
        seen = observation(
            chain(src=1, o1=1, o2=1),
            rates("src", 0.0, 40.0, observed=(0.0, 10.0)),
            rates("o1", 10.0, 100.0, observed=(10.0, seen_output)),
            rates("o2", 200.0, 200.0, observed=(seen_output, 100.0)),
            src=40.0,
        )
        assert asked(decide(seen)) == {"src": 1, "o1": 4, "o2": 2}


@pytest.mark.parametrize("words", [19.01, 19.5, 20.0])
def test_the_papers_heron_word_count_needs_10_and_20(words: float) -> None:
    seen = observation(
        chain(source=1, flatmap=1, count=1),
        rates("source", 0.0, 1e6 / 60, observed=(0.0, 1e6 / 60 / 20)),
        rates("flatmap", 1e5 / 60, 1e5 / 60 * words),
        rates("count", 1e6 / 60, 0.0),
        source=1e6 / 60,
    )
    assert asked(decide(seen)) == {"source": 1, "flatmap": 10, "count": 20}


def test_needs_are_not_rounded_on_the_way_down() -> None:
    seen = observation(
        chain(s=1, a=1, b=1), rates("s", 0, 101), rates("a", 100, 100), rates("b", 100, 0), s=101.0
    )
    assert asked(decide(seen)) == {"s": 1, "a": 2, "b": 2}
    assert decide(seen).operators[2].need == 1.01


def test_capacity_is_the_mean_of_all_instances_and_selectivity_that_of_their_sums() -> None:
    slow, fast = rates("a", 50, 100), rates("a", 150, 900)
    both = OperatorRates("a", 2, (slow.instances[0], replace(fast.instances[0], instance=1)))
    seen = observation(chain(s=1, a=2, b=1), rates("s", 0, 400), both, rates("b", 1000, 0), s=400.0)
    _, first, second = decide(seen).operators
    assert (first.need, first.parallelism) == (4.0, 4)
    assert second.target_rate_per_s == 2000.0


@pytest.mark.parametrize(
    ("need", "parallelism"),
    [(5.0, 5), (5.000000000001, 5), (5.0001, 6), (0.3 / 0.1, 3), (3 * 1.1 / 1.1, 3), (1e-12, 1), (2.9999, 3)],
)
def test_rounding_errors_above_a_whole_number_are_no_need(need: float, parallelism: int) -> None:
    assert whole(need) == parallelism


def test_a_reserve_is_asked_for_but_not_passed_on() -> None:
    seen = observation(
        chain(s=1, a=1, b=1), rates("s", 0, 100), rates("a", 50, 50), rates("b", 50, 0), s=100.0
    )
    assert asked(decide(seen, Ds2Settings(scaling_factor=0.2))) == {"s": 1, "a": 3, "b": 3}
    assert decide(seen, Ds2Settings(scaling_factor=0.2)).operators[2].need == 2.0


def test_limits_bound_what_is_asked_for_and_are_told() -> None:
    graph = chain(s=1, a=1, b=1)
    seen = observation(graph, rates("s", 0, 1), rates("a", 1e-9, 1e-9), rates("b", 1e9, 0), s=1e6)
    limited = decide(seen, Ds2Settings(min_parallelism=2, max_parallelism=9))
    assert asked(limited) == {"s": 1, "a": 9, "b": 2}
    assert limited.operators[1].note.endswith("limited to 9")
    operators = (graph.operators[0], replace(graph.operators[1], max_parallelism=128), graph.operators[2])
    assert asked(decide(replace(seen, topology=replace(graph, operators=operators))))["a"] == 128
    assert asked(decide(seen))["a"] == MOST_PARALLELISM


def test_overheads_that_rates_do_not_show_are_corrected_by_the_target_ratio() -> None:
    graph = chain(s=1, a=3, b=2)
    behind = rates("a", 50, 50, instances=3), rates("b", 60, 0, instances=2)
    short = observation(graph, rates("s", 0, 120, observed=(0, 80)), *behind, s=120.0)
    assert asked(decide(short)) == {"s": 1, "a": 3, "b": 2}
    assert asked(decide(short, Ds2Settings(target_rate_ratio=1.2))) == {"s": 1, "a": 5, "b": 3}
    assert asked(decide(short, Ds2Settings(target_rate_ratio=1.6))) == {"s": 1, "a": 3, "b": 2}
    up = replace(short, topology=chain(s=1, a=2, b=2), window=observation(
        graph, rates("s", 0, 120, observed=(0, 80)), rates("a", 50, 50, instances=2), behind[1]
    ).window)  # fmt: skip
    assert asked(decide(up, Ds2Settings(target_rate_ratio=1.2))) == {"s": 1, "a": 3, "b": 2}


def test_a_split_is_followed_by_what_each_branch_takes_and_a_copy_goes_to_all() -> None:
    graph = topology({"s": 1, "a": 1, "b": 1, "c": 1}, ("s", "a"), ("a", "b"), ("a", "c"))
    split = (rates("s", 0, 100), rates("a", 100, 100), rates("b", 10, 0, observed=(30.0, 0.0)),
             rates("c", 10, 0, observed=(70.0, 0.0)))  # fmt: skip
    assert asked(decide(observation(graph, *split, s=200.0))) == {"s": 1, "a": 2, "b": 6, "c": 14}
    copy = (*split[:2], rates("b", 10, 0, observed=(100.0, 0.0)), rates("c", 10, 0, observed=(99.0, 0.0)))
    assert asked(decide(observation(graph, *copy, s=200.0))) == {"s": 1, "a": 2, "b": 20, "c": 20}


def test_which_part_a_branch_gets_and_how_that_is_known_is_told() -> None:
    graph = topology({"s": 1, "a": 1, "b": 1, "c": 1}, ("s", "a"), ("a", "b"), ("a", "c"))
    behind = rates("s", 0, 100), rates("a", 100, 100), rates("b", 10, 0, observed=(30.0, 0.0))
    split = observation(graph, *behind, rates("c", 10, 0, observed=(70.0, 0.0)), s=200.0)
    told = explain(split, decide(split))
    assert "It gets" not in told[1]
    assert told[2].endswith("rounded up 6. It gets 30% of what a sends, by what the branches take in.")
    copied = observation(graph, *behind, rates("c", 10, 0, observed=(100.0, 0.0)), s=200.0)
    assert explain(copied, decide(copied))[3].endswith(
        "It gets everything that a sends, as every branch does."
    )


def test_a_split_is_also_seen_where_a_branch_meets_another_stream() -> None:
    graph = topology({"s": 1, "a": 1, "t": 1, "b": 1, "c": 1}, ("s", "a"), ("a", "b"), ("a", "c"), ("t", "c"))
    seen = observation(
        graph, rates("s", 0, 100), rates("a", 100, 100), rates("t", 0, 50),
        rates("b", 10, 0, observed=(40.0, 0.0)), rates("c", 10, 0, observed=(110.0, 0.0)), s=100.0, t=50.0,
    )  # fmt: skip
    assert asked(decide(seen)) == {"s": 1, "a": 1, "t": 1, "b": 4, "c": 11}


def word_count(**replaced: OperatorRates) -> Observation:
    found = {"s": rates("s", 0, 100), "a": rates("a", 50, 50, instances=2), "b": rates("b", 50, 0)} | replaced
    return observation(chain(s=1, a=2, b=1), *found.values(), s=100.0)


@pytest.mark.parametrize(
    ("replaced", "reason"),
    [
        (rates("a", 50, 50, instances=1, expected=2), Reason.MISSING_INSTANCE),
        (rates("a", 50, 50, instances=0, expected=2), Reason.MISSING_RATES),
        (rates("a", None, None, instances=2, busy=0.0), Reason.ZERO_USEFUL_TIME),
        (rates("a", 0.0, 0.0, instances=2), Reason.ZERO_CAPACITY),
        (rates("a", math.nan, 50, instances=2), Reason.NON_FINITE),
        (rates("a", 50, math.inf, instances=2), Reason.NON_FINITE),
        (rates("a", -1.0, 50, instances=2), Reason.NON_FINITE),
        (rates("a", 1e-320, 50, instances=2), Reason.NON_FINITE),
        (rates("a", 50, 50, instances=3), Reason.TOPOLOGY_MISMATCH),
        (rates("a", 50, 50, instances=2, expected=3), Reason.TOPOLOGY_MISMATCH),
        (replace(rates("a", 50, 50, expected=2), stale_count=1), Reason.STALE_WINDOW),
    ],
)
def test_what_cannot_be_told_has_a_reason_and_those_behind_it_too(
    replaced: OperatorRates, reason: Reason
) -> None:
    decision = decide(word_count(a=replaced))
    assert reasons(decision) == {"s": None, "a": reason, "b": Reason.UPSTREAM_UNDECIDED}
    assert asked(decision) == {"s": 1, "a": None, "b": None}
    assert decision.changes == {}
    assert decision.operators[1].target_rate_per_s == 100.0


def test_one_idle_instance_of_two_is_no_half_capacity() -> None:
    found = rates("a", 50, 50, instances=2)
    for true_rate, useful, reason in (
        (None, 0.0, Reason.ZERO_USEFUL_TIME),
        (0.0, None, Reason.ZERO_CAPACITY),
    ):
        idle = replace(found.instances[1], true_processing_per_s=true_rate, useful_ratio=useful)
        decision = decide(word_count(a=replace(found, instances=(found.instances[0], idle))))
        assert reasons(decision)["a"] is reason


def test_an_operator_without_rates_is_undecided() -> None:
    seen = word_count()
    without = replace(seen.window, operators=seen.window.operators[::2])
    assert reasons(decide(replace(seen, window=without)))["a"] is Reason.MISSING_RATES


def test_rates_of_an_operator_that_the_graph_lacks_undo_every_answer() -> None:
    seen = word_count(stranger=rates("stranger", 1, 1))
    assert set(reasons(decide(seen)).values()) == {Reason.TOPOLOGY_MISMATCH}


def test_an_operator_that_filters_everything_leaves_the_rest_as_it_is() -> None:
    decision = decide(word_count(a=rates("a", 50, 0.0, instances=2)))
    assert reasons(decision) == {"s": None, "a": None, "b": Reason.NO_INPUT}
    assert asked(decision) == {"s": 1, "a": 2, "b": 1}


def test_a_job_with_nothing_to_do_stays_as_it_is() -> None:
    seen = word_count()
    decision = decide(replace(seen, targets=(replace(seen.targets[0], rate_per_s=0.0),)))
    assert reasons(decision) == {"s": None, "a": Reason.NO_INPUT, "b": Reason.NO_INPUT}
    assert decision.changes == {}


@pytest.mark.parametrize("rate", [math.nan, math.inf, -3.0])
def test_a_target_that_is_no_rate_is_none(rate: float) -> None:
    seen = word_count()
    decision = decide(replace(seen, targets=(replace(seen.targets[0], rate_per_s=rate),)))
    assert reasons(decision) == {
        "s": Reason.NON_FINITE, "a": Reason.UPSTREAM_UNDECIDED, "b": Reason.UPSTREAM_UNDECIDED,
    }  # fmt: skip


def test_a_source_without_a_target_has_none() -> None:
    decision = decide(replace(word_count(), targets=()))
    assert reasons(decision)["s"] is Reason.NO_SOURCE_TARGET
    assert reasons(decision)["b"] is Reason.UPSTREAM_UNDECIDED
    assert asked(decision)["s"] == 1


@pytest.mark.parametrize("edges", [[("a", "a")], [("a", "b"), ("b", "a")]])
def test_a_graph_with_a_cycle_has_no_answer(edges: list[tuple[str, str]]) -> None:
    graph = topology({"s": 1, "a": 2, "b": 1}, ("s", "a"), *edges)
    decision = decide(replace(word_count(), topology=graph))
    assert set(reasons(decision).values()) == {Reason.CYCLE}
    assert {item.status for item in decision.operators} == {Status.CANNOT_DECIDE}


def test_an_edge_stated_twice_counts_once() -> None:
    seen = word_count()
    twice = replace(seen.topology, edges=seen.topology.edges * 2)
    assert decide(replace(seen, topology=twice)) == decide(seen)
