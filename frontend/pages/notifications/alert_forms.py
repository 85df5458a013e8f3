"""The forms of alerts: a rule with its preview on the last 24 h, and a silence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils import timezone

from frontend import words
from frontend.components import facts
from frontend.components.facts import Cell
from frontend.pages.connections import parts
from frontend.request import person
from frontend.state import View
from webapp.accounts.models import User
from webapp.jobs.models import JobGroup, Role
from webapp.notifications import alert_selectors, alert_services
from webapp.notifications.alert_models import AlertRule, RuleKind, Severity
from webapp.notifications.alert_services import Previewed, RuleDraft
from webapp.notifications.alert_words import AT_ONCE, CP_KINDS, DURATIONS, SHARES, value
from webapp.notifications.policies import groups_of
from webapp.reconfigurations.errors import StaleViewError

ALL_JOBS = "0"
MOST_TOLD = 20
FIELDS = {
    "name": "Name", "kind": "Watches", "target": "What", "threshold": "Fires at", "clear": "Over at",
    "fire_after": "In a row to fire", "clear_after": "In a row to end", "job": "Job", "severity": "Severity",
    "reason": "Reason", "until": "For",
}  # fmt: skip
TEXTS = ("target", "threshold", "clear", "fire_after", "clear_after", "name")
SELECTS = ("group", "job", "kind", "severity")
HINTS = {
    RuleKind.ACTIVITY_CP: "Fires when the CP of an activity (such as processing) is above this many percent.",
    RuleKind.OPERATOR_CP: "Fires when the CP of an operator, over all its activities, is above this many percent.",
    RuleKind.WORKER_CP: "Fires when the CP of a worker is above this many percent.",
    RuleKind.HEADROOM: "Fires when the headroom of a cluster of the group is below this many percent.",
    RuleKind.BACKLOG: "Fires when more records wait than this: by a metric's name, summed over its series each "
    "minute, or without a name by what Flink says of its sources.",
    RuleKind.NO_DATA: "Fires when a job that is not finished has sent nothing for longer than this many minutes.",
    RuleKind.EXPIRING: "Fires when an undecided proposal expires in less than this many minutes.",
    RuleKind.REGRESSED: "Fires when a change made things worse, until it is taken back, for a day at most.",
}
LENGTHS = {"15": "15 min", "60": "1 h", "240": "4 h", "480": "8 h", "1440": "1 d", "10080": "7 d"}
NEW = "Make a rule"


def forms() -> list[Any]:
    """A silence first: it is what is needed at night."""
    return [_silence_form(), _rule_form(), dcc.Store(id="rule-changed")]


def _silence_form() -> Any:
    select = partial(dmc.Select, allowDeselect=False)
    lengths = [{"value": minutes, "label": label} for minutes, label in LENGTHS.items()]
    fields = [
        select(id="silence-what", label="Silence", data=[], value=None),
        select(id="silence-job", label="Job", data=[], value=ALL_JOBS),
        select(id="silence-for", label="For", data=lengths, value="60"),
        parts.field("Reason", "silence-reason", dcc.Input(id="silence-reason", maxLength=300)),
        html.Button("Silence it", id="silence-add", className="primary"),
    ]
    explained = (
        "Channels hear nothing while it lasts. What still fires afterwards is told then; nothing is lost."
    )
    return _form("Silence rules", explained, fields, "silence")


def _rule_form() -> Any:
    select = partial(dmc.Select, allowDeselect=False)
    kinds = [{"value": kind.value, "label": kind.label} for kind in RuleKind]
    severities = [{"value": item.value, "label": item.label} for item in Severity]
    fields = [
        select(id="rule-group", label="Job group", data=[], value=None),
        select(id="rule-job", label="Job", data=[], value=ALL_JOBS),
        select(id="rule-kind", label="Watches", data=kinds, value=RuleKind.OPERATOR_CP.value),
        *(_text(name) for name in TEXTS[:-1]),
        select(id="rule-severity", label="Severity", data=severities, value=Severity.WARNING.value),
        _text("name"),
        html.Button("Preview on the last 24 h", id="rule-preview-it", className="tool"),
        html.Button("Save the rule", id="rule-save", className="primary"),
        html.Button("Start anew", id="rule-anew", className="tool"),
    ]
    made = _form(NEW, HINTS[RuleKind.OPERATOR_CP], fields, "rule")
    made.children.append(html.Div(id="rule-preview", role="status"))
    return made


def _text(name: str) -> Any:
    start = {"fire_after": "3", "clear_after": "3", "threshold": "60", "clear": "50"}.get(name, "")
    control = dcc.Input(id=f"rule-{name}", value=start, maxLength=500 if name == "target" else 100)
    return parts.field(_label(RuleKind.OPERATOR_CP, name), f"rule-{name}", control, id=f"rule-{name}-field")


TARGETS = {
    RuleKind.ACTIVITY_CP: "Activity",
    RuleKind.WORKER_CP: "Worker",
    RuleKind.BACKLOG: "Metric, or empty for Flink's",
}
NAMED = ("target", "threshold", "clear")
"""Fields whose label depends on the kind."""


def _label(kind: RuleKind, name: str) -> Any:
    unit = "%" if kind in SHARES else "minutes" if kind in DURATIONS else "records"
    label = FIELDS[name]
    if name not in NAMED:
        return label
    text = TARGETS.get(kind, "Operator") if name == "target" else f"{label}, {unit}"
    return html.Span(text, id=f"rule-{name}-label")


def _form(title: str, explained: str, fields: list[Any], key: str) -> Any:
    return html.Section(
        className="card connection-form",
        id=f"{key}-form",
        style={"display": "none"},
        children=[
            html.H2(title, id=f"{key}-title"),
            html.P(explained, className="muted", id=f"{key}-hint"),
            html.Div(fields, className="connection-fields"),
            html.Div(id=f"{key}-wrong", role="alert"),
        ],
        **{"aria-labelledby": f"{key}-title"},
    )


def fill(_id: str) -> list[Any]:
    """What there is to choose from, groups and what may be silenced; a form with nothing to choose is not shown."""
    who = person()
    roles = alert_selectors.roles(who)
    theirs = list(groups_of(who))
    made = [{"value": str(row.pk), "label": row.name} for row in theirs if roles.get(row.pk) is Role.ADMIN]
    quiet = [row for row in theirs if row.pk in roles and roles[row.pk].rank >= Role.OPERATOR.rank]
    whats = [{"value": f"group:{row.pk}", "label": f"all rules of {row.name}"} for row in quiet]
    ids = {row.pk for row in quiet}
    whats += [
        {"value": f"rule:{row.pk}", "label": f"{row.name} of {row.group.name}"}
        for row in alert_selectors.rules(who)
        if row.group_id in ids
    ]
    gone = {"display": "none"}
    chosen = [made, made[0]["value"] if made else None, whats, whats[0]["value"] if whats else None]
    return [*chosen, {} if made else gone, {} if whats else gone]


def jobs_of(group: str | None) -> list[Any]:
    """The jobs of the chosen group."""
    found = groups_of(person()).filter(pk=int(group or 0)).first()
    jobs = [] if found is None else list(found.jobs.order_by("name").values_list("pk", "name"))
    return [{"value": ALL_JOBS, "label": "all jobs"}] + [
        {"value": str(pk), "label": name} for pk, name in jobs
    ]


def jobs_silenced(what: str | None, chosen: str | None) -> list[Any]:
    """The jobs about which the chosen rules can find something, and the one chosen if it is among them."""
    group, rule = _rules_of(person(), what or "")
    data = jobs_of(str(group.pk) if group else None)
    if rule is not None and rule.kind == RuleKind.HEADROOM:
        data = data[:1]
    elif rule is not None and rule.job_id is not None:
        data = [row for row in data if row["value"] in (ALL_JOBS, str(rule.job_id))]
    return [data, chosen if chosen in [row["value"] for row in data] else ALL_JOBS]


def fit(kind: str) -> list[Any]:
    """The hint, the labels and the fields that belong to a kind."""
    chosen = RuleKind(kind)
    gone = {"display": "none"}
    target = None if chosen in (*CP_KINDS, RuleKind.BACKLOG) else gone
    counted = gone if chosen in AT_ONCE else None
    threshold = gone if chosen == RuleKind.REGRESSED else None
    labels = [_label(chosen, name).children for name in NAMED]
    return [HINTS[chosen], *labels, target or {}, threshold or {}, *(counted or {} for _ in range(3))]


def draft_of(values: dict[str, str]) -> RuleDraft:
    """The rule of the form.

    Raises
    ------
    ValidationError
        If a number is none.
    """
    kind = values["kind"]
    scale = 0.01 if kind in SHARES else 60.0 if kind in DURATIONS else 1.0
    wrong, numbers = {}, dict[str, float]()
    asked = ["threshold"] if kind in DURATIONS else ["threshold", "clear", "fire_after", "clear_after"]
    for name in [] if kind == RuleKind.REGRESSED else asked:
        try:
            numbers[name] = float(str(values[name] or "").strip().rstrip("%").replace(",", ""))
        except ValueError:
            wrong[name] = "a number is needed"
    if wrong:
        raise ValidationError(wrong)
    job = int(values["job"] or 0)
    threshold = round(numbers.get("threshold", 0.0) * scale, 9)
    return RuleDraft(
        name=str(values["name"] or ""), kind=kind, threshold=threshold,
        clear=round(numbers["clear"] * scale, 9) if "clear" in numbers else threshold,
        job_id=job or None, target=str(values["target"] or "").strip().replace(" ", "_")
        if kind == RuleKind.ACTIVITY_CP else str(values["target"] or ""),
        fire_after=int(numbers.get("fire_after", 1)), clear_after=int(numbers.get("clear_after", 1)),
        severity=str(values["severity"]),
    )  # fmt: skip


def _group(who: User, group: str | None) -> JobGroup:
    found = groups_of(who).filter(pk=int(group or 0)).first()
    if found is None:
        raise PermissionDenied("only an admin of a job group makes rules")
    return found


def preview(_clicks: int | None, query: str, *given: str) -> list[Any]:
    """When the rule of the form would have fired."""
    values, who = dict(zip((*SELECTS, *TEXTS), given, strict=True)), person()
    values["name"] = values["name"] or "preview"
    try:
        now = timezone.now()
        found = alert_services.preview(who, _group(who, values["group"]), draft_of(values), now)
    except (PermissionDenied, ValidationError) as error:
        return [_refused(error), None]
    return [None, told(values["kind"], found, View.parse(query or ""))]


def told(kind: str, found: Sequence[Previewed], view: View) -> list[Any]:
    """How often it would have fired, and when, the newest first."""
    rows = [(episode, item) for item in found for episode in item.episodes]
    rows.sort(key=lambda pair: -pair[0].from_ns)
    often = "once" if len(rows) == 1 else "never" if not rows else f"{len(rows):,} times"
    values = sum(item.value_count for item in found)
    rests = f"{words.count(values, 'value')} of {words.count(len(found), 'subject')}"
    said = html.P(f"In the last 24 h this rule would have fired {often}, on {rests}.", className="strong")
    if not rows:
        return [said]
    lines = [
        [
            Cell(parts.at(_time(episode.from_ns), view)),
            Cell(item.name),
            Cell("still" if episode.to_ns is None else parts.at(_time(episode.to_ns), view)),
            Cell(value(kind, episode.worst) or "–", episode.worst),
        ]
        for episode, item in rows[:MOST_TOLD]
    ]
    table = facts.table(
        "When the rule would have fired", ("Fired", "Subject", "Over", "Worst"), lines, (0, 1, 2)
    )
    left = len(rows) - MOST_TOLD
    more = [html.P(f"And {left:,} times before.", className="muted")] if left > 0 else []
    return [said, html.Div(table, className="tokens"), *more]


def _time(at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns / 1e9, UTC)


def _refused(error: PermissionDenied | ValidationError | StaleViewError) -> Any:
    if isinstance(error, ValidationError):
        return parts.mistakes(error, FIELDS)
    return [html.P(f"{str(error)[:1].upper()}{str(error)[1:]}.", className="error")]


def begin_change(who: User, rule_id: int) -> str:
    """Put a rule into the form."""
    row = alert_selectors.rules(who).filter(pk=rule_id).first()
    if row is None:
        return f"{alert_services.NO_SUCH.capitalize()}."
    scale = 100.0 if row.kind in SHARES else 1 / 60 if row.kind in DURATIONS else 1.0
    values: dict[str, Any] = {
        "group": str(row.group_id), "job": str(row.job_id or 0), "kind": row.kind, "severity": row.severity,
        "target": row.target, "threshold": f"{row.threshold * scale:g}", "clear": f"{row.clear * scale:g}",
        "fire_after": str(row.fire_after), "clear_after": str(row.clear_after), "name": row.name,
    }  # fmt: skip
    for name, shown in values.items():
        set_props(f"rule-{name}", {"value": shown})
    set_props("rule-changed", {"data": {"id": row.pk, "seen": alert_services.revision(row)}})
    set_props("rule-title", {"children": f"Change the rule {row.name}"})
    set_props("rule-preview", {"children": None})
    return f"{row.name} is in the form below: change it, look at its preview, and save it."


def begin_silence(who: User, alert_id: int) -> str:
    """Put the job of an alert into the form of silences."""
    row = alert_selectors.alerts(who).filter(pk=alert_id).select_related("job").first()
    if row is None or row.job is None:
        return f"{alert_services.NO_SUCH.capitalize()}."
    set_props("silence-job", {"value": str(row.job.pk)})
    set_props("silence-what", {"value": f"group:{row.rule.group_id}"})
    return f"{row.job.name} is in the form below: say for how long and why, and silence it."


def _emptied() -> None:
    for name, shown in (
        ("changed", {"data": None}),
        ("title", {"children": NEW}),
        ("preview", {"children": None}),
    ):
        set_props(f"rule-{name}", shown)
    for name in ("name", "target"):
        set_props(f"rule-{name}", {"value": ""})


def register(app: Dash, drawn_anew: Callable[[str], None]) -> None:
    """Callbacks of both forms; ``drawn_anew`` shows what they changed."""

    def save(_clicks: int | None, query: str, changed: dict[str, Any] | None, *given: str) -> list[Any]:
        values, who = dict(zip((*SELECTS, *TEXTS), given, strict=True)), person()
        try:
            known = (int(changed["id"]), str(changed["seen"])) if changed else (None, None)
            row = alert_services.save_rule(who, _group(who, values["group"]), draft_of(values), *known)
        except (PermissionDenied, ValidationError, StaleViewError) as error:
            return [_refused(error), ""]
        _emptied()
        set_props("silence-what", {"data": fill("")[2]})
        drawn_anew(query)
        return [None, f"Saved {row.name}: it is looked at within 15 s."]

    def anew(_clicks: int | None) -> Any:
        _emptied()
        return None

    def be_silent(
        _clicks: int | None, query: str, what: str, job: str, minutes: str, reason: str
    ) -> list[Any]:
        try:
            _silence(person(), str(what or ""), str(job or ALL_JOBS), int(minutes), str(reason or ""))
        except (PermissionDenied, ValidationError) as error:
            return [_refused(error), "", no_update]
        drawn_anew(query)
        return [None, "Silenced.", ""]

    form = [State(f"rule-{name}", "value") for name in (*SELECTS, *TEXTS)]
    query = State("url", "search")
    done = Output("alert-done", "children", allow_duplicate=True)
    wrong = Output("rule-wrong", "children", allow_duplicate=True)
    later: dict[str, Any] = {"prevent_initial_call": True}
    app.callback(
        Output("rule-wrong", "children"), done, Input("rule-save", "n_clicks"), query,
        State("rule-changed", "data"),
        *form, running=[(Output("rule-save", "disabled"), True, False)], **later,
    )(save)  # fmt: skip
    app.callback(
        wrong, Output("rule-preview", "children"), Input("rule-preview-it", "n_clicks"), query, *form,
        running=[(Output("rule-preview-it", "disabled"), True, False)], **later,
    )(preview)  # fmt: skip
    app.callback(wrong, Input("rule-anew", "n_clicks"), **later)(anew)
    app.callback(
        Output("silence-wrong", "children"), done, Output("silence-reason", "value"),
        Input("silence-add", "n_clicks"), query, State("silence-what", "value"), State("silence-job", "value"),
        State("silence-for", "value"), State("silence-reason", "value"),
        running=[(Output("silence-add", "disabled"), True, False)], **later,
    )(be_silent)  # fmt: skip
    app.callback(
        Output("rule-group", "data"), Output("rule-group", "value"), Output("silence-what", "data"),
        Output("silence-what", "value"), Output("rule-form", "style"), Output("silence-form", "style"),
        Input("rule-group", "id"),
    )(fill)  # fmt: skip
    app.callback(Output("rule-job", "data"), Input("rule-group", "value"))(jobs_of)
    app.callback(
        Output("silence-job", "data"), Output("silence-job", "value"), Input("silence-what", "value"),
        State("silence-job", "value"),
    )(jobs_silenced)  # fmt: skip
    hidden = [Output(f"rule-{name}-field", "style") for name in TEXTS[:-1]]
    labels = [Output(f"rule-{name}-label", "children") for name in NAMED]
    app.callback(Output("rule-hint", "children"), *labels, *hidden, Input("rule-kind", "value"))(fit)


def _rules_of(who: User, what: str) -> tuple[JobGroup | None, AlertRule | None]:
    """The group and maybe the one rule behind what is chosen to be silenced."""
    kind, _, number = what.partition(":")
    if not number.isdecimal():
        return None, None
    if kind == "rule":
        rule = alert_selectors.rules(who).filter(pk=int(number)).first()
        return (rule.group if rule else None), rule
    return groups_of(who).filter(pk=int(number)).first(), None


def _silence(who: User, what: str, job_id: str, minutes: int, reason: str) -> None:
    group, rule = _rules_of(who, what)
    if group is None:
        raise PermissionDenied(alert_services.NO_SUCH)
    job = None
    if job_id != ALL_JOBS:
        job = group.jobs.filter(pk=int(job_id) if job_id.isdecimal() else 0).first()
        if job is None:
            raise ValidationError({"job": alert_services.NO_SUCH_JOB})
    until = timezone.now() + timedelta(minutes=minutes)
    alert_services.silence(who, group, until, reason, rule, job)
