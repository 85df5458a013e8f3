"""Charts of mails: colours that stand out in both themes, pictures that show what they should, stable bytes."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from analytics.model.activity import ActivityType
from frontend.palette import DARK_ACTIVITIES, DARK_SURFACES, LIGHT_ACTIVITIES, LIGHT_SURFACES
from webapp.notifications.charts import COLOURS, HEIGHT_PX, SCALE, WIDTH_PX, png
from webapp.notifications.digest import Bars


def rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [part / 255 for part in rgb(colour)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("kind", ActivityType)
def test_a_colour_is_between_those_of_the_pages_and_seen_on_both_grounds(kind: ActivityType) -> None:
    for ground in (LIGHT_SURFACES["card"], DARK_SURFACES["card"]):
        assert contrast(COLOURS[kind], ground) >= 3
    ends = (rgb(LIGHT_ACTIVITIES[kind]), rgb(DARK_ACTIVITIES[kind]))
    for part, light, dark in zip(rgb(COLOURS[kind]), *ends, strict=True):
        assert min(light, dark) - 1 <= part <= max(light, dark) + 1


def bars(*values: float | None, code: int = ActivityType.PROCESSING) -> Bars:
    return Bars(tuple(None if v is None else (v, int(code)) for v in values), "a", "b", "what it says")


def coloured(chart: Bars, kind: ActivityType) -> list[int]:
    """How many pixels of each column have the colour of this type."""
    image = Image.open(io.BytesIO(png(chart))).convert("RGBA")
    assert image.size == (WIDTH_PX * SCALE, HEIGHT_PX * SCALE)
    wanted = (*rgb(COLOURS[kind]), 255)
    pixels = image.load()
    assert pixels is not None
    return [sum(pixels[x, y] == wanted for y in range(image.height)) for x in range(image.width)]


def test_a_bar_is_as_high_as_its_cp_and_nothing_is_drawn_where_nothing_is_known() -> None:
    columns = coloured(bars(1.0, 0.5, None, 0.25), ActivityType.PROCESSING)
    heights = [height for place, height in enumerate(columns) if height and not columns[place - 1]]
    assert len(heights) == 3
    assert heights[1] / heights[0] == pytest.approx(0.5, abs=0.03)
    assert heights[2] / heights[0] == pytest.approx(0.25, abs=0.03)


def test_more_than_a_whole_is_drawn_as_a_whole_and_no_bar_at_all_is_a_picture_too() -> None:
    assert max(coloured(bars(1.7), ActivityType.PROCESSING)) == max(
        coloured(bars(1.0), ActivityType.PROCESSING)
    )
    assert sum(coloured(bars(), ActivityType.PROCESSING)) == 0


def test_the_same_chart_has_the_same_bytes() -> None:
    first = png(bars(0.1, 0.9))
    png.cache_clear()
    assert png(bars(0.1, 0.9)) == first
    assert png(bars(0.1, 0.8)) != first
