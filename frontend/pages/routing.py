"""Which page an address means."""

from __future__ import annotations

import re
from typing import Any

from dash import Dash, Input, Output

from frontend.components import states, upload_parts
from frontend.pages import (
    audit,
    bursts,
    calibration,
    connections,
    inbox,
    job,
    notifications,
    overview,
    policy_lab,
    proposal,
    upload,
)
from frontend.request import actor, person
from webapp.analysis import selectors
from webapp.reconfigurations import selectors as reconfigurations
from webapp.telemetry.uploads import selectors as uploads

JOB = re.compile(r"^/jobs/(\d{1,18})/?$")


def register(app: Dash) -> None:
    """The callback that draws the page of an address."""
    app.callback(Output("page", "children"), Input("route", "data"), prevent_initial_call=True)(draw)


def draw(route: dict[str, str]) -> Any:
    """The page, with skeletons where its values will come."""
    path = route["path"]
    if path == "/":
        return overview.layout()
    if path.rstrip("/") == connections.ADDRESS:
        return connections.layout(route["tab"])
    if path.rstrip("/") == notifications.ADDRESS:
        return notifications.layout(route["tab"])
    if path.rstrip("/") == audit.ADDRESS:
        return audit.layout()
    if path.rstrip("/") == calibration.ADDRESS:
        return calibration.layout()
    if path.rstrip("/") == inbox.ADDRESS:
        return inbox.layout(route["tab"])
    if found := JOB.match(path):
        known = selectors.job(actor(), int(found[1]))
        if known is not None:
            return job.layout(known, route["tab"])
        return states.not_found(f"There is no job {found[1]}, or you may not see it.")
    if found := proposal.ADDRESS.match(path):
        if reconfigurations.proposal(person(), int(found[1])) is not None:
            return proposal.layout(int(found[1]))
        return states.not_found(f"There is no proposal {found[1]}, or you may not see it.")
    if path.startswith(bursts.ADDRESS):
        return bursts.page(path)
    if path.rstrip("/") == "/policy-lab":
        return policy_lab.layout()
    if path.rstrip("/") == "/upload":
        return upload.layout()
    if found := upload.ADDRESS.match(path):
        row = uploads.upload(actor(), int(found[1]))
        return upload.detail(row) if row is not None else upload_parts.gone(int(found[1]))
    return states.not_found(f"There is no page {path}.")
