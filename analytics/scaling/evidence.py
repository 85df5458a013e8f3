"""What a recommendation rests on, stored so that every number of it can be computed again, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analytics.model.decisions import Action
from analytics.model.plain import from_plain, to_plain
from analytics.model.rates import Observation
from analytics.scaling.policies import POLICIES


class UnreadableEvidenceError(ValueError):
    """The evidence is not of this release, or none at all; the message is one line."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a policy's move depends on: which policy, its settings, what it remembered, and what it saw."""

    policy: str
    version: int
    settings: Any
    state: Any
    seen: Observation


def gather(policy: str, seen: Observation, settings: Any = None, state: Any = None) -> Evidence:
    """The evidence of a policy of this release; settings and memory are its defaults if not given.

    Raises
    ------
    KeyError
        If no policy has this name.
    """
    found = POLICIES[policy]
    return Evidence(
        policy,
        found.version,
        found.settings() if settings is None else settings,
        found.state() if state is None else state,
        seen,
    )


def act(evidence: Evidence) -> tuple[Action, Any]:
    """The policy's move and what it remembers afterwards; the same evidence gives the same bits."""
    return POLICIES[evidence.policy].step(evidence.settings, evidence.state, evidence.seen)


def to_json(evidence: Evidence) -> dict[str, Any]:
    """The evidence as what JSON can say."""
    plain: dict[str, Any] = to_plain(evidence)
    return plain


def from_json(payload: dict[str, Any]) -> Evidence:
    """The evidence of `to_json`.

    Raises
    ------
    UnreadableEvidenceError
        If it is of another release, or none at all.
    """
    policy = POLICIES.get(str(payload.get("policy")))
    if policy is None:
        raise UnreadableEvidenceError(f"no such policy: {payload.get('policy')!r}")
    if payload.get("version") != policy.version:
        raise UnreadableEvidenceError(
            f"{policy.name} is version {policy.version} here, the evidence is of {payload.get('version')!r}"
        )
    try:
        return Evidence(
            policy.name,
            policy.version,
            from_plain(policy.settings, payload["settings"]),
            from_plain(policy.state, payload["state"]),
            from_plain(Observation, payload["seen"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableEvidenceError(f"not readable evidence: {error!r}") from error


def recompute(payload: dict[str, Any]) -> dict[str, Any]:
    """The move that stored evidence leads to, as it is stored: compare it with what was.

    Raises
    ------
    UnreadableEvidenceError
        If the evidence is of another release, or none at all.
    """
    action, _ = act(from_json(payload))
    plain: dict[str, Any] = to_plain(action)
    return plain
