"""Calling Dash callbacks as a browser does, without one: also with what no page of ours would send."""

from __future__ import annotations

import json
import re
from typing import Any

from django.test import Client

from frontend.app import app
from webapp.accounts.models import User

ADDRESS = "/_dash-update-component"


def signed_in(person: User) -> Client:
    """A browser in which this person has signed in."""
    client = Client()
    client.force_login(person)
    return client


def call(client: Client, trigger: str, values: dict[str, Any], output: str = "") -> Any:
    """Call the callback that ``trigger`` (``id.property``) sets off; ``values`` are inputs and states by that name.

    If it sets off several, ``output`` is a part of the right one's name. The value of a pattern is a list of
    ``(id, value)``.
    """
    name, known = next(
        (name, known)
        for name, known in app.callback_map.items()
        if "callback" in known and output in name and any(_name(item) == trigger for item in known["inputs"])
    )
    body = {
        "output": name,
        "outputs": _outputs(name),
        "inputs": [_given(item, values) for item in known["inputs"]],
        "state": [_given(item, values) for item in known["state"]],
        "changedPropIds": [trigger],
    }
    return client.post(ADDRESS, json.dumps(body), content_type="application/json")


def _name(item: dict[str, str]) -> str:
    return f"{item['id']}.{item['property']}"


def _outputs(name: str) -> Any:
    parts = name.strip(".").split("...") if name.startswith("..") else [name]
    both = [re.match(r"(.+)\.([^.]+)$", part) for part in parts]
    found = [{"id": match[1], "property": match[2]} for match in both if match]
    return found if name.startswith("..") else found[0]


def _given(item: dict[str, str], values: dict[str, Any]) -> Any:
    value = values.get(_name(item))
    if not item["id"].startswith("{"):
        return {**item, "value": value}
    return [{"id": one, "property": item["property"], "value": text} for one, text in value or []]
