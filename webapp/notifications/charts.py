"""Charts of mails as PNG, drawn without a browser. The ground is transparent and every colour stands out from white
and from near-black alike, since mail clients choose the theme."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from analytics.model.activity import ActivityType as T
from webapp.notifications.digest import Bars

COLOURS: Final = {
    T.PROCESSING: "#2e7ce0", T.SCHEDULING: "#ca5c0d", T.SERIALIZATION: "#9562d9", T.DESERIALIZATION: "#d6409f",
    T.BUFFER: "#a58200", T.BARRIER: "#a37046", T.DATA_MESSAGE: "#0b8a83", T.CONTROL_MESSAGE: "#3f8f1f",
    T.INPUT: "#0a93c2", T.FAULT_TOLERANCE: "#d54a58", T.WAITING: "#8f949b", T.UNKNOWN: "#767d89",
}  # fmt: skip
"""Between the colours that the pages have in their light and in their dark theme, at least 3:1 on both."""

WIDTH_PX, HEIGHT_PX = 528, 104
SCALE = 2
"""Pixels of the picture for one of the mail: screens of phones have more."""

_AXIS = "#767d89"
_LEFT, _TOP, _BOTTOM = 46, 10, 22
_MOST_BAR_PX = 26


@lru_cache(maxsize=1_024)
def png(chart: Bars) -> bytes:
    """The chart; the same bytes for the same chart."""
    image = Image.new("RGBA", (WIDTH_PX * SCALE, HEIGHT_PX * SCALE), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    _draw_axes(draw, chart)
    low, high = HEIGHT_PX - _BOTTOM, _TOP
    step = min((WIDTH_PX - _LEFT) / max(len(chart.bars), 1), _MOST_BAR_PX)
    gap = 2 if step >= 8 else 1
    for place, bar in enumerate(chart.bars):
        if bar is None:
            continue
        cp, code = bar
        left = _LEFT + place * step
        top = low - max(min(cp, 1.0) * (low - high), 1)
        draw.rectangle(_scaled(left, top, left + step - gap, low - 1), fill=COLOURS[T(code)])
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _draw_axes(draw: ImageDraw.ImageDraw, chart: Bars) -> None:
    font = ImageFont.load_default(11 * SCALE)
    low, high = HEIGHT_PX - _BOTTOM, _TOP
    for share, label in ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")):
        y = low - share * (low - high)
        draw.line(_scaled(_LEFT, y, WIDTH_PX, y), fill=_AXIS if not share else f"{_AXIS}55", width=SCALE)
        draw.text(((_LEFT - 6) * SCALE, y * SCALE), label, fill=_AXIS, font=font, anchor="rm")
    step = min((WIDTH_PX - _LEFT) / max(len(chart.bars), 1), _MOST_BAR_PX)
    end = max(_LEFT + step * len(chart.bars), _LEFT + 160)
    draw.text((_LEFT * SCALE, (low + 5) * SCALE), chart.first, fill=_AXIS, font=font, anchor="la")
    draw.text((end * SCALE, (low + 5) * SCALE), chart.last, fill=_AXIS, font=font, anchor="ra")


def _scaled(*values: float) -> list[float]:
    return [round(value * SCALE) for value in values]
