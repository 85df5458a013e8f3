"""Answers survive being stored as JSON, to the nanosecond."""

import json
import math

import pytest

from analytics.critical_path import analyse, covering_windows, default_lifetimes
from analytics.critical_path.collocation import propose_collocation
from analytics.critical_path.compare import compare
from analytics.critical_path.trust import check_trust
from analytics.critical_path.what_if import paths, rank, what_if
from analytics.critical_path.why import why
from analytics.model.answers import Target, TargetKind, UnreadableAnswerError, from_json, to_json
from analytics.model.trace import Records
from tests.support.traces_small import message, work
from tests.support.window_graphs import one_window

NOW_NS = 1_795_259_890_197_000_001  # a double would round it
ROWS = [
    work(0, NOW_NS, NOW_NS + 9, operator=1), work(1, NOW_NS, NOW_NS + 2), message(0, NOW_NS + 4, 1, NOW_NS + 6),
    work(1, NOW_NS + 6, NOW_NS + 9, operator=2),
]  # fmt: skip


def answers():
    window = one_window(ROWS, 2)
    records = Records.of(ROWS)
    lives, windows = default_lifetimes(records, 2), covering_windows(records, 4)
    summaries, _ = analyse(records, *lives, windows)
    return [
        why(*window),
        what_if([window], Target(TargetKind.OPERATOR, 1), math.inf),
        rank([window]),
        compare(summaries[:1], summaries[1:]),
        propose_collocation(summaries, ["a", "b"]),
        check_trust(records, *lives, windows),
        paths(*window, Target(TargetKind.WORKER, 0), 2.0),
    ]


@pytest.mark.parametrize("position", range(7))
def test_an_answer_comes_back_as_it_was(position):
    answer = answers()[position]
    assert from_json(json.loads(json.dumps(to_json(answer), allow_nan=False))) == answer


def test_an_infinite_factor_can_be_stored():
    payload = to_json(answers()[2])
    assert payload["factors"] == [1.5, 2.0, "infinite"]
    assert from_json(payload).factors == (1.5, 2.0, math.inf)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"kind": "Nonsense"},
        {"kind": "WhyAnswer"},
        {"kind": "WhatIfRanking", "factors": 3},
        {
            "kind": "WhatIfRanking",
            "factors": [],
            "window_count": 1.5,
            "length_ns": 0,
            "windows_left_out": 0,
            "rows": [],
        },
        {
            "kind": "WhatIfRanking",
            "factors": [],
            "window_count": 1,
            "length_ns": 0,
            "windows_left_out": 0,
            "rows": [{}],
        },
    ],
)
def test_what_is_no_answer_is_refused(payload):
    with pytest.raises(UnreadableAnswerError):
        from_json(payload)
