"""What the questions' tabs read from an address, and how their charts put numbers into marks."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.model.activity import ActivityType
from analytics.model.answers import (
    Change,
    Confidence,
    Dimension,
    EdgeExample,
    PathStep,
    Target,
    TargetKind,
    WhatIfPaths,
    WhatIfWindow,
    WhyGroup,
)
from analytics.model.results import WindowStatus
from frontend import palette
from frontend.asked import NO_FACTOR, Wish, about_range
from frontend.figures import bars, changes, hops, paths
from frontend.pages.questions.compare import points
from frontend.state import TABS, View
from webapp.analysis.models import QuestionKind

COLOURS = palette.of("light")


def test_an_address_without_a_question_asks_for_the_usual() -> None:
    wish = Wish.parse("?tab=what-if")
    assert (wish.factor, wish.target, wish.weigh, wish.hops) == (2.0, "", "during", 5)
    assert (wish.before, wish.after, wish.progress) == (None, None, False)


def test_a_question_is_read_as_it_stands_in_the_address() -> None:
    wish = Wish.parse(
        "?target=operator:a:b&factor=infinite&worker=executor+1&at=17&hops=20&weigh=count&longest_pause_ms=1.5"
        "&a_from=2026-01-02T10:00:00Z&a_to=2026-01-02+11:00:00&progress=1"
    )
    assert (wish.target, wish.factor, wish.worker) == ("operator:a:b", math.inf, "executor 1")
    assert (wish.at_ns, wish.hops, wish.weigh, wish.longest_pause_ns) == (17, 20, "count", 1_500_000)
    assert wish.before is not None
    assert wish.before[1] - wish.before[0] == 3_600_000_000_000
    assert wish.progress


@pytest.mark.parametrize(
    "query",
    ["hops=0", "hops=65", "longest_pause_ms=-1", "a_from=x&a_to=y"],
)
def test_what_makes_no_sense_counts_as_absent(query: str) -> None:
    assert Wish.parse(query) == Wish()


@pytest.mark.parametrize(
    ("text", "factor"),
    [("3.7", 3.7), ("3,7", 3.7), ("2×", 2), ("1", 1), ("∞", math.inf), ("infinite", math.inf)],
)
def test_any_number_of_times_can_be_asked_for(text: str, factor: float) -> None:
    assert Wish.parse(f"?factor={text}").factor == factor


@pytest.mark.parametrize("text", ["0.5", "-2", "nan", "x", "1e9", "inf"])
def test_what_is_no_factor_is_said_and_not_taken_for_another(text: str) -> None:
    assert Wish.parse(f"?factor={text}").factor == NO_FACTOR


@given(
    st.dictionaries(
        st.sampled_from(["factor", "hops", "at", "longest_pause_ms", "a_from", "a_to"]), st.text()
    )
)
def test_no_address_breaks_a_question(fields: dict[str, str]) -> None:
    from urllib.parse import urlencode

    wish = Wish.parse("?" + urlencode(fields))
    assert wish.factor >= 1 or wish.factor == NO_FACTOR
    assert 1 <= wish.hops <= 64


def test_a_moving_range_is_one_question_whatever_the_time() -> None:
    early, late = (
        about_range(QuestionKind.TRUST, View.parse("?range=1h"), now) for now in (10**18, 2 * 10**18)
    )
    assert early.params == late.params == {"range": "1h"}
    assert early.moving
    assert early.ranges_ns != late.ranges_ns
    fixed = View.parse("?from=2026-01-02T10:00:00Z&to=2026-01-02T11:00:00Z")
    assert not about_range(QuestionKind.TRUST, fixed, 0).moving


def test_every_tab_of_a_job_has_an_address() -> None:
    from frontend.pages.job import TABS as SHOWN

    assert tuple(key for key, _ in SHOWN) == TABS


def test_long_names_are_cut_in_the_middle_and_never_fall_together() -> None:
    found = bars.labels(["a" * 30 + "x", "a" * 30 + "x", "short"], narrow=False)
    assert len(set(found)) == 3
    assert found[2] == "short"
    assert found[0].startswith("aaaa")
    assert "…" in found[0]


def test_the_pieces_of_a_hop_add_up_to_it() -> None:
    example = EdgeExample(0, 0, 0, 1)
    groups = [WhyGroup(1, 3, 0, worker, 1, 10**9, (worker + 1) * 10**8, example) for worker in range(12)]
    figure = hops.figure({1: groups}, lambda g: f"w{g.worker}", lambda g: g.during_ns, False, COLOURS, False)
    assert sum(trace["x"][0] for trace in figure["data"]) == pytest.approx(
        sum(g.during_ns for g in groups) / 1e9
    )
    assert figure["data"][0]["name"] == "w11", "the largest first"
    assert figure["data"][-1]["name"] == "others (4)"


def test_changes_are_drawn_in_points_with_twice_their_error_and_pale_if_unsure() -> None:
    def change(cp_after: float, confidence: Confidence) -> Change:
        return Change(Dimension.OPERATOR, 0, -1, 0.2, cp_after, 0.01, 0, 0, 0, 0, 0, confidence, None, None)

    rows = [change(0.5, Confidence.SURE), change(0.1, Confidence.UNSURE)]
    (trace,) = changes.figure(rows, ["a", "b"], COLOURS, False)["data"]
    assert trace["x"] == pytest.approx([30, -10])
    assert trace["error_x"]["array"] == pytest.approx([2, 2])
    assert trace["marker"]["opacity"] == [1.0, changes.PALE]


@pytest.mark.parametrize(
    ("change", "said"), [(0.123, "+12.3"), (-0.004, "−0.4"), (0.0, "0"), (0.0007, "+0.07")]
)
def test_differences_are_told_in_points(change: float, said: str) -> None:
    assert points(change) == said


def test_a_mark_carries_the_change_of_the_address_it_makes() -> None:
    assert json.loads(bars.leads_to([{"target": "operator:a"}])[0]) == {"target": "operator:a"}


def test_both_paths_are_drawn_on_one_scale_and_what_is_saved_is_told() -> None:
    work, wait = int(ActivityType.PROCESSING), int(ActivityType.WAITING)
    now = (PathStep(0, 1000, 0, 1600, 1000, 1600, work, 1), PathStep(0, 1600, 0, 2000, 1600, 2000, work, 2))
    then = (
        PathStep(0, 1000, 0, 1300, 1000, 1600, work, 1),
        PathStep(0, 1300, 0, 1300, 1600, 1700, wait, -1),
        PathStep(0, 1300, 0, 1700, 1600, 2000, work, 2),
    )
    window = WhatIfWindow(0, 1000, 2000, WindowStatus.OK, "", 300, (), then, 0)
    answer = WhatIfPaths(Target(TargetKind.OPERATOR, 1), 2.0, window, now, 0)
    drawn = paths.figure(
        answer, lambda s: f"op {s.operator}", lambda s: {"segment": str(s.was_src_ns)}, COLOURS, False
    )
    one, two, saved = drawn["data"]
    assert (one["base"], one["x"]) == ([0, 0.0006], [0.0006, 0.0004])
    assert (two["base"], two["x"]) == ([0, 0.0003], [0.0003, 0.0004])  # a wait of no length is not drawn
    assert two["hovertext"][0] == "op 1<br>300 ns, was 600 ns"
    assert json.loads(two["customdata"][1]) == {"segment": "1600"}
    assert (saved["base"], saved["x"], saved["text"]) == ([0.0007], [0.0003], ["saved 300 ns"])
    assert drawn["layout"]["xaxis"]["range"] == [0, 0.001]
