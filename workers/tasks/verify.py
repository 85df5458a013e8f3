"""Checking whether what was predicted came true, once an applied change has settled."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from celery import shared_task
from django.utils import timezone

from analytics.model.plain import from_plain
from analytics.model.reconfigurations import Binding, Prediction
from analytics.verification.judge import Outcome, Verdict, judge
from analytics.verification.measure import measurements
from webapp.jobs import reports
from webapp.reconfigurations import verification
from webapp.reconfigurations.models import EngineKind, Proposal
from webapp.reconfigurations.policies import rules_of

logger = logging.getLogger(__name__)


@shared_task
def verify_due() -> None:
    """Judge everything that has settled; one that cannot be judged holds up no other."""
    for proposal in verification.to_verify():
        try:
            verify(proposal)
        except Exception:
            logger.exception("verify.failed proposal=%d", proposal.pk)


def verify(proposal: Proposal) -> None:
    """Write the verdict, if it is time for one."""
    rules, now = rules_of(proposal.job), timezone.now()
    assert proposal.applied_at is not None
    settled_at = proposal.applied_at + timedelta(seconds=rules.settle_s)
    if proposal.attempt.engine == EngineKind.DRY_RUN:
        verdict = verification.inconclusive("it was a dry run: nothing has changed")
    elif (later := verification.changed_again(proposal)) is not None:
        verdict = verification.inconclusive(
            f"proposal {later.pk} changed the job again before it could be judged"
        )
    elif not proposal.prediction or "parallelism" not in proposal.change:
        verdict = verification.inconclusive("nothing was predicted that could be compared")
    elif now < settled_at:
        return
    else:
        verdict = _judge(proposal, now)
        if verdict.outcome is Outcome.INCONCLUSIVE and now < settled_at + verification.PATIENCE:
            return
    verification.settle_verdict(proposal.pk, verdict)


def _judge(proposal: Proposal, now: datetime) -> Verdict:
    assert proposal.applied_at is not None
    began = proposal.attempt.sent_at or proposal.attempt.started_at
    first = began - verification.MEASURED_BEFORE
    windows = reports.rates(proposal.job, _ns(first), _ns(now))
    bound = from_plain(Binding, proposal.binding)
    seen = measurements(
        [(item.topology, item.window) for item in windows], (_ns(began), _ns(proposal.applied_at)),
        bound.engine_job_id, bound.parallelism, proposal.change["parallelism"],
    )  # fmt: skip
    predicted = from_plain(Prediction, proposal.prediction)
    return judge(predicted, seen, names=verification.names_of(proposal))


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
