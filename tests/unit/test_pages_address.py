"""The address of a page holds its whole state, and no address can break a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.state import SECOND_NS, View, iso


def test_an_empty_address_means_live_the_last_quarter_of_an_hour_in_utc() -> None:
    view = View.parse("")
    assert (view.range, view.live, view.is_absolute, view.theme, view.tab) == (
        "15m",
        True,
        False,
        "light",
        "limits",
    )
    assert view.span(1000 * SECOND_NS) == (100 * SECOND_NS, 1000 * SECOND_NS)
    assert view.span_words == "in the last 15 min"


def test_a_fixed_range_is_read_to_the_millisecond_and_named_in_the_readers_zone() -> None:
    view = View.parse("?from=2026-01-02T10:00:00.250Z&to=2026-01-02T11:00:00Z&zone=Europe/Berlin")
    from_ns, to_ns = view.span(0)
    assert to_ns - from_ns == 3_599_750_000_000
    assert iso(from_ns) == "2026-01-02T10:00:00.250Z"
    assert view.span_words == "from 2026-01-02 11:00:00 to 12:00:00 Europe/Berlin"


@pytest.mark.parametrize(
    "query",
    [
        "from=2026-01-02T10:00:00Z",
        "from=2026-01-02T10:00:00Z&to=2026-01-02T09:00:00Z",
        "from=x&to=y",
        "range=7y",
    ],
)
def test_a_range_that_makes_no_sense_counts_as_none(query: str) -> None:
    view = View.parse(query)
    assert not view.is_absolute
    assert view.range == "15m"


@given(st.text(max_size=300))
def test_no_address_breaks_a_page(query: str) -> None:
    view = View.parse(query)
    assert view.span(10**18)[0] < 10**18


@given(
    st.sampled_from(["from", "to", "window", "segment", "zone", "tab", "theme", "range"]),
    st.text(max_size=40),
)
def test_no_value_of_a_known_field_breaks_a_page(name: str, value: str) -> None:
    from urllib.parse import urlencode

    assert View.parse(urlencode({name: value})).zone is not None


@given(st.integers(0, 4 * 10**18 // 10**6))
def test_a_time_survives_the_address(ms: int) -> None:
    at_ns = ms * 1_000_000
    view = View.parse(f"from={iso(at_ns)}&to={iso(at_ns + 10**9)}")
    assert view.from_ns == at_ns
