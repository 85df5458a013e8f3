"""A job's rules: how far Weir may go, who must agree, when changes may be made, freezes, and roles."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import PermissionDenied, ValidationError

from frontend import freshness
from frontend.addressed import job_at
from frontend.components import facts, states, windows
from frontend.components.facts import Cell
from frontend.components.proposals import body, target, told
from frontend.pages.connections.parts import field, mistakes
from frontend.request import person
from frontend.state import View
from webapp.accounts.models import User
from webapp.analysis import selectors as analysis
from webapp.jobs.groups import set_role
from webapp.jobs.models import Job, Membership, Role
from webapp.jobs.policies import may, role_on
from webapp.reconfigurations import change_windows, governance, policies
from webapp.reconfigurations.errors import RefusedError
from webapp.reconfigurations.models import ChangePolicy, EngineKind, Freeze, Mode

KEY = "rules"
LABEL = "Rules"
NUMBERS = {
    "quorum": ("People who must agree", "2 is the two-person rule", int, 1),
    "expires_after_s": ("A proposal lives, minutes", "then it expires", int, 60),
    "auto_max_factor": ("Automatic: factor at most", "by which an operator grows or shrinks", float, 1),
    "auto_max_parallelism": ("Automatic: instances at most", "of an operator", int, 1),
    "auto_max_per_day": ("Automatic: changes a day at most", "beyond them a person decides", int, 1),
    "apply_limit_s": ("Applying gives up after, s", "", int, 1),
    "settle_s": ("The job settles in, s", "at least 80: younger meters mislead", int, 1),
}
TEXTS = {
    "scaled_by": ("Scaled by another controller", "such as KEDA or an HPA: Weir then refuses"),
    "engine_url": ("Address of the engine", "http://jobmanager:8081, or the webhook's"),
    "webhook_secret": ("Webhook's secret", "whsec_…; empty: as it is"),
}
NAMES = {
    **{key: label for key, (label, _, _, _) in NUMBERS.items()},
    **{key: label for key, (label, _) in TEXTS.items()},
    "windows": "Change windows",
}


def layout(job: Job) -> Any:
    """The tab; the form has its values from the beginning, and keeps what is written."""
    rules, admin = policies.rules_of(job), may(person(), job, Role.ADMIN)
    return html.Div(
        className="asked rules",
        children=[
            html.P(sentence(job, rules), id="rules-sentence", className="answer", role="status"),
            html.Div(states.skeleton(80), id="rules-standing", className="stack"),
            dcc.Store(id="rules-drawn"),
            _freezing(admin),
            _form(job, rules, admin),
            _roles(job, admin),
        ],
    )


def sentence(job: Job, rules: ChangePolicy) -> str:
    """The rules in words."""
    mode = {
        Mode.OBSERVE: f"Weir only observes {job.name}",
        Mode.RECOMMEND: f"Policies propose changes of {job.name} and people decide",
        Mode.AUTOMATIC: f"Weir changes {job.name} by itself within limits: at most {rules.auto_max_factor:g}× and"
        f" {rules.auto_max_parallelism} instances an operator, {rules.auto_max_per_day} changes a day",
    }[Mode(rules.mode)]
    agree = "one person must agree" if rules.quorum == 1 else f"{rules.quorum} people must agree"
    when = windows.words(rules.windows) if rules.windows else "at any time"
    owner = f" {rules.scaled_by} scales it, so Weir refuses." if rules.scaled_by else ""
    return f"{mode}; {agree}; changes are applied {when}, through {EngineKind(rules.engine).label}.{owner}"


def _freezing(admin: bool) -> Any:
    disabled = not admin
    return html.Section(
        [
            html.H2("Freeze", id="freeze-title"),
            html.P(
                "While it is frozen nothing is approved, and what is approved waits. Rejecting is always possible.",
                className="muted",
            ),
            html.Div(
                [
                    field("Why", "freeze-reason", dcc.Input(id="freeze-reason", maxLength=500, disabled=disabled)),
                    html.Button("Freeze this job", id="freeze-job", className="primary harmful", disabled=disabled),
                    html.Button("Lift this job's freeze", id="lift-job", className="tool", disabled=disabled,
                                hidden=True),
                    html.Button("Freeze all jobs", id="freeze-all", className="primary harmful",
                                hidden=not person().is_superuser),
                    html.Button("Lift the freeze of all jobs", id="lift-all", className="tool", hidden=True),
                ],
                className="connection-fields",
            ),
            html.P("", id="freeze-said", role="status", className="harm"),
        ],
        className="card by-hand",
        **{"aria-labelledby": "freeze-title"},
    )  # fmt: skip


def _form(job: Job, rules: ChangePolicy, admin: bool) -> Any:
    off = not admin
    modes = [dmc.Radio(label=item.label, value=item.value, disabled=off) for item in Mode]
    engines = [dmc.Radio(label=item.label, value=item.value, disabled=off) for item in EngineKind]
    numbers = [
        field(label, f"rules-{key}", dcc.Input(id=f"rules-{key}", type="text", inputMode="decimal", disabled=off,
              value=f"{getattr(rules, key) / scale:g}"), hint)
        for key, (label, hint, _, scale) in NUMBERS.items()
    ]  # fmt: skip
    texts = [
        html.Div(
            field(label, f"rules-{key}", dcc.Input(id=f"rules-{key}", disabled=off, autoComplete="off",
                  type="password" if key == "webhook_secret" else "text",
                  value="" if key == "webhook_secret" else getattr(rules, key)), hint),
            className="long",
        )
        for key, (label, hint) in TEXTS.items()
    ]  # fmt: skip
    area = dcc.Textarea(id="rules-windows", rows=3, value=windows.text(rules.windows), disabled=off)
    return html.Section(
        [
            html.H2("Rules", id="rules-title"),
            html.P(f"To change them you need the role admin on {job.name}.", hidden=admin, className="muted",
                   id="rules-denied"),
            html.Fieldset([html.Legend("How far may Weir go?"),
                           dmc.RadioGroup(html.Div(modes, className="radios"), id="rules-mode", value=rules.mode,
                                          **{"aria-label": "Mode"})]),
            html.Fieldset([html.Legend("Through what are changes applied?"),
                           dmc.RadioGroup(html.Div(engines, className="radios"), id="rules-engine",
                                          value=rules.engine, **{"aria-label": "Engine"})]),
            html.Div([*numbers, *texts, field("Change windows", "rules-windows", area,
                      "one a line: mon tue wed 09:00-17:00 Europe/Berlin; empty: at any time")],
                     className="connection-fields"),
            html.Div([html.Button("Save", id="rules-save", className="primary", disabled=off),
                      html.Div("", id="rules-said", role="status")], className="setup-end"),
        ],
        className="card by-hand", id="rules-form", **{"aria-labelledby": "rules-title"},
    )  # fmt: skip


def _roles(job: Job, admin: bool) -> Any:
    form: list[Any] = []
    if admin and job.group is not None:
        options = [("none", "none: takes it away"), *[(item.value, item.label) for item in Role]]
        choices = [dmc.Radio(label=label, value=value) for value, label in options]
        form = [
            html.Div(
                [
                    field("Person", "role-person", dcc.Input(id="role-person", maxLength=150)),
                    dmc.RadioGroup(
                        html.Div(choices, className="radios"), id="role-role", value="viewer", label="Role"
                    ),
                    html.Button("Set the role", id="role-set", className="primary"),
                ],
                className="connection-fields",
            ),
            html.P("", id="role-said", role="status"),
        ]
    return html.Section(
        [
            html.H2("Who holds which role", id="roles-title"), html.Div(id="roles-list"),
            dcc.Store(id="roles-drawn"), *form,
        ],
        className="card by-hand",
        **{"aria-labelledby": "roles-title"},
    )  # fmt: skip


def register(app: Dash) -> None:
    """Callbacks of the tab."""
    where = State("url", "pathname")
    app.callback(
        Output("rules-sentence", "children"), Output("rules-standing", "children"), Output("rules-drawn", "data"),
        Output("roles-list", "children"), Output("roles-drawn", "data"),
        Output("lift-job", "hidden"), Output("lift-all", "hidden"), Input("url", "search"),
        Input("tick", "n_intervals"), Input("decided", "data"), where, State("rules-drawn", "data"),
        State("roles-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("rules-said", "children"), Input("rules-save", "n_clicks"), State("rules-mode", "value"),
        State("rules-engine", "value"), State("rules-windows", "value"),
        *[State(f"rules-{key}", "value") for key in (*NUMBERS, *TEXTS)], where, prevent_initial_call=True,
    )(save)  # fmt: skip
    for name, on in (("job", False), ("all", True)):
        for verb in ("freeze", "lift"):
            app.callback(
                Output("freeze-said", "children", allow_duplicate=True), Input(f"{verb}-{name}", "n_clicks"),
                State("freeze-reason", "value"), where, prevent_initial_call=True,
            )(_freezer(verb == "freeze", on))  # fmt: skip
    app.callback(
        Output("role-said", "children"), Output("role-said", "className"), Input("role-set", "n_clicks"),
        State("role-person", "value"), State("role-role", "value"), where, prevent_initial_call=True,
    )(give_role)  # fmt: skip


def refresh(
    query: str, _tick: int, _decided: Any, path: str, drawn: str | None, roles_drawn: str | None
) -> list[Any]:
    """What holds now, who holds which role, and which freezes can be lifted; the form stays as it is."""
    from frontend.pages.job import draw_head

    job, view = job_at(path), View.parse(query or "")
    draw_head(analysis.limits(job, *view.span(freshness.now_ns())), view)
    standing = _standing(job, view)
    return [
        sentence(job, policies.rules_of(job)), *body.changed(drawn, standing),
        *body.changed(roles_drawn, _members(job)),
        not job.freezes.filter(lifted_at=None).exists(),
        not (person().is_superuser and Freeze.objects.filter(job=None, lifted_at=None).exists()),
    ]  # fmt: skip


def _standing(job: Job, view: View) -> list[Any]:
    """Freezes, whether a change window is open, and what the reader may do."""
    rules = policies.rules_of(job)
    lines: list[Any] = []
    freeze = policies.freeze_on(job)
    if freeze is not None:
        lines.append(html.P(f"❄ {_frozen(freeze, view)}", className="loud"))
    if rules.windows:
        now = View().time(freshness.now_ns())
        is_open = change_windows.is_open(change_windows.parse(rules.windows), now)
        lines.append(html.P("A change window is open now." if is_open else "No change window is open now: what is"
                            " approved waits for the next one."))  # fmt: skip
    role = role_on(person(), job)
    lines.append(html.P(["Your role here: ", html.Strong(role.value if role else "none"), "."]))
    return lines


def _frozen(freeze: Freeze, view: View) -> str:
    what = "This job is" if freeze.job_id else "All jobs are"
    return f"{what} frozen by {freeze.by_name} since {told.at(freeze.at, view)}: {freeze.reason}"


def _members(job: Job) -> Any:
    if job.group is None:
        return html.P(
            "The job is in no group: everybody who signs in sees it, and superusers decide about it."
        )
    rows = (
        Membership.objects.filter(group=job.group).select_related("user").order_by("role", "user__username")
    )
    cells = [
        [Cell(item.user.get_username()), Cell(Role(item.role).label)]
        for item in sorted(rows, key=lambda item: (-Role(item.role).rank, item.user.get_username()))
    ]
    head = html.P(
        f"The roles of the group {job.group.name}, which hold for all its jobs. Superusers are admins everywhere."
    )
    if not cells:
        return [head, html.P("Nobody has a role yet.", className="muted")]
    return [head, facts.table("Roles", ("Person", "Role"), cells, wordy=(0, 1))]


def save(clicks: int | None, mode: str, engine: str, written: str | None, *values: Any) -> Any:
    """Have the rules be what the form says."""
    if not clicks:
        return no_update
    *fields, path = values
    job = target.job_at(str(path))
    if job is None:
        return html.P(f"Not saved: {target.NONE}.", className="harm")
    try:
        changes: dict[str, Any] = {
            "mode": mode,
            "engine": engine,
            "windows": windows.read(str(written or "")),
        }
        for key, value in zip((*NUMBERS, *TEXTS), fields, strict=True):
            if key in NUMBERS:
                changes[key] = _number(key, value)
            elif key != "webhook_secret" or value:
                changes[key] = str(value or "").strip()
        governance.change_rules(person(), job, **changes)
    except ValidationError as error:
        return mistakes(error, NAMES)
    except (RefusedError, PermissionDenied) as error:
        return html.P(f"Not saved: {target.refusal(job, error)}.", className="harm")
    _done("✓ The rules were saved.")
    return html.P("Saved.", className="good")


def _number(key: str, value: Any) -> int | float:
    _, _, kind, scale = NUMBERS[key]
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        raise ValidationError({key: f"“{value}” is no number"}) from None
    if not 0 <= number < 1e9 or (kind is int and number * scale != int(number * scale)):
        raise ValidationError({key: f"“{value}” cannot be"})
    if key == "quorum" and number < 1:
        raise ValidationError({key: "at least one person must agree"})
    return int(number * scale) if kind is int else number * scale


def _freezer(on: bool, everything: bool) -> Any:
    """The callback of one of the four buttons."""

    def act(clicks: int | None, reason: str | None, path: str) -> Any:
        if not clicks:
            return no_update
        job = None if everything else target.job_at(path)
        if job is None and not everything:
            return f"Not done: {target.NONE}."
        what = "All jobs are" if job is None else f"{job.name} is"
        try:
            if on:
                governance.freeze(person(), job, str(reason or "")[:500])
            else:
                governance.lift_freeze(person(), job, str(reason or "")[:500])
        except (RefusedError, PermissionDenied) as error:
            return f"Not done: {target.refusal(job, error) if job is not None else error}."
        _done(f"✓ {what} frozen." if on else f"✓ {what} no longer frozen.")
        return ""

    return act


def give_role(clicks: int | None, name: str | None, role: str, path: str) -> list[Any]:
    """Give a person a role in the job's group, or take it away."""
    if not clicks:
        return [no_update, no_update]
    job = target.job_at(path)
    if job is None or job.group is None:
        return [f"Not done: {target.NONE}, or it is in no group.", "harm"]
    who = User.objects.filter(username=str(name or "").strip()).first()
    if who is None:
        return [f"There is no account “{name or ''}”.", "harm"]
    if role not in ("none", *Role.values):
        return ["There is no such role.", "harm"]
    try:
        set_role(person(), job.group, who, None if role == "none" else Role(role))
    except PermissionDenied as error:
        return [f"Not done: {target.refusal(job, error)}.", "harm"]
    _done(f"✓ {who.get_username()}: {role}.")
    return ["Done.", "good"]


def _done(said: str) -> None:
    """Draw what follows from it at once, the banner too."""
    set_props("decided", {"data": {"said": said, "good": True, "at": freshness.now_ns() // 1000}})
