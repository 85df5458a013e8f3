"""A policy's settings from what a person sets; the rest are its defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from analytics.model.plain import from_plain, to_plain
from analytics.scaling.flink_autoscaler.excluded import period
from analytics.scaling.policies import POLICIES

_AT_LEAST_ONE = (
    "activation_intervals",
    "min_parallelism",
    "max_parallelism",
    "target_rate_ratio",
    "observed_rate_min_observations",
    "scalability_min_observations",
    "history_count",
)
_BETWEEN_0_AND_1 = ("utilization_target", "rollback_loss_ratio", "scale_down_max_factor", "scale_down_ratio")


class BadSettingsError(ValueError):
    """The settings are none of the policy's; the message is one line."""


def settings_of(policy: str, given: Mapping[str, Any]) -> Any:
    """The settings of a policy with ``given``, as JSON says them, in place of defaults; nested ones likewise.

    Raises
    ------
    BadSettingsError
        If there is no such policy or setting, or a value makes no sense.
    """
    if policy not in POLICIES:
        raise BadSettingsError(f"no such policy: {policy!r}; there are {', '.join(POLICIES)}")
    kind = POLICIES[policy].settings
    plain = _merged(to_plain(kind()), given)
    try:
        settings = from_plain(kind, plain)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BadSettingsError(f"a setting has a value of the wrong kind: {error}") from error
    for name, value in _leaves(settings):
        if (trouble := _trouble(name, value)) is not None:
            raise BadSettingsError(f"{name} is {value!r}, {trouble}")
    limits = dict(_leaves(settings))
    if limits.get("min_parallelism", 1) > limits["max_parallelism"]:
        raise BadSettingsError("min_parallelism is more than max_parallelism")
    return settings


def _merged(defaults: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(given.keys() - defaults.keys())
    if unknown:
        raise BadSettingsError(f"no such setting: {', '.join(unknown)}")
    merged = dict(defaults)
    for name, value in given.items():
        nested = defaults[name]
        if isinstance(nested, dict) != isinstance(value, Mapping):
            raise BadSettingsError(f"a setting has a value of the wrong kind: {name}")
        merged[name] = _merged(nested, value) if isinstance(nested, dict) else value
    return merged


def _leaves(settings: Any) -> Iterator[tuple[str, Any]]:
    for item in fields(settings):
        value = getattr(settings, item.name)
        if is_dataclass(value):
            yield from _leaves(value)
        else:
            yield item.name, value


def _trouble(name: str, value: Any) -> str | None:
    """What is wrong with a value of the right type, or None."""
    if isinstance(value, int | float):
        if not math.isfinite(value) or value < 0:
            return "expected a number of at least 0"
        if name in _AT_LEAST_ONE and value < 1:
            return "expected at least 1"
        if name in _BETWEEN_0_AND_1 and value > 1:
            return "expected at most 1"
        if name == "utilization_target" and not value:
            return "expected more than 0"
    return _bad_period(value) if name == "excluded_periods" else None


def _bad_period(periods: tuple[str, ...]) -> str | None:
    try:
        for text in periods:
            period(text)
    except ValueError as error:
        return str(error)
    return None
