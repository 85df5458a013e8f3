"""What was measured around a change, from the rates of a job's operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from analytics.model.rates import OperatorRates, RateWindow
from analytics.model.topology import Topology
from analytics.verification.judge import Measured, Measurements

Sample = tuple[float, float]


def measurements(
    windows: Iterable[tuple[Topology, RateWindow]], changed_ns: tuple[int, int], engine_job_id: str,
    was: Mapping[str, int], change: Mapping[str, int],
) -> Measurements:  # fmt: skip
    """Rates, shares and backlog before and after a change, each at the end of its window.

    Parameters
    ----------
    windows
        The job as it ran, and what its operators did.
    changed_ns
        When the change began and was over (ns since 1970). A window that overlaps it says nothing and is left out.
    engine_job_id
        Windows of another run of the job are left out.
    was
        The instances that operators had just before: an earlier window with other ones is about an earlier change.
    change
        The instances that some of them should have since: a later window with other ones is about another change.

    Returns
    -------
    Measurements
        Only of operators all of whose instances reported: a sum without one of them would be too low.
    """
    rates: dict[str, list[Sample]] = {}
    shares: dict[str, list[Sample]] = {}
    held: dict[str, list[Sample]] = {}
    backlog: list[Sample] = []
    began_ns, over_ns = changed_ns
    wanted = {**was, **change}
    for topology, window in windows:
        if topology.job_id != engine_job_id or (window.start_ns < over_ns and window.end_ns > began_ns):
            continue
        after = window.start_ns >= over_ns
        counts = {item.id: item.parallelism for item in topology.operators}
        if any(counts.get(key) != count for key, count in (wanted if after else was).items()):
            continue
        at_s = (window.end_ns - (over_ns if after else began_ns)) / 1e9
        at_s = at_s if after else min(at_s, -1e-9)
        sources = {item.id for item in topology.sources()}
        for operator in window.operators:
            if operator.operator_id in sources:
                _add(rates, operator.operator_id, at_s, _output(operator))
                if operator.operator_id not in change:  # of a source with other instances it says nothing
                    _add(held, operator.operator_id, at_s, _held_back(operator))
            _add(shares, operator.operator_id, at_s, _busy(operator))
        if (lag := _lag([item for item in window.operators if item.operator_id in sources])) is not None:
            backlog.append((at_s, lag))
    waiting = Measured(tuple(backlog)) if backlog else None
    return Measurements(_measured(rates), _measured(shares), waiting, _measured(held))


def _output(operator: OperatorRates) -> float | None:
    known = [item.observed_output_per_s for item in operator.instances]
    return _total(known, operator.expected)


def _busy(operator: OperatorRates) -> float | None:
    total = _total([item.busy_ratio for item in operator.instances], operator.expected)
    return None if total is None else total / operator.expected


def _held_back(operator: OperatorRates) -> float | None:
    total = _total([item.backpressured_ratio for item in operator.instances], operator.expected)
    return None if total is None else total / operator.expected


def _lag(sources: Sequence[OperatorRates]) -> float | None:
    return _total([item.lag_last for item in sources], len(sources))


def _total(values: Sequence[float | None], expected: int) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) == expected else None


def _add(into: dict[str, list[Sample]], key: str, at_s: float, value: float | None) -> None:
    if value is not None:
        into.setdefault(key, []).append((at_s, value))


def _measured(found: Mapping[str, list[Sample]]) -> dict[str, Measured]:
    return {key: Measured(tuple(samples)) for key, samples in found.items()}
