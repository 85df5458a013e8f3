"""What a replay of the policy lab comes to, in a sentence, and what it takes for granted."""

from __future__ import annotations

from typing import Any

from dash import html

from analytics.model.decisions import Reason
from analytics.scaling.lab import Lab, Lane
from frontend import words


def of_history(lab: Lab, job_name: str) -> list[Any]:
    """Which policy would have done best for a job, against what happened."""
    job = html.Em(job_name)
    if len(lab.lanes) < 2:
        return ["No policy can be tried on the history of ", job, "."]
    was, *tried = lab.lanes
    best = _best(tried)
    span = words.seconds(was.length_s)
    if not any(lane.steps for lane in tried):
        met = "delivered what it should" if not was.missed else f"{_missed(was)} all the same"
        return [html.Strong("No policy would have changed anything"), " in ", span, ": ", job, f" {met}."]
    if was.under_target_s <= best.under_target_s and was.instance_hours <= best.instance_hours:
        return [
            html.Strong("No policy would have done better"), " than what happened: ", job,
            f" {_missed(was)} in {span}, for {_hours(was)}.",
        ]  # fmt: skip
    return [
        html.Strong(words.policy(best.policy)), " would have done best for ", job, f": {_missed(best)} in {span} ",
        html.Strong(f"in {words.count(len(best.steps), 'step')}"),
        f", for {_hours(best)}. As it was: {_missed(was)}, for {_hours(was)}.",
    ]  # fmt: skip


def of_published(lab: Lab, name: str) -> list[Any]:
    """What each policy makes of a dataflow that begins with too few, or too many, instances."""
    best = _best(lab.lanes)
    others = [lane for lane in lab.lanes if lane is not best]
    told = [f"{words.policy(lane.policy)} {_how(lane)} {_end(lab, lane)}" for lane in others]
    return [
        html.Strong(f"{words.policy(best.policy)} {_how(best)}"), f" {_end(lab, best)} on ", html.Em(name),
        f", {words.seconds(best.converged_s)} after the start. " if best.steps else ". ",
        f"{words.series(told)}.",
    ]  # fmt: skip


def end_words(lab: Lab, lane: Lane) -> str:
    """The parallelism at the end: ``split 5, count 2``."""
    known = dict(lane.final)
    return ", ".join(f"{name} {known.get(key, '–')}" for key, name in lab.operators)


def order(lane: Lane) -> tuple[float, ...]:
    """Smaller is better: under target at the end, then all the time under target, then what it cost."""
    return (
        round(1 - lane.least_achieved, 2),
        round(lane.under_target_s),
        lane.instance_hours,
        len(lane.steps),
    )


def why_not(lab: Lab) -> str:
    """Why there is nothing but the history itself."""
    first = next((item for item in lab.diagnostics if item.code == "never_measured"), None)
    if first is None:
        return "Nothing in the stored rates can be replayed."
    if first.example in {reason.words for reason in Reason}:
        return f"Nothing can be replayed: {first.example}."
    if first.example in {name for _, name in lab.operators}:
        return f"{first.example} was never measured in full: its capacity is not known, and none is made up."
    return f"It is not known what {first.example} should have delivered: it was held back and has no target."


ODD = {
    "carried_over": "numbers missing in a window were taken from another",
    "other_graph": "windows in which the job had other operators were left out",
    "never_measured": "operators without a number in any window",
}


def assumptions(lab: Lab) -> list[str]:
    """What the replay takes for granted."""
    stop = f"stops the job for {words.seconds(lab.restart_s)}" if lab.restart_s else "takes no time"
    told = [f"a change {stop}"]
    if lab.start_ns is None:
        told.append(
            "capacities are those of the paper: for Heron straight lines, for Nexmark what its decisions imply"
        )
        told.append("sources never stop and lose what they cannot deliver")
    else:
        told.append("capacity grows with the instances, and all instances are alike")
        told.append("queues hold what an operator does in a second")
        told.append("what a window's sources should deliver is as it was known then")
    told.append("Flink's autoscaler decides on full windows of 15 min, 5 min after a change at the earliest")
    return told


def _best(lanes: Any) -> Lane:
    best: Lane = min(lanes, key=order)
    return best


def _missed(lane: Lane) -> str:
    return f"under target for {words.seconds(lane.under_target_s)}" if lane.missed else "never under target"


def _hours(lane: Lane) -> str:
    return f"{words.number(lane.instance_hours)} instance-hours"


def _how(lane: Lane) -> str:
    return f"takes {words.count(len(lane.steps), 'step')}" if lane.steps else "changes nothing and stays"


def _end(lab: Lab, lane: Lane) -> str:
    short = "" if lane.least_achieved >= 0.99 else f", {words.percent(lane.least_achieved)} of its target"
    return f"{'to' if lane.steps else 'at'} {end_words(lab, lane)}{short}"
