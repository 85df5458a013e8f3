"""Numbers a job reports about itself, and things that happened to it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One number at one time. ``labels`` are sorted ``(name, value)`` pairs; the unit is in the metric's name."""

    name: str
    labels: tuple[tuple[str, str], ...]
    at_ns: int
    value: float


@dataclass(frozen=True, slots=True)
class Annotation:
    """Something that happened between two times, to be drawn on charts.

    ``kind`` is a fixed word such as ``micro_batch``; ``label`` what a person reads. ``key`` names the event
    itself: an annotation of the same job, kind and key replaces the one before.
    """

    kind: str
    key: str
    label: str
    start_ns: int
    end_ns: int
