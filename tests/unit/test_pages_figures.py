"""Charts draw what they say, and say what they leave out."""

import numpy as np
import pytest

from analytics.model.activity import ActivityType as T
from analytics.model.results import WindowEdges
from frontend import palette, words
from frontend.figures import lanes, rows
from frontend.figures.ranking import ranked
from webapp.analysis.shares import Share

LIGHT = palette.of("light")
WINDOW = (0, 1_000_000_000)


def share(key: int, cp: float, profile: float = 0.1) -> Share:
    return Share((key,), cp, profile, np.array([cp, cp]), np.array([profile, profile]))


def window(workers: int, pieces: int, messages: int = 0) -> WindowEdges:
    """Each worker does ``pieces`` short activities; the first worker's are the critical path."""
    length = WINDOW[1] // pieces
    worker = np.repeat(np.arange(workers, dtype=np.int32), pieces)
    start = np.tile(np.arange(pieces, dtype=np.int64) * length, workers)
    src = np.concatenate([worker, np.zeros(messages, np.int32)])
    dst = np.concatenate([worker, np.ones(messages, np.int32)])
    src_ns = np.concatenate([start, np.arange(messages, dtype=np.int64) * 1000])
    dst_ns = np.concatenate([start + length, np.arange(messages, dtype=np.int64) * 1000 + 500])
    kinds = np.concatenate([np.full(len(worker), T.PROCESSING), np.full(messages, T.DATA_MESSAGE)]).astype(
        np.uint8
    )
    on_path = (src == 0) & (dst == 0)
    cp = on_path / max(1, on_path.sum())
    return WindowEdges(
        src, src_ns, dst, dst_ns, kinds, np.zeros(len(src), np.int32), cp, on_path.astype(float), on_path
    )


def draw(edges: WindowEdges, everybody: bool = True) -> lanes.Drawn:
    arranged = rows.arrange(edges, {}, {}, everybody)
    return lanes.figure(edges, arranged, {0: "count"}, WINDOW, LIGHT)


def bars(drawn: lanes.Drawn) -> int:
    return sum(len(trace["x"]) for trace in drawn.figure["data"] if trace["type"] == "bar")


def test_a_small_window_is_drawn_whole() -> None:
    drawn = draw(window(3, 10, 2))
    assert bars(drawn) == 30
    assert drawn.left_out == ""
    outlined = [t for t in drawn.figure["data"] if t["type"] == "bar" and t["marker"]["line"]["width"] == 2]
    assert sum(len(trace["x"]) for trace in outlined) == 10


def test_a_large_window_is_merged_but_never_on_the_critical_path_and_says_so() -> None:
    drawn = draw(window(20, 1000, 2000))
    assert bars(drawn) <= lanes.MAX_BARS + 1000
    assert "19,000 short activities off the critical path are merged into" in drawn.left_out
    assert "the 1,200 shortest messages off the critical path are left out" in drawn.left_out
    assert len(drawn.figure["layout"]["meta"]["critical"]) == 1000
    merged = [t for t in drawn.figure["data"] if t["type"] == "bar" and "merged" in t["name"]]
    assert sum(sum(trace["x"]) for trace in merged) == pytest.approx(19 * 1000, rel=1e-6)


def test_many_workers_are_cut_to_those_that_matter_and_the_rest_counted() -> None:
    drawn = draw(window(200, 5), everybody=False)
    assert "160 of 200 workers, with the least CP, are not shown" in drawn.left_out
    assert draw(window(200, 5)).left_out == ""


def test_workers_stand_under_their_hosts() -> None:
    arranged = rows.arrange(
        window(4, 2), {i: f"w{i}" for i in range(4)}, {0: "b", 1: "a", 2: "b", 3: "a"}, True
    )
    assert arranged.titles == ["<b>a</b>", "w1", "w3", "<b>b</b>", "w0", "w2"]


def test_the_top_six_are_named_and_the_rest_is_one_group_that_loses_nothing() -> None:
    series = ranked([share(i, i / 100) for i in range(1, 11)], lambda s: f"w{s.key[0]}")
    assert [item.name for item in series] == ["w10", "w9", "w8", "w7", "w6", "w5", "others (4)"]
    assert sum(item.cp for item in series) == pytest.approx(0.55)
    assert [name for name, _, _ in series[-1].members] == ["w4", "w3", "w2", "w1"]


def test_one_group_too_many_is_named_instead_of_being_hidden_alone() -> None:
    assert len(ranked([share(i, 0.1) for i in range(7)], lambda s: str(s.key[0]))) == 7


def test_what_must_always_show_is_never_among_the_others() -> None:
    series = ranked(
        [share(i, i / 100) for i in range(10)], lambda s: str(s.key[0]), always=lambda s: s.key == (0,)
    )
    assert "0" in [item.name for item in series]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 %"), (0.621, "62 %"), (0.0309, "3.1 %"), (0.00042, "0.042 %"), (1.0, "100 %")],
)
def test_shares_are_words_with_their_unit(value: float, text: str) -> None:
    assert words.percent(value) == text


@pytest.mark.parametrize(
    ("length_ns", "text"),
    [
        (850, "850 ns"),
        (12_300_000, "12.3 ms"),
        (1.5e9, "1.5 s"),
        (200e9, "3 min 20 s"),
        (7.3e12, "2 h 1 min"),
    ],
)
def test_durations_have_a_fitting_unit(length_ns: float, text: str) -> None:
    assert words.duration(length_ns) == text
