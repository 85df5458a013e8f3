"""What a reconfiguration is bound to, what it should bring, and what the engine said when it was asked."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.model.topology import Topology


@dataclass(frozen=True, slots=True)
class BoundOperator:
    """An operator as it ran when the proposal was made. ``max_parallelism`` is None if the engine knows none."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int | None


@dataclass(frozen=True, slots=True)
class Binding:
    """The running job a proposal was computed for: if any of this changes, the proposal says nothing about it.

    ``running_since_ms`` (engine's clock, ms since 1970) changes with every restart and rescale.
    """

    engine_job_id: str
    running_since_ms: int | None
    operators: tuple[BoundOperator, ...]

    @property
    def parallelism(self) -> dict[str, int]:
        """Instances by operator id."""
        return {item.id: item.parallelism for item in self.operators}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected once the change has settled, by operator id; what is not predicted is left out.

    ``source_rates_per_s`` are records a source delivers, all its instances together; ``utilisation`` is the busy
    share (0 to 1) of an operator's instances; ``backlog_change_per_s`` is how many records the backlog grows by
    (negative: shrinks), None if not predicted. ``targets_per_s`` are what the sources should deliver, where known:
    a change may be predicted to miss them.
    """

    source_rates_per_s: tuple[tuple[str, float], ...] = ()
    utilisation: tuple[tuple[str, float], ...] = ()
    backlog_change_per_s: float | None = None
    targets_per_s: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What the engine said about a job.

    ``asked`` are ``(operator id, least, most)`` instances that the engine was last asked for, None if it does not
    tell. ``owner`` names another controller that decides the parallelism, "" if none was seen. ``refusal`` says why
    the engine would not obey, "" if nothing speaks against it.
    """

    running: Binding
    state: str
    settled: bool
    asked: tuple[tuple[str, int, int], ...] | None = None
    owner: str = ""
    refusal: str = ""


def binding_of(topology: Topology) -> Binding:
    """What a proposal about a job of this topology is bound to."""
    operators = tuple(
        BoundOperator(item.id, item.name, item.parallelism, item.max_parallelism)
        for item in topology.operators
    )
    return Binding(topology.job_id, topology.running_since_ms, operators)


def drift(bound: Binding, now: Binding) -> str:
    """What has changed since the proposal was made, as a sentence; "" if nothing has."""
    if bound.engine_job_id != now.engine_job_id:
        return f"the job was submitted again: it is {now.engine_job_id} now, not {bound.engine_job_id}"
    before, after = {item.id: item for item in bound.operators}, {item.id: item for item in now.operators}
    if before.keys() != after.keys():
        return "the job's operators are other ones now"
    for key, was in before.items():
        if was.parallelism != after[key].parallelism:
            return f"{was.name} runs with {after[key].parallelism} instances now, not {was.parallelism}"
        if was.max_parallelism != after[key].max_parallelism:
            most = after[key].max_parallelism
            return f"the maximum parallelism of {was.name} is {most} now, not {was.max_parallelism}"
    if bound.running_since_ms != now.running_since_ms:
        return "the job was restarted since the proposal was made"
    return ""
