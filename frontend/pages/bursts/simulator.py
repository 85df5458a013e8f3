"""Simulated bursts against five ways to route, for one cluster."""

from __future__ import annotations

from typing import Any

from dash import Dash, html

from webapp.bursts.models import Cluster


def layout(cluster: Cluster) -> Any:
    """The page before its values come."""
    return html.Div(html.H1(f"Simulated bursts of {cluster.name}"))


def register(app: Dash) -> None:
    """Callbacks of the page."""
