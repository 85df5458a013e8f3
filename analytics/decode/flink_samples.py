"""A Flink job's windows, checkpoints and rescales as metrics and annotations, under names that fit every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from analytics.decode.json_fields import NS_PER_MS
from analytics.model.metrics import Annotation, MetricSample
from analytics.model.topology import Checkpoints, InstanceWindow, Rescale, Topology


def window_samples(topology: Topology, windows: Iterable[InstanceWindow]) -> list[MetricSample]:
    """Rates and shares of time of every instance whose window is known; nothing is said of the others.

    Returns
    -------
    list
        ``records_in_per_s``, ``records_out_per_s``, ``busy_ratio``, ``idle_ratio`` and ``backpressured_ratio`` at
        the end of each window, labelled with ``operator`` (its name, with its id if several have that name) and
        ``instance``.
    """
    names = operator_names(topology)
    samples = []
    for window in windows:
        labels = (
            ("instance", str(window.instance)),
            ("operator", names.get(window.operator_id, window.operator_id)),
        )
        values = {
            "records_in_per_s": window.per_s(window.records_in),
            "records_out_per_s": window.per_s(window.records_out),
            "busy_ratio": window.ratio(window.busy_ms),
            "idle_ratio": window.ratio(window.idle_ms),
            "backpressured_ratio": window.ratio(window.backpressured_ms),
        }
        samples += [
            MetricSample(name, labels, window.until_ns, value)
            for name, value in values.items()
            if value is not None
        ]
    return samples


def topology_samples(topology: Topology, at_ns: int) -> list[MetricSample]:
    """The ``parallelism`` of each operator."""
    names = operator_names(topology)
    return [
        MetricSample("parallelism", (("operator", names[operator.id]),), at_ns, float(operator.parallelism))
        for operator in topology.operators
    ]


def checkpoint_records(checkpoints: Checkpoints) -> tuple[list[MetricSample], list[Annotation]]:
    """``checkpoint_duration_ms`` and ``checkpoint_state_bytes`` at the end of each, and an annotation for each.

    The same checkpoint gives the same records at every poll.
    """
    samples: list[MetricSample] = []
    annotations = []
    for item in checkpoints.history:
        if item.ended_at_ms is None:
            continue
        start_ns, end_ns = item.started_at_ms * NS_PER_MS, item.ended_at_ms * NS_PER_MS
        kind = "savepoint" if item.is_savepoint else "checkpoint"
        said = item.failure or item.state.lower()
        annotations.append(
            Annotation(kind, str(item.id), f"{kind} {item.id} {said}", start_ns, max(end_ns, start_ns))
        )
        values = {"checkpoint_duration_ms": item.duration_ms, "checkpoint_state_bytes": item.state_bytes}
        if item.state == "COMPLETED":
            samples += [
                MetricSample(name, (), end_ns, float(value))
                for name, value in values.items()
                if value is not None
            ]
    return samples, annotations


def rescale_annotations(topology: Topology, rescales: Iterable[Rescale]) -> list[Annotation]:
    """An annotation for each rescale that ended: what changed, why, and how it went."""
    names = operator_names(topology)
    annotations = []
    for item in rescales:
        if item.ended_at_ms is None:
            continue
        changed = [
            f"{names.get(operator_id, operator_id)} {before or '?'} → {after or '?'}"
            for operator_id, before, after in item.changes
            if before != after
        ]
        outcome = " ".join(word.lower().replace("_", " ") for word in (item.trigger, item.outcome) if word)
        label = ": ".join(part for part in (outcome, ", ".join(changed)) if part)
        start_ns, end_ns = item.started_at_ms * NS_PER_MS, item.ended_at_ms * NS_PER_MS
        annotations.append(Annotation("rescale", item.id, label[:500], start_ns, max(end_ns, start_ns)))
    return annotations


def operator_names(topology: Topology) -> dict[str, str]:
    """A name for each operator id that no other operator of the job has."""
    used = Counter(operator.name for operator in topology.operators)
    return {
        operator.id: operator.name if used[operator.name] == 1 else f"{operator.name} ({operator.id[:8]})"
        for operator in topology.operators
    }
