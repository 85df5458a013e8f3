"""What the autoscaler's own tests say, beyond formulas: limits, alignment, delays, futile scalings, periods."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from analytics.model.decisions import OperatorDecision, Status
from analytics.scaling.flink_autoscaler import Alignment, AutoscalerOptions
from analytics.scaling.flink_autoscaler.alignment import align
from analytics.scaling.flink_autoscaler.delays import DelayedDown, Delays, Recommended
from analytics.scaling.flink_autoscaler.excluded import is_in, period
from analytics.scaling.flink_autoscaler.metrics import VertexMetrics
from analytics.scaling.flink_autoscaler.vertex import PastScaling, scale_vertex, was_ineffective
from analytics.scaling.settings import BadSettingsError, settings_of

FULL = AutoscalerOptions(
    utilization_target=1.0, catch_up_s=0.0, scale_down_interval_s=0.0, scale_down_max_factor=1.0
)
NO_LIMIT = 2**31 - 1
SECOND_NS = 1_000_000_000


# JobVertexScalerTest.testParallelismComputation, …WithLimit, testMin… and testMaxParallelismLimitIsUsed:
# parallelism, groups, factor, limits, new.
@pytest.mark.parametrize(
    ("current", "groups", "factor", "limits", "new"),
    [
        (1, 720, 0.0001, (1, NO_LIMIT), 1),
        (2, 720, 0.1, (1, NO_LIMIT), 1),
        (6, 720, 0.8, (1, NO_LIMIT), 5),
        (16, 128, 1.5, (1, NO_LIMIT), 32),
        (200, 720, NO_LIMIT, (1, NO_LIMIT), 720),
        (6, 720, 0.8, (1, 700), 5),
        (8, 720, 0.8, (8, 700), 8),
        (200, 720, 2.0, (1, 300), 300),
        (200, 720, NO_LIMIT, (1, 600), 600),
        (10, 720, 0.2, (5, 200), 5),
        (4, 720, 0.2, (5, 200), 4),
        (10, 720, 5.0, (1, 10), 10),
        (12, 720, 5.0, (1, 10), 12),
    ],
)
def test_the_published_limits(
    current: int, groups: int, factor: float, limits: tuple[int, int], new: int
) -> None:
    options = replace(
        FULL, min_parallelism=limits[0], max_parallelism=limits[1], scale_up_max_factor=1e12,
        alignment=Alignment.EVENLY_SPREAD,
    )  # fmt: skip
    metrics = VertexMetrics(factor * 1e6, 0.0, 1e6)
    assert scale_vertex(current, groups, True, metrics, options).parallelism == new


# AlignmentModeTest: current, target, groups or partitions, limit, mode, aligned.
@pytest.mark.parametrize(
    ("current", "target", "groups", "limit", "mode", "aligned"),
    [
        (16, 24, 128, 128, Alignment.BALANCED, 26),
        (16, 24, 128, 128, Alignment.EVENLY_SPREAD, 32),
        (16, 24, 128, 128, Alignment.OFF, 24),
        (22, 25, 35, 30, Alignment.EVENLY_SPREAD, 25),
        (22, 25, 35, 30, Alignment.BALANCED, 25),
        (5, 7, 12, 8, Alignment.EVENLY_SPREAD, 7),
    ],
)
def test_the_published_alignments(
    current: int, target: int, groups: int, limit: int, mode: Alignment, aligned: int
) -> None:
    assert align(target, current, groups, limit, mode) == aligned


# JobVertexScalerTest.testIneffectiveScalingDetection: after 10 → 20, when 90/s should have become 180/s.
@pytest.mark.parametrize(
    ("current", "true_rate", "ineffective"),
    [(20, 94.0, True), (20, 98.0, True), (10, 90.0, False), (20, 100.0, False)],
)
def test_the_published_judgement_of_a_scale_up(current: int, true_rate: float, ineffective: bool) -> None:
    history = [PastScaling("a", 0, 5, 10, 50.0, 100.0), PastScaling("a", 1, 10, 20, 90.0, 180.0)]
    assert was_ineffective(current, true_rate, history, AutoscalerOptions()) is ineffective


# DelayedScaleDownTest.testMaxRecommendedParallelismForSlidingWindow: the second, what was recommended, from which
# second on it counts, and the largest.
SLIDING = [(0, 5, 0, 5), (1, 8, 0, 8), (2, 6, 0, 8), (3, 4, 0, 8), (4, 3, 1, 8), (5, 3, 2, 6), (6, 3, 3, 4),
           (7, 3, 4, 3), (8, 3, 8, 3), (9, 9, 8, 9)]  # fmt: skip


def test_the_published_window_of_scale_downs() -> None:
    waiting = DelayedDown("a", 0)
    for at, parallelism, since, largest in SLIDING:
        waiting = waiting.and_then(Recommended(at, parallelism, True))
        assert waiting.largest_since(since).parallelism == largest
    assert (waiting.since_ns, len(waiting.recommended)) == (0, 1)


def decision(current: int, wanted: int) -> OperatorDecision:
    return OperatorDecision("a", current, None, wanted, Status.OK, None, None, None, None)


def test_a_scale_down_waits_from_its_first_time_until_something_else_is_wanted() -> None:
    waiting: tuple[DelayedDown, ...] = ()
    given = []
    for minute, (wanted, outside) in enumerate([(5, True), (8, False), (6, True), (10, True), (7, True)]):
        delays = Delays(waiting, minute * 60 * SECOND_NS, 120.0)
        item, acts = delays.hold(decision(10, wanted), outside)
        waiting = delays.waiting
        given.append((item.proposed, acts))
    assert given == [(10, False), (10, False), (8, False), (10, True), (10, False)]
    assert waiting[0].since_ns == 4 * 60 * SECOND_NS


# CalendarUtilsTest.testValidateExcludedPeriods
@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("09:13:17-08:15:18", False),
        ("09:13:17-25:15:18", False),
        ("18:01:20-16:00:00", False),
        ("09:13:17-11:15:18 && 12:01:20-16:00:00", False),
        ("09:13:17-11:15:18", True),
        ("14:01:20-16:00:00", True),
        ("* * * ? * 2,5555", False),
        ("* * * ? * 2,5 && 18:01:20-16:00:00", False),
        ("* * * ? * 2,5 && * * 11-13 * * ?", False),
        ("* * * ? * 2,5 && 14:01:20-16:00:00", True),
        ("", False),
        ("* * * * * *", False),
        ("* * * ? * ?", False),
        ("* * * 15W * ?", False),
        ("* * */0 * * ?", False),
        ("? * * * * ?", False),
        ("9:00-10:00 && 11:00-12:00 && * * * ? * 2", False),
    ],
)
def test_the_published_periods_are_valid_or_not(text: str, valid: bool) -> None:
    if valid:
        period(text)
        assert settings_of("flink-autoscaler", {"excluded_periods": [text]}).excluded_periods == (text,)
        return
    with pytest.raises(ValueError, match=r"\w") as refused:
        period(text)
    assert "\n" not in str(refused.value)
    with pytest.raises(BadSettingsError, match="excluded_periods"):
        settings_of("flink-autoscaler", {"excluded_periods": [text]})


def in_any(texts: list[str], at: str) -> bool:
    at_ns = round(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()) * SECOND_NS
    return any(is_in(text, at_ns) for text in texts)


# CalendarUtilsTest.testExcludedPeriods: 14 December 2023 is a Thursday, in Quartz' count day 5.
@pytest.mark.parametrize(
    ("texts", "at", "excluded"),
    [
        (["09:13:17-11:15:18", "14:01:20-16:00:00"], "2023-12-14T14:01:30", True),
        (["09:13:17-11:15:18", "14:01:20-16:00:00"], "2023-12-14T14:01:10", False),
        (["09:13:17-11:15:18", "14:01:20-16:00:00"], "2023-12-14T10:01:30", True),
        (["* * 14-16 * * ?"], "2023-12-14T14:01:30", True),
        (["* * 14-16 * * ?"], "2023-12-14T13:59:50", False),
        (["* * * ? * 2,5 && 14:01:20-16:00:00"], "2023-12-14T14:01:30", True),
        (["* * * ? * 2,5 && 14:01:20-16:00:00"], "2023-12-13T14:01:30", False),
        (["* * * ? * 2,5 && 14:01:20-16:00:00"], "2023-12-11T14:01:30", True),
    ],
)
def test_the_published_times_are_excluded_or_not(texts: list[str], at: str, excluded: bool) -> None:
    assert in_any(texts, at) is excluded


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("* * 9-11,14-16 * * ?", "2024-02-29T11:59:59", "2024-02-29T12:00:00"),
        ("* * * ? * 2-6", "2024-03-01T00:00:00", "2024-03-02T00:00:00"),
        ("* * * ? * SAT-SUN", "2024-03-03T12:00:00", "2024-03-04T12:00:00"),
        ("* * * L FEB ?", "2024-02-29T12:00:00", "2023-02-27T12:00:00"),
        ("* * * 1,L * ?", "2024-03-31T12:00:00", "2024-03-30T12:00:00"),
        ("* * * ? * 6L", "2024-03-29T12:00:00", "2024-03-22T12:00:00"),
        ("* * * ? * MON#2", "2024-03-11T12:00:00", "2024-03-04T12:00:00"),
        ("* 0/15 * * * ?", "2024-03-01T10:30:00", "2024-03-01T10:31:00"),
        ("0-30/10 * * * * ?", "2024-03-01T10:31:20", "2024-03-01T10:31:40"),
        ("* * 22-5 * * ? 2024-2025", "2024-03-01T03:00:00", "2026-03-01T03:00:00"),
        ("* * * ? NOV-JAN 1-7", "2024-01-01T03:00:00", "2024-02-01T03:00:00"),
        ("9:30-10:00", "2024-03-01T10:00:00", "2024-03-01T10:00:01"),
    ],
)
def test_cron_expressions_mean_what_they_say(text: str, inside: str, outside: str) -> None:
    assert in_any([text], inside)
    assert not in_any([text], outside)
