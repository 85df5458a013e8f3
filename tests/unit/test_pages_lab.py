"""What the policy lab's sentence and chart make of runs that are known."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from analytics.model.decisions import Reason
from analytics.model.diagnostics import Diagnostic
from analytics.scaling.lab import Lab, LabStep, Lane, of_published
from frontend import palette
from frontend.components import verdict
from frontend.figures import parallelism

HOUR_S = 3600.0


def lane(policy: str, *steps: tuple[float, str, int, int], missed_s: float = 0.0, hours: float = 4.0) -> Lane:
    """A policy's hour that begins with a and b at 2."""
    changes = tuple(LabStep(at_s, ((name, was, now),), False) for at_s, name, was, now in steps)
    missed = ((0.0, missed_s),) if missed_s else ()
    return Lane(policy, (("a", 2), ("b", 2)), changes, missed, HOUR_S, missed_s, hours, 1.0)


def lab(*lanes: Lane, diagnostics: tuple[Diagnostic, ...] = ()) -> Lab:
    return Lab((("a", "map"), ("b", "sink")), 0, 60.0, 60, 30.0, lanes, diagnostics)


def words(parts: Any) -> str:
    """The text of a sentence's parts."""
    return "".join(part if isinstance(part, str) else words(part.children) for part in parts)


def test_the_policy_with_the_least_time_under_target_is_named_with_its_cost() -> None:
    found = lab(
        lane("as it was", missed_s=1800.0),
        lane("ds2", (60.0, "a", 2, 4), missed_s=90.0, hours=6.97),
        lane("dhalion", (60.0, "a", 2, 10), missed_s=360.0, hours=12.0),
    )
    assert words(verdict.of_history(found, "job")) == (
        "DS2 would have done best for job: under target for 1 min 30 s in 1 h in 1 step, for 6.97 instance-hours."
        " As it was: under target for 30 min, for 4 instance-hours."
    )


def test_of_policies_that_serve_alike_the_cheaper_one_is_named() -> None:
    found = lab(
        lane("as it was", missed_s=600.0),
        lane("ds2", (60.0, "a", 2, 9), missed_s=60.0, hours=9.0),
        lane("flink-autoscaler", (60.0, "a", 2, 4), missed_s=60.0, hours=5.0),
    )
    assert words(verdict.of_history(found, "job")).startswith("Flink autoscaler would have done best")


def test_that_nothing_would_have_changed_is_said() -> None:
    found = lab(lane("as it was"), lane("ds2"), lane("dhalion"))
    assert words(verdict.of_history(found, "job")) == (
        "No policy would have changed anything in 1 h: job delivered what it should."
    )


def test_that_no_policy_would_have_done_better_is_said() -> None:
    found = lab(lane("as it was"), lane("ds2", (60.0, "a", 2, 3), missed_s=30.0, hours=5.0))
    assert words(verdict.of_history(found, "job")).startswith(
        "No policy would have done better than what happened"
    )


def test_why_nothing_was_replayed_tells_a_source_from_an_operator() -> None:
    source = lab(lane("as it was"), diagnostics=(Diagnostic("never_measured", 1, "events"),))
    operator = lab(lane("as it was"), diagnostics=(Diagnostic("never_measured", 1, "sink"),))
    assert "what events should have delivered" in verdict.why_not(source)
    assert verdict.why_not(operator).startswith("sink was never measured")
    cycle = lab(lane("as it was"), diagnostics=(Diagnostic("never_measured", 1, Reason.CYCLE.words),))
    assert verdict.why_not(cycle) == "Nothing can be replayed: the graph has a cycle."


def test_a_lane_draws_every_step_and_ends_with_the_last_parallelism() -> None:
    found = lab(lane("ds2", (60.0, "a", 2, 4), (120.0, "a", 4, 3), missed_s=90.0))
    drawn = parallelism.figure(found, palette.of("light"), narrow=False)
    line = next(trace for trace in drawn["data"] if trace["name"] == "DS2: map")
    assert (line["x"], line["y"]) == ([0.0, 1.0, 2.0, 60.0], [2, 4, 3, 3])
    missed = next(trace for trace in drawn["data"] if trace["name"] == "DS2: under target")
    assert missed["x"] == [0.0, 1.5, None]
    assert dict(found.lanes[0].final) == {"a": 3, "b": 2}
    assert {"map <b>3</b>", "sink <b>2</b>"} <= {note["text"] for note in drawn["layout"]["annotations"]}


def test_lanes_share_their_scales_and_do_not_overlap() -> None:
    drawn = parallelism.figure(of_published("heron"), palette.of("dark"), narrow=True)
    axes = [value for key, value in drawn["layout"].items() if key.startswith("yaxis")]
    assert len({tuple(axis["range"]) for axis in axes}) == 1
    domains = sorted(axis["domain"] for axis in axes)
    assert all(low[1] < high[0] for low, high in pairwise(domains))


def test_at_most_six_operators_are_drawn_those_with_most_instances() -> None:
    start = tuple((f"o{k}", k + 1) for k in range(9))
    run = Lane("ds2", start, (), (), HOUR_S, 0.0, 1.0, 1.0)
    found = Lab(tuple((key, key) for key, _ in start), 0, 60.0, 60, 0.0, (run,))
    assert [key for key, _ in parallelism.drawn_operators(found)] == [f"o{k}" for k in range(3, 9)]
