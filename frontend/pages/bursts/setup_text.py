"""What a derived model is made of besides rates, as lines that people write, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError

from analytics.model.bursts import NETWORK

CPU = "cpu"
PLACED = " on "
MARGIN = "margin"
HINT = (
    "One job a line. If they share machines, each of these on a line too: node-1 = 8 (cores), or node-1 = 8, 1.25e9"
    " (and the bytes a second that its network can send). Kept free of every node: margin = 10 %. Where instances"
    " run, in turn: ad-events / count on node-1, node-2; without it they are taken to be spread over all nodes."
)


def setup_of(text: str) -> dict[str, Any]:
    """Jobs, nodes with their cores and maybe network, the margin, and where instances run, a line each.

    Raises
    ------
    ValidationError
        If a number is none, or a place names no job; the message names the line.
    """
    setup: dict[str, Any] = {"jobs": [], "nodes": {}, "placement": {}, "margin_ratio": 0.0}
    placed = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, is_node, numbers = line.rpartition("=")
        if is_node and name.strip() == MARGIN and numbers.strip().endswith("%"):
            setup["margin_ratio"] = _number(numbers.strip().removesuffix("%"), line) / 100
        elif is_node:
            setup["nodes"][name.strip()] = _capacity(numbers, line)
        elif PLACED in line and "/" in line:
            placed.append(line)
        else:
            setup["jobs"].append(line)
    for line in placed:
        job, operator, nodes = _place(line, setup["jobs"])
        setup["placement"].setdefault(job, {})[operator] = nodes
    return setup


def _capacity(numbers: str, line: str) -> dict[str, float]:
    cores, comma, sent = numbers.partition(",")
    found = {CPU: _number(cores, line)}
    return {**found, NETWORK: _number(sent, line)} if comma else found


def _number(text: str, line: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValidationError({"setup": f"{line}: {text.strip() or 'nothing'} is no number"}) from error


def _place(line: str, jobs: list[str]) -> tuple[str, str, list[str]]:
    """Job and operator, whose names may hold anything, and the nodes."""
    what, _, nodes = line.rpartition(PLACED)
    for job in jobs:
        operator = what.removeprefix(job).lstrip()
        if what.startswith(job) and operator.startswith("/"):
            return job, operator[1:].strip(), [node.strip() for node in nodes.split(",")]
    raise ValidationError({"setup": f"{line}: it begins with none of the jobs"})


def text_of(setup: Mapping[str, Any]) -> str:
    """The lines of a setup, as `setup_of` reads them."""
    lines = list(setup.get("jobs", []))
    for name, node in setup.get("nodes", {}).items():
        lines.append(f"{name} = {', '.join(f'{node[key]:.12g}' for key in (CPU, NETWORK) if key in node)}")
    if margin := setup.get("margin_ratio"):
        lines.append(f"{MARGIN} = {margin * 100:.12g} %")
    for job, operators in setup.get("placement", {}).items():
        lines += [f"{job} / {name}{PLACED}{', '.join(nodes)}" for name, nodes in operators.items()]
    return "\n".join(lines)
