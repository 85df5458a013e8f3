"""What a panel shows instead of values: nothing yet, nothing at all, or what went wrong."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html


def skeleton(height_px: int) -> Any:
    """A place holder of the final height."""
    return dmc.Skeleton(height=height_px, radius="sm", className="skeleton", **{"aria-hidden": "true"})


def empty(title: str, *explanation: Any) -> Any:
    """What would be here, and how to get it."""
    return html.Div(className="state", children=[html.H2(title), *(html.Div(part) for part in explanation)])


def not_found(what: str) -> Any:
    """An address without a page."""
    return html.Div(
        className="state full",
        id="not-found",
        children=[
            html.H1("Not here"),
            html.P(what),
            html.P(html.A("Go to the overview", href="/", className="primary")),
        ],
    )
