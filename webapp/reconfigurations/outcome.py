"""What was measured around an applied change, as its page draws it beside the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from analytics.model.plain import from_plain
from analytics.model.reconfigurations import Binding, Prediction
from analytics.verification.judge import LEAST_AGE_S, Finding, Measurements, Tolerance, Verdict
from analytics.verification.measure import measurements
from webapp.jobs import reports
from webapp.reconfigurations.models import Attempt, Kind, Proposal
from webapp.reconfigurations.policies import rules_of
from webapp.reconfigurations.verification import MEASURED_BEFORE, PATIENCE, names_of


@dataclass(frozen=True)
class Seen:
    """A change with its prediction and what was measured, each sample in seconds since the change.

    Times are ns since 1970: the change began, was over, and had settled at the earliest.
    """

    began_ns: int
    over_ns: int
    settled_ns: int
    until_ns: int
    names: dict[str, str]
    predicted: Prediction
    measured: Measurements
    tolerance: Tolerance
    findings: tuple[Finding, ...]


def outcome(row: Proposal, now: datetime) -> Seen | None:
    """What is known by now; None if the change was not applied, or is of a kind that is not measured."""
    tried = Attempt.objects.filter(proposal=row).first()
    if row.applied_at is None or tried is None or row.kind != Kind.RESCALE:
        return None
    began = tried.sent_at or tried.started_at
    until = min(now, row.applied_at + timedelta(seconds=rules_of(row.job).settle_s) + PATIENCE)
    began_ns, over_ns, until_ns = _ns(began), _ns(row.applied_at), _ns(until)
    windows = reports.rates(row.job, _ns(began - MEASURED_BEFORE), until_ns)
    bound = from_plain(Binding, row.binding)
    measured = measurements(
        [(item.topology, item.window) for item in windows], (began_ns, over_ns), bound.engine_job_id,
        bound.parallelism, row.change["parallelism"],
    )  # fmt: skip
    predicted = from_plain(Prediction, row.prediction) if row.prediction else Prediction()
    settled_ns = over_ns + int(LEAST_AGE_S * 1e9)
    findings = from_plain(Verdict, row.verdict).findings if row.verdict else ()
    return Seen(
        began_ns, over_ns, settled_ns, until_ns, names_of(row), predicted, measured, Tolerance(), findings
    )  # fmt: skip


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
