"""The lines by which people say what a derived model is made of."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from frontend.pages.bursts.actions import ratio_of
from frontend.pages.bursts.setup_text import setup_of, text_of
from webapp.bursts.deriving import checked_setup

LINES = """ad-events
etl/nightly
node-1 = 8
node-2 = 4.5, 1.25e9
margin = 10 %
ad-events / count on node-1, node-2, node-2
etl/nightly / map = filter on disk on node-1"""


def test_jobs_nodes_networks_the_margin_and_places_are_read_from_lines() -> None:
    lines = LINES.replace("map = filter on disk", "map (filter) on disk")
    setup = setup_of(lines)
    assert setup == {
        "jobs": ["ad-events", "etl/nightly"],
        "nodes": {"node-1": {"cpu": 8.0}, "node-2": {"cpu": 4.5, "network_bytes": 1.25e9}},
        "placement": {
            "ad-events": {"count": ["node-1", "node-2", "node-2"]},
            "etl/nightly": {"map (filter) on disk": ["node-1"]},
        },
        "margin_ratio": 0.1,
    }
    assert checked_setup(setup) == setup
    assert setup_of(text_of(setup)) == setup, "what the form shows is what it reads"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("node-1 = many", "many is no number"), ("node-1 = 8, ", "nothing is no number"),
        ("margin = ten %", "ten is no number"), ("nobody / count on node-1", "begins with none of the jobs"),
    ],
)  # fmt: skip
def test_a_line_that_makes_no_sense_is_named(line: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        setup_of(f"ad-events\n{line}")


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_field_of_a_bound_is_refused_and_not_taken_for_none_at_all(nothing: str | None) -> None:
    assert (ratio_of(20, "burst_ratio"), ratio_of(0, "alert_ratio")) == (0.2, 0.0)
    with pytest.raises(ValidationError, match="expected a number from 0"):
        ratio_of(nothing, "burst_ratio")
