"""One cluster's answers from what is stored about it: the same in this process and in a Spark worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.bursts.derive import input_rate
from analytics.bursts.highs import SolverError
from analytics.bursts.index import packed as packed_index
from analytics.bursts.survey import axis_index, survey
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

    ``payload`` is `Survey` packed, ``rates`` JSON. ``index`` is empty if it was known already or there is none;
    ``index_points`` is −1 if it was known. The rest is for the history of headroom.
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


class NoRateError(ValueError):
    """The input rate of an application is not known."""


def answer(stored: StoredCluster) -> ClusterAnswer:
    """Everything about a cluster at its newest rates."""
    at = (stored.cluster_id, stored.model_id, stored.at_ns)
    try:
        model, _ = burst_model(packed.unpack(stored.model))
        found = survey(model, operating_point(model, stored.given, stored.measured))
        index = None if stored.indexed else axis_index(model)
    except (ValueError, SolverError, KeyError, TypeError) as error:
        return ClusterAnswer(*at, error=str(error).replace("\0", "\ufffd"))
    limit = next(iter(found.headroom.binding), None)
    return ClusterAnswer(
        *at,
        payload=packed.pack(to_plain(found)),
        index=b"" if index is None else packed_index(index),
        index_points=-1 if stored.indexed else 0 if index is None else len(index.points),
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
