"""What DS2 promises, on random dataflows: no overshoot, no oscillation, monotone, the same in any unit."""

import json
import math
from dataclasses import dataclass, replace

import orjson
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.model.decisions import Decision
from analytics.model.plain import to_plain
from analytics.model.rates import Observation, OperatorRates
from analytics.model.topology import Topology
from analytics.scaling import flink_autoscaler
from analytics.scaling.dhalion import decide as decide_dhalion
from analytics.scaling.ds2 import MOST_PARALLELISM, decide
from analytics.scaling.evidence import act, from_json, gather, recompute, to_json
from analytics.scaling.fleet import act_on_each
from analytics.scaling.policies import POLICIES
from tests.support.dataflows import observation, rates, topology


@dataclass(frozen=True)
class Flow:
    """Operators in topological order; ``feeds[k]`` are those that operator k reads from, source 0 among them."""

    capacity: tuple[float, ...]
    selectivity: tuple[float, ...]
    feeds: tuple[tuple[int, ...], ...]
    target: float

    def inputs(self) -> list[float]:
        """What every operator must process, by the definition."""
        found: list[float] = []
        for reads in self.feeds:
            found.append(
                sum(self.target if one == 0 else found[one - 1] * self.selectivity[one - 1] for one in reads)
            )
        return found

    def graph(self, parallelism: list[int]) -> Topology:
        counts = {"n0": 1} | {f"n{k}": count for k, count in enumerate(parallelism, 1)}
        edges = [(f"n{one}", f"n{k}") for k, reads in enumerate(self.feeds, 1) for one in reads]
        return topology(counts, *edges)

    def seen(self, parallelism: list[int], bend: float = 0.0) -> Observation:
        """The rates as measured; ``bend`` makes every instance slower the more there are."""
        found = [rates("n0", 0.0, self.target, observed=(None, None))]
        for k, count in enumerate(parallelism, 1):
            each = self.capacity[k - 1] / (1 + bend * (count - 1))
            out = each * self.selectivity[k - 1]
            found.append(rates(f"n{k}", each, out, instances=count, observed=(None, None)))
        return observation(self.graph(parallelism), *found, n0=self.target)


def positive(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most, allow_nan=False, allow_infinity=False)


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    count = draw(st.integers(1, 6))
    feeds = [tuple(sorted(draw(st.sets(st.integers(0, k), min_size=1, max_size=2)))) for k in range(count)]
    return Flow(
        tuple(draw(st.lists(positive(1, 1e6), min_size=count, max_size=count))),
        tuple(draw(st.lists(positive(0.05, 5), min_size=count, max_size=count))),
        tuple(feeds),
        draw(positive(1, 1e6)),
    )


def asked(decision: Decision) -> list[int]:
    return [item.proposed for item in decision.operators[1:]]


@given(flows(), st.data())
def test_one_step_gives_the_least_that_suffices_wherever_it_starts(flow: Flow, data: st.DataObject) -> None:
    start = data.draw(st.lists(st.integers(1, 50), min_size=len(flow.feeds), max_size=len(flow.feeds)))
    found = asked(decide(flow.seen(start)))
    for count, wanted, capacity in zip(found, flow.inputs(), flow.capacity, strict=True):
        assume(wanted / capacity < MOST_PARALLELISM)
        assert count * capacity >= wanted * (1 - 1e-8)
        assert count == 1 or (count - 1) * capacity < wanted * (1 + 1e-8)


@given(flows(), st.data())
def test_what_it_asked_for_it_asks_for_again(flow: Flow, data: st.DataObject) -> None:
    start = data.draw(st.lists(st.integers(1, 50), min_size=len(flow.feeds), max_size=len(flow.feeds)))
    needs = [wanted / capacity for wanted, capacity in zip(flow.inputs(), flow.capacity, strict=True)]
    assume(all(abs(need - round(need)) > 1e-6 and need < 2_000 for need in needs))
    first = asked(decide(flow.seen(start)))
    assert asked(decide(flow.seen(first))) == first


@given(flows(), positive(0.0, 0.2))
def test_going_up_it_never_passes_what_suffices_even_if_capacity_bends(flow: Flow, bend: float) -> None:
    """Capacity grows less than the instances: from below, no decision passes the least that suffices."""
    assume(max(wanted / each for wanted, each in zip(flow.inputs(), flow.capacity, strict=True)) < 200)
    now = [1] * len(flow.feeds)
    for _ in range(6):
        after = asked(decide(flow.seen(now, bend)))
        for before, then, wanted, each in zip(now, after, flow.inputs(), flow.capacity, strict=True):
            assert then >= before
            too_few = max(then - 1, 1)
            enough = too_few * each / (1 + bend * (too_few - 1)) >= wanted * (1 + 1e-8)
            assert then == 1 or then == before or not enough
        now = after
        assume(max(now) < 5_000)


@given(flows(), positive(1.0, 10.0))
def test_a_higher_source_rate_never_asks_for_less(flow: Flow, factor: float) -> None:
    start = [3] * len(flow.feeds)
    more = replace(flow, target=flow.target * factor)
    for low, high in zip(asked(decide(flow.seen(start))), asked(decide(more.seen(start))), strict=True):
        assert high >= low


@given(flows(), st.sampled_from([60.0, 1 / 60, 1e3, 2.0**20, 1e-3]))
def test_the_unit_of_rates_does_not_matter(flow: Flow, unit: float) -> None:
    needs = [wanted / capacity for wanted, capacity in zip(flow.inputs(), flow.capacity, strict=True)]
    assume(all(abs(need - round(need)) > 1e-6 for need in needs))
    start = [2] * len(flow.feeds)
    other = replace(flow, target=flow.target * unit, capacity=tuple(each * unit for each in flow.capacity))
    assert asked(decide(other.seen(start))) == asked(decide(flow.seen(start)))


anything = st.one_of(
    st.none(), st.floats(), st.sampled_from([0.0, -1.0, 1.0, 100.0, math.nan, math.inf, 5e-324, 1e308])
)


@st.composite
def dirty(draw: st.DrawFn) -> Observation:
    """Operators with any numbers, instances missing or too many, on any graph."""
    names = ["a", "b", "c", "d"]
    counts = {name: draw(st.integers(1, 3)) for name in names}
    edges = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=6))
    found: list[OperatorRates] = []
    for name in draw(st.lists(st.sampled_from([*names, "stranger"]), unique=True)):
        reported = draw(st.integers(0, 3))
        one = rates(
            name,
            draw(anything),
            draw(anything),
            instances=reported,
            observed=(draw(anything), draw(anything)),
            busy=draw(st.one_of(st.none(), positive(0, 1))),
            backpressured=draw(st.one_of(st.none(), positive(0, 1))),
            expected=draw(st.integers(0, 3)),
        )
        lag = draw(st.one_of(st.none(), positive(0, 1e12)))
        found.append(replace(one, lag_first=lag, lag_last=lag, stale_count=draw(st.integers(0, 1))))
    targets = {name: rate for name in names if (rate := draw(anything)) is not None}
    return observation(topology(counts, *edges), *found, **targets)


@given(dirty())
@settings(max_examples=300)
def test_dirty_numbers_give_reasons_never_zero_or_infinitely_many(seen: Observation) -> None:
    for decision in (decide(seen), flink_autoscaler.decide(seen), decide_dhalion(seen)):
        assert [item.operator_id for item in decision.operators] == ["a", "b", "c", "d"]
        for item in decision.operators:
            assert 1 <= item.proposed <= MOST_PARALLELISM
            assert item.need is None or (math.isfinite(item.need) and item.need >= 0)
            assert (item.reason is None) == (item.status == "ok")
            json.dumps(to_plain(item), allow_nan=False)


@given(dirty(), st.sampled_from(sorted(POLICIES)))
@settings(max_examples=200)
def test_a_stored_move_is_computed_again_bit_for_bit(seen: Observation, policy: str) -> None:
    evidence = gather(policy, seen)
    action, _ = act(evidence)
    stored = orjson.loads(orjson.dumps({"evidence": to_json(evidence), "action": to_plain(action)}))
    assert recompute(stored["evidence"]) == stored["action"]
    assert to_json(from_json(stored["evidence"])) == stored["evidence"]


@given(st.lists(st.tuples(dirty(), st.sampled_from(sorted(POLICIES))), max_size=3))
@settings(max_examples=50)
def test_a_fleet_gets_what_each_job_gets_by_itself(jobs: list[tuple[Observation, str]]) -> None:
    evidence = [gather(policy, seen) for seen, policy in jobs]
    stored = [b"no evidence", *(orjson.dumps(to_json(one)) for one in evidence)]
    unreadable, *moves = (orjson.loads(item) for item in act_on_each(stored))
    assert "error" in unreadable
    assert [item["action"] for item in moves] == [
        orjson.loads(orjson.dumps(to_plain(act(one)[0]))) for one in evidence
    ]
