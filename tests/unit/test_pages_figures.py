"""Charts draw what they say, and say what they leave out."""

import base64
import dataclasses
import zlib
from typing import Any

import numpy as np
import pytest

from analytics.model.activity import ActivityType as T
from analytics.model.results import WindowEdges
from frontend import palette, words
from frontend.figures import detail, lanes, png, rows
from frontend.figures.lanes import Names
from frontend.figures.ranking import ranked
from webapp.analysis import edge_index
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


NAMES = Names({}, {}, {0: "count"})


def arranged(edges: WindowEdges, **choice: object) -> rows.Rows:
    chosen = rows.Choice(**choice)  # type: ignore[arg-type]
    return rows.arrange(edge_index.index(edges), NAMES.workers, NAMES.hosts, chosen)


def draw(edges: WindowEdges, **choice: object) -> tuple[dict[str, Any], list[str]]:
    shown = arranged(edges, **choice)
    found = detail.detail(edge_index.index(edges), shown, WINDOW, 900)
    return lanes.figure(edges, shown, found, NAMES, 0, LIGHT).figure, found.words()


def bars(figure: dict[str, Any], on_path: bool) -> int:
    traces = [t for t in figure["data"] if t["type"] == "bar" and "name" in t]
    return sum(len(t["x"]) for t in traces if t["name"].endswith("critical path") == on_path)


def test_a_small_window_is_drawn_whole() -> None:
    figure, said = draw(window(3, 10, 2))
    assert (bars(figure, False), bars(figure, True)) == (20, 10)
    assert said == []
    assert figure["layout"]["images"] == []


def test_the_critical_path_is_outlined_as_one_band() -> None:
    figure, _ = draw(window(3, 10))
    bands = [t for t in figure["data"] if t["type"] == "bar" and "name" not in t]
    assert [(t["base"], t["x"]) for t in bands] == [([0.0], [1000.0])]


def test_a_large_window_is_merged_but_never_on_the_critical_path_and_says_so() -> None:
    figure, said = draw(window(20, 1000, 2000))
    assert bars(figure, True) == 1000
    assert bars(figure, False) == 0  # all are narrower than a pixel
    assert said == [
        "19,000 short segments merged by pixel and lane",
        "1,800 messages of less CP not drawn until you zoom in",
    ]
    merged = figure["layout"]["meta"]["merged"]
    cells = np.frombuffer(base64.b64decode(merged["cells"]), np.uint8).reshape(20, merged["columns"])
    assert merged["kinds"] == ["processing"]
    assert (cells[0] == 0).all()  # the critical lane is bars
    assert (cells[1:] == 1).all()


def test_what_hovering_tells_of_merged_segments_is_how_many_they_are() -> None:
    figure, _ = draw(window(2, 1000))
    merged = figure["layout"]["meta"]["merged"]
    count = np.frombuffer(base64.b64decode(merged["count"]), np.uint8).reshape(2, merged["columns"])
    assert count[0].sum() == 0
    assert set(count[1].tolist()) <= {1, 2, 3}  # 1,000 in 900 columns, each in the columns it touches


def test_many_workers_are_cut_to_those_that_matter_and_the_rest_counted() -> None:
    shown = arranged(window(200, 5))
    assert shown.left_out == "160 of 200 workers not shown, with 0 % of CP together"
    assert 0 in shown.workers  # the critical path runs there
    everybody = arranged(window(200, 5), everybody=True)
    assert (everybody.hidden, everybody.left_out, everybody.count) == (0, "", 200)


def test_the_worker_of_the_selected_segment_is_always_shown() -> None:
    assert 199 not in arranged(window(200, 5)).workers
    assert 199 in arranged(window(200, 5), needed=(199,)).workers
    assert set(arranged(window(200, 5), find="worker 17", needed=(3,)).workers) == {3, 17, *range(170, 180)}


def test_lanes_are_found_by_the_name_of_worker_or_host() -> None:
    edges = edge_index.index(window(4, 2))
    names, hosts = {0: "driver", 1: "core 1", 2: "core 2", 3: "core 3"}, {2: "Rack-7"}
    assert rows.arrange(edges, names, hosts, rows.Choice(find="core")).workers.tolist() == [1, 3, 2]
    assert rows.arrange(edges, names, hosts, rows.Choice(find="rack")).workers.tolist() == [2]
    nobody = rows.arrange(edges, names, hosts, rows.Choice(find="x"))
    assert (nobody.count, nobody.left_out) == (0, "4 of 4 workers not shown, with 100 % of CP together")


def test_lanes_can_be_those_of_the_critical_path_only_and_ordered_by_cp() -> None:
    edges = window(4, 2)
    assert arranged(edges, critical_only=True).workers.tolist() == [0]
    shifted = dataclasses.replace(edges, cp=np.repeat([0.1, 0.2, 0.15, 0.05], 2))
    assert arranged(shifted, by_cp=True).workers.tolist() == [1, 2, 0, 3]
    assert arranged(shifted, by_cp=True).titles[0] == "worker 1 · 40 %"


def test_a_chart_without_a_lane_does_not_break() -> None:
    figure, said = draw(window(4, 2), find="nobody")
    assert (bars(figure, True), said) == (0, [])


def test_workers_stand_under_their_hosts_in_natural_order() -> None:
    names, hosts = {i: f"w{i}" for i in range(4)}, {0: "host-10", 1: "host-2", 2: "host-10", 3: "host-2"}
    shown = rows.arrange(edge_index.index(window(4, 2)), names, hosts, rows.Choice())
    assert shown.titles == ["<b>host-2</b>", "w1", "w3", "<b>host-10</b>", "w0 · 100 %", "w2"]


def test_where_lanes_are_thin_the_titles_that_matter_most_are_written() -> None:
    figure, _ = draw(window(200, 2), everybody=True)
    axis = figure["layout"]["yaxis"]
    assert axis["tickvals"][0] == 0  # the critical lane
    assert np.diff(axis["tickvals"]).min() * lanes.lane_px(200) >= lanes.TITLE_PX


def test_a_picture_survives_its_encoding() -> None:
    cells = np.random.default_rng(1).integers(0, 3, (5, 7)).astype(np.uint8)
    encoded = png.encode(cells, [(0, 0, 0, 0), (1, 2, 3, 255), (9, 9, 9, 90)])
    body = encoded[encoded.index(b"IDAT") + 4 : encoded.index(b"IEND") - 8]
    lines = np.frombuffer(zlib.decompress(body), np.uint8).reshape(5, 8)
    assert (np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8) == cells).all()


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
