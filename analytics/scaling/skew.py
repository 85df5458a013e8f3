"""Dhalion's diagnoses of an operator that causes back-pressure: too few instances, or instances that differ.

Queues far apart tell that the instances differ: with rates far apart too, some get more than their share (data
skew); with rates alike, some are slow. More instances would help neither, so Dhalion's open code only tells.

Source: apache/incubator-heron, ``SkewDetector``, ``DataSkewDiagnoser``, ``SlowInstanceDiagnoser`` and
``UnderProvisioningDiagnoser``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from analytics.model.rates import OperatorRates

RATE_SKEW = 1.5
QUEUE_SKEW = 20.0
_HIGH_RATE = 1.1
_HIGH_QUEUE = 2.0


class Diagnosis(StrEnum):
    """What is wrong with an operator; UNCLEAR if its instances differ in a way that fits nothing."""

    UNDER_PROVISIONED = "under-provisioned"
    DATA_SKEW = "data skew"
    SLOW_INSTANCE = "slow instance"
    UNCLEAR = "unclear"


def is_skewed(values: Sequence[float], ratio: float) -> bool:
    """Whether the largest value is more than ``ratio`` times the smallest."""
    return max(values, default=0.0) > ratio * min(values, default=0.0)


def diagnose(rates: OperatorRates) -> tuple[Diagnosis, tuple[int, ...]]:
    """What is wrong with an operator that causes back-pressure, and the instances it is seen in.

    If an instance does not report its rate or what waits in front of it, instances cannot be told apart and the
    operator is taken to be under-provisioned.
    """
    speeds = [item.observed_processing_per_s for item in rates.instances]
    queues = [item.queued for item in rates.instances]
    known = [
        (item.instance, speed, queue)
        for item, speed, queue in zip(rates.instances, speeds, queues, strict=True)
        if speed is not None and queue is not None
    ]
    if len(known) < len(rates.instances):
        return Diagnosis.UNDER_PROVISIONED, ()
    fastest = max((speed for _, speed, _ in known), default=0.0)
    longest = max((queue for _, _, queue in known), default=0.0)
    uneven_rates = is_skewed([speed for _, speed, _ in known], RATE_SKEW)
    if not is_skewed([queue for _, _, queue in known], QUEUE_SKEW):
        return (Diagnosis.UNCLEAR if uneven_rates else Diagnosis.UNDER_PROVISIONED), ()
    held_up = [(number, speed) for number, speed, queue in known if longest < _HIGH_QUEUE * queue]
    if not uneven_rates:
        return Diagnosis.SLOW_INSTANCE, tuple(number for number, _ in held_up)
    hot = tuple(number for number, speed in held_up if fastest < _HIGH_RATE * speed)
    return (Diagnosis.DATA_SKEW if hot else Diagnosis.UNCLEAR), hot
