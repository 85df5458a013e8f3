"""One cluster's answers from what is stored about it: the same in this process and in a Spark worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analytics.bursts.derive import input_rate
from analytics.bursts.highs import SolverError
from analytics.bursts.index import packed as packed_index
from analytics.bursts.survey import Part, axis_index, joined, part
from analytics.model import packed
from analytics.model.burst_answers import Survey
from analytics.model.bursts import BurstModel
from analytics.model.bursts_json import burst_model
from analytics.model.plain import from_plain, to_plain
from analytics.model.rates import RateWindow
from analytics.model.topology import Topology


@dataclass(frozen=True, slots=True)
class StoredCluster:
    """A cluster's packed model, input rates given by hand, and packed newest rates of its jobs by name."""

    cluster_id: int
    model_id: int
    at_ns: int
    model: bytes
    indexed: bool
    given: Mapping[str, float]
    measured: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What was computed about a cluster, in columns; ``error`` says why nothing was.

    ``payload`` is `Survey` packed. ``index`` is empty if it was known already or there is none;
    ``index_points`` is −1 if it was known. The rest is for the history of headroom. Of several ``parts`` of a large
    cluster each has its ``part`` (`analytics.bursts.survey.Part`) as payload and no history; `together` joins them.
    """

    cluster_id: int
    model_id: int
    at_ns: int
    error: str = ""
    payload: bytes = b""
    index: bytes = b""
    index_points: int = -1
    ratio: float = 0.0
    joint: float = 0.0
    single: float = 0.0
    least_after_loss: float | None = None
    limit_node: str = ""
    limit_resource: str = ""
    part: int = 0
    parts: int = 1


class NoRateError(ValueError):
    """The input rate of an application is not known."""


def answer(stored: StoredCluster, number: int = 0, parts: int = 1) -> ClusterAnswer:
    """Everything about a cluster at its newest rates, or with several ``parts`` the one of this number (from 0)."""
    at = ClusterAnswer(stored.cluster_id, stored.model_id, stored.at_ns, part=number, parts=parts)
    try:
        model, _ = burst_model(packed.unpack(stored.model))
        found = part(model, operating_point(model, stored.given, stored.measured), number, parts)
        wants_index = number == 0 and not stored.indexed
        index = axis_index(model) if wants_index else None
    except (ValueError, SolverError, KeyError, TypeError) as error:
        return replace(at, error=str(error).replace("\0", "\ufffd"))
    if wants_index:
        points = 0 if index is None else len(index.points)
        at = replace(at, index=b"" if index is None else packed_index(index), index_points=points)
    return _whole(at, joined([found])) if parts == 1 else replace(at, payload=packed.pack(to_plain(found)))


def together(parts: Sequence[ClusterAnswer]) -> ClusterAnswer:
    """The answer about a cluster of all its parts, in any order; an error of one is the error of all."""
    ordered = sorted(parts, key=lambda one: one.part)
    first = replace(ordered[0], part=0, parts=1)
    if error := next((one.error for one in ordered if one.error), ""):
        return ClusterAnswer(first.cluster_id, first.model_id, first.at_ns, error=error)
    if len(ordered) != ordered[0].parts:
        raise ValueError(f"{len(ordered)} of {ordered[0].parts} parts of cluster {first.cluster_id}")
    found: list[Part] = [from_plain(Part, packed.unpack(one.payload)) for one in ordered]
    return _whole(first, joined(found))


def _whole(at: ClusterAnswer, found: Survey) -> ClusterAnswer:
    limit = next(iter(found.headroom.binding), None)
    return replace(
        at,
        payload=packed.pack(to_plain(found)),
        ratio=found.ratio,
        joint=found.headroom.joint,
        single=found.headroom.single,
        least_after_loss=least_after_loss(found),
        limit_node=limit.node if limit else "",
        limit_resource=limit.resource if limit else "",
    )


def least_after_loss(found: Survey) -> float | None:
    """By how much all inputs can grow after the loss of the worst node; None if no loss was computed."""
    return min((loss.proportional - 1 for loss in found.losses), default=None)


def operating_point(
    model: BurstModel, given: Mapping[str, float], measured: Mapping[str, bytes]
) -> tuple[float, ...]:
    """The input rate of every application: as given, or else as its job's sources sent.

    Raises
    ------
    NoRateError
        If one has neither.
    """
    rates = []
    for application in model.applications:
        rate = given.get(application.name)
        if rate is None and application.name in measured:
            rate = _measured(packed.unpack(measured[application.name]))
        if rate is None:
            raise NoRateError(f"the input rate of {application.name} is not known")
        rates.append(max(float(rate), 0.0))
    return tuple(rates)


def _measured(plain: Any) -> float | None:
    topology: Topology = from_plain(Topology, plain["topology"])
    window: RateWindow = from_plain(RateWindow, plain["window"])
    return input_rate(topology, window)
