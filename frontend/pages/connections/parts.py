"""What the parts of the page share: times, buttons that do something, and the question before harm."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from dash import html, no_update, set_props
from django.core.exceptions import ValidationError
from django.utils import timezone

from frontend.state import View


def at(when: datetime | None, view: View) -> str:
    """A time in the reader's zone, with its day unless that is today."""
    if when is None:
        return "never"
    here, today = when.astimezone(view.zone), timezone.now().astimezone(view.zone)
    pattern = "%H:%M:%S" if here.date() == today.date() else "%Y-%m-%d %H:%M"
    return f"{here:{pattern}} {view.zone_label}"


def button(label: str, do: dict[str, Any], about: str, ask: str = "") -> Any:
    """A button that sends ``do`` to its callback; with ``ask``, only after that question was answered with yes."""
    more = {"data-ask": ask} if ask else {}
    words = {"aria-label": f"{label.rstrip('…')} {about}"}
    return html.Button(label, className="tool", **{"data-do": json.dumps(do)}, **more, **words)


def dialog() -> Any:
    """The question before something that cannot be undone; filled in by the button that asks it."""
    return html.Dialog(
        id="ask",
        className="ask card",
        **{"aria-labelledby": "ask-title"},
        children=[
            html.H2("…", id="ask-title"),
            html.P("…", id="ask-words"),
            html.Div(
                [
                    html.Button("Leave it", className="tool", **{"data-act": "ask-no"}),
                    html.Button("…", id="ask-yes", className="primary harmful", **{"data-act": "ask-yes"}),
                ],
                className="ask-buttons",
            ),
        ],
    )


def changed(part: str, drawn: str | None, children: Any) -> list[Any]:
    """The list and its digest, or nothing if it is drawn already: focus and open details stay."""
    digest = hashlib.blake2b(repr(children).encode(), digest_size=12).hexdigest()
    return [no_update, no_update] if digest == drawn else [children, digest]


def say(sentence: str) -> None:
    """From a callback: the first line of the page."""
    set_props("connections-said", {"children": sentence})


def told(error: ValidationError) -> list[tuple[str, str]]:
    """Field and line of every mistake."""
    if hasattr(error, "error_dict"):
        return [(field, line) for field, lines in error.message_dict.items() for line in lines]
    return [("", line) for line in error.messages]


def mistakes(error: ValidationError, names: dict[str, str]) -> Any:
    """The mistakes of a form, a line each, by the words that stand beside the fields."""
    lines = [(names.get(field, field), line) for field, line in told(error)]
    return [html.P(f"{name}: {line}." if name else f"{line}.", className="error") for name, line in lines]


def field(label: str, name: str, control: Any, hint: str = "", **more: Any) -> Any:
    """A labelled input."""
    parts = [html.Label(label, htmlFor=name), control]
    if hint:
        parts.append(html.P(hint, className="hint muted"))
    return html.Div(parts, className="field", **more)
