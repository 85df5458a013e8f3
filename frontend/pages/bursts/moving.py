"""The part of a cluster's form that moves it to another group."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html

from webapp.accounts.models import User
from webapp.bursts import moving
from webapp.bursts.models import Cluster
from webapp.bursts.policies import groups_to_move_to, may_leave
from webapp.jobs.policies import Actor

NOWHERE = ""


def form(cluster: Cluster, actor: Actor) -> list[Any]:
    """For those who may take it out of its group; the others are told who may."""
    here = cluster.group.name if cluster.group else "none"
    if not may_leave(actor, cluster):
        return [
            html.Div(
                html.P(f"Group: {here}. Moving it to another takes an admin of both.", className="muted hint")
            )
        ]
    names = [group.name for group in groups_to_move_to(actor, cluster)]
    own = [cluster.group.name] if cluster.group else []
    data = [{"value": NOWHERE, "label": "none"}, *({"value": name, "label": name} for name in [*own, *names])]
    hint = (
        "Only members of its group see it, and it guards that group's jobs; in no group everybody sees it and who"
        " made it changes it. Only groups you are an admin of are offered."
    )
    return [
        html.Div(
            [
                dmc.Select(
                    data=data, id="burst-group", label="Group", value=own[0] if own else NOWHERE,
                    allowDeselect=False, description=hint,
                ),
                html.Button("Move it to this group", id="burst-move", className="primary"),
            ]
        )
    ]  # fmt: skip


def moved(person: User, cluster: Cluster, name: str) -> str:
    """Move it, and say what came of that.

    Raises
    ------
    PermissionDenied
        If the person does not administer both groups.
    ValidationError
        If its jobs could not be read there.
    """
    before = cluster.group
    row = moving.move(person, cluster, moving.target_named(person, cluster, str(name or "")))
    where = f"in the group {row.group.name}" if row.group else "in no group"
    if row.group == before:
        return f"It is {where} already."
    return (
        f"It is {where} now, and what was computed counts as of an older model until a worker has answered, within"
        " a quarter of a minute. Inputs of jobs that are not there must be given by hand."
    )
