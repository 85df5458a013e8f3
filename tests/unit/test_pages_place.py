"""A segment is named in an address by who and when, or by what it is the largest of, and found in its window."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.model.activity import ActivityType
from analytics.model.results import WindowEdges
from frontend import place
from frontend.place import Place
from webapp.analysis import edge_index

PROCESSING, DATA = int(ActivityType.PROCESSING), int(ActivityType.DATA_MESSAGE)
# Worker 0 processes operator 7 until 100 and operator 8 until 130; worker 1 waits 0-110 and processes 110-130.
# Messages 0 → 1: 100-110 and 40-110; 1 → 0: 120-125.
ROWS = [
    (0, 0, 0, 100, PROCESSING, 7, 0.4),
    (0, 100, 0, 130, PROCESSING, 8, 0.2),
    (1, 0, 1, 110, int(ActivityType.WAITING), -1, 0.0),
    (1, 110, 1, 130, PROCESSING, 8, 0.3),
    (0, 40, 1, 110, DATA, -1, 0.05),
    (0, 100, 1, 110, DATA, -1, 0.02),
    (1, 120, 0, 125, DATA, -1, 0.08),
]
COLUMNS = [np.array(column) for column in zip(*ROWS, strict=True)]
INDEX = edge_index.index(
    WindowEdges(
        *(column.astype(np.int32 if at in (0, 2, 5) else np.int64) for at, column in enumerate(COLUMNS[:6])),
        cp=COLUMNS[6], share=COLUMNS[6], on_path=np.zeros(len(ROWS), np.bool_),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3", 3),
        ("7", None),  # the window has no such segment
        (place.at(0, -1, -1, 90, 120), 1),  # 10 of operator 7, 20 of operator 8
        (place.at(0, -1, 7, 90, 120), 0),
        (place.at(-1, -1, 8, 0, 130), 1),  # whoever does it: the longest
        (place.at(1, -1, -1, 50, 50), 2),  # a moment lies in what goes on then
        (place.at(0, 1, -1, 100, 110), 5),  # both cover it, this one is nearer
        (place.at(0, 1, -1, 40, 110), 4),
        (place.at(0, 1, -1, 125, 121), None),  # no message that way
        (place.at(1, 0, -1, 125, 121), 6),  # ends in the wrong order are no trouble
        (place.at(2, -1, -1, 0, 130), None),
        (place.at(0, -1, -1, 131, 140), None),
        (place.top("activity", PROCESSING), 0),
        (place.top("worker", 1), 3),
        (place.top("operator", 8), 3),
        (place.top("channel", 0, 1), 4),
        (place.top("channel", 1, 0), 6),
        (place.top("pair", 0, 1), 6),
        (place.top("channel", 0), None),
        (place.top("operator", 9), None),
        ("", None),
    ],
)
def test_a_segment_is_found_by_what_its_address_says(text: str, number: int | None) -> None:
    assert Place.parse(text).find(INDEX) == number


@pytest.mark.parametrize(
    "text", ["-1", "1.5", "at", "at.1", "at.0.1.2.3", "top.host.1", "top.worker.-1", "9" * 30]
)
def test_what_makes_no_sense_selects_nothing(text: str) -> None:
    assert Place.parse(text) == Place()


def test_times_are_nanoseconds_of_our_days_and_no_larger_than_what_fits() -> None:
    now_ns = 1_795_259_890_197_000_001
    assert Place.parse(place.at(0, -1, -1, now_ns, now_ns + 5)).span_ns == (now_ns, now_ns + 5)
    assert Place.parse(place.at(0, -1, -1, 2**63 - 1, 2**63 - 1)).find(INDEX) is None
    assert Place.parse(place.at(0, -1, -1, 2**63, 2**63)) == Place()


@given(st.text(max_size=40) | st.from_regex(r"at(\.\d{0,20}){5}", fullmatch=True))
def test_no_text_breaks_it(text: str) -> None:
    Place.parse(text).find(INDEX)
