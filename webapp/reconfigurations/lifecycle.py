"""The life of a proposal: its states, and the one table of which may follow which.

::

    proposed ─► approved ─► applying ─► applied ─► verified | inconclusive | regressed
       │                        └─► apply_failed                                 │
       └─► rejected | expired | superseded | stale     reverted | revert_failed ◄─ reverting

The way back is a proposal of its own with the same life; while it is applied, the one it undoes is ``reverting``.
What is approved and only waits is ``superseded`` if somebody breaks the glass for another.
"""

from __future__ import annotations

from django.db import models


class State(models.TextChoices):
    """Where a proposal stands."""

    PROPOSED = "proposed", "waits for a decision"
    APPROVED = "approved", "approved"
    REJECTED = "rejected", "rejected"
    EXPIRED = "expired", "expired"
    SUPERSEDED = "superseded", "superseded"
    STALE = "stale", "stale"
    APPLYING = "applying", "being applied"
    APPLIED = "applied", "applied"
    APPLY_FAILED = "apply_failed", "could not be applied"
    VERIFIED = "verified", "verified"
    INCONCLUSIVE = "inconclusive", "inconclusive"
    REGRESSED = "regressed", "regressed"
    REVERTING = "reverting", "being reverted"
    REVERTED = "reverted", "reverted"
    REVERT_FAILED = "revert_failed", "could not be reverted"


_S = State
TRANSITIONS: dict[State, frozenset[State]] = {
    _S.PROPOSED: frozenset({_S.APPROVED, _S.REJECTED, _S.EXPIRED, _S.SUPERSEDED, _S.STALE}),
    _S.APPROVED: frozenset({_S.APPLYING, _S.SUPERSEDED}),
    _S.APPLYING: frozenset({_S.APPLIED, _S.APPLY_FAILED}),
    _S.APPLIED: frozenset({_S.VERIFIED, _S.INCONCLUSIVE, _S.REGRESSED}),
    _S.REGRESSED: frozenset({_S.REVERTING}),
    _S.REVERTING: frozenset({_S.REVERTED, _S.REVERT_FAILED}),
} | {
    end: frozenset()
    for end in (
        _S.REJECTED, _S.EXPIRED, _S.SUPERSEDED, _S.STALE, _S.APPLY_FAILED, _S.VERIFIED, _S.INCONCLUSIVE,
        _S.REVERTED, _S.REVERT_FAILED,
    )
}  # fmt: skip

IN_FLIGHT = (State.APPROVED, State.APPLYING)
"""At most one proposal of a job is in one of these, which a unique index sees to."""

WAS_APPLIED = (
    State.APPLIED, State.VERIFIED, State.INCONCLUSIVE, State.REGRESSED, State.REVERTING, State.REVERTED,
    State.REVERT_FAILED,
)  # fmt: skip


class IllegalTransitionError(RuntimeError):
    """A bug of ours: the table does not have this step."""


def check(before: str, after: State) -> None:
    """Let a step through that the table has.

    Raises
    ------
    IllegalTransitionError
        If it does not.
    """
    if after not in TRANSITIONS[State(before)]:
        raise IllegalTransitionError(f"a proposal that is {before} cannot become {after.value}")
