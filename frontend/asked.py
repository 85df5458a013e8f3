"""What the questions' tabs are asked, as it stands in the address beside the rest of the page's state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from urllib.parse import parse_qs

from frontend.state import View, instant, integer
from webapp.analysis.models import QuestionKind
from webapp.analysis.questions import Asked

WEIGHS = ("during", "duration", "count")
MS_NS = 1_000_000
LONGEST_MS = 10**9
DEFAULT_FACTOR = 2.0
NO_FACTOR = 0.0
"""Stands for what is no factor, to be said: a reader who wrote it should not see another one's answer."""
MOST_FACTOR = 1e6
DEFAULT_HOPS = 5
MOST_HOPS = 64
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Wish:
    """A parsed address. Names of workers and targets are as people read them; nobody has checked them yet.

    ``target`` is ``operator:map``, ``worker:driver`` or ``activity:serialization``. Ranges are in ns; None: as the
    page's.
    """

    window_ns: int | None = None
    worker: str = ""
    at_ns: int | None = None
    weigh: str = WEIGHS[0]
    hops: int = DEFAULT_HOPS
    target: str = ""
    factor: float = DEFAULT_FACTOR
    before: Range | None = None
    after: Range | None = None
    longest_operator_ns: int | None = None
    longest_message_ns: int | None = None
    longest_pause_ns: int | None = None
    progress: bool = False

    @staticmethod
    def parse(query: str) -> Wish:
        """Read a query string; values that make no sense count as absent."""
        fields = {key: values[-1] for key, values in parse_qs(query.lstrip("?")).items()}
        return Wish(
            window_ns=integer(fields.get("window")),
            worker=fields.get("worker", "")[:500],
            at_ns=integer(fields.get("at")),
            weigh=fields["weigh"] if fields.get("weigh") in WEIGHS else WEIGHS[0],
            hops=_hops(fields.get("hops")),
            target=fields.get("target", "")[:520],
            factor=_factor(fields.get("factor")),
            before=_range(fields.get("a_from"), fields.get("a_to")),
            after=_range(fields.get("b_from"), fields.get("b_to")),
            longest_operator_ns=_limit(fields.get("longest_operator_ms")),
            longest_message_ns=_limit(fields.get("longest_message_ms")),
            longest_pause_ns=_limit(fields.get("longest_pause_ms")),
            progress=fields.get("progress") == "1",
        )


def about_range(kind: QuestionKind, view: View, now_ns: int, **params: object) -> Asked:
    """A question about the page's range."""
    from_ns, to_ns = view.span(now_ns)
    name = {"from_ns": from_ns, "to_ns": to_ns} if view.is_absolute else {"range": view.range}
    return Asked(kind, {**name, **params}, ((from_ns, to_ns),), moving=not view.is_absolute)


def about_window(kind: QuestionKind, start_ns: int, **params: object) -> Asked:
    """A question about one window."""
    return Asked(kind, {"window_ns": start_ns, **params}, ((start_ns, start_ns + 1),))


def _range(low: str | None, high: str | None) -> Range | None:
    from_ns, to_ns = instant(low), instant(high)
    return (from_ns, to_ns) if from_ns is not None and to_ns is not None and from_ns < to_ns else None


def _hops(text: str | None) -> int:
    value = integer(text)
    return value if value is not None and 1 <= value <= MOST_HOPS else DEFAULT_HOPS


def _factor(text: str | None) -> float:
    if text is None:
        return DEFAULT_FACTOR
    if text in ("infinite", "∞"):
        return math.inf
    try:
        value = float(text.strip().rstrip("×x").replace(",", "."))
    except ValueError:
        return NO_FACTOR
    return value if 1 <= value < MOST_FACTOR else NO_FACTOR


def _limit(text: str | None) -> int | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return round(value * MS_NS) if 0 < value <= LONGEST_MS else None
