"""My digests: the list of subscriptions, and the forms that add one and say where mails go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import PermissionDenied, ValidationError

from frontend import freshness, words
from frontend.components import states
from frontend.pages.connections import parts
from frontend.request import person
from frontend.state import View
from webapp.accounts.models import User
from webapp.notifications import selectors, services
from webapp.notifications.models import WEEKDAYS, Subscription
from webapp.notifications.policies import groups_of
from webapp.notifications.selectors import Backlog

FIELDS = {"rhythm": "How often", "hour": "Hour", "weekday": "Day", "zone": "Time zone"}
ALL_JOBS = "0"


def forms() -> list[Any]:
    """How to add one, and where mails go."""
    hours = [{"value": str(hour), "label": f"{hour:02d}:00"} for hour in range(24)]
    days = [{"value": str(place), "label": day} for place, day in enumerate(WEEKDAYS)]
    often = [{"value": "daily", "label": "every day"}, {"value": "weekly", "label": "every week"}]
    select = partial(dmc.Select, allowDeselect=False)
    return [
        html.Section(
            className="card connection-form",
            children=[
                html.H2("Get a digest"),
                html.P(
                    "A mail at your hour: decisions that wait for you, what came of changes, limiters that moved, "
                    "jobs without data.",
                    className="muted",
                ),
                html.Div(
                    [
                        select(id="notify-group", label="About", data=[], value=ALL_JOBS),
                        select(id="notify-rhythm", label="How often", data=often, value="daily"),
                        select(id="notify-weekday", label="Day, if every week", data=days, value="0"),
                        select(id="notify-hour", label="Hour", data=hours, value="7"),
                        parts.field("Time zone", "notify-zone", dcc.Input(id="notify-zone", maxLength=60)),
                        dmc.Checkbox(id="notify-only", label="Only if something happened", checked=True),
                        html.Button("Subscribe", id="notify-add", className="primary"),
                    ],
                    className="connection-fields",
                ),
                html.Div(id="notify-wrong", role="alert"),
            ],
            **{"aria-label": "Get a digest"},
        ),
        html.Section(
            className="card connection-form",
            children=[
                html.H2("Where mails go"),
                html.Div(
                    [
                        parts.field(
                            "Your mail address",
                            "notify-address",
                            dcc.Input(id="notify-address", maxLength=254),
                        ),
                        html.Button("Save", id="notify-save", className="primary"),
                    ],
                    className="connection-fields",
                ),
                html.Div(id="notify-address-wrong", role="alert"),
            ],
            **{"aria-label": "Where mails go"},
        ),
    ]


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The list and the sentence, read again."""
    view, who = View.parse(query or ""), person()
    rows = list(selectors.subscriptions(who))
    freshness.stamp()
    return [
        sentence(rows, selectors.backlog(who), view),
        *parts.changed("notify", drawn, _listed(rows, view)),
    ]


def fill(_drawn: str, query: str, zone: str | None) -> list[Any]:
    """What the forms begin with."""
    who = person()
    groups = [{"value": ALL_JOBS, "label": "all jobs I may see"}]
    groups += [{"value": str(group.pk), "label": group.name} for group in groups_of(who)]
    return [groups, zone or View.parse(query or "").zone.key, who.email]


def sentence(rows: Sequence[Subscription], backlog: Backlog, view: View) -> str:
    """When the next comes, and what has not arrived."""
    live = [row for row in rows if row.active]
    said = "You get no digest."
    if live:
        following = min(live, key=lambda row: row.next_due_at)
        said = f"Your next digest is due {_at(following.next_due_at, view)}."
    if backlog.waiting or backlog.given_up:
        late = [words.count(backlog.waiting, "mail") + " not delivered yet"] if backlog.waiting else []
        late += [words.count(backlog.given_up, "mail") + " given up"] if backlog.given_up else []
        said += f" {words.series(late)}."
    carrier = backlog.carrier
    if carrier is not None and carrier.failures:
        said += f" {carrier.error[:1].upper()}{carrier.error[1:]}; next try {_at(carrier.not_before, view)}."
    return said


def _at(when: Any, view: View) -> str:
    if when is None:
        return "soon"
    return f"{when.astimezone(view.zone):%a %d %b %H:%M} {view.zone_label}"


def _listed(rows: Sequence[Subscription], view: View) -> Any:
    if not rows:
        return states.empty(
            "No digest yet", html.P("Subscribe below: the first comes at the next full hour you choose.")
        )
    return html.Ul([_row(row, view) for row in rows], className="sources", **{"aria-label": "Your digests"})


def _row(row: Subscription, view: View) -> Any:
    about = row.group.name if row.group else "all jobs"
    name = f"{row.rhythm} digest of {about}"
    when = f"every {WEEKDAYS[row.weekday]}" if row.rhythm == "weekly" else "every day"
    only = "only if something happened" if row.only_if_something else "also if nothing happened"
    state = f"Next {_at(row.next_due_at, view)}." if row.active else "Paused: nothing is sent."
    toggle = (
        ("Pause", {"do": "pause", "id": row.pk}) if row.active else ("Resume", {"do": "resume", "id": row.pk})
    )
    preview = {"tab": "preview", "subscription": str(row.pk)}
    return html.Li(
        className="card source",
        children=[
            html.Div(
                className="source-head",
                children=[
                    html.Strong(f"{name[0].upper()}{name[1:]}"),
                    html.Span(f"{when} at {row.hour:02d}:00 {row.zone}, {only}", className="where"),
                    html.Div(
                        [
                            html.Button(
                                "Preview", className="tool",
                                **{"data-set": json.dumps(preview), "aria-label": f"Preview {name}"},
                            ),
                            _button(toggle[0], toggle[1], name),
                            _button(
                                "Remove…", {"do": "remove", "id": row.pk}, name,
                                "The digest ends, and its history is forgotten.",
                            ),
                        ],
                        className="tools",
                    ),
                ],
            ),
            html.P(state, className="muted"),
        ],
    )  # fmt: skip


def _button(label: str, do: dict[str, Any], about: str, ask: str = "") -> Any:
    made = parts.button(label, do, about, ask)
    setattr(made, "data-part", "notify")
    return made


def add(
    _clicks: int | None, group: str, rhythm: str, weekday: str, hour: str, zone: str, only: bool, query: str
) -> list[Any]:  # fmt: skip
    """Subscribe as the form says."""
    who = person()
    try:
        chosen = None if str(group) == ALL_JOBS else groups_of(who).filter(pk=int(group)).first()
        if chosen is None and str(group) != ALL_JOBS:
            raise PermissionDenied("you are not in this job group")
        row = services.subscribe(
            who, chosen, rhythm=str(rhythm), hour=int(hour), weekday=int(weekday),
            zone=str(zone or "").strip(), only_if_something=bool(only),
        )  # fmt: skip
    except ValidationError as error:
        return [parts.mistakes(error, FIELDS), ""]
    except ValueError:
        return [[html.P("Choose from the lists.", className="error")], ""]
    _drawn_anew(query)
    view = View.parse(query or "")
    return [None, f"Subscribed: the first {row.rhythm} digest is due {_at(row.next_due_at, view)}."]


def save_address(_clicks: int | None, _enter: int | None, address: str) -> list[Any]:
    """Keep the address."""
    try:
        services.set_address(person(), str(address or ""))
    except ValidationError as error:
        return [parts.mistakes(error, {}), no_update]
    return [None, "Your mails go to this address from now on."]


def act(asked: dict[str, Any] | None, query: str) -> Any:
    """Pause, resume or remove: what a button of the list sent."""
    if not asked:
        return no_update
    who = person()
    try:
        said = _acted(who, str(asked.get("do")), int(asked["id"]))
    except Subscription.DoesNotExist:
        said = "You have no such digest any more."
    _drawn_anew(query)
    return said


def _acted(who: User, do: str, pk: int) -> str:
    if do == "remove":
        services.remove(who, pk)
        return "Removed."
    services.change(who, pk, active=do == "resume")
    return "Resumed." if do == "resume" else "Paused: nothing is sent until you resume it."


def _drawn_anew(query: str) -> None:
    said, children, digest = refresh(query, 0, None)
    set_props("notify-said", {"children": said})
    set_props("notify-list", {"children": children})
    set_props("notify-drawn", {"data": digest})


def register(app: Dash) -> None:
    """Callbacks of this part."""
    app.callback(
        Output("notify-said", "children"), Output("notify-list", "children"), Output("notify-drawn", "data"),
        Input("url", "search"), Input("tick", "n_intervals"), State("notify-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("notify-group", "data"), Output("notify-zone", "value"), Output("notify-address", "value"),
        Input("notify-group", "id"), State("url", "search"), State("notify-zone", "value"),
    )(fill)  # fmt: skip
    app.callback(
        Output("notify-wrong", "children"), Output("notify-done", "children", allow_duplicate=True),
        Input("notify-add", "n_clicks"), State("notify-group", "value"), State("notify-rhythm", "value"),
        State("notify-weekday", "value"), State("notify-hour", "value"), State("notify-zone", "value"),
        State("notify-only", "checked"), State("url", "search"),
        running=[(Output("notify-add", "disabled"), True, False)], prevent_initial_call=True,
    )(add)  # fmt: skip
    app.callback(
        Output("notify-address-wrong", "children"), Output("notify-done", "children", allow_duplicate=True),
        Input("notify-save", "n_clicks"), Input("notify-address", "n_submit"), State("notify-address", "value"),
        prevent_initial_call=True,
    )(save_address)  # fmt: skip
    app.callback(
        Output("notify-done", "children"), Input("notify-do", "data"), State("url", "search"),
        prevent_initial_call=True,
    )(act)  # fmt: skip
