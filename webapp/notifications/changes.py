"""What digests say about proposals: those that wait for the reader, and what became of those that were applied."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.jobs.models import Job
from webapp.notifications.digest import Item, Tone
from webapp.reconfigurations.lifecycle import WAS_APPLIED, State
from webapp.reconfigurations.models import Kind, Proposal
from webapp.reconfigurations.selectors import inbox
from webapp.reconfigurations.verification import names_of
from webapp.wording import percent, rate, seconds

TONES = {
    State.VERIFIED: Tone.GOOD,
    State.REGRESSED: Tone.HARM,
    State.APPLY_FAILED: Tone.HARM,
    State.REVERT_FAILED: Tone.HARM,
}
WORDS = {
    State.APPLIED: "Applied; whether the prediction holds is being measured.",
    State.VERIFIED: "The prediction held.",
    State.INCONCLUSIVE: "Whether the prediction held cannot be told.",
    State.REGRESSED: "It made things worse.",
    State.REVERTING: "It is being taken back.",
    State.REVERTED: "It was taken back.",
    State.REVERT_FAILED: "Taking it back failed.",
    State.APPLY_FAILED: "It could not be applied.",
}
MOST_REASONS = 3


def path(row: Proposal) -> str:
    """Where a proposal is decided: a page, on which a person acts."""
    return f"/proposals/{row.pk}"


def title(row: Proposal) -> str:
    """``Rescale ad-events: split 1 → 5, count 1 → 2``."""
    verb = Kind(row.kind).value.capitalize()
    if row.undoes_id:
        verb = "Go back on"
    steps = _steps(row)
    return f"{verb} {row.job.name}: {steps}" if steps else f"{verb} {row.job.name}"


def _steps(row: Proposal) -> str:
    wanted: dict[str, Any] = row.change.get("parallelism", {})
    names = names_of(row)
    before = {item["id"]: item["parallelism"] for item in row.binding.get("operators", [])}
    return ", ".join(
        f"{names.get(key, key)} {before.get(key, '?')} → {value}" for key, value in wanted.items()
    )


def waiting(actor: User, jobs: QuerySet[Job], until: datetime, zone: ZoneInfo) -> list[Item]:
    """What waits for this person's decision, in the inbox's order: what costs most to let wait first."""
    return [_waits(row, until, zone) for row in inbox(actor).filter(job__in=jobs)]


def _waits(row: Proposal, until: datetime, zone: ZoneInfo) -> Item:
    waited_s = max(0, int((until - row.created_at).total_seconds()))
    expires = row.expires_at.astimezone(zone)
    cost = "Waiting costs nothing"
    if row.shortfall_per_s:
        cost = f"Waiting costs {rate(row.shortfall_per_s)} of what the sources should deliver"
    lines = [f"{cost}. Proposed {seconds(waited_s)} ago, expires {expires:%a %d %b %H:%M}."]
    if said := str(row.evidence.get("why", "")):
        lines.append(f"Why: {said}.".replace("..", "."))
    if row.risks:
        lines.append(f"Risks: {'; '.join(row.risks)}.")
    return Item(title(row), path(row), tuple(lines), Tone.WAITS, action="Look and decide")


def outcomes(jobs: QuerySet[Job], since: datetime, until: datetime) -> list[Item]:
    """What was applied, or was to be, and came to something in the period; what went wrong first."""
    states = (*WAS_APPLIED, State.APPLY_FAILED)
    found = Proposal.objects.filter(
        job__in=jobs, state__in=states, changed_at__gt=since, changed_at__lte=until
    )
    rows = sorted(
        found.select_related("job"), key=lambda row: (TONES.get(State(row.state)) != Tone.HARM, -row.pk)
    )
    return [_outcome(row) for row in rows]


def _outcome(row: Proposal) -> Item:
    state = State(row.state)
    lines = [WORDS[state]]
    findings = (row.verdict or {}).get("findings", [])
    names = names_of(row)
    lines += [said for item in findings[:MOST_REASONS] if (said := _compared(item, names))]
    if not findings and row.state_reason:
        lines.append(row.state_reason.rstrip(".") + ".")
    return Item(title(row), path(row), tuple(lines), TONES.get(state, Tone.PLAIN))


def _compared(finding: dict[str, Any], names: dict[str, str]) -> str:
    """``split: predicted 90 % busy, measured 88 %``; "" for what was not measured."""
    predicted, after = finding.get("predicted"), finding.get("after")
    if predicted is None or after is None:
        return ""
    name = names.get(finding["operator_id"], finding["operator_id"]) or "backlog"
    if finding["what"] == "utilisation":
        return f"{name}: predicted {percent(predicted)} busy, measured {percent(after)}."
    return f"{name}: predicted {rate(predicted)}, measured {rate(after)}."


def open_in(jobs: QuerySet[Job]) -> bool:
    """Whether anything waits for anybody there; spares asking for each person."""
    return Proposal.objects.filter(job__in=jobs, state=State.PROPOSED, expires_at__gt=timezone.now()).exists()
