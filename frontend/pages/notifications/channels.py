"""Channels of a group: where its messages go besides mail, what became of each, and a test."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import PermissionDenied, ValidationError

from frontend import freshness, words
from frontend.components import facts, states
from frontend.components.facts import Cell
from frontend.pages.connections import parts
from frontend.request import person
from frontend.state import View
from webapp.accounts.models import User
from webapp.notifications import channels as services
from webapp.notifications.models import Channel, ChannelKind, DeliveryState, Message

FIELDS = {"kind": "Kind", "name": "Name", "address": "Address", "secret": "Secret"}
MOST_LOGGED = 10
COLUMNS = ("At", "Message", "State", "Answer", "Tries", "Took, ms")
SIGNS = {
    DeliveryState.DUE: "… waits", DeliveryState.SENDING: "… being sent", DeliveryState.SENT: "✓ arrived",
    DeliveryState.SKIPPED: "– skipped", DeliveryState.FAILED: "✕ given up",
}  # fmt: skip


def forms() -> list[Any]:
    """How to make one."""
    kinds = [{"value": kind.value, "label": kind.label} for kind in ChannelKind]
    select = partial(dmc.Select, allowDeselect=False)
    secret = dcc.Input(id="channel-secret", type="password", maxLength=200, autoComplete="off")
    return [
        html.Section(
            className="card connection-form",
            children=[
                html.H2("Make a channel"),
                html.P(
                    "A signed webhook needs an address and a secret (whsec_…), Slack its whole webhook address, "
                    "PagerDuty a routing key and no address, mail one or more addresses or none for all members "
                    "of the group. Secrets are stored encrypted and never shown again.",
                    className="muted",
                ),
                html.Div(
                    [
                        select(id="channel-group", label="Job group", data=[], value=None),
                        select(id="channel-kind", label="Kind", data=kinds, value="webhook"),
                        parts.field("Name", "channel-name", dcc.Input(id="channel-name", maxLength=100)),
                        parts.field(
                            "Address", "channel-address", dcc.Input(id="channel-address", maxLength=900)
                        ),
                        parts.field("Secret", "channel-secret", secret),
                        html.Button("Make the channel", id="channel-add", className="primary"),
                    ],
                    className="connection-fields",
                ),
                html.Div(id="channel-wrong", role="alert"),
            ],
            **{"aria-label": "Make a channel"},
        )
    ]


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The channels with their logs, read again."""
    view, rows = View.parse(query or ""), list(services.channels(person()))
    freshness.stamp()
    return [sentence(rows), *parts.changed("channel", drawn, _listed(rows, view))]


def fill(_id: str) -> list[Any]:
    """The groups to choose from."""
    groups = [
        {"value": str(group.pk), "label": group.name} for group in services.administered_groups(person())
    ]
    return [groups, groups[0]["value"] if groups else None]


def sentence(rows: Sequence[Channel]) -> str:
    """How many there are, and which fail."""
    if not rows:
        return "No channel yet. Only admins of a job group see and make its channels."
    failing = [row.name for row in rows if (last := _newest(row)) is not None and last.error]
    if not failing:
        return f"{words.count(len(rows), 'channel')}, none failing."
    return f"{words.count(len(rows), 'channel')}; the last message failed to {words.series(failing)}."


def _newest(row: Channel) -> Message | None:
    return row.messages.order_by("-id").first()


def _listed(rows: Sequence[Channel], view: View) -> Any:
    if not rows:
        return states.empty("No channel yet", html.P("Make one below, and send a test to it."))
    return html.Ul([_row(row, view) for row in rows], className="sources", **{"aria-label": "Channels"})


def _row(row: Channel, view: View) -> Any:
    log = list(row.messages.order_by("-id")[:MOST_LOGGED])
    name = f"{row.name} of {row.group.name}"
    shown: Any = html.P("Nothing was sent to it yet.", className="muted")
    if log:
        shown = facts.table(f"Messages to {name}", COLUMNS, [_line(one, view) for one in log], (0, 1, 2, 3))
    return html.Li(
        className="card source tokens",
        children=[
            html.Div(
                className="source-head",
                children=[
                    html.Strong(name),
                    html.Span(f"{ChannelKind(row.kind).label}, {row.place}", className="where"),
                    html.Div(
                        [
                            _button("Send a test", {"do": "test", "id": row.pk}, f"to {name}"),
                            _button(
                                "Remove…", {"do": "remove", "id": row.pk}, name,
                                "Nothing goes there any more, and its log is forgotten.",
                            ),
                        ],
                        className="tools",
                    ),
                ],
            ),
            *([html.P(waits, className="muted")] if (waits := _waits(row, view)) else []),
            shown,
        ],
    )  # fmt: skip


def _waits(row: Channel, view: View) -> str:
    """That nothing is tried now, and until when; "" if something is."""
    if row.not_before is None or not row.messages.filter(state=DeliveryState.DUE).exists():
        return ""
    often = f"{words.count(row.failures, 'time')} in a row" if row.failures > 1 else "the last time"
    return f"✕ Nothing was taken {often}: what waits is tried again from {parts.at(row.not_before, view)} on."


def _line(one: Message, view: View) -> list[Cell]:
    said = one.error or one.answer
    status = "" if one.status is None else f"{one.status}: "
    return [
        Cell(parts.at(one.created_at, view)),
        Cell(one.content.get("title", "")),
        Cell(SIGNS[DeliveryState(one.state)]),
        Cell(f"{status}{said}"[:200] or "–"),
        Cell(str(one.attempts)),
        Cell("–" if one.took_ms is None else f"{one.took_ms:,}"),
    ]


def _button(label: str, do: dict[str, Any], about: str, ask: str = "") -> Any:
    made = parts.button(label, do, about, ask)
    setattr(made, "data-part", "channel")
    return made


def add(
    _clicks: int | None, group: str | None, kind: str, name: str, address: str, secret: str, query: str
) -> list[Any]:  # fmt: skip
    """Make what the form says; the secret leaves the form."""
    who = person()
    try:
        chosen = services.administered_groups(who).filter(pk=int(group or 0)).first()
        if chosen is None:
            raise PermissionDenied("only an admin of the group may make channels")
        row = services.create_channel(
            who, chosen, kind=str(kind), name=str(name or ""), address=str(address or ""),
            secret=str(secret or ""),
        )  # fmt: skip
    except PermissionDenied as error:
        return [[html.P(f"{error}.".capitalize(), className="error")], "", no_update, no_update, no_update]
    except ValidationError as error:
        return [parts.mistakes(error, FIELDS), "", no_update, no_update, no_update]
    _drawn_anew(query)
    return [None, f"Made {row.name}. Send a test to see whether it works.", "", "", ""]


def act(asked: dict[str, Any] | None, query: str) -> Any:
    """Test or remove: what a button of the list sent."""
    if not asked:
        return no_update
    try:
        said = _acted(person(), str(asked.get("do")), int(asked["id"]))
    except Channel.DoesNotExist:
        said = "There is no such channel that you may change."
    _drawn_anew(query)
    return said


def _acted(who: User, do: str, pk: int) -> str:
    if do == "remove":
        services.remove_channel(who, pk)
        return "Removed."
    services.test_channel(who, pk)
    return "A test is on its way; its line below says what becomes of it."


def _drawn_anew(query: str) -> None:
    said, children, digest = refresh(query, 0, None)
    set_props("channel-said", {"children": said})
    set_props("channel-list", {"children": children})
    set_props("channel-drawn", {"data": digest})


def register(app: Dash) -> None:
    """Callbacks of this part."""
    app.callback(
        Output("channel-said", "children"), Output("channel-list", "children"), Output("channel-drawn", "data"),
        Input("url", "search"), Input("tick", "n_intervals"), State("channel-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("channel-group", "data"), Output("channel-group", "value"), Input("channel-group", "id")
    )(fill)
    app.callback(
        Output("channel-wrong", "children"), Output("channel-done", "children", allow_duplicate=True),
        Output("channel-name", "value"), Output("channel-address", "value"), Output("channel-secret", "value"),
        Input("channel-add", "n_clicks"), State("channel-group", "value"), State("channel-kind", "value"),
        State("channel-name", "value"), State("channel-address", "value"), State("channel-secret", "value"),
        State("url", "search"), running=[(Output("channel-add", "disabled"), True, False)],
        prevent_initial_call=True,
    )(add)  # fmt: skip
    app.callback(
        Output("channel-done", "children"), Input("channel-do", "data"), State("url", "search"),
        prevent_initial_call=True,
    )(act)  # fmt: skip
