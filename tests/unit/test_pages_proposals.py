"""Proposals in words and figures: what a button says, how errors are told, and what a chart marks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from analytics.model.plain import to_plain
from analytics.model.reconfigurations import Prediction
from analytics.verification.judge import Finding, Measured, Measurements, Tolerance
from frontend import palette
from frontend.components import windows
from frontend.components.proposals import card, outcome, told
from frontend.figures import calibration, marks
from frontend.figures import outcome as outcome_figure
from frontend.state import SECOND_NS, View
from tests.support.changes import COUNT, NAMES, SOURCE, SPLIT, binding
from webapp.jobs.models import Job
from webapp.reconfigurations.calibrating import BUSY, RATE, error, spreads
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, Proposal
from webapp.reconfigurations.outcome import Seen
from webapp.reconfigurations.selectors import Calibration
from webapp.reconfigurations.standing import AppliedChange

NOW = timezone.now()


def proposal(**more: object) -> Proposal:
    """What DS2 proposed for the recorded job; it is not in the database."""
    known = {
        "pk": 7, "job": Job(pk=3, name="ad-events"), "kind": "rescale", "binding": to_plain(binding()),
        "change": {"parallelism": {SPLIT: 5, COUNT: 2}}, "created_at": NOW - timedelta(minutes=12),
        "expires_at": NOW + timedelta(hours=3), "prediction": to_plain(
            Prediction(((SOURCE, 900.0),), ((SPLIT, 0.9), (COUNT, 0.684)), -200.0)
        ),
    }  # fmt: skip
    return Proposal(**(known | more))


def test_a_button_says_what_it_does() -> None:
    assert told.deed(proposal()) == "Rescale split to 5 and count to 2"
    assert told.deed(proposal(undoes_id=4, change={"parallelism": {SPLIT: 3}})) == "Go back: split to 3"


def test_where_it_stands_is_a_sentence() -> None:
    assert told.standing(proposal(), NOW) == "It has waited for a decision for 12 min and expires in 3 h."
    assert told.standing(proposal(expires_at=NOW), NOW) == "Nobody decided in time: it has expired."
    gone = proposal(state=State.REJECTED, state_reason="not now")
    assert told.standing(gone, NOW) == "It is rejected: not now."
    failed = proposal(state=State.APPLY_FAILED, state_reason="Flink is away")
    assert told.standing(failed, NOW) == "It could not be applied: Flink is away."


def test_every_state_has_a_sign_beside_its_word_and_every_step_its_words() -> None:
    assert set(told.SIGNS) == set(State)
    assert told.badge(proposal(state=State.REGRESSED)).children[1] == " regressed"


def test_what_is_expected_and_what_it_costs_is_told_with_units() -> None:
    assert card.expected(proposal()) == (
        "Source: events delivers 900/s · split 90 % busy · count 68 % busy · the backlog shrinks by 200/s"
    )
    assert card.costs(proposal()) == (
        "+5 instances (4 → 9) · slots, if operators share them, 1 → 5 · a restart of the job's tasks"
    )
    assert card.expected(proposal(prediction={})).startswith("Nothing was predicted")


def test_the_cost_of_waiting_is_told_by_the_hour() -> None:
    assert told.cost_of_waiting(proposal(shortfall_per_s=702.0)) == (
        "702/s behind its target, 2.53 M records an hour"
    )
    assert told.cost_of_waiting(proposal()).startswith("nothing measurable")


def test_what_an_approval_does_is_said_before_it_is_given() -> None:
    said = told.consequence(proposal(), ChangePolicy(engine="flink"), 1, "waits for the next change window")
    assert said[0] == "Rescale ad-events: split 1 → 5, count 1 → 2."
    assert said[1] == "It is not applied at once: waits for the next change window."
    assert "restart cannot be undone" in said[-1]
    two = told.consequence(proposal(), ChangePolicy(), 2, "")
    assert two[1:] == [
        "Your approval is one of several: another person must agree before anything is done.",
        "Nothing is sent: the job's rules say dry run.",
    ]
    assert told.consequence(proposal(kind="migrate"), ChangePolicy(), 1, "")[-1].startswith("⚠ Irreversible")


@pytest.mark.parametrize(
    ("what", "predicted", "after", "said"),
    [
        (RATE, 900.0, 400.0, "-55.6 %"), (BUSY, 0.9, 0.92, "+2 points"), (RATE, None, 5.0, "–"),
        ("backlog_change_per_s", -10.0, 20.0, "the backlog grows by 30/s"),
    ],
)  # fmt: skip
def test_how_far_off_it_was_is_told_in_its_unit(
    what: str, predicted: float | None, after: float, said: str
) -> None:
    assert outcome.off_by(Finding(what, SPLIT, predicted, None, after, None, "")) == said


def point(
    policy: str, what: str, predicted: float | None, after: float | None, agrees: bool | None
) -> Calibration:
    return Calibration(1, policy, what, SPLIT, predicted, None, after, agrees)


def test_errors_are_told_by_policy_and_quantity_and_what_was_not_measured_is_left_out() -> None:
    points = [
        point("ds2", RATE, 100.0, 101.0, True), point("ds2", RATE, 100.0, 97.0, True),
        point("ds2", RATE, 100.0, 60.0, False), point("ds2", BUSY, 0.8, 0.7, True),
        point("dhalion", RATE, 100.0, None, None), point("ds2", RATE, 0.0, 5.0, False),
    ]  # fmt: skip
    load, rates = sorted(spreads(points), key=lambda item: item.what, reverse=True)
    assert (rates.policy, rates.what, rates.count, rates.agreed) == ("ds2", RATE, 3, 2)
    assert (rates.median, rates.half, rates.most) == pytest.approx((-0.03, 0.03, 0.4))
    assert rates.worst == points[2]
    assert (load.what, load.count, load.median) == (BUSY, 1, pytest.approx(-0.1))


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40))
def test_nine_tenths_of_the_errors_are_within_what_is_said(observed: list[float]) -> None:
    (found,) = spreads([point("ds2", RATE, 100.0, after, None) for after in observed])
    sizes = [abs(error(point("ds2", RATE, 100.0, after, None)) or 0.0) for after in observed]
    assert sum(size <= found.most for size in sizes) >= 0.9 * len(sizes)
    assert found.half <= found.most <= max(sizes)


@given(st.lists(st.floats(-2, 2)))
def test_every_error_is_in_one_bin(errors: list[float]) -> None:
    counts = calibration.binned(errors)
    assert sum(counts) == len(errors)
    assert len(counts) == len(calibration.bin_words(RATE))


def test_the_outcome_shows_prediction_and_band_and_does_not_join_before_and_after() -> None:
    began = 1_000 * SECOND_NS
    measured = Measurements(
        {SOURCE: Measured(((-60.0, 198.0), (-30.0, 199.0), (90.0, 900.0), (120.0, 901.0)))}
    )
    seen = Seen(
        began, began + 4 * SECOND_NS, began + 84 * SECOND_NS, began + 300 * SECOND_NS, NAMES,
        Prediction(((SOURCE, 900.0),)), measured, Tolerance(), (),
    )  # fmt: skip
    drawn = outcome_figure.figure(seen, View(), palette.of("light"))
    observed, predicted = drawn["data"]
    assert observed["y"] == [198.0, 199.0, None, 900.0, 901.0]
    assert len(observed["x"]) == 5
    assert predicted["y"] == [900.0, 900.0]
    band = next(shape for shape in drawn["layout"]["shapes"] if shape.get("yref") == "y")
    assert (band["y0"], band["y1"]) == pytest.approx((873.0, 927.0))


def test_a_change_is_marked_with_its_verdict_and_in_words() -> None:
    change = AppliedChange(7, 60 * SECOND_NS, "Applied: split 1 → 5", "verified", "anna", "the backlog grows")
    figure = {"data": [], "layout": {"annotations": [{"text": "own"}]}}
    drawn = marks.mark(figure, [change], View().axis_ms, palette.of("dark"))
    assert [note["text"] for note in drawn["layout"]["annotations"]] == ["own", "✓ 7"]
    assert drawn["layout"]["shapes"][0]["x0"] == 60_000
    assert marks.spoken([change], View()) == (
        " 1 change marked: at 00:01:00 Proposal 7: Applied: split 1 → 5, verified, decided by anna:"
        " the backlog grows."
    )
    assert marks.mark(figure, [], View().axis_ms, palette.of("dark")) is figure
    assert marks.spoken([], View()) == ""


def test_marks_near_each_other_stand_one_under_the_other_and_none_is_cut_off_at_the_end() -> None:
    changes = [AppliedChange(n, at, "Applied", "", "", "") for n, at in enumerate((40, 10, 43, 99))]
    figure = {"data": [], "layout": {"xaxis": {"range": [0, 100]}}}
    notes = marks.mark(figure, changes, float, palette.of("light"))["layout"]["annotations"]
    assert [(note["x"], note["yshift"], note["xanchor"]) for note in notes] == [
        (40, 0, "left"), (10, 0, "left"), (43, -marks.ROW_PX, "left"), (99, 0, "right"),
    ]  # fmt: skip


def test_change_windows_are_read_as_they_are_shown() -> None:
    text = "mon tue 09:00-17:00 Europe/Berlin\nsun 22:00-02:00 UTC"
    stored = windows.read(f"\n MON, tue  09:00 – 17:00  Europe/Berlin\n{text.splitlines()[1]}\n")
    assert windows.text(stored) == text
    assert windows.words(stored[1:]) == "only on sun 22:00-02:00 UTC"
    assert windows.read("") == []


@pytest.mark.parametrize(
    "line", ["always", "mon 9-17 UTC", "foo 09:00-17:00 UTC", "09:00-17:00 UTC", "mon 09:00-17:00"]
)
def test_a_line_that_is_no_change_window_is_named(line: str) -> None:
    with pytest.raises(ValidationError, match=line):
        windows.read(line)
