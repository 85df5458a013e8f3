"""What was sent with a person's tokens and not stored: when, what, why, and its first bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, html
from django.core.exceptions import PermissionDenied

from frontend import freshness, words
from frontend.components import states
from frontend.pages.connections import parts
from frontend.request import actor
from frontend.state import View, integer, parameter
from webapp.accounts.models import User
from webapp.telemetry.models import Refused
from webapp.telemetry.quarantine import EVERY_S, refused_to

PAGE_ROWS = 50
LONGEST_CUT = 3
"""Bytes of a character of UTF-8 that the end of the first bytes may have cut off."""

HEX_WIDTH = 16


def form() -> list[Any]:
    """What stands above the list."""
    says = f"Of refusals that are alike, one in {EVERY_S} s is kept, with the first bytes of what was sent."
    return [html.P(says, className="muted")]


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The list, read again."""
    view = View.parse(query or "")
    person = actor()
    if not isinstance(person, User):
        raise PermissionDenied("sign in to see what was refused")
    before = integer(parameter(query or "", "before"))
    rows = refused_to(person)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.select_related("owner").order_by("-pk")[: PAGE_ROWS + 1])
    freshness.stamp()
    parts.say(_sentence(found, before is not None, view))
    return parts.changed("refused", drawn, _listed(found, before is not None, view))


def _sentence(found: Sequence[Refused], later: bool, view: View) -> str:
    if not found:
        return "Nothing more was refused." if later else "Nothing that your tokens sent was refused."
    if later:
        return f"Refused before {parts.at(found[0].at, view)}."
    newest = found[0]
    why = newest.reason.rstrip(".")
    return f"Last refused at {parts.at(newest.at, view)}, sent with {newest.token_name}: {why}."


def _listed(found: Sequence[Refused], later: bool, view: View) -> Any:
    if not found:
        return states.empty(
            "Nothing here",
            html.P(
                "What programs send with your tokens and Weir cannot store appears here, with the reason."
            ),
        )
    more = found[PAGE_ROWS - 1].pk if len(found) > PAGE_ROWS else None
    return html.Div(
        [
            html.Ul([_row(item, view) for item in found[:PAGE_ROWS]], className="sources"),
            html.Nav(_turns(more, later), className="pager", **{"aria-label": "Pages"}),
        ]
    )


def _turns(more: int | None, later: bool) -> list[Any]:
    turns: list[tuple[str, str | None]] = [("‹ Newest", None)] if later else []
    turns += [("Older ›", str(more))] if more is not None else []
    return [
        html.Button(label, className="tool", **{"data-set": json.dumps({"before": before})})
        for label, before in turns
    ]


def _row(item: Refused, view: View) -> Any:
    of = f" of job {item.job_name}" if item.job_name else ""
    first = bytes(item.first_bytes)
    shown = f"First {words.count(len(first), 'byte')} of {item.size_bytes:,}"
    return html.Li(
        [
            html.Div(
                [
                    html.Strong(parts.at(item.at, view)),
                    html.Span(f"{item.kind}{of}, sent with {item.token_name} by {item.owner.get_username()}"),
                    html.Code(item.code),
                ],
                className="source-head",
            ),
            html.P(item.reason, className="reason"),
            html.Details(
                [html.Summary(shown), html.Pre(readable(first), tabIndex="0")], id=f"first-bytes-{item.pk}"
            )
            if first
            else None,
        ],
        className="card source",
        key=str(item.pk),
    )


def readable(data: bytes) -> str:
    """Bytes as text if that is what they are, else as hexadecimal with what is printable beside it."""
    for cut in range(min(LONGEST_CUT, len(data)) + 1):
        try:
            text = data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
        if all(char.isprintable() or char in "\n\r\t" for char in text):
            return text
        break
    rows = range(0, len(data), HEX_WIDTH)
    return "\n".join(_hex_row(at, data[at : at + HEX_WIDTH]) for at in rows)


def _hex_row(at: int, part: bytes) -> str:
    plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
    return f"{at:04x}  {part.hex(' '):<{3 * HEX_WIDTH}} {plain}"


def register(app: Dash) -> None:
    """Callbacks of this part."""
    app.callback(
        Output("refused-list", "children"), Output("refused-drawn", "data"), Input("url", "search"),
        Input("tick", "n_intervals"), State("refused-drawn", "data"),
    )(refresh)  # fmt: skip
