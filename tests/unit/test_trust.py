"""Is the trace trustworthy: each check on the smallest trace that fails it."""

import numpy as np
import pytest

from analytics.critical_path import covering_windows, default_lifetimes
from analytics.critical_path.trust import check_trust, combined
from analytics.model.answers import CheckExample, TrustLimits
from analytics.model.diagnostics import Diagnostic
from analytics.model.trace import NONE, Records
from tests.support.traces_small import CONTROL, PROCESSING, message, wait, work

CLEAN = [
    work(0, 0, 20, operator=1), work(1, 0, 4, operator=2), message(0, 7, 1, 9), work(1, 9, 20, operator=2),
]  # fmt: skip


def trust(rows, workers=2, width=10, limits=None, lives=None, **more):
    records = Records.of(rows)
    lives = lives or default_lifetimes(records, workers)
    return check_trust(records, *lives, covering_windows(records, width), limits=limits, **more)


def check(answer, code):
    (found,) = [item for item in answer.checks if item.code == code]
    return found


def told(answer, code):
    found = check(answer, code)
    return found.state.value, found.count, found.tested


def where(answer, code):
    return [(e.worker, e.peer, e.operator, e.from_ns, e.to_ns) for e in check(answer, code).examples]


def test_a_clean_trace_passes_what_can_be_tested():
    answer = trust(CLEAN)
    states = {item.code: item.state.value for item in answer.checks}
    assert states == {
        "interaction_by_messages": "not_testable",
        "waits_end_in_a_receive": "passed",
        "no_orphans": "passed",
        "not_all_waiting": "passed",
        "received_after_sent": "passed",
        "acyclic": "passed",
        "path_exists": "passed",
        "complete": "passed",
        "longest_operator": "measured",
        "longest_message": "measured",
        "longest_pause": "measured",
        "progress_to_all_peers": "not_asked",
    }
    assert told(answer, "waits_end_in_a_receive") == ("passed", 0, 1)
    assert (answer.window_count, answer.windows_ok, answer.start_ns, answer.end_ns) == (2, 2, 0, 20)
    assert (answer.unknown_share, answer.diagnostics) == (0.0, ())


def test_a_wait_that_no_message_ends_is_found_once_though_it_spans_windows():
    rows = [work(0, 0, 30), work(1, 0, 3), wait(1, 3, 24), work(1, 24, 30)]
    answer = trust(rows)
    assert told(answer, "waits_end_in_a_receive") == ("failed", 1, 1)
    assert where(answer, "waits_end_in_a_receive") == [(1, NONE, NONE, 20, 24)]


def test_everybody_waiting_with_nothing_on_its_way_is_found():
    # Both wait 3-6; the message sent at 4 is on its way until 5.
    rows = [work(0, 0, 3), wait(0, 3, 6), work(0, 6, 10), work(1, 0, 2), wait(1, 2, 7), work(1, 7, 10)]
    assert where(trust(rows), "not_all_waiting") == [(NONE, NONE, NONE, 3, 6)]
    answer = trust([*rows, message(0, 4, 1, 5)])
    assert told(answer, "not_all_waiting") == ("failed", 2, 1)
    assert where(answer, "not_all_waiting") == [(NONE, NONE, NONE, 3, 4), (NONE, NONE, NONE, 5, 6)]
    assert told(trust([*rows, message(0, 3, 1, 6)]), "not_all_waiting")[0] == "passed"


def test_a_message_received_before_it_was_sent_is_found_with_by_how_much():
    answer = trust([*CLEAN, message(1, 15, 0, 12)])
    assert told(answer, "received_after_sent") == ("failed", 1, 2)
    assert where(answer, "received_after_sent") == [(1, 0, NONE, 15, 12)]
    assert check(answer, "received_after_sent").worst_ns == 3
    assert answer.windows_ok == 1


def test_a_circle_within_an_instant_is_found_in_its_window():
    answer = trust([*CLEAN, message(0, 15, 1, 15), message(1, 15, 0, 15)])
    assert told(answer, "acyclic") == ("failed", 1, 2)
    assert where(answer, "acyclic") == [(NONE, NONE, NONE, 10, 20)]


def test_windows_without_a_path_are_found():
    answer = trust([work(0, 0, 3), wait(0, 3, 8), work(0, 8, 20)], workers=1)
    assert told(answer, "path_exists") == ("failed", 1, 2)


def test_a_worker_that_appears_before_it_was_added_is_an_orphan():
    lives = np.array([0, 5], np.int64), np.array([20, 20], np.int64)
    rows = [work(0, 0, 20), work(1, 3, 20)]
    answer = trust(rows, lives=lives)
    assert told(answer, "no_orphans")[:2] == ("failed", 1)
    assert where(answer, "no_orphans") == [(1, NONE, NONE, 3, 3)]
    reported = np.array([0, 3], np.int64), lives[1]
    assert told(trust(rows, lives=reported), "no_orphans")[0] == "passed"
    unreported = np.array([0, 1], np.int64), np.array([20, 0], np.int64)
    assert told(trust(rows, lives=unreported), "no_orphans")[0] == "passed"


def test_durations_are_held_to_the_limits_that_are_set():
    # Operator 1: 10 in both windows; operator 2: 10 (0-4, 9-10) and 10. Message 7-9: 2.
    measured = trust(CLEAN)
    assert (check(measured, "longest_message").worst_ns, check(measured, "longest_operator").worst_ns) == (
        2,
        10,
    )
    assert where(measured, "longest_message") == [(0, 1, NONE, 7, 9)]
    answer = trust(CLEAN, limits=TrustLimits(operator_ns=9, message_ns=2))
    assert told(answer, "longest_operator") == ("failed", 4, 4)
    assert where(answer, "longest_operator")[0] == (NONE, NONE, 1, 0, 10)
    assert told(answer, "longest_message") == ("passed", 0, 1)
    assert check(answer, "longest_message").limit_ns == 2
    assert told(trust(CLEAN, limits=TrustLimits(message_ns=1)), "longest_message") == ("failed", 1, 1)


def test_pauses_are_between_control_messages_of_one_worker():
    rows = [*CLEAN, *(message(0, t, 1, t + 1, CONTROL) for t in (1, 12, 4)), message(1, 19, 0, 20, CONTROL)]
    answer = trust(rows, limits=TrustLimits(pause_ns=5))
    assert told(answer, "longest_pause") == ("failed", 1, 2)
    assert where(answer, "longest_pause") == [(0, NONE, NONE, 4, 12)]
    assert check(answer, "longest_pause").worst_ns == 8


def test_progress_is_owed_to_every_peer_in_every_window():
    rows = [work(w, 0, 20) for w in range(3)]
    rows += [message(a, 2, b, 3, CONTROL) for a in range(3) for b in range(3) if a != b]
    rows += [
        message(a, 12, b, 13, CONTROL) for a in range(3) for b in range(3) if a != b and (a, b) != (2, 0)
    ]
    rows += [message(2, 14, 1, 15, CONTROL), message(2, 14, 2, 15, CONTROL)]
    answer = trust(rows, workers=3, limits=TrustLimits(progress=True))
    assert told(answer, "progress_to_all_peers") == ("failed", 1, 6)
    assert where(answer, "progress_to_all_peers") == [(2, 0, NONE, 10, 20)]
    assert (
        told(trust([work(0, 0, 20)], 1, limits=TrustLimits(progress=True)), "progress_to_all_peers")[0]
        == "passed"
    )


def test_examples_are_the_first_few():
    rows = [*CLEAN, *(message(1, t + 1, 0, t) for t in range(10, 19))]
    found = check(trust(rows), "received_after_sent")
    assert (found.count, len(found.examples)) == (9, 5)
    assert found.examples[0] == CheckExample(1, 0, NONE, 11, 10)


def test_what_was_odd_comes_along():
    odd = Diagnostic("not_json", 2, "line 3")
    answer = trust([*CLEAN, (PROCESSING, 0, -1, -1, 9, 8)], diagnostics=[odd])
    assert odd in answer.diagnostics
    assert len(answer.diagnostics) == 2


def test_unknown_time_is_told_as_a_share_of_the_critical_paths():
    # One worker: 5 of 10 ns are a gap.
    assert trust([work(0, 0, 2), work(0, 7, 10)], workers=1).unknown_share == pytest.approx(0.5)


def test_no_records_no_checks():
    answer = trust([], workers=0)
    assert (answer.window_count, answer.windows_ok) == (0, 0)
    assert {item.count for item in answer.checks} == {0}


def test_stretches_of_one_trace_are_combined():
    odd = [wait(0, 2, 8), work(0, 8, 10), work(1, 0, 10)]
    first = trust(CLEAN, limits=TrustLimits(message_ns=1))
    second = trust(odd, limits=TrustLimits(message_ns=1))
    both = combined([first, second], [Diagnostic("odd", 1, "line 3")])
    assert both.window_count == first.window_count + second.window_count
    assert told(second, "waits_end_in_a_receive")[0] == "failed"
    assert told(both, "waits_end_in_a_receive")[0] == "failed"
    assert check(both, "longest_message") == check(first, "longest_message")
    assert check(both, "longest_operator").worst_ns == check(first, "longest_operator").worst_ns
    assert where(both, "longest_operator") == where(first, "longest_operator")
    assert [item.code for item in both.diagnostics] == ["odd", "wait_without_receive"]
    assert combined([first]) == first
    with pytest.raises(ValueError, match="no answer"):
        combined([])


def test_records_read_for_context_only_are_not_checked():
    records = Records.of([*CLEAN, message(1, 25, 0, 22), work(0, 20, 30), work(1, 20, 30)])
    lives = default_lifetimes(records, 2)
    near = covering_windows((0, 20), 10)
    assert told(check_trust(records, *lives, near, bounds_ns=(0, 30)), "received_after_sent")[:2] == (
        "passed",
        0,
    )
    whole = covering_windows((0, 30), 10)
    assert told(check_trust(records, *lives, whole, bounds_ns=(0, 30)), "received_after_sent")[0] == "failed"
