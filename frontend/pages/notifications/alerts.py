"""Alerts: what fires now, what somebody looks after, what is silenced, the rules, and what fired before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils import timezone

from frontend import freshness, words
from frontend.components import facts, states
from frontend.components.facts import Cell
from frontend.pages.connections import parts
from frontend.pages.notifications import alert_forms
from frontend.request import person
from frontend.state import View
from webapp.accounts.models import User
from webapp.jobs.models import Role
from webapp.notifications import alert_selectors, alert_services
from webapp.notifications.alert_models import Alert, AlertRule, Severity, Silence
from webapp.notifications.alert_words import condition, state_of, value

MOST_PAST = 20
COLUMNS = ("Fired", "Alert", "Over", "Worst", "Looked after by")
MARKS = {Severity.CRITICAL: "▼ critical", Severity.WARNING: "! warning", Severity.INFO: "• info"}
forms = alert_forms.forms


@dataclass(frozen=True, slots=True)
class Shown:
    """What the list is made of, as this person may see it."""

    firing: list[Alert]
    rules: list[AlertRule]
    silences: list[Silence]
    past: list[Alert]
    roles: dict[int, Role]

    def may(self, group_id: int, least: Role) -> bool:
        """Whether the person has this role in the group."""
        role = self.roles.get(group_id)
        return role is not None and role.rank >= least.rank


def read(who: User) -> Shown:
    """Everything at one moment."""
    now = timezone.now()
    past = alert_selectors.alerts(who).filter(resolved_at__isnull=False)
    return Shown(
        list(alert_selectors.firing(who, now)),
        list(alert_selectors.rules(who)),
        list(alert_selectors.silences(who, now)),
        list(past[:MOST_PAST]),
        alert_selectors.roles(who),
    )


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The sentence and the list, read again."""
    view, shown = View.parse(query or ""), read(person())
    freshness.stamp()
    return [sentence(shown, view), *parts.changed("alert", drawn, _listed(shown, view))]


def sentence(shown: Shown, view: View) -> str:
    """What somebody who was woken up must know first."""
    if not shown.roles:
        return "You are in no job group: alerts belong to groups."
    if not shown.rules:
        return "No rule watches anything yet."
    if not shown.firing:
        return f"Nothing fires. {words.count(len(shown.rules), 'rule')} {_verb(len(shown.rules), 'watch')}."
    first = shown.firing[0]
    fire = f"{words.count(len(shown.firing), 'alert')} {_verb(len(shown.firing), 'fire')}"
    said = [f"{fire}, the oldest since {parts.at(first.fired_at, view)}"]
    quiet = sum(_silenced(row) for row in shown.firing)
    taken = sum(not _silenced(row) and row.acknowledged_at is not None for row in shown.firing)
    said += [f"{taken} acknowledged"] if taken else []
    said += [f"{quiet} silenced"] if quiet else []
    return f"{'; '.join(said)}."


def _verb(number: int, verb: str) -> str:
    if number != 1:
        return verb
    return f"{verb}es" if verb.endswith("ch") else f"{verb}s"


def _silenced(row: Alert) -> bool:
    return bool(getattr(row, "silenced", False))


def _listed(shown: Shown, view: View) -> Any:
    if not shown.roles:
        return states.empty("No alerts for you", html.P("Somebody must first take you into a job group."))
    new = [row for row in shown.firing if not _silenced(row) and row.acknowledged_at is None]
    taken = [row for row in shown.firing if not _silenced(row) and row.acknowledged_at is not None]
    quiet = [row for row in shown.firing if _silenced(row)]
    found = [_section("Fires now", "firing", [_alert(row, shown, view) for row in new], "Nothing.")]
    if taken:
        cards = [_alert(row, shown, view) for row in taken]
        found.append(_section("Somebody looks after it", "acknowledged", cards, ""))
    if quiet:
        cards = [_alert(row, shown, view) for row in quiet]
        found.append(_section("Fires, silenced", "silenced", cards, ""))
    if shown.silences:
        cards = [_silence(row, shown, view) for row in shown.silences]
        found.append(_section("Silences", "silences", cards, ""))
    none = "No rule yet. An admin of a job group makes the first below, and sees when it would have fired."
    found.append(_section("Rules", "rules", [_rule(row, shown, view) for row in shown.rules], none))
    if shown.past:
        found.append(_past(shown.past, view))
    return html.Div(found, className="alerts")


def _section(title: str, name: str, cards: Sequence[Any], none: str) -> Any:
    inner: Any = html.P(none, className="muted")
    if cards:
        inner = html.Ul(list(cards), className="sources", **{"aria-labelledby": f"alerts-{name}"})
    count = f" ({len(cards)})" if cards else ""
    return html.Section([html.H2(f"{title}{count}", id=f"alerts-{name}"), inner])


def _alert(row: Alert, shown: Shown, view: View) -> Any:
    name = f"{row.rule.name}: {row.subject_name}"
    state = state_of(row)
    lines = [f"Since {parts.at(row.fired_at, view)}{', ' if state else ''}{state}. {condition(row.rule)}"]
    if row.acknowledged_at is not None:
        lines.append(
            f"{row.acknowledged_by_name} looks after it since {parts.at(row.acknowledged_at, view)}."
        )
    tools = []
    if row.acknowledged_at is None and shown.may(row.rule.group_id, Role.OPERATOR):
        tools.append(_button("Acknowledge", {"do": "acknowledge", "id": row.pk}, name))
    if row.acknowledged_at is not None and not _silenced(row) and shown.may(row.rule.group_id, Role.OPERATOR):
        ask = "Nobody looks after it then. PagerDuty wakes people again if it has heard that somebody does."
        tools.append(_button("Take it back…", {"do": "take back", "id": row.pk}, name, ask))
    if row.job_id is not None and not _silenced(row) and shown.may(row.rule.group_id, Role.OPERATOR):
        tools.append(_button("Silence this job", {"do": "silence", "id": row.pk}, name))
    mark = MARKS[Severity(row.rule.severity)]
    return _card(
        dcc.Link(html.Strong(name), href=row.path),
        f"{mark}, {row.rule.group.name}", tools, lines, f"alert-{row.pk}", row.rule.severity,
    )  # fmt: skip


def _rule(row: AlertRule, shown: Shown, view: View) -> Any:
    name = f"{row.name} of {row.group.name}"
    about = f"job {row.job.name}" if row.job else f"everything of {row.group.name}"
    lines = [condition(row)]
    if row.error:
        lines.append(f"✕ {row.error}.")
    tools = []
    if shown.may(row.group_id, Role.ADMIN):
        ask = "Its history is forgotten. Channels that know of an alert of it hear that it is over."
        tools = [
            _button("Change", {"do": "edit", "id": row.pk}, name),
            _button("Remove…", {"do": "remove", "id": row.pk}, name, ask),
        ]
    return _card(html.Strong(row.name), f"{about}, {row.severity}", tools, lines, f"rule-{row.pk}")


def _silence(row: Silence, shown: Shown, view: View) -> Any:
    what = f"{row.rule.name} of {row.group.name}" if row.rule else f"all rules of {row.group.name}"
    what, about = (f"{row.job.name}, {what}", " about this job") if row.job else (what, "")
    tools = []
    if shown.may(row.group_id, Role.OPERATOR):
        tools.append(_button("End it now", {"do": "end", "id": row.pk}, what))
    lines = [f"Until {parts.at(row.until, view)}, by {row.by_name}: {row.reason}"]
    return _card(html.Strong(f"– {what}"), f"channels hear nothing{about}", tools, lines, f"silence-{row.pk}")


def _card(head: Any, where: str, tools: list[Any], lines: list[str], key: str, severity: str = "") -> Any:
    return html.Li(
        id=key,
        className=f"card source {severity}".strip(),
        children=[
            html.Div(
                [head, html.Span(where, className="where"), html.Div(tools, className="tools")],
                className="source-head",
            ),
            *(html.P(line, className="muted") for line in lines),
        ],
    )


def _past(rows: Sequence[Alert], view: View) -> Any:
    lines = [
        [
            Cell(parts.at(row.fired_at, view)),
            Cell(f"{row.rule.name}: {row.subject_name}"),
            Cell(_over(row, view)),
            Cell(value(row.rule.kind, row.worst) or "–", row.worst),
            Cell(row.acknowledged_by_name or "nobody"),
        ]
        for row in rows
    ]
    table = facts.table("Alerts that are over", COLUMNS, lines, (0, 1, 2, 4))
    return html.Section([html.H2("Over", id="alerts-past"), html.Div(table, className="card tokens")])


def _over(row: Alert, view: View) -> str:
    assert row.resolved_at is not None
    length_s = round((row.resolved_at - row.fired_at) / timedelta(seconds=1))
    said = f"{parts.at(row.resolved_at, view)}, after {words.seconds(length_s)}"
    return f"{said}: {row.ended_by}" if row.ended_by else said


def _button(label: str, do: dict[str, Any], about: str, ask: str = "") -> Any:
    made = parts.button(label, do, about, ask)
    setattr(made, "data-part", "alert")
    return made


def act(asked: dict[str, Any] | None, query: str) -> Any:
    """What a button of the list sent."""
    if not asked:
        return no_update
    who = person()
    try:
        said = _acted(who, str(asked.get("do")), int(asked["id"]))
    except PermissionDenied as error:
        said = f"{str(error).capitalize()}."
    except ValidationError as error:
        said = f"{error.messages[0].capitalize()}."
    drawn_anew(query)
    return said


def _acted(who: User, do: str, pk: int) -> str:
    if do == "acknowledge":
        row = alert_services.acknowledge(who, pk)
        return f"{row.acknowledged_by_name} looks after it."
    if do == "take back":
        alert_services.take_back(who, pk)
        return "Nobody looks after it now."
    if do == "end":
        alert_services.end_silence(who, pk)
        return "The silence is over: what fires and was not told is told within 15 s."
    if do == "remove":
        alert_services.remove_rule(who, pk)
        return "Removed."
    if do == "silence":
        return alert_forms.begin_silence(who, pk)
    return alert_forms.begin_change(who, pk)


def drawn_anew(query: str) -> None:
    """From a callback: the list as it is now."""
    said, children, digest = refresh(query, 0, None)
    set_props("alert-said", {"children": said})
    set_props("alert-list", {"children": children})
    set_props("alert-drawn", {"data": digest})


def register(app: Dash) -> None:
    """Callbacks of this part."""
    app.callback(
        Output("alert-said", "children"), Output("alert-list", "children"), Output("alert-drawn", "data"),
        Input("url", "search"), Input("tick", "n_intervals"), State("alert-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("alert-done", "children"), Input("alert-do", "data"), State("url", "search"),
        prevent_initial_call=True,
    )(act)  # fmt: skip
    alert_forms.register(app, drawn_anew)
