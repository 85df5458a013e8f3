"""The frame that all pages share: navigation, freshness, time range, theme and person."""

from __future__ import annotations

import json
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from frontend.components import alarm
from frontend.components.proposals import deciding
from frontend.request import actor, csrf_token
from frontend.state import RANGE_LABELS

KEYS = (
    ("?", "this list"),
    ("/", "search"),
    ("g o", "go to the overview"),
    ("g i", "go to the inbox"),
    ("g c", "go to the calibration"),
    ("j k", "next, previous job or proposal"),
    ("Enter", "open"),
    ("n p", "next, previous critical segment of a timeline"),
    ("a r", "approve, reject: opens the dialog, decides nothing"),
    ("[ ]", "previous, next window of a timeline"),
    ("+ − 0", "zoom a timeline in, out, to the whole window"),
    ("← →", "earlier, later in a zoomed timeline"),
    ("Esc", "close, or drop the selection"),
)


def layout() -> Any:
    """The whole document, drawn once; pages come and go inside ``main``."""
    return dmc.MantineProvider(
        id="mantine",
        theme={"fontFamily": "inherit", "primaryColor": "blue"},
        children=[
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="route"),
            dcc.Store(id="screen"),
            dcc.Store(id="freshness"),
            dcc.Interval(id="tick", interval=2000, disabled=True),
            html.A("Skip to the page", href="#page", className="skip"),
            _bar(),
            html.Div(id="banner", className="banner", role="alert", hidden=True),
            *alarm.frame(),
            html.Main(id="page", className="page", tabIndex="-1"),
            _help(),
            *deciding.frame(),
        ],
    )


def _bar() -> Any:
    return html.Header(
        className="bar",
        children=[
            html.A("Weir", href="/", className="brand", **{"aria-label": "Weir, overview"}),
            html.Button(
                "Pages",
                id="pages",
                className="pages",
                **{"data-act": "pages", "aria-expanded": "false", "aria-controls": "nav"},
            ),
            html.Nav(
                id="nav",
                className="nav",
                children=[
                    html.A("Overview", href="/"),
                    alarm.nav_inbox(),
                    html.A("Bursts", href="/bursts"),
                    html.A("Policy lab", href="/policy-lab"),
                    html.A("Calibration", href="/calibration"),
                    html.A("Audit", href="/audit"),
                    html.A("Upload", href="/upload"),
                    html.A("Connections", href="/connections"),
                    html.A("Help", href="/help"),
                ],
                **{"aria-label": "Pages"},
            ),
            html.Div(
                className="bar-end",
                children=[_freshness(), _range_picker(), _theme_switch(), _help_button(), _person()],
            ),
        ],
    )


def _freshness() -> Any:
    return html.Div(
        className="freshness",
        children=[
            html.Span("reading …", id="stamp", className="stamp"),
            html.Button(
                id="pause",
                className="icon",
                title="Pause (or go on with) live refresh",
                **{"aria-label": "Pause live refresh", "aria-pressed": "false", "data-act": "pause"},
            ),
        ],
    )


def _set(label: str, changes: dict[str, str | None], **more: Any) -> Any:
    """A button that changes the address."""
    return html.Button(label, className="item", **{"data-set": json.dumps(changes)}, **more)


def _range_picker() -> Any:
    relative = [
        _set(f"Last {label}", {"range": key, "from": None, "to": None, "live": None})
        for key, label in RANGE_LABELS.items()
    ]
    moments = [
        html.Label(
            [
                word,
                dcc.Input(id=f"range-{key}", type="text", placeholder="2026-01-31 14:03:00", debounce=True),
            ]
        )
        for key, word in (("from", "From"), ("to", "To"))
    ]
    return html.Details(
        className="popover",
        id="range-picker",
        children=[
            html.Summary(html.Span("last 15 min", id="range-label"), title="Time range and zone"),
            html.Div(
                className="popover-body",
                children=[
                    html.Div(relative, className="items"),
                    html.Div(
                        [
                            *moments,
                            html.P("", id="range-error", className="error", role="alert"),
                            html.Button("Show this range", className="primary", **{"data-act": "range"}),
                        ],
                        className="moments",
                    ),
                    html.Div(
                        [
                            _set("Times in UTC", {"zone": None}),
                            html.Button(
                                "Times in my zone",
                                className="item",
                                **{"data-act": "local-zone"},
                                id="zone-local",
                            ),
                        ],
                        className="items",
                    ),
                ],
            ),
        ],
    )


def _theme_switch() -> Any:
    return html.Button(
        id="theme",
        className="icon",
        title="Light or dark",
        **{"aria-label": "Switch between light and dark", "data-act": "theme"},
    )


def _help_button() -> Any:
    return html.Button(
        "?", className="icon wide-only", title="Keys", **{"aria-label": "Keyboard help", "data-act": "help"}
    )


def _person() -> Any:
    person = actor()
    name = person.get_username() if person.is_authenticated else ""
    return html.Details(
        className="popover",
        id="person",
        children=[
            html.Summary(html.Span(name, className="person-name"), title=f"Signed in as {name}"),
            html.Div(
                className="popover-body narrow",
                children=[
                    html.P(["Signed in as ", html.Strong(name)]),
                    html.A("My notifications", href="/notifications"),
                    html.Form(
                        action="/sign-out",
                        method="POST",
                        children=[
                            dcc.Input(type="hidden", name="csrfmiddlewaretoken", value=csrf_token()),
                            html.Button("Sign out", type="submit", className="primary", id="sign-out"),
                        ],
                    ),
                ],
            ),
        ],
    )


def _help() -> Any:
    rows = [html.Tr([html.Td(html.Kbd(key)), html.Td(what)]) for key, what in KEYS]
    return dmc.Modal(
        id="help",
        title="Keys",
        opened=False,
        closeButtonProps={"aria-label": "Close"},
        children=html.Table(html.Tbody(rows), className="keys"),
    )


def register(app: Dash) -> None:
    """Callbacks of the frame; all of them run in the browser (``assets/``)."""
    app.clientside_callback(
        ClientsideFunction("weir", "route"),
        Output("route", "data"),
        Output("screen", "data"),
        Output("mantine", "forceColorScheme"),
        Input("url", "pathname"),
        Input("url", "search"),
        State("route", "data"),
        State("screen", "data"),
    )
    app.clientside_callback(ClientsideFunction("weir", "fresh"), Input("freshness", "data"))
