"""Tables of numbers that lead somewhere, and the buttons that change a question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

Changes = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Cell:
    """``shown`` on the page; ``raw`` in the table that is taken away, if that is something else."""

    shown: Any
    raw: str | float | None = None
    strong: bool = False


def link(words: Any, changes: Changes, title: str = "", kind: str = "") -> Any:
    """A button within a text that changes the address of the page."""
    more = {"title": title} if title else {}
    return html.Button(words, className=f"link {kind}".strip(), **{"data-set": json.dumps(changes)}, **more)


def to_window(words: Any, start_ns: int) -> Any:
    """Leads to the timeline of the window that starts there."""
    changes = {"tab": "timeline", "window": str(start_ns), "segment": None, "zoom": None}
    return link(words, changes, "Open this window's timeline", "when")


def to_segment(words: Any, start_ns: int, segment: str) -> Any:
    """Leads to a segment, as `frontend.place` writes it, in the timeline of the window that starts there."""
    changes = {"tab": "timeline", "window": str(start_ns), "segment": segment, "zoom": None}
    return link(words, changes, "Open it in its window's timeline", "when")


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], wordy: Sequence[int] = (0,)
) -> Any:
    """Rows with words in the ``wordy`` columns and numbers in the others; wide ones scroll by themselves."""
    head = html.Tr(
        [
            html.Th(column, scope="col", className="" if i in wordy else "number")
            for i, column in enumerate(columns)
        ]
    )
    body = [html.Tr([_cell(cell, i, i in wordy) for i, cell in enumerate(row)]) for row in rows]
    return html.Div(
        className="scroll",
        tabIndex="0",
        role="region",
        children=html.Table([html.Thead(head), html.Tbody(body)], className="facts"),
        **{"aria-label": caption},
    )


def _cell(cell: Cell, place: int, wordy: bool) -> Any:
    more = {} if cell.raw is None else {"data-raw": str(cell.raw)}
    if place == 0:
        return html.Th(cell.shown, scope="row", **more)
    kind = "" if wordy else "number"
    return html.Td(cell.shown, className=f"{kind} strong" if cell.strong else kind, **more)


def choice(label: str, options: Sequence[tuple[str, Changes, bool]]) -> Any:
    """Buttons of which one is pressed: ``(words, changes of the address, pressed)``."""
    buttons = [
        html.Button(
            words, className="tool", **{"data-set": json.dumps(changes), "aria-pressed": str(pressed).lower()}
        )
        for words, changes, pressed in options
    ]
    return html.Div(
        [html.Span(label, className="label"), *buttons],
        className="choices",
        role="group",
        **{"aria-label": label},
    )


def select(
    label: str,
    param: str,
    groups: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    chosen: str,
    clears: str = "",
) -> Any:
    """A list to choose from, in groups of ``(value, words)``; the choice is written to the address as ``param``.

    What else in the address it replaces is in ``clears``, words apart.
    """
    parts = []
    for group, options in groups:
        items = [html.Option(words, value=value, selected=value == chosen) for value, words in options]
        parts += [html.Optgroup(items, label=group)] if group else items
    return html.Label(
        [
            html.Span(label, className="label"),
            html.Select(parts, className="choose", **{"data-param": param, "data-clears": clears}),
        ],
        className="choices",
    )


def sheet(key: str, question: str) -> Any:
    """A panel without a chart: its question, what it rests on, and a table that can be taken away."""
    save = html.Button("CSV", className="tool", title="Save what is shown as a table", **{"data-act": "csv"})
    return html.Section(
        className="card panel sheet",
        id=f"panel-{key}",
        **{"data-file": f"weir-{key}", "aria-labelledby": f"title-{key}"},
        children=[
            html.Div(
                className="panel-head",
                children=[
                    html.Div(
                        [
                            html.H2(question, id=f"title-{key}"),
                            html.P("…", id=f"under-{key}", className="under"),
                        ]
                    ),
                    html.Div(save, className="tools"),
                ],
            ),
            html.Div(id=f"list-{key}", className="list"),
        ],
    )
