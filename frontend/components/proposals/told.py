"""Proposals in words: where one stands, what it changes, and what a decision about it will do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from dash import html

from frontend import words
from frontend.state import View
from webapp.reconfigurations import policies
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, EngineKind, Kind, Proposal

SIGNS = {
    State.PROPOSED: ("◷", "open"), State.APPROVED: ("◷", "applied"), State.APPLYING: ("↻", "applied"),
    State.APPLIED: ("●", "applied"), State.VERIFIED: ("✓", "verified"), State.INCONCLUSIVE: ("?", "muted"),
    State.REGRESSED: ("▼", "failed"), State.REVERTING: ("↻", "applied"), State.REVERTED: ("↩", "muted"),
    State.APPLY_FAILED: ("✕", "failed"), State.REVERT_FAILED: ("✕", "failed"), State.REJECTED: ("✕", "muted"),
    State.EXPIRED: ("◌", "muted"), State.SUPERSEDED: ("◌", "muted"), State.STALE: ("◌", "muted"),
}  # fmt: skip
"""Sign and colour of a state; its word always stands beside them."""

VERBS = {
    Kind.RESCALE: "Rescale", Kind.RESIZE: "Resize", Kind.REBALANCE: "Rebalance", Kind.MICROBATCH: "Regroup",
    Kind.MIGRATE: "Migrate", Kind.COLLOCATE: "Collocate",
}  # fmt: skip
ACTIONS = {
    "propose": "proposed it", "supersede": "put a newer proposal in its place",
    "set_aside": "set it aside for another", "approve": "approved it",
    "break_glass": "broke the glass and approved it", "vote": "agreed; others must agree too",
    "reject": "rejected it", "expire": "let it expire", "stale": "took it off the table: the job has changed",
    "apply": "began to apply it", "applied": "saw it run as proposed", "apply_failed": "could not apply it",
    "verify": "held the prediction against what was measured", "revert": "began to take it back",
    "reverted": "took it back", "revert_failed": "could not take it back",
}  # fmt: skip
UNSEEN = {
    EngineKind.DRY_RUN: "went through all the motions of it; nothing was sent",
    EngineKind.WEBHOOK: "handed it over; what its receiver makes of it is not seen",
}
"""What ``applied`` means where the job itself cannot be looked at."""

THROUGH = {
    EngineKind.DRY_RUN: "Nothing is sent: the job's rules say dry run.",
    EngineKind.FLINK: "Flink is asked for it and restarts the job's tasks, which takes seconds;"
    " what arrives meanwhile waits in the sources.",
    EngineKind.WEBHOOK: "A signed message is sent to the job's webhook; the rest is its receiver's affair.",
}


def did(action: str, engine: str = "") -> str:
    """What somebody did with a proposal; ``engine`` is through what it was applied, if it was."""
    if action == "applied" and engine in UNSEEN:
        return UNSEEN[EngineKind(engine)]
    return ACTIONS.get(action, action.replace("_", " "))


def badge(row: Proposal, identity: str = "") -> Any:
    """Where a proposal stands: sign, word and colour."""
    sign, kind = SIGNS[State(row.state)]
    more = {"id": identity} if identity else {}
    label = State(row.state).label
    return html.Span(
        [html.Span(sign, **{"aria-hidden": "true"}), f" {label}"], className=f"standing {kind}", **more
    )


def verb(row: Proposal) -> str:
    """What is done, in a word: Rescale, Go back."""
    return "Go back" if row.undoes_id else VERBS[Kind(row.kind)]


def parallelism(row: Proposal) -> list[tuple[str, int, int, int | None]]:
    """Name, instances now and proposed, and at most, of every operator that a rescale changes."""
    wanted = row.change.get("parallelism") or {}
    return [
        (item["name"], item["parallelism"], wanted[item["id"]], item["max_parallelism"])
        for item in row.binding.get("operators", [])
        if item["id"] in wanted and wanted[item["id"]] != item["parallelism"]
    ]


def deed(row: Proposal) -> str:
    """What a click does, as a button says it: Rescale split to 5 and count to 2."""
    changes = [f"{name} to {wanted}" for name, _, wanted, _ in parallelism(row)]
    return (
        f"{verb(row)}: {words.series(changes)}"
        if row.undoes_id
        else f"{verb(row)} {words.series(changes)}".strip()
    )


def sentence(row: Proposal, now: datetime) -> list[Any]:
    """The first line: what is proposed for which job, and where that stands."""
    job = html.A(html.Em(row.job.name), href=f"/jobs/{row.job_id}?tab=changes")
    return [html.Strong(f"{verb(row)} "), job, ": ", html.Strong(described(row)), ". ", standing(row, now)]


def standing(row: Proposal, now: datetime) -> str:
    """Where it stands, in a sentence."""
    why = f": {row.state_reason}" if row.state_reason else ""
    match State(row.state):
        case State.PROPOSED if row.expires_at <= now:
            return "Nobody decided in time: it has expired."
        case State.PROPOSED:
            left = span(row.expires_at - now)
            return f"It has waited for a decision for {span(now - row.created_at)} and expires in {left}."
        case State.APPROVED:
            wait = policies.why_not_now(row, now)
            return (
                f"It is approved and not applied yet: {wait}."
                if wait
                else "It is approved and about to be applied."
            )
        case State.APPLYING:
            return "It is being applied."
        case State.APPLIED:
            return "It is applied; whether the prediction came true is told once the job has settled."
        case State.REGRESSED:
            return f"It has regressed{why}."
        case State.APPLY_FAILED | State.REVERT_FAILED as state:
            return f"It {state.label}{why}."
        case state:
            return f"It is {state.label}{why}."


def span(length: timedelta) -> str:
    """A length of time in one or two units: 40 s, 12 min, 3 h 5 min."""
    whole = max(0, int(length.total_seconds()))
    return words.seconds(float(whole if whole < 120 else whole // 60 * 60))


def at(when: datetime | None, view: View) -> str:
    """A time in the reader's zone, with its day."""
    return "–" if when is None else f"{when.astimezone(view.zone):%Y-%m-%d %H:%M:%S} {view.zone_label}"


def cost_of_waiting(row: Proposal) -> str:
    """What it costs to let it wait."""
    if row.shortfall_per_s <= 0:
        return "nothing measurable: the job meets its target"
    hourly = words.number(row.shortfall_per_s * 3600)
    return f"{words.rate(row.shortfall_per_s)} behind its target, {hourly} records an hour"


def consequence(row: Proposal, rules: ChangePolicy, missing_votes: int, waits: str) -> list[str]:
    """What an approval does, in plain sentences."""
    told = [f"{verb(row)} {row.job.name}: {described(row)}."]
    if missing_votes > 1:
        others = "another person" if missing_votes == 2 else f"{missing_votes - 1} other people"
        told.append(f"Your approval is one of several: {others} must agree before anything is done.")
    elif waits:
        told.append(f"It is not applied at once: {waits}.")
    told.append(THROUGH[EngineKind(rules.engine)])
    if row.kind == Kind.RESCALE and rules.engine != EngineKind.DRY_RUN:
        told.append("The restart cannot be undone; the instances can: going back restarts the job once more.")
    elif row.kind != Kind.RESCALE:
        told.append("⚠ Irreversible: Weir cannot take this kind of change back.")
    return told
