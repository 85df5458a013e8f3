"""Bursts: the clusters, how much each can take, and what would change that."""

from __future__ import annotations

import re
from typing import Any

from dash import Dash

from frontend.components import states
from frontend.pages.bursts import actions, cluster, listing, simulator
from frontend.request import actor
from webapp.bursts import selectors

ADDRESS = "/bursts"
ONE = re.compile(r"^/bursts/(\d{1,18})/?$")
SIMULATOR = re.compile(r"^/bursts/(\d{1,18})/simulator/?$")


def page(path: str) -> Any:
    """The page of an address under this one."""
    if path.rstrip("/") == ADDRESS:
        return listing.layout()
    found = ONE.match(path) or SIMULATOR.match(path)
    known = selectors.cluster(actor(), int(found[1])) if found else None
    if found is None or known is None:
        return states.not_found("There is no such cluster, or you may not see it.")
    return cluster.layout(known) if ONE.match(path) else simulator.layout(known)


def register(app: Dash) -> None:
    """Callbacks of all its pages."""
    for part in (listing, cluster, actions, simulator):
        part.register(app)
