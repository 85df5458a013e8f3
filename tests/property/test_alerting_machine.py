"""Alerts neither flap nor forget: properties of the state machine, against the definition in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analytics.alerting.machine import Point, Terms, Told, Turn, Watch, episodes, follow, to_tell

VALUES = st.one_of(st.none(), st.floats(0, 1, allow_nan=False), st.sampled_from([0.0, 0.4, 0.6, 1.0]))


@st.composite
def terms(draw: st.DrawFn) -> Terms:
    low, high = sorted((draw(st.floats(0.1, 0.9)), draw(st.floats(0.1, 0.9))))
    above = draw(st.booleans())
    counts = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    return Terms(above, high if above else low, low if above else high, *counts)


def points(values: list[float | None]) -> list[Point]:
    return [Point(place, value) for place, value in enumerate(values)]


@given(terms(), st.lists(VALUES, max_size=60), st.integers(0, 60))
def test_where_a_series_is_cut_makes_no_difference(rule: Terms, values: list[float | None], cut: int) -> None:
    whole, turns = follow(rule, Watch(), points(values))
    first, before = follow(rule, Watch(), points(values)[:cut])
    second, after = follow(rule, first, points(values)[cut:])
    assert (second, before + after) == (whole, turns)


@given(terms(), st.lists(VALUES, max_size=60))
def test_a_turn_needs_its_number_of_values_in_a_row_and_turns_alternate(
    rule: Terms, values: list[float | None]
) -> None:
    _, turns = follow(rule, Watch(), points(values))
    wanted = [Turn.FIRED, Turn.RESOLVED] * len(turns)
    assert [change.turn for change in turns] == wanted[: len(turns)]
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    for change in turns:
        until = [value for place, value in known if place <= change.at_ns]
        if change.turn is Turn.FIRED:
            assert all(rule.bad(value) for value in until[-rule.fire_after :])
            assert len(until) >= rule.fire_after
        else:
            assert all(rule.good(value) for value in until[-rule.clear_after :])


@given(terms(), st.lists(VALUES, max_size=60))
def test_it_fires_as_soon_as_enough_values_in_a_row_are_bad(rule: Terms, values: list[float | None]) -> None:
    _, turns = follow(rule, Watch(), points(values))
    row = 0
    for place, value in enumerate(values):
        row = row if value is None else row + 1 if rule.bad(value) else 0
        if row >= rule.fire_after:
            assert turns
            assert turns[0].at_ns == place
            return
    assert not turns


@given(terms(), st.booleans(), st.lists(st.floats(0, 1), max_size=60))
def test_inside_the_band_nothing_ever_changes(rule: Terms, firing: bool, shares: list[float]) -> None:
    low, high = sorted((rule.threshold, rule.clear))
    inside = [low + share * (high - low) for share in shares]
    band = [value for value in inside if not rule.bad(value) and not rule.good(value)]
    watch, turns = follow(rule, Watch(firing), points(list(band)))
    assert (watch.firing, turns) == (firing, ())


@given(terms(), st.lists(VALUES, max_size=60))
def test_gaps_neither_fire_nor_clear_nor_break_a_row(rule: Terms, values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    assert follow(rule, Watch(), points(values))[0] == follow(rule, Watch(), points(list(known)))[0]


@given(terms(), st.lists(VALUES, max_size=60))
def test_a_preview_tells_of_exactly_the_turns_that_would_have_been(
    rule: Terms, values: list[float | None]
) -> None:
    watch, turns = follow(rule, Watch(), points(values))
    found = episodes(rule, points(values))
    assert [item.from_ns for item in found] == [item.at_ns for item in turns if item.turn is Turn.FIRED]
    ended = [item.to_ns for item in found if item.to_ns is not None]
    assert ended == [item.at_ns for item in turns if item.turn is Turn.RESOLVED]
    assert (bool(found) and found[-1].to_ns is None) is watch.firing
    for item in found:
        assert rule.bad(item.worst)


@given(st.lists(st.booleans(), max_size=20), st.integers(0, 20))
def test_a_silence_hides_but_does_not_lose(silences: list[bool], over_at: int) -> None:
    """Whatever is silenced when: nothing is told in silence, and once it ends people know what is so."""
    told, said = Told.NOTHING, list[Told]()
    for place, silenced in enumerate([*silences, False]):
        firing = place < over_at
        news = to_tell(told, firing, silenced)
        assert not (silenced and news)
        if news is not None:
            told = news
            said.append(news)
        if not silenced:
            assert (told is Told.FIRED) is firing
    heard = any(not silenced for silenced in silences[:over_at]) or over_at > len(silences)
    assert said[:1] == ([Told.FIRED] if heard else [])
    assert said[1:] == ([Told.RESOLVED] if heard and over_at <= len(silences) else [])
