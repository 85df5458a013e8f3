"""The controls of a cluster's page: the pair, and what is tried out. ``assets/9_bursts.js`` makes the sliders."""

from __future__ import annotations

from typing import Any

from dash import html, no_update

from analytics.model.bursts import BurstModel, machines
from frontend.components import facts
from frontend.pages.bursts.wish import SLIDERS, Wish
from webapp.bursts.live import Change

STEP = 5
NOTHING = dict.fromkeys((*SLIDERS, "node", "res", "app", "of", "lose"))


def controls(model: BurstModel, wish: Wish, drawn: str | None) -> tuple[Any, Any]:
    """Their digest and they themselves; not drawn again while a slider is being moved."""
    names = [one.name for one in model.applications]
    nodes = [node.name for node in model.nodes]
    change = wish.change
    key = repr(
        (
            model.version,
            wish.pair,
            change.node,
            change.resource,
            change.application,
            change.rate_of,
            change.lost,
        )
    )
    if key == drawn:
        return no_update, no_update
    own = _options(names)
    found = []
    if len(names) > 1:
        found.append(facts.select("Across", "x", own, wish.pair[0]))
        found.append(facts.select("Up", "y", _options([n for n in names if n != wish.pair[0]]), wish.pair[1]))
    found.append(_slider("cap", "Capacity of", _capacity(model, nodes, change)))
    found.append(
        _slider(
            "cost", "Cost per record of", facts.select("Cost per record of", "app", own, change.application)
        )
    )
    every = [("", [("", "all"), *((name, name) for name in names)])]
    found.append(_slider("rate", "Input of", facts.select("Input of", "of", every, change.rate_of)))
    if gone := machines(model):
        lost = [("", [("", "none"), *((name, name) for name in gone)])]
        found.append(facts.select("Lose", "lose", lost, change.lost))
    found.append(facts.link("As it is", NOTHING, "Take back all that is tried out"))
    return key, found


def _capacity(model: BurstModel, nodes: list[str], change: Change) -> Any:
    """The node, and of one with several resources which of them."""
    node = facts.select("Capacity of", "node", _options(nodes), change.node, clears="res")
    has = next(list(one.capacity) for one in model.nodes if one.name == change.node)
    if len(has) < 2:
        return node
    every = [("", [("", "all it has"), *((name, name) for name in has)])]
    return html.Div([node, facts.select("in", "res", every, change.resource)], className="two")


def _options(names: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [("", [(name, name) for name in names])]


def _slider(param: str, label: str, of: Any) -> Any:
    low, high = SLIDERS[param]
    data = {
        "data-slider": param, "data-min": str(low), "data-max": str(high), "data-step": str(STEP),
        "data-label": f"{label}, per cent of what it is",
    }  # fmt: skip
    return html.Div([of, html.Div(className="slide", **data)], className="slider")
