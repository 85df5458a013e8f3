"""Did it come true: rates, load and backlog around a change, with the prediction and how far it may be off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analytics.verification.judge import Measured
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.palette import Palette
from frontend.state import SECOND_NS, View
from webapp.reconfigurations.outcome import Seen

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SIGNS = ("circle", "square", "diamond", "triangle-up", "x", "star")
SIGN_TEXTS = ("●", "■", "◆", "▲", "✕", "★")
"""The same signs in a text."""
MOST = 6
ROW_PX = 170
MARGIN_PX = 60


@dataclass(frozen=True)
class Row:
    """One chart of the three: its lines by name, the predictions, and the tolerance (low, high) around each."""

    title: str
    lines: Sequence[tuple[str, Measured, float | None, tuple[float, float] | None]]
    share: bool = False


def rows(seen: Seen) -> list[Row]:
    """What was predicted or measured: source rates, load, backlog; operators with a prediction first."""
    slack = seen.tolerance
    rates, loads = dict(seen.predicted.source_rates_per_s), dict(seen.predicted.utilisation)
    found = [
        Row("Source rate, records/s", _lines(seen, seen.measured.source_rates_per_s, rates,
            lambda value: (value * (1 - slack.rate_ratio), value * (1 + slack.rate_ratio)))),
        Row("Busy, share of the time", _lines(seen, seen.measured.utilisation, loads,
            lambda value: (max(0.0, value - slack.utilisation), min(1.0, value + slack.utilisation))), True),
    ]  # fmt: skip
    if seen.measured.backlog is not None:
        found.append(Row("Backlog, records", [("backlog", seen.measured.backlog, None, None)]))
    return [row for row in found if row.lines]


def _lines(seen: Seen, measured: Mapping[str, Measured], predicted: Mapping[str, float], band: Any) -> Any:
    keys = sorted({*measured, *predicted}, key=lambda key: (key not in predicted, seen.names.get(key, key)))
    return [
        (seen.names.get(key, key), measured.get(key, Measured(())), predicted.get(key),
         band(predicted[key]) if key in predicted else None)
        for key in keys[:MOST]
    ]  # fmt: skip


def height_px(seen: Seen) -> int:
    """The height that fits what there is."""
    return MARGIN_PX + ROW_PX * max(1, len(rows(seen)))


def figure(seen: Seen, view: View, colours: Palette) -> Figure:
    """The charts one under the other, over the same time."""
    found = rows(seen)
    first = seen.began_ns - 5 * 60 * SECOND_NS
    last = max(seen.until_ns, seen.settled_ns + 30 * SECOND_NS)
    data: list[dict[str, Any]] = []
    drawn: dict[str, Any] = {
        "xaxis": base.axis(
            colours, type="date", range=[view.axis_ms(first), view.axis_ms(last)], nticks=5, tickangle=0,
            tickformat="%H:%M:%S" if last - first < 600 * SECOND_NS else "%H:%M", showgrid=False,
            hoverformat="%Y-%m-%d %H:%M:%S", anchor="free", position=0,
        )
    }  # fmt: skip
    shapes, notes = _change(seen, view, colours)
    share = 1 / max(1, len(found))
    for place, row in enumerate(found):
        top = 1 - place * share
        name = "y" if place == 0 else f"y{place + 1}"
        drawn[f"yaxis{name[1:]}"] = base.axis(
            colours, domain=[top - share * 0.78, top - share * 0.14], rangemode="tozero", fixedrange=True, nticks=4,
            tickformat=".0%" if row.share else "~s",
        )  # fmt: skip
        notes.append(_title(row.title, top - share * 0.1, colours))
        for rank, line in enumerate(row.lines):
            data += _traces(seen, line, name, rank, view, colours, share=row.share)
            shapes += _band(seen, line[3], name, last, view, colours)
    layout = base.layout(
        colours, hovermode="x unified", shapes=shapes, annotations=notes, dragmode=False,
        margin={"l": 52, "r": 12, "t": 24, "b": 32}, **drawn,
    )  # fmt: skip
    return {"data": data, "layout": layout}


def colour_of(rank: int, colours: Palette) -> str:
    """The colour of a chart's lines, in their order."""
    return colours.surface("accent" if rank == 0 else "text" if rank == 1 else "muted")


def _traces(
    seen: Seen, line: tuple[str, Measured, float | None, Any], axis: str, rank: int, view: View, colours: Palette,
    *, share: bool,
) -> list[dict[str, Any]]:  # fmt: skip
    name, measured, predicted, _ = line
    colour = colour_of(rank, colours)
    unit = "%{y:.0%}" if share else "%{y:,.4~g}"
    samples = sorted(measured.samples)
    times = [view.axis_ms(_ns_of(seen, at_s)) for at_s, _ in samples]
    cut = sum(at_s < 0 for at_s, _ in samples)  # nothing is known of the time between
    values = [value for _, value in samples]
    observed = {
        "type": "scatter", "mode": "lines+markers", "name": f"{name}, observed",
        "x": [*times[:cut], times[cut - 1] if cut else None, *times[cut:]],
        "y": [*values[:cut], None, *values[cut:]], "yaxis": axis, "hovertemplate": unit,
        "line": {"color": colour, "width": 2, "dash": DASHES[rank]},
        "marker": {"size": 6, "color": colour, "symbol": SIGNS[rank]},
    }  # fmt: skip
    if predicted is None:
        return [observed]
    ends = [view.axis_ms(seen.over_ns), view.axis_ms(max(seen.until_ns, seen.settled_ns))]
    expected = {
        "type": "scatter", "mode": "lines", "name": f"{name}, predicted", "x": ends, "y": [predicted] * 2,
        "yaxis": axis, "hovertemplate": unit,
        "line": {"color": colours.surface("open"), "width": 1.5, "dash": "dash"},
    }  # fmt: skip
    return [observed, expected]


def _ns_of(seen: Seen, at_s: float) -> int:
    return (seen.over_ns if at_s >= 0 else seen.began_ns) + int(at_s * SECOND_NS)


def _band(
    seen: Seen, ends: tuple[float, float] | None, axis: str, last: int, view: View, colours: Palette
) -> list[Any]:
    """Where a measurement agrees with the prediction."""
    if ends is None:
        return []
    return [
        {
            "type": "rect", "xref": "x", "yref": axis, "x0": view.axis_ms(seen.over_ns), "x1": view.axis_ms(last),
            "y0": ends[0], "y1": ends[1], "fillcolor": colours.surface("open"), "opacity": 0.15,
            "line": {"width": 0}, "layer": "below",
        }
    ]  # fmt: skip


def _change(seen: Seen, view: View, colours: Palette) -> tuple[list[Any], list[Any]]:
    """The change as a line, and the time after it in which nothing counts as a shade."""
    began, settled = view.axis_ms(seen.began_ns), view.axis_ms(seen.settled_ns)
    text = colours.surface("text")
    line = {
        "type": "line", "xref": "x", "yref": "paper", "x0": began, "x1": began, "y0": 0, "y1": 1,
        "line": {"color": text, "width": 2},
    }  # fmt: skip
    shade = {
        "type": "rect", "xref": "x", "yref": "paper", "x0": began, "x1": settled, "y0": 0, "y1": 1,
        "fillcolor": colours.surface("muted"), "opacity": 0.14, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip
    label = {
        "xref": "x", "yref": "paper", "x": began, "y": 1, "xanchor": "right", "yanchor": "bottom", "text": "change",
        "showarrow": False, "font": {"size": 11, "color": text},
    }  # fmt: skip
    return [shade, line], [label]


def _title(text: str, y: float, colours: Palette) -> dict[str, Any]:
    return {
        "xref": "paper", "yref": "paper", "x": 0, "y": y, "xanchor": "left", "yanchor": "middle", "text": text,
        "showarrow": False, "font": {"size": 12, "color": colours.surface("muted")},
    }  # fmt: skip
