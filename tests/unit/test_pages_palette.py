"""Colours can be told from their background, and are written down once."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from analytics.model.activity import ActivityType
from frontend import palette

SIGN_IN = Path(__file__).resolve().parents[2] / "webapp/accounts/static/accounts/colours.css"


def luminance(colour: str) -> float:
    """WCAG 2 relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", palette.THEMES)
def test_every_activity_has_a_colour_of_its_own_that_stands_out(theme: str) -> None:
    colours = palette.of(theme)
    assert set(colours.activities) == set(ActivityType)
    assert len(set(colours.activities.values())) == len(ActivityType)
    for kind, colour in colours.activities.items():
        assert contrast(colour, colours.surface("card")) >= 3, kind


@pytest.mark.parametrize("theme", palette.THEMES)
@pytest.mark.parametrize(
    ("text", "back"),
    [("text", "card"), ("muted", "card"), ("muted", "page"), ("accent", "page"), ("on-accent", "accent"),
     ("warn", "warn-back"), ("warn", "page"), ("harm", "harm-back"), ("harm", "card"), ("good", "page")],
)  # fmt: skip
def test_text_can_be_read(theme: str, text: str, back: str) -> None:
    colours = palette.of(theme)
    assert contrast(colours.surface(text), colours.surface(back)) >= 4.5


def test_the_sign_in_page_uses_the_same_colours() -> None:
    themes = [line for line in SIGN_IN.read_text().splitlines() if "color-scheme:" in line]
    for theme, line in zip(palette.THEMES, themes, strict=True):
        for name, colour in re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", line):
            assert palette.of(theme).surface(name) == colour, (theme, name)


def test_grey_for_waiting_differs_from_grey_for_unknown() -> None:
    for theme in palette.THEMES:
        waiting, unknown = (
            palette.of(theme).activity(kind) for kind in (ActivityType.WAITING, ActivityType.UNKNOWN)
        )
        light, dark = sorted((luminance(waiting), luminance(unknown)), reverse=True)
        assert light - dark > 0.1


def test_labels_keep_their_distance_and_their_order() -> None:
    from frontend.figures.lines import LABEL_GAP, spread

    heights = [0.99, 0.98, 0.1, 0.1, 0.11]
    placed = spread(heights)
    ordered = [place for _, place in sorted(zip(heights, placed, strict=True))]
    assert all(b - a >= LABEL_GAP - 1e-9 for a, b in pairwise(sorted(ordered)))
    assert max(placed) <= 1
