"""Uploading a trace: choosing a file, what was understood of it, and the way to its results."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update, set_props
from django.conf import settings

from frontend import freshness
from frontend.components import states, upload_parts
from frontend.request import actor
from frontend.state import View
from webapp.telemetry.uploads import selectors, services
from webapp.telemetry.uploads.models import UNDER_WAY, Upload, UploadState
from webapp.telemetry.uploads.problems import UploadError

ADDRESS = re.compile(r"^/upload/(\d{1,9})/?$")
BEAT_MS = 1000
ROWS_PX = 180


def layout() -> Any:
    """The page to choose a file on, with the recent uploads under it."""
    return html.Div(
        className="uploads",
        children=[
            html.Div(html.H1("Upload a trace"), className="page-head"),
            _chooser(),
            html.Section(
                className="card",
                children=[
                    html.Div(
                        [html.H2("Recent uploads", id="uploads-title"), html.Div(id="uploads-whose")],
                        className="panel-head",
                    ),
                    html.Div(states.skeleton(ROWS_PX), id="uploads-list"),
                ],
                **{"aria-labelledby": "uploads-title"},
            ),
            *_beat(),
        ],
    )


def detail(row: Upload) -> Any:
    """The page of one upload."""
    return html.Div(
        className="uploads",
        children=[
            html.Div(
                className="page-head",
                children=[
                    html.H1(row.name, title=row.name, id="upload-name"),
                    html.A("All uploads", href="/upload"),
                ],
            ),
            html.P("…", id="upload-says", className="sentence", role="status"),
            html.Div(id="upload-progress"),
            html.P("", id="upload-problem", className="error", role="alert"),
            html.Div(_store_form(row), id="upload-store", hidden=True),
            html.Div(_again_form(), id="upload-again", hidden=True),
            html.Div(states.skeleton(240), id="upload-found"),
            dcc.Store(id="upload-shown"),
            *_beat(),
        ],
    )


def _beat() -> list[Any]:
    """A clock of its own: the frame's stands still while a fixed range is shown."""
    return [dcc.Interval(id="upload-tick", interval=BEAT_MS), dcc.Store(id="upload-beat", data=0)]


def _chooser() -> Any:
    limit = settings.WEIR_UPLOAD_MAX_BYTES
    return html.Section(
        className="card chooser",
        id="upload-chooser",
        **{"data-max-bytes": str(limit), "aria-labelledby": "chooser-title"},
        children=[
            html.H2("See what limits a job you have a trace of", id="chooser-title"),
            html.P(
                ["Nothing is stored before you say so. ", html.A("What can be read", href="/help/guide.md")],
                className="muted",
            ),
            # The field itself is made by assets/6_upload.js, since Dash has none that leaves the file on disk.
            html.Div(id="upload-drop", className="drop"),
            dcc.Store(id="upload-head"),
            html.Div(
                className="fields",
                children=[
                    html.Label(["Format", html.Select(_options(""), id="upload-format")]),
                    html.Label(
                        ["Job", dcc.Input(id="upload-job", type="text", maxLength=services.MAX_JOB_NAME)]
                    ),
                    html.Button(
                        "Upload",
                        id="upload-send",
                        className="primary",
                        disabled=True,
                        **{"data-act": "upload"},
                    ),
                ],
            ),
            html.P("Choose a file first.", id="upload-guess", className="muted", **{"aria-live": "polite"}),
            html.Div(
                className="transfer",
                id="upload-transfer",
                hidden=True,
                children=[
                    html.Progress(id="upload-bar", max="100", value="0", **{"aria-label": "sent so far"}),
                    html.Span("", id="upload-sent", className="number"),
                    html.Button("Cancel", className="tool", **{"data-act": "upload-cancel"}),
                ],
            ),
            html.P("", id="upload-error", className="error", role="alert"),
        ],
    )


def _options(chosen: str) -> list[Any]:
    options = [] if chosen else [html.Option("Choose …", value="")]
    return options + [
        html.Option(label, value=name, **({"selected": "selected"} if name == chosen else {}))
        for name, label in selectors.formats()
    ]


def _store_form(row: Upload) -> Any:
    return html.Section(
        className="card fields",
        children=[
            html.Label(
                [
                    "Store as job",
                    dcc.Input(
                        id="store-job", type="text", value=row.job_name, maxLength=services.MAX_JOB_NAME,
                        debounce=False,
                    ),
                ]
            ),
            html.Button("Store", id="store-do", className="primary"),
            html.Button("Discard", id="store-discard", className="item"),
            html.P("", id="store-note", className="muted"),
        ],
        **{"aria-label": "Store this trace"},
    )  # fmt: skip


def _again_form() -> Any:
    buttons = [
        html.Button(label, id=f"again-{name}", className="item") for name, label in selectors.formats()
    ]
    return html.Section(
        className="card",
        children=[
            html.H2("Read it again as"),
            html.Div(
                [*buttons, html.Button("Discard", id="again-discard", className="item")], className="formats"
            ),
        ],
        **{"aria-label": "Read this file as another format"},
    )


def register(app: Dash) -> None:
    """Callbacks of both pages."""
    again = [f"again-{name}" for name, _ in selectors.formats()]
    app.clientside_callback(
        ClientsideFunction("weir", "beat"),
        Output("upload-beat", "data"),
        Input("upload-tick", "n_intervals"),
    )
    app.callback(Output("upload-guess", "children"), Input("upload-head", "data"), prevent_initial_call=True)(
        guess
    )
    app.callback(
        Output("uploads-list", "children"), Output("uploads-whose", "children"),
        Input("upload-beat", "data"), Input("url", "search"), State("uploads-list", "id"),
    )(recent)  # fmt: skip
    app.callback(
        Output("upload-shown", "data"),
        Input("upload-beat", "data"), Input("upload-shown", "id"),
        State("url", "pathname"), State("url", "search"), State("upload-shown", "data"),
    )(follow)  # fmt: skip
    app.callback(
        Output("upload-problem", "children"),
        *(Input(button, "n_clicks") for button in ("store-do", "store-discard", "again-discard", *again)),
        State("url", "pathname"), State("store-job", "value"),
        prevent_initial_call=True,
    )(act)  # fmt: skip
    app.callback(
        Output("store-note", "children"), Output("store-do", "children"), Input("store-job", "value"),
    )(note)  # fmt: skip


def guess(head: dict[str, Any] | None) -> Any:
    """What the first bytes of the chosen file look like; the browser sets the format by it."""
    if not head:
        return no_update
    try:
        first = base64.b64decode(str(head.get("bytes", ""))[:40_000])
    except (binascii.Error, ValueError):
        first = b""
    name = str(head.get("name", ""))[:300]
    found = services.guess(name, first)
    set_props("upload-job", {"value": services.name_of_file(name)})
    labels = dict(selectors.formats())
    if not found:
        return "Cannot tell what kind of file this is: choose its format."
    return [html.Span(f"Looks like {labels[found]}.", **{"data-guess": found}, id="upload-guessed")]


def recent(_beat: int, query: str, _id: str) -> list[Any]:
    """The list, and whose uploads it has."""
    person, view = actor(), View.parse(query or "")
    everybody = view.show == "all"
    rows = selectors.recent(person, everybody=everybody)
    freshness.stamp()
    may_choose = getattr(person, "is_superuser", False)
    return [upload_parts.table(rows, view, everybody), upload_parts.whose(everybody) if may_choose else None]


def follow(_beat: int, _id: str, path: str, query: str, shown: dict[str, Any] | None) -> Any:
    """How far the upload is. Only what changed is drawn again, so that nobody loses what they are typing."""
    row = selectors.upload(actor(), number(path))
    if row is None:
        set_props("upload-says", {"children": "This upload was discarded."})
        for part in ("upload-store", "upload-again"):
            set_props(part, {"hidden": True})
        set_props("upload-found", {"children": None})
        set_props("upload-tick", {"disabled": True})
        return no_update
    result, view = selectors.result(row), View.parse(query or "")
    set_props("upload-says", {"children": upload_parts.sentence(row, result)})
    set_props("upload-progress", {"children": upload_parts.progress(row, result)})
    own = row.owner_id == actor().pk
    storable = row.state == UploadState.UNDERSTOOD or (row.state == UploadState.FAILED and row.preview)
    set_props("upload-store", {"hidden": not (own and storable)})
    set_props("upload-again", {"hidden": not (own and row.state == UploadState.REFUSED)})
    over = row.state not in UNDER_WAY and (result is None or result.is_analysed)
    set_props("upload-tick", {"interval": BEAT_MS * 5 if over else BEAT_MS})
    freshness.stamp()
    drawn = {"state": row.state, "zone": view.zone_label}
    if shown == drawn:
        return no_update
    set_props("upload-found", {"children": upload_parts.found(row, view)})
    if row.state == UploadState.UNDERSTOOD:
        set_props("store-job", {"value": row.job_name})
    return drawn


def act(*given: Any) -> str:
    """Store, read again or discard, as the API does; what is wrong is said under the sentence."""
    if not ctx.triggered or not ctx.triggered[0]["value"]:
        return ""
    path, job = given[-2:]
    person, upload_id = actor(), number(path)
    try:
        match ctx.triggered_id:
            case "store-do":
                services.store_upload(person, upload_id, job or "")
            case "store-discard" | "again-discard":
                services.discard_upload(person, upload_id)
            case str(button):
                services.read_as(person, upload_id, button.removeprefix("again-"))
    except UploadError as error:
        text = str(error)
        return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
    except Upload.DoesNotExist:
        return "You have no such upload."
    set_props("upload-beat", {"data": freshness.now_ns() // 1_000_000})
    return ""


def note(job: str | None) -> tuple[str, str]:
    """What storing under this name means."""
    name = " ".join((job or "").split())
    if not name:
        return "Give the job a name.", "Store"
    known = selectors.known_job(actor(), name)
    if known:
        return f"The job {name} exists: the records are added to it.", f"Add to {name}"
    return "A new job is made.", f"Store as {name}"


def number(path: str) -> int:
    """The upload of an address; 0, which is none, for others."""
    found = ADDRESS.match(path or "")
    return int(found[1]) if found else 0
