"""What can be done with a cluster: rates, bounds, another model, and proposing the routing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update
from django.core.exceptions import PermissionDenied, ValidationError

from frontend.pages.bursts import moving
from frontend.pages.bursts.listing import document_of
from frontend.pages.bursts.setup_text import HINT, setup_of, text_of
from frontend.pages.connections import parts
from frontend.request import actor
from webapp.accounts.models import User
from webapp.bursts import deriving, rebalancing, revisions, selectors, services
from webapp.bursts.models import Cluster
from webapp.bursts.revisions import Part
from webapp.reconfigurations.errors import RefusedError, StaleViewError

FIELDS = {
    "rates": "Rates", "model": "Model", "setup": "Jobs", "burst_ratio": "Burst", "alert_ratio": "Alert",
    "group": "Group",
}  # fmt: skip


def forms(cluster: Cluster) -> list[Any]:
    """For those who may change the cluster."""
    standing = selectors.standing(cluster)
    known = standing.answers
    names = standing.model.applications if standing.model else []
    parts_of_it = [_rates(lines_of(cluster.rates), names), _bounds(cluster), _model(cluster)]
    parts_of_it += moving.form(cluster, actor())
    return [
        html.Details(
            className="card fold",
            id="burst-forms",
            open=known is None,
            children=[
                html.Summary("Change this cluster"),
                html.Div(parts_of_it, className="setup"),
                html.Div(id="burst-done", role="status"),
                dcc.Store(id="burst-seen", data=revisions.tags(cluster)),
            ],
        )
    ]


def lines_of(rates: dict[str, float]) -> str:
    """Rates as the form has them; every digit, or saving what is shown would change them."""
    return "\n".join(f"{name} = {repr(float(rate)).removesuffix('.0')}" for name, rate in rates.items())


def proposing(cluster: Cluster) -> list[Any]:
    """The way from the routing to a proposal, for applications that are jobs."""
    jobs = rebalancing.shareable(cluster)
    if not jobs:
        return []
    radios = [dmc.Radio(label=name, value=name) for name in jobs]
    reason = dcc.Input(id="burst-reason", maxLength=500)
    return [
        html.Section(
            className="card proposing",
            children=[
                html.H2("Propose this routing"),
                html.P(
                    "People decide about it like about every change; a signed webhook hands the shares to who moves"
                    " the keys.",
                    className="muted",
                ),
                html.Div(
                    [
                        dmc.RadioGroup(
                            html.Div(radios, className="radios"), id="burst-job", label="Job", value=jobs[0]
                        ),
                        parts.field("Reason", "burst-reason", reason),
                        html.Button("Propose the rebalance", id="burst-propose", className="primary"),
                    ],
                    className="setup",
                ),
                html.Div(id="burst-proposed", role="status"),
            ],
            **{"aria-label": "Propose this routing"},
        )
    ]


def propose(_clicks: int, name: str, reason: str, path: str) -> Any:
    """Put the rounded shares of one job up for decision."""
    try:
        person, cluster = _cluster(path)
        job = rebalancing.jobs_in(cluster).get(str(name))
        if job is None:
            raise PermissionDenied("choose one of the jobs")
        row = rebalancing.propose_rebalance(person, cluster, job, str(reason or ""))
    except (PermissionDenied, RefusedError) as error:
        return html.P(f"Not proposed: {error}.", className="error")
    return html.P(["Proposed: ", html.A(f"open proposal {row.pk}", href=f"/proposals/{row.pk}"), "."])


def _rates(lines: str, names: list[str]) -> Any:
    hint = "One a line: application = rate, in the model's unit; no rate: as measured."
    example = "\n".join(f"{name} = 100" for name in names[:5])
    area = dcc.Textarea(id="burst-rates", value=lines, placeholder=example, rows=5, className="code-field")
    return html.Div(
        [
            parts.field("Input rates", "burst-rates", area, hint),
            html.Button("Save the rates", id="burst-rates-save", className="primary"),
        ]
    )


def _bounds(cluster: Cluster) -> Any:
    def number(name: str, value: float) -> Any:
        return dcc.Input(id=name, type="number", min=0, max=10_000, value=round(value * 100, 6))

    return html.Div(
        [
            parts.field(
                "Configured burst, %", "burst-ratio", number("burst-ratio", cluster.burst_ratio),
                "All inputs must be able to grow by this; a scale-down that leaves less is refused.",
            ),
            parts.field("Alert below, %", "burst-alert", number("burst-alert", cluster.alert_ratio)),
            html.Button("Save the bounds", id="burst-bounds-save", className="primary"),
        ]
    )  # fmt: skip


def _model(cluster: Cluster) -> Any:
    derived = cluster.setup is not None
    lines = text_of(cluster.setup or {})
    area = dcc.Textarea(id="burst-model", rows=5, value=lines, className="code-field")
    hint = HINT if derived else "The burst model as JSON; it becomes the next version."
    return html.Div(
        [
            parts.field("Jobs and nodes" if derived else "Model", "burst-model", area, hint),
            html.Button(
                "Derive the model again" if derived else "Upload the model",
                id="burst-model-save",
                className="primary",
            ),
        ]
    )


def _cluster(path: str) -> tuple[User, Cluster]:
    person = actor()
    digits = (path or "").strip("/").split("/")[1:2]
    found = selectors.cluster(person, int(digits[0])) if digits and digits[0].isdigit() else None
    if found is None or not isinstance(person, User):
        raise PermissionDenied("there is no such cluster")
    return person, found


def save_rates(_clicks: int, text: str, path: str, seen: Any) -> list[Any]:
    """Give the rates that the form says, and take back those that are gone from it."""
    return _tried(
        Part.RATES, lambda person, cluster: _rates_saved(person, cluster, str(text or "")), path, seen
    )


def _rates_saved(person: User, cluster: Cluster, text: str) -> str:
    wanted: dict[str, float | None] = dict.fromkeys(cluster.rates)
    for line in filter(None, map(str.strip, text.splitlines())):
        name, is_rate, number = line.rpartition("=")
        try:
            wanted[name.strip()] = float(number.replace(",", ""))
        except ValueError as error:
            raise ValidationError({"rates": f"{line}: no number after ="}) from error
        if not is_rate:
            raise ValidationError({"rates": f"{line}: expected application = rate"})
    services.set_rates(person, cluster, wanted, time.time_ns())
    return "Saved. A worker answers for the new rates within a quarter of a minute."


def save_bounds(_clicks: int, burst: float | None, alert: float | None, path: str, seen: Any) -> list[Any]:
    """Set the configured burst and the alert."""

    def act(person: User, cluster: Cluster) -> str:
        bounds = ratio_of(burst, "burst_ratio"), ratio_of(alert, "alert_ratio")
        services.set_bounds(person, cluster, *bounds)
        return "Saved."

    return _tried(Part.SETTINGS, act, path, seen)


def ratio_of(percent: float | str | None, field: str) -> float:
    """What a field of percents says; the browser sends none if it is empty or beyond its bounds, which is not 0.

    Raises
    ------
    ValidationError
        If it says nothing.
    """
    if percent is None or percent == "":
        raise ValidationError({field: "expected a number from 0 to 10,000 (%)"})
    return float(percent) / 100


def save_model(_clicks: int, entered: str, path: str, seen: Any) -> list[Any]:
    """Another version of the model: uploaded, or derived again."""

    def act(person: User, cluster: Cluster) -> str:
        text = str(entered or "")
        if cluster.setup is not None:
            row = deriving.refresh_derived(person, cluster, setup_of(text))
        else:
            row = services.upload_model(person, cluster, document_of(text))
        return f"Model {row.number} is current now. Answers follow within a quarter of a minute."

    return _tried(Part.MODEL, act, path, seen)


def move(_clicks: int, name: str, path: str, seen: Any) -> list[Any]:
    """Put the cluster into the chosen group."""
    return _tried(Part.SETTINGS, lambda person, cluster: moving.moved(person, cluster, name), path, seen)


def _tried(part: Part, act: Callable[[User, Cluster], str], path: str, seen: Any) -> list[Any]:
    """What to say, and the tags of what the person has seen then.

    If somebody else was faster, nothing is saved and the answer says how it is now: having read that, the person
    may save over it.
    """
    try:
        person, cluster = _cluster(path)
        known = str(seen.get(part, "")) if isinstance(seen, dict) else ""
        with revisions.unchanged(cluster, part, known) as row:
            said = act(person, row)
    except StaleViewError as error:
        _, now = _cluster(path)
        return [_stale(error, now, part, path), _seen(now, part, seen)]
    except ValidationError as error:
        return [parts.mistakes(error, FIELDS), no_update]
    except PermissionDenied as error:
        return [html.P(f"Not saved: {error}.", className="error"), no_update]
    _, now = _cluster(path)
    return [html.P(said), _seen(now, part, seen)]


def _seen(now: Cluster, part: Part, before: Any) -> dict[str, str]:
    return {**(before if isinstance(before, dict) else {}), part.value: revisions.tag(now, part)}


def _stale(error: StaleViewError, now: Cluster, part: Part, path: str) -> Any:
    return html.Div(
        [
            html.P(f"Not saved: {error}.", className="error"),
            html.P(
                f"{_as_it_is(now, part)} What you entered is still in the form: saving again replaces it."
            ),
            html.A("Show the page as it is now", href=path),
        ],
        className="stale",
    )


def _as_it_is(now: Cluster, part: Part) -> str:
    match part:
        case Part.RATES:
            given = ", ".join(lines_of(now.rates).splitlines())
            return f"Given now: {given}." if given else "No rate is given now: all are as measured."
        case Part.MODEL if now.setup is not None:
            return f"Now it is derived from: {'; '.join(text_of(now.setup).splitlines())}."
        case Part.MODEL:
            row = now.versions.filter(superseded_at=None).first()
            return (
                f"Model {row.number} by {row.made_by_name} is current now." if row else "It has no model now."
            )
        case Part.SETTINGS:
            where = f"in the group {now.group.name}" if now.group else "in no group"
            return (
                f"Now it is {where}, the configured burst is {now.burst_ratio * 100:g} % and the alert is below"
                f" {now.alert_ratio * 100:g} %."
            )


def register(app: Dash) -> None:
    """Callbacks of the forms."""
    where = State("url", "pathname")
    app.callback(
        Output("burst-proposed", "children"), Input("burst-propose", "n_clicks"), State("burst-job", "value"),
        State("burst-reason", "value"), where, running=[(Output("burst-propose", "disabled"), True, False)],
        prevent_initial_call=True,
    )(propose)  # fmt: skip
    said = [
        Output("burst-done", "children", allow_duplicate=True), Output("burst-seen", "data", allow_duplicate=True)
    ]  # fmt: skip
    for button, states, act in (
        ("burst-rates-save", [State("burst-rates", "value")], save_rates),
        ("burst-bounds-save", [State("burst-ratio", "value"), State("burst-alert", "value")], save_bounds),
        ("burst-model-save", [State("burst-model", "value")], save_model),
        ("burst-move", [State("burst-group", "value")], move),
    ):
        app.callback(
            said, Input(button, "n_clicks"), *states, where, State("burst-seen", "data"),
            prevent_initial_call=True,
        )(act)  # fmt: skip
