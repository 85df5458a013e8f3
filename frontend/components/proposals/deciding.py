"""Approving and rejecting: the buttons, the dialog that says what will happen, and the one answer to it.

The dialog is in the frame, once for all pages. A button only opens it; what it says is read when it opens, and the
decision names the version that it showed. The service checks everything again.
"""

from __future__ import annotations

import json
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from django.utils import timezone

from frontend import words
from frontend.components.proposals import card, told
from frontend.components.proposals.card import Shown
from frontend.request import person
from frontend.state import View
from webapp.reconfigurations import policies, selectors, services
from webapp.reconfigurations.errors import ReasonRequiredError, RefusedError
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.lifecycle import State as Stands
from webapp.reconfigurations.models import Proposal

ACTIONS = ("approve", "reject", "break_glass")
_DIALOG = (
    ("title", "children"), ("words", "children"), ("label", "children"), ("yes", "children"), ("yes", "disabled"),
    ("yes", "className"), ("error", "children"), ("seen", "data"),
)  # fmt: skip


def frame() -> list[Any]:
    """The dialog, the line about the last decision, and their stores: part of the frame."""
    return [
        html.Dialog(
            id="decide",
            className="ask card decide-dialog",
            **{"aria-labelledby": "decide-title"},
            children=[
                html.H2("…", id="decide-title"),
                html.Div("Reading …", id="decide-words", className="decide-words"),
                html.Label("Reason", htmlFor="decide-reason", id="decide-label"),
                html.Textarea(id="decide-reason", rows=3, maxLength=2000),
                html.Div("", id="decide-error", className="error", role="alert"),
                html.Div(
                    [
                        html.Button("Leave it", id="decide-no", className="tool"),
                        html.Button("…", id="decide-yes", className="primary", disabled=True),
                    ],
                    className="ask-buttons",
                ),
            ],
        ),
        html.Div(
            [
                html.Span("", id="decided-said", role="status"),
                html.Button("✕", id="decided-gone", className="icon", **{"aria-label": "Close this line"}),
            ],
            id="decided-line",
            hidden=True,
        ),
        dcc.Store(id="decide-ask"), dcc.Store(id="decide-seen"), dcc.Store(id="decide-do"), dcc.Store(id="decided"),
    ]  # fmt: skip


def buttons(shown: Shown) -> list[Any]:
    """Approve and reject, or why this person cannot; nothing if nothing is left to decide."""
    if not shown.is_open:
        return []
    row = shown.row
    both = shown.no_approval and shown.no_rejection
    said: list[Any] = [
        _button("Approve…", "approve", row, "primary") if not shown.no_approval else None,
        _button("Reject…", "reject", row, "tool") if not shown.no_rejection else None,
    ]
    if _wants_glass(shown):
        said.append(_button("⚠ Break glass…", "break_glass", row, "primary harmful"))
    if shown.no_approval:
        what = "You cannot decide about it" if both else "You cannot approve it"
        said.insert(0, html.P(f"{what}: {shown.no_approval}.", id="proposal-why-not", className="muted"))
    return [part for part in said if part is not None]


def _wants_glass(shown: Shown) -> bool:
    """Whether an admin has a rule to go past."""
    hindered = shown.no_approval or shown.waits or shown.quorum - shown.votes > 1
    return bool(hindered) and not shown.no_break_glass


def _button(label: str, action: str, row: Proposal, kind: str) -> Any:
    ask = {"proposal": row.pk, "version": row.version, "action": action}
    return html.Button(
        label,
        id=f"proposal-{action.replace('_', '-')}",
        className=kind,
        **{
            "data-decide": json.dumps(ask),
            "aria-haspopup": "dialog",
            "aria-label": f"{label.rstrip('…')}: {told.deed(row)}",
        },
    )


def register(app: Dash) -> None:
    """Callbacks of the dialog."""
    app.callback(
        [Output(f"decide-{part}", prop) for part, prop in _DIALOG],
        Input("decide-ask", "data"), State("url", "search"), prevent_initial_call=True,
    )(prepare)  # fmt: skip
    app.callback(
        Output("decided", "data"), Output("decide-error", "children", allow_duplicate=True),
        Input("decide-do", "data"), State("url", "search"), prevent_initial_call=True,
    )(decide)  # fmt: skip
    app.clientside_callback(
        ClientsideFunction("weir", "decide"), Output("decide-do", "data"), Input("decide-yes", "n_clicks"),
        State("decide-seen", "data"), prevent_initial_call=True,
    )  # fmt: skip
    app.clientside_callback(
        ClientsideFunction("weir", "decided"), Output("decided-said", "children"), Input("decided", "data"),
        Input("decide-error", "children"), prevent_initial_call=True,
    )  # fmt: skip


def prepare(ask: dict[str, Any] | None, query: str) -> list[Any]:
    """What the dialog says, read now: what will happen, and what has changed since the page was drawn."""
    read = _asked(ask)
    row = selectors.proposal(person(), read[0]) if read else None
    if read is None or row is None or ask is None:
        return _closed("There is no such proposal.", "")
    action, now = read[1], timezone.now()
    shown = card.look(person(), row, View.parse(query or ""), now)
    refusal = {"approve": shown.no_approval, "reject": shown.no_rejection}.get(action, shown.no_break_glass)
    if refusal:
        return _closed(f"{refusal[:1].upper()}{refusal[1:]}.", told.deed(row))
    changed = ask.get("version") != row.version
    needed = policies.why_a_reason(row, approves=action != "reject", break_glass=action == "break_glass")
    risky = action == "approve" and row.risks  # the dialog has said what they are
    label = (
        f"Reason (required: {'this is flagged risky' if risky else needed})"
        if needed
        else "Reason (optional)"
    )
    label_yes = {"approve": told.deed(row), "reject": f"Reject proposal {row.pk}"}.get(
        action, f"⚠ Go past the rules: {told.deed(row)}"
    )
    title = {"approve": "Approve", "reject": "Reject"}.get(action, "⚠ Break glass for")
    kind = "primary" if action == "approve" else "primary harmful"
    seen = {"proposal": row.pk, "version": row.version, "action": action, "ask": ask.get("sent")}
    return [
        f"{title} proposal {row.pk}", _words(shown, action, changed=changed), label, label_yes, False, kind,
        "", seen,
    ]  # fmt: skip


def _words(shown: Shown, action: str, *, changed: bool) -> list[Any]:
    row = shown.row
    said: list[Any] = []
    if changed:
        said.append(
            html.P(
                f"It has changed since this page was drawn: {told.standing(row, shown.now)}", className="warn"
            )
        )
    if action == "reject":
        lines = [f"{row.job.name} stays as it is, and this proposal ends: {described(row)}."]
        lines.append(
            "One rejection is enough. It is not proposed again until the policy asks for something else."
        )
    else:
        glass = action == "break_glass"
        missing = 1 if glass else shown.quorum - shown.votes
        lines = told.consequence(row, policies.rules_of(row.job), missing, "" if glass else shown.waits)
        if glass:
            passed = shown.no_approval or shown.waits or f"{shown.quorum} people must agree"
            everybody = f"{passed}. Everybody who sees this job will see it."
            said.append(html.P([html.Strong("You go past a rule: "), everybody], className="loud"))
    said += [html.P(line) for line in lines]
    if row.risks and action != "reject":
        said.append(html.P([html.Strong("⚠ Risky: "), "; ".join(row.risks), "."], className="warn"))
    return said


def _closed(why: str, title: str) -> list[Any]:
    return [title or "Nothing to decide", [html.P(why)], "Reason", "Nothing to do", True, "primary", "", None]


def _asked(asked: object) -> tuple[int, str] | None:
    """Proposal and action of what the browser sent; None if it makes no sense."""
    if not isinstance(asked, dict):
        return None
    number, action = asked.get("proposal"), asked.get("action")
    if (
        not isinstance(number, int)
        or isinstance(number, bool)
        or not 0 < number < 2**63
        or action not in ACTIONS
    ):
        return None
    return number, str(action)


def decide(asked: dict[str, Any] | None, _query: str) -> list[Any]:
    """Approve or reject what the dialog showed; a refusal becomes the line that says why."""
    read = _asked(asked)
    if read is None or asked is None:
        return [no_update, no_update]
    number, action = read
    reason = str(asked.get("reason") or "")[:2000]
    version = asked.get("version")
    seen = version if isinstance(version, int) else 0
    try:
        if action == "reject":
            row = services.reject(person(), number, expected_version=seen, reason=reason)
        else:
            glass = action == "break_glass"
            row = services.approve(person(), number, expected_version=seen, reason=reason, break_glass=glass)
    except ReasonRequiredError as error:
        return [no_update, f"Not done: {error}."]
    except RefusedError as error:
        line = f"Not done: {error}."
        return [{"said": line, "good": False, "stays": True, "sent": asked.get("sent")}, line]
    return [{"said": said(row), "good": True, "stays": False, "sent": asked.get("sent")}, ""]


def said(row: Proposal) -> str:
    """What a decision came to, in a line."""
    what = f"proposal {row.pk}, {described(row)}"
    if row.state == Stands.REJECTED:
        return f"✓ Rejected: {what}."
    if row.state == Stands.PROPOSED:
        left = policies.quorum_of(row) - policies.votes_for(row)
        return f"✓ You approved {what}. {words.count(left, 'more approval')} needed."
    wait = policies.why_not_now(row, timezone.now())
    return f"✓ Approved: {what}. {f'It waits: {wait}' if wait else 'It is applied now'}."
