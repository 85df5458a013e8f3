"""Applying approved changes: observe, write down what is about to be sent, send it once, poll, write down the end.

A worker may die anywhere. The next one finds how far the attempt got and what the engine has been asked for, and
only then does anything (``_go_on``).
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

from celery import shared_task
from django.utils import timezone

from analytics.model.plain import from_plain, to_plain
from analytics.model.reconfigurations import Binding, Observed, drift
from webapp.reconfigurations import execution
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, ChangePolicy, EngineKind, Step
from webapp.reconfigurations.policies import rules_of
from workers.engines.base import (
    Change,
    Engine,
    EngineError,
    Exchange,
    RefusedByEngineError,
    UnreachableError,
    differences,
    reached,
)
from workers.engines.choose import engine_of

logger = logging.getLogger(__name__)

POLL_EVERY_S = 0.5
POLLED_AT_ONCE_S = 20
"""Then others get this thread; the sweep goes on."""


@shared_task
def apply_due() -> None:
    """Have somebody work on everything that is approved or was left in the middle."""
    for proposal_id in execution.due():
        apply_proposal.apply_async([proposal_id], expires=30)


@shared_task
def apply_proposal(proposal_id: int) -> None:
    """Work on one proposal until it is applied, has failed, or it is somebody else's turn."""
    attempt = execution.claim(proposal_id, uuid.uuid4().hex)
    if attempt is None:
        return
    try:
        _advance_or_let_go(attempt)
    except execution.LostLeaseError:
        logger.warning("apply.lost attempt=%d", attempt.pk)


def _advance_or_let_go(attempt: Attempt) -> None:
    """Whatever goes wrong, an attempt ends at its time limit: until then it holds up every other of its job."""
    try:
        _advance(attempt)
    except execution.LostLeaseError:
        raise
    except RefusedByEngineError as error:
        execution.finish(attempt, False, str(error))
    except UnreachableError as error:
        _give_up_or_let_go(attempt, str(error))
    except Exception as error:
        logger.exception("apply.failed attempt=%d", attempt.pk)
        _give_up_or_let_go(attempt, f"Weir failed at it ({type(error).__name__}: {error})")


@dataclass(frozen=True)
class _Work:
    """An attempt with all that is needed to go on with it."""

    attempt: Attempt
    rules: ChangePolicy
    engine: Engine
    change: Change

    @property
    def late(self) -> bool:
        """Whether it has taken longer than the rules allow."""
        since = self.attempt.sent_at or self.attempt.started_at
        return (timezone.now() - since).total_seconds() > self.rules.apply_limit_s


def _advance(attempt: Attempt) -> None:
    proposal, rules = attempt.proposal, rules_of(attempt.proposal.job)
    told = {
        "proposal": proposal.pk,
        "kind": proposal.kind,
        "job": proposal.job.name,
        "change": proposal.change,
    }
    bound = from_plain(Binding, proposal.binding)
    change = Change(
        bound.engine_job_id, proposal.change.get("parallelism", {}), f"weir-proposal-{proposal.pk}", told
    )
    engine = engine_of(rules, partial(_keep, attempt), attempt.engine)
    work = _Work(attempt, rules, engine, change)
    seen = _look(work, engine.observe)
    if attempt.step == Step.STARTED:
        _start(work, bound, seen)
    elif attempt.step == Step.SENDING:
        _go_on(work, bound, seen)
    if attempt.step == Step.SENT:
        _wait(work)


def _look(work: _Work, ask: Callable[[str], Observed | None]) -> Observed | None:
    """Look at the job. Once something may have been sent, a bad answer to that means only: not yet."""
    try:
        return ask(work.change.engine_job_id)
    except EngineError as error:
        if work.attempt.step == Step.STARTED:
            raise
        raise UnreachableError(str(error)) from error


def _keep(attempt: Attempt, exchange: Exchange) -> None:
    execution.note(attempt, asdict(exchange))


def _start(work: _Work, bound: Binding, seen: Observed | None) -> None:
    """Nothing was sent yet: check that the job is the one people decided about, then send."""
    why = _why_not(work.rules, bound, seen)
    if why:
        execution.finish(work.attempt, False, why, after=_plain(seen))
        return
    undone = work.attempt.proposal.undoes
    if undone is None:
        request = work.engine.preview(work.change, _less_what_was_in_vain(work, seen))
    else:
        stored = Attempt.objects.filter(proposal=undone).values_list("before", flat=True).first()
        before = from_plain(Observed, stored) if stored else None
        request = work.engine.revert(work.change, before, seen)
    execution.hold(work.attempt, step=Step.SENDING, request=request, before=_plain(seen))
    _send(work)


def _less_what_was_in_vain(work: _Work, seen: Observed | None) -> Observed | None:
    """What was asked for before attempts that failed but still stand: nobody approved that with this change."""
    failed = Attempt.objects.filter(
        proposal__job=work.attempt.proposal.job, proposal__state=State.APPLY_FAILED, engine=work.attempt.engine,
        proposal__binding__engine_job_id=work.change.engine_job_id, request__isnull=False, before__isnull=False,
    )  # fmt: skip
    for old in failed.order_by("-pk"):
        if seen is None or old.request is None or not work.engine.arrived(old.request, seen):
            break
        seen = replace(seen, asked=from_plain(Observed, old.before).asked)
    return seen


def _go_on(work: _Work, bound: Binding, seen: Observed | None) -> None:
    """A worker died, or got no answer, after it wrote down what it would send: look whether it arrived."""
    assert work.attempt.request is not None
    if work.engine.arrived(work.attempt.request, seen):
        execution.hold(work.attempt, step=Step.SENT, sent_at=timezone.now())
        return
    before = from_plain(Observed, work.attempt.before) if work.attempt.before else None
    untouched = seen is None or (before is not None and before.asked == seen.asked)
    why = _why_not(work.rules, bound, seen)
    if not untouched or why:
        said = why or "somebody else asked the engine for something else meanwhile"
        execution.finish(work.attempt, False, f"the worker stopped, and then {said}", after=_plain(seen))
        return
    _send(work)


def _send(work: _Work) -> None:
    assert work.attempt.request is not None
    work.engine.apply(work.attempt.request)
    execution.hold(work.attempt, step=Step.SENT, sent_at=timezone.now())


def _wait(work: _Work) -> None:
    """Poll until the job runs as it should, or time is over."""
    end = time.monotonic() + POLLED_AT_ONCE_S
    while True:
        seen = _look(work, work.engine.progress)
        if reached(work.change, seen):
            _finish_applied(work, seen)
            return
        if work.late:
            assert seen is not None
            outcome = (
                f"after {work.rules.apply_limit_s} s {differences(work.change, seen)}; "
                "what was asked for still stands"
            )
            execution.finish(work.attempt, False, outcome, after=_plain(seen), rescale=_record(work))
            return
        if time.monotonic() > end:
            execution.let_go(work.attempt)
            return
        execution.hold(work.attempt)
        time.sleep(POLL_EVERY_S)


def _finish_applied(work: _Work, seen: Observed | None) -> None:
    if work.attempt.engine == EngineKind.DRY_RUN:
        outcome = "it was a dry run: nothing was sent, and nothing has changed"
    elif seen is None:
        outcome = f"handed to: {work.attempt.get_engine_display()}; Weir cannot see the job itself"
    else:
        outcome = execution.described(work.attempt.proposal)
    execution.finish(work.attempt, True, outcome, after=_plain(seen), rescale=_record(work))


def _record(work: _Work) -> object:
    """The engine's own record, from what began after we started; it must not fail what is done."""
    try:
        since_ms = int(work.attempt.started_at.timestamp() * 1_000)
        return work.engine.record(work.change.engine_job_id, since_ms)
    except execution.LostLeaseError:
        raise
    except EngineError as error:
        logger.warning("apply.no_record attempt=%d %s", work.attempt.pk, error)
    except Exception:
        logger.exception("apply.no_record attempt=%d", work.attempt.pk)
    return None


def _why_not(rules: ChangePolicy, bound: Binding, seen: Observed | None) -> str:
    if rules.scaled_by:
        return f"{rules.scaled_by} scales this job, and Weir does not fight it"
    if seen is None:
        return ""
    if seen.owner:
        return f"{seen.owner} decides about this job, and Weir does not fight it"
    return seen.refusal or drift(bound, seen.running)


def _give_up_or_let_go(attempt: Attempt, why: str) -> None:
    limit_s = rules_of(attempt.proposal.job).apply_limit_s
    if (timezone.now() - (attempt.sent_at or attempt.started_at)).total_seconds() <= limit_s:
        execution.let_go(attempt)
        return
    known = {
        Step.STARTED: "nothing was sent",
        Step.SENDING: "it is unknown whether the change arrived",
        Step.SENT: "the change was accepted, but nobody saw what became of it",
    }
    execution.finish(attempt, False, f"{why}; {known[Step(attempt.step)]}")


def _plain(seen: Observed | None) -> dict[str, object] | None:
    return None if seen is None else to_plain(seen)
