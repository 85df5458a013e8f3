"""Advice about one job: a policy shown the job's newest rates, with what it remembers of earlier ones.

A policy believes that what it asks for is done, and from then on waits for the job to warm up or judges what was
gained. Advice may be declined or wait for a person, so what a policy remembers after asking counts only once an
operator it asked to change runs with another parallelism; until then it is asked again with what it remembered
before.

Everything is as JSON says it (`analytics.model.plain`), so that a fleet's rates are read, and not written, number
by number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analytics.model.decisions import Action, Move, Status
from analytics.model.plain import from_plain, to_plain
from analytics.model.rates import Observation, RateWindow
from analytics.model.topology import Topology
from analytics.scaling import ds2
from analytics.scaling.evidence import Evidence, act
from analytics.scaling.policies import POLICIES
from analytics.scaling.rates import source_targets
from analytics.scaling.settings import settings_of

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setup:
    """How a job is advised: ``settings`` differ from the policy's defaults; ``targets_per_s`` say what sources
    should deliver, by operator name, in records/s; ``memory`` is that of the advice before, if there was any.
    """

    policy: str = ds2.NAME
    settings: Mapping[str, Any] = field(default_factory=dict)
    targets_per_s: Mapping[str, float] = field(default_factory=dict)
    memory: Plain | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """A policy's move with all it rests on: ``evidence`` as `analytics.scaling.evidence.to_json` has it, the
    ``action``, and the ``memory`` to give it next time.
    """

    evidence: Plain
    action: Plain
    memory: Plain


class NoAdviceError(ValueError):
    """There can be no advice from this; the message is one line."""


def advise(setup: Setup, measured: Plain) -> Advice:
    """What the policy says about a job's newest rates; the same input gives the same bits.

    Parameters
    ----------
    measured
        ``{"topology": Topology, "window": RateWindow}``.

    Raises
    ------
    NoAdviceError
        If the rates, the settings or the memory cannot be read, or the policy cannot make sense of them together.
    """
    try:
        evidence = _evidence(setup, measured)
        action, after = act(evidence)
        plain = {
            "policy": evidence.policy,
            "version": evidence.version,
            "settings": to_plain(evidence.settings),
            "state": to_plain(evidence.state),
            # Writing what was just read again would take as long as the policy itself.
            "seen": {**measured, "targets": to_plain(evidence.seen.targets)},
        }
        return Advice(plain, to_plain(action), _memory(evidence, action, after))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        # One job's odd data must not take the fleet's advice down with it.
        raise NoAdviceError(f"{type(error).__name__}: {error}") from error


def _evidence(setup: Setup, measured: Plain) -> Evidence:
    topology: Topology = from_plain(Topology, measured["topology"])
    window: RateWindow = from_plain(RateWindow, measured["window"])
    configured = {
        operator.id: float(setup.targets_per_s[operator.name])  # 500 and 500.0 are other bytes
        for operator in topology.sources()
        if operator.name in setup.targets_per_s
    }
    settings = settings_of(setup.policy, setup.settings)
    policy = POLICIES[setup.policy]
    seen = Observation(topology, window, source_targets(topology, window, configured))
    return Evidence(
        policy.name, policy.version, settings, _remembered(policy.state, setup.memory, topology), seen
    )


def _remembered(kind: type[Any], memory: Plain | None, topology: Topology) -> Any:
    """The state to start from: that after the last move if the move was made."""
    if memory is None:
        return kind()
    asked = memory["asked"]
    if asked is not None:
        parallelism = {operator.id: operator.parallelism for operator in topology.operators}
        if any(parallelism.get(name) != count for name, count in asked["parallelism"]):
            return from_plain(kind, asked["state"])
    return from_plain(kind, memory["state"])


def _memory(evidence: Evidence, action: Action, after: Any) -> Plain:
    if action.move not in (Move.RESCALE, Move.ROLL_BACK):
        return {"state": to_plain(after), "asked": None}
    wanted = dict(action.changes)
    parallelism = [
        [item.id, item.parallelism] for item in evidence.seen.topology.operators if item.id in wanted
    ]
    return {
        "state": to_plain(evidence.state),
        "asked": {"parallelism": parallelism, "state": to_plain(after)},
    }


@dataclass(frozen=True, slots=True)
class Summary:
    """What a move says without its numbers: with the same ``move``, ``changes`` and ``undecided`` two say the same.

    ``changes`` are ``{"operator_id", "name", "now", "proposed"}``, ``undecided`` ``[operator id, reason]``. Null
    characters, which databases refuse in text, are replaced.
    """

    move: str
    changes: list[Plain]
    undecided: list[list[str]]
    why: str


def summary_of(evidence: Plain, action: Plain) -> Summary:
    """The summary of an action."""
    operators = {item["id"]: item for item in evidence["seen"]["topology"]["operators"]}
    changes = [
        {
            "operator_id": _text(name),
            "name": _text(operators[name]["name"] if name in operators else name),
            "now": operators[name]["parallelism"] if name in operators else None,
            "proposed": count,
        }
        for name, count in action["changes"]
    ]
    decided = action["decision"]["operators"] if action["decision"] else []
    undecided = [
        [_text(item["operator_id"]), item["reason"]]
        for item in decided
        if item["status"] == Status.CANNOT_DECIDE
    ]
    return Summary(action["move"], changes, undecided, _text(action["why"]))


def _text(value: str) -> str:
    return value.replace("\0", "\ufffd")


@dataclass(frozen=True, slots=True)
class JobAdvice:
    """Advice about one stored job, as it is stored, or why there is none (``error``).

    ``revision`` is that of the setup it was made with (0: there was none), ``at_ns`` the end of the rates' window.
    ``move``, ``changes``, ``undecided`` and ``why`` are its `Summary`, with lists as JSON text; ``payload`` packs
    ``{"evidence", "action"}``; ``memory`` is JSON text.
    """

    job_id: int
    revision: int
    at_ns: int
    policy: str
    version: int = 0
    start_ns: int = 0
    move: str = ""
    changes: str = "[]"
    undecided: str = "[]"
    why: str = ""
    payload: bytes = b""
    memory: str | None = None
    error: str = ""
