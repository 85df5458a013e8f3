"""Level of detail: whatever the window and the zoom, nothing is lost, and what is critical is always there."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.model.activity import ActivityType as T
from analytics.model.results import WindowEdges
from frontend.figures import detail, rows
from frontend.figures.detail import MAX_BARS, MAX_CRITICAL, MAX_MESSAGES, Detail
from frontend.figures.rows import Choice, Rows
from webapp.analysis import edge_index

KINDS = [T.PROCESSING, T.SCHEDULING, T.WAITING, T.UNKNOWN]
WIDTH_NS = 1_000_000


def window(seed: int, workers: int, pieces: int, messages: int, critical: float = 0.1) -> WindowEdges:
    """Every worker busy without overlap (gaps included), messages anywhere, anything critical; in any order."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, WIDTH_NS, (workers, 2 * pieces)), axis=1)
    begin, end = cuts[:, ::2].ravel(), cuts[:, 1::2].ravel()
    worker = np.repeat(np.arange(workers), pieces)
    some = begin < end
    begin, end, worker = begin[some], end[some], worker[some]
    sent = rng.integers(0, WIDTH_NS, messages)
    sender = rng.integers(0, workers, messages)
    receiver = (sender + rng.integers(1, max(2, workers), messages)) % workers
    remote = sender != receiver
    received = np.minimum(WIDTH_NS, sent + rng.integers(0, WIDTH_NS // 4, messages))
    size = len(begin) + int(remote.sum())
    order = rng.permutation(size)
    kinds = np.concatenate([rng.choice(KINDS, len(begin)), np.full(int(remote.sum()), T.DATA_MESSAGE)])
    share = rng.random(size)
    return WindowEdges(
        np.concatenate([worker, sender[remote]]).astype(np.int32)[order],
        np.concatenate([begin, sent[remote]])[order],
        np.concatenate([worker, receiver[remote]]).astype(np.int32)[order],
        np.concatenate([end, received[remote]])[order],
        kinds.astype(np.uint8)[order],
        np.zeros(size, np.int32),
        share / max(1.0, share.sum()),
        share,
        rng.random(size) < critical,
    )


def look(edges: WindowEdges, span: tuple[int, int], columns: int, choice: Choice) -> tuple[Rows, Detail]:
    index = edge_index.index(edges)
    shown = rows.arrange(index, {}, {}, choice)
    return shown, detail.detail(index, shown, span, columns)


windows = st.builds(
    window,
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(0, 400),
    st.floats(0, 1),
)
spans = st.tuples(st.integers(0, WIDTH_NS - 1000), st.integers(1000, WIDTH_NS)).map(
    lambda pair: (pair[0], min(WIDTH_NS, pair[0] + pair[1]))
)
choices = st.builds(Choice, by_cp=st.booleans(), critical_only=st.booleans(), everybody=st.booleans())


def visible(edges: WindowEdges, shown: Rows, span: tuple[int, int]) -> tuple[set[int], set[int], set[int]]:
    """Activities, messages between shown lanes and all messages of the range, looked for one by one."""
    overlaps = (edges.src_ns < span[1]) & (edges.dst_ns > span[0])
    under_way = (edges.src_ns <= span[1]) & (edges.dst_ns >= span[0])
    local = edges.src == edges.dst
    there = np.isin(edges.src, shown.workers) & np.isin(edges.dst, shown.workers)
    every = np.flatnonzero(under_way & ~local)
    return (
        set(np.flatnonzero(overlaps & local & there).tolist()),
        set(np.flatnonzero(under_way & ~local & there).tolist()),
        set(every.tolist()),
    )


@given(windows, spans, st.integers(1, 500), choices)
def test_every_visible_edge_is_accounted_for_exactly_once(
    edges: WindowEdges, span: tuple[int, int], columns: int, choice: Choice
) -> None:
    shown, found = look(edges, span, columns, choice)
    activities, messages, all_messages = visible(edges, shown, span)
    parts = [found.critical, found.others, found.merged, found.merged_critical]
    listed = np.concatenate(parts).tolist()
    assert len(listed) == len(set(listed))
    assert set(listed) == activities
    sent = np.concatenate([found.critical_messages, found.messages, found.left_out]).tolist()
    assert len(sent) == len(set(sent))
    assert set(sent) == messages
    assert found.elsewhere == len(all_messages) - len(messages)


@given(windows, spans, st.integers(1, 500), choices)
def test_merging_keeps_the_time_of_each_type_on_each_lane(
    edges: WindowEdges, span: tuple[int, int], columns: int, choice: Choice
) -> None:
    shown, found = look(edges, span, columns, choice)
    for picked, texture in ((found.merged, found.texture), (found.merged_critical, found.critical_texture)):
        expected = np.zeros((shown.count, 256), np.int64)
        inside = np.minimum(edges.dst_ns[picked], span[1]) - np.maximum(edges.src_ns[picked], span[0])
        np.add.at(expected, (shown.of(edges.src[picked]), edges.type[picked]), inside)
        drawn = np.zeros_like(expected)
        drawn[:, texture.kinds] = texture.busy_ns.sum(axis=1)
        assert (drawn == expected).all()
        assert ((texture.dominant() >= 0) == (texture.count > 0)).all()
        assert texture.busy_ns.sum(axis=2).max(initial=0) <= -(-(span[1] - span[0]) // columns)


@given(windows, spans, st.integers(1, 500))
def test_the_critical_path_is_always_there(edges: WindowEdges, span: tuple[int, int], columns: int) -> None:
    shown, found = look(edges, span, columns, Choice(everybody=True))
    activities, messages, _ = visible(edges, shown, span)
    critical = {i for i in activities if edges.on_path[i]}
    assert set(found.critical.tolist()) | set(found.merged_critical.tolist()) == critical
    if len(critical) <= MAX_CRITICAL:
        assert len(found.merged_critical) == 0
    assert set(found.critical_messages.tolist()) == {i for i in messages if edges.on_path[i]}


def test_a_path_too_long_to_be_drawn_one_by_one_still_marks_every_column_it_crosses() -> None:
    edges = window(3, 1, 20_000, 0, critical=1.0)
    _, found = look(edges, (0, WIDTH_NS), 900, Choice())
    assert len(found.merged_critical) > 0
    assert len(found.critical) <= MAX_BARS
    crossed = np.zeros(900, np.bool_)
    for i in found.merged_critical.tolist():
        first, last = (int(t[i]) * 900 // WIDTH_NS for t in (edges.src_ns, edges.dst_ns - 1))
        crossed[first : last + 1] = True
    assert (found.critical_texture.dominant()[0] >= 0).sum() >= crossed.sum() * 0.99
    assert found.words()[0].endswith("short critical segments merged likewise until you zoom in")


@given(windows, st.integers(0, WIDTH_NS - 5000))
def test_zoomed_in_far_enough_nothing_is_merged_or_left_out(edges: WindowEdges, at_ns: int) -> None:
    _, found = look(edges, (at_ns, at_ns + 1000), 1000, Choice(everybody=True))
    if len(found.others) < MAX_BARS and len(found.messages) < MAX_MESSAGES:
        assert (len(found.merged), len(found.merged_critical), len(found.left_out)) == (0, 0, 0)
        assert found.words() == []


@given(windows, st.integers(1, 500))
def test_the_most_critical_messages_are_the_ones_that_are_drawn(edges: WindowEdges, columns: int) -> None:
    _, found = look(edges, (0, WIDTH_NS), columns, Choice(everybody=True))
    assert len(found.messages) <= MAX_MESSAGES
    if len(found.left_out) and len(found.messages):
        assert edges.cp[found.left_out].max() <= edges.cp[found.messages].min()


@given(windows, spans, choices)
def test_what_is_said_adds_up(edges: WindowEdges, span: tuple[int, int], choice: Choice) -> None:
    import re

    shown, found = look(edges, span, 300, choice)
    said = [int(text.replace(",", "")) for part in found.words() for text in re.findall(r"^[\d,]+", part)]
    missing = [len(found.merged), len(found.merged_critical), len(found.left_out), found.elsewhere]
    assert said == [count for count in missing if count]
    everybody = len(np.union1d(edges.src, edges.dst))
    assert len(shown.workers) + shown.hidden == everybody
    assert bool(shown.left_out) == bool(shown.hidden)
