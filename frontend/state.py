"""What a page shows, as it stands in its address: a copied link opens the same view."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from frontend.place import Place

SECOND_NS = 1_000_000_000
LATEST_NS = 2**62
"""The year 2116: what lies beyond does not fit the database's arithmetic."""
RANGES = {"5m": 300, "15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400}
RANGE_LABELS = {"5m": "5 min", "15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h"}
DEFAULT_RANGE = "15m"
REFRESH_MS = {"5m": 2000, "15m": 2000, "1h": 5000, "6h": 15_000, "24h": 60_000}
TABS = ("limits", "timeline", "why", "what-if", "compare", "together", "trust", "scaling", "changes", "rules")
LAST_PAGE = 10**6
ZONE_UTC = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class View:
    """A parsed address. ``from_ns``/``to_ns`` are both set (absolute range) or both None.

    ``zoom_ns`` is the visible part of a window, from its start on; None shows all of it.
    """

    range: str = DEFAULT_RANGE
    from_ns: int | None = None
    to_ns: int | None = None
    live: bool = True
    zone: ZoneInfo = ZONE_UTC
    theme: str = "light"
    tab: str = "limits"
    window_ns: int | None = None
    segment: Place = field(default_factory=Place)
    search: str = ""
    show: str = ""
    sort: str = ""
    page: int = 0
    all_operator_types: bool = False
    all_lanes: bool = False
    lanes_by_cp: bool = False
    critical_lanes: bool = False
    find: str = ""
    zoom_ns: tuple[int, int] | None = None

    @staticmethod
    def parse(query: str) -> View:
        """Read a query string; values that make no sense count as absent."""
        fields = {key: values[-1] for key, values in parse_qs(query.lstrip("?")).items()}
        from_ns, to_ns = instant(fields.get("from")), instant(fields.get("to"))
        absolute = from_ns is not None and to_ns is not None and from_ns < to_ns
        return View(
            range=fields["range"] if fields.get("range") in RANGES else DEFAULT_RANGE,
            from_ns=from_ns if absolute else None,
            to_ns=to_ns if absolute else None,
            live=fields.get("live") != "0",
            zone=_zone(fields.get("zone", "UTC")),
            theme="dark" if fields.get("theme") == "dark" else "light",
            tab=fields["tab"] if fields.get("tab") in TABS else TABS[0],
            window_ns=integer(fields.get("window")),
            segment=Place.parse(fields.get("segment", "")),
            search=fields.get("search", "")[:200],
            show=fields.get("show", ""),
            sort=fields.get("sort", ""),
            page=min(max((integer(fields.get("page")) or 1) - 1, 0), LAST_PAGE),
            all_operator_types=fields.get("operators") == "all",
            all_lanes=fields.get("lanes") == "all",
            lanes_by_cp=fields.get("order") == "cp",
            critical_lanes=fields.get("only") == "critical",
            find=fields.get("find", "")[:200],
            zoom_ns=_zoom(fields.get("zoom", "")),
        )

    @property
    def is_absolute(self) -> bool:
        """Whether the range has fixed ends."""
        return self.from_ns is not None

    def span(self, now_ns: int) -> tuple[int, int]:
        """The range ``[from, to]`` in ns."""
        if self.from_ns is not None and self.to_ns is not None:
            return self.from_ns, self.to_ns
        return now_ns - RANGES[self.range] * SECOND_NS, now_ns

    @property
    def span_words(self) -> str:
        """The range as a sentence ends with it: "in the last 15 min", "from … to …"."""
        if self.from_ns is None or self.to_ns is None:
            return f"in the last {RANGE_LABELS[self.range]}"
        first, last = self.time(self.from_ns), self.time(self.to_ns)
        if first.date() == last.date():
            return f"from {first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S} {self.zone_label}"
        return f"from {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} {self.zone_label}"

    @property
    def zone_label(self) -> str:
        """The zone as charts name it."""
        return self.zone.key

    def time(self, at_ns: int) -> datetime:
        """A time in the reader's zone (to the microsecond)."""
        return datetime.fromtimestamp(at_ns // SECOND_NS, self.zone).replace(
            microsecond=at_ns % SECOND_NS // 1000
        )

    def axis_ms(self, at_ns: int) -> float:
        """A time as Plotly's date axes take it: ms since 1970 of the reader's wall clock."""
        offset = self.time(at_ns).utcoffset()
        return at_ns / 1e6 + (offset.total_seconds() * 1000 if offset else 0.0)


def parameter(query: str, name: str) -> str:
    """One parameter of an address, for what a single page knows; "" if it is absent."""
    return parse_qs(query.lstrip("?")).get(name, [""])[-1]


def iso(at_ns: int) -> str:
    """A time as it stands in an address, to the millisecond."""
    at = datetime.fromtimestamp(at_ns // SECOND_NS, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ns % SECOND_NS // 1_000_000:03d}Z"


def instant(text: str | None) -> int | None:
    """A time of an address in ns; None if it is none."""
    try:
        at = datetime.fromisoformat(text or "")
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        at_ns = int(at.timestamp()) * SECOND_NS + at.microsecond * 1000
    except (ValueError, OverflowError):
        return None
    return at_ns if abs(at_ns) < LATEST_NS else None


def integer(text: str | None) -> int | None:
    """A whole number that the database can hold; None if it is none."""
    try:
        value = int(text or "")
    except ValueError:
        return None
    return value if abs(value) < 2**63 else None


def _zoom(text: str) -> tuple[int, int] | None:
    first, _, last = text.partition("-")
    from_ns, to_ns = integer(first), integer(last)
    if from_ns is None or to_ns is None or not 0 <= from_ns < to_ns:
        return None
    return from_ns, to_ns


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZONE_UTC
