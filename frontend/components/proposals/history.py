"""What happened to a proposal, from the audit record, and what was said to the engine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dash import html

from frontend import words
from frontend.components.proposals import told
from frontend.state import View
from webapp.audit.models import AuditEvent, Outcome
from webapp.reconfigurations.models import Attempt, Proposal, Step


def timeline(events: Iterable[AuditEvent], view: View) -> Any:
    """Who did what when, refused attempts included."""
    items = [_event(event, view) for event in events]
    return html.Section(
        [html.H2("History", id="history-title"), html.Ol(items, className="history", id="proposal-history")],
        className="card",
        **{"aria-labelledby": "history-title"},
    )


def _event(event: AuditEvent, view: View) -> Any:
    action = event.action.removeprefix("proposal.")
    refused = event.outcome == Outcome.REFUSED
    given = str(event.detail.get("given_reason") or "") if refused else ""
    did = (
        f"tried to {action.replace('_', ' ')} it and was refused"
        if refused
        else told.did(action, str(event.detail.get("engine") or ""))
    )
    sign = "✕" if refused else "⚠" if event.loud else "●"
    parts: list[Any] = [
        html.Span(sign, className="history-sign", **{"aria-hidden": "true"}),
        html.Time(told.at(event.at, view), dateTime=event.at.isoformat(), className="muted"),
        html.Strong(event.actor_name),
        html.Span(did),
    ]
    if event.reason:
        parts.append(html.Span(f"“{event.reason}”", className="history-reason"))
    if given:
        parts.append(html.Span(f"(the reason given was “{given}”)", className="history-reason"))
    kind = "refused" if refused else "loud" if event.loud else ""
    return html.Li(parts, className=kind, key=str(event.pk))


def attempt(row: Proposal, view: View) -> Any:
    """What was sent to the engine and what it answered; nothing if nobody has tried yet."""
    try:
        tried = row.attempt
    except Attempt.DoesNotExist:
        return None
    took = (
        f", {words.count(tried.takeovers, 'time')} taken over from a worker that died"
        if tried.takeovers
        else ""
    )
    line = f"Begun at {told.at(tried.started_at, view)}; {Step(tried.step).label}{took}."
    if tried.outcome:
        line += f" {tried.outcome[:1].upper()}{tried.outcome[1:]}."
    return html.Section(
        [
            html.H2("What the engine was asked, and what it said", id="attempt-title"),
            html.P(line),
            html.Details(
                [
                    html.Summary(words.count(len(tried.exchanges), "request") + " and what came back"),
                    html.Ol([_exchange(item, i) for i, item in enumerate(tried.exchanges)], className="exchanges"),
                ],
                className="fold", id="attempt-exchanges",
            ) if tried.exchanges else None,
            *[_fold(name, value, f"attempt-{key}") for name, value, key in (
                ("The job before", tried.before, "before"), ("The job after", tried.after, "after"),
                ("The engine's own record of the rescale", tried.rescale, "rescale"),
            ) if value is not None],
        ],
        className="card attempt",
        **{"aria-labelledby": "attempt-title"},
    )  # fmt: skip


def _exchange(item: dict[str, Any], place: int) -> Any:
    status = item.get("status")
    said = (
        f"answered {status}"
        if status is not None
        else f"no answer: {item.get('error') or 'nothing came back'}"
    )
    good = status is not None and 200 <= int(status) < 300
    head = [
        html.Span("✓" if good else "✕", className="good" if good else "harm", **{"aria-hidden": "true"}),
        html.Code(f"{item.get('method')} {item.get('url')}"),
        html.Span(f"{said}, {item.get('took_ms', 0):,} ms"),
    ]
    folds = [
        _fold(label, item[key], f"exchange-{place}-{key}")
        for label, key in (("Sent", "sent"), ("Answer", "answer"))
        if item.get(key) not in (None, "", {})
    ]
    return html.Li([html.Div(head, className="exchange-head"), *folds], key=str(place))


def _fold(label: str, value: Any, identity: str) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    return html.Details([html.Summary(label), html.Pre(text, tabIndex="0")], className="fold", id=identity)
