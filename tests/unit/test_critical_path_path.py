"""The representative path of a window, and how ties are decided."""

from analytics.critical_path import covering_windows, default_lifetimes, window_edges
from analytics.model.trace import Records
from tests.support.traces_small import CONTROL, message, wait, work


def path_of(rows, workers, width=10):
    records = Records.of(rows)
    windows = covering_windows(records, width)
    summary, edges, _ = window_edges(records, *default_lifetimes(records, workers), windows)
    assert summary.status == "ok"
    columns = (edges.src, edges.src_ns, edges.dst, edges.dst_ns, edges.type)
    steps = zip(*(column[edges.on_path].tolist() for column in columns), strict=True)
    return [f"{a}@{t}-{b}@{u}" + ("!" if kind == CONTROL else "") for a, t, b, u, kind in steps]


def test_without_messages_the_lowest_worker_is_the_path():
    assert path_of([work(0, 0, 10), work(1, 0, 10)], 2) == ["0@0-0@10"]


def test_the_path_ends_where_most_paths_arrive():
    assert path_of([work(0, 0, 10), work(1, 0, 10), message(0, 3, 1, 4)], 2) == [
        "0@0-0@3",
        "1@4-1@10",
        "0@3-1@4",
    ]


def test_at_equal_counts_the_lower_worker_goes_before_the_local_edge():
    rows = [work(0, 0, 10), work(1, 0, 10), message(0, 3, 1, 4), message(1, 7, 0, 7)]
    # At (0, 7) worker 1 brings two paths and the local edge one; at (1, 4) each brings one.
    assert path_of(rows, 2) == ["0@0-0@3", "0@7-0@10", "1@4-1@7", "0@3-1@4", "1@7-0@7"]


def test_at_equal_counts_the_local_edge_goes_before_a_message_from_a_higher_worker():
    rows = [work(0, 0, 10), work(1, 0, 10), message(1, 3, 0, 4)]
    assert path_of(rows, 2) == ["0@0-0@4", "0@4-0@10"]


def test_of_messages_from_one_worker_the_last_sent_then_the_lower_type_is_taken():
    rows = [
        work(0, 0, 10), work(1, 0, 5), work(1, 8, 10),
        message(0, 2, 1, 8), message(0, 6, 1, 8), message(0, 6, 1, 8, CONTROL),
    ]  # fmt: skip
    assert path_of(rows, 2) == ["0@0-0@2", "0@2-0@6", "1@8-1@10", "0@6-1@8!"]


def test_the_path_never_goes_through_a_wait():
    rows = [work(0, 0, 10), work(1, 0, 3), work(1, 8, 10), message(0, 6, 1, 8), message(0, 9, 1, 9)]
    assert path_of(rows, 2) == ["0@0-0@6", "0@6-0@9", "1@9-1@10", "0@9-1@9"]


def test_the_path_may_come_from_before_the_window_by_a_message_in_flight():
    rows = [
        work(0, 0, 12),
        wait(0, 12, 19),
        work(0, 19, 20),
        work(1, 0, 5),
        work(1, 18, 20),
        message(0, 8, 1, 18),
    ]
    records = Records.of(rows)
    windows = covering_windows((10, 20), 10)
    _, edges, _ = window_edges(records, *default_lifetimes(records, 2), windows)
    columns = (edges.src, edges.src_ns, edges.dst, edges.dst_ns)
    chosen = zip(*(column[edges.on_path].tolist() for column in columns), strict=True)
    assert list(chosen) == [(1, 18, 1, 20), (0, 10, 1, 18)]
