"""The words about all clusters reassure only where there is a current answer."""

from __future__ import annotations

import time

import pytest

from analytics.bursts.fleet import least_after_loss
from analytics.bursts.survey import MOST_LOST, survey
from analytics.model import packed
from analytics.model.plain import to_plain
from frontend.pages.bursts import listing, said
from tests.support.burst_models import read, worked_example
from webapp.bursts.models import Cluster, ModelVersion, Survey
from webapp.bursts.selectors import Standing

NOW_NS = time.time_ns()
HOUR_NS = 3_600_000_000_000


def standing(age_ns: int = 0, rate: float = 0.05, answered_model: int = 1) -> Standing:
    """The worked example, answered so long ago; not stored."""
    payload = packed.pack(to_plain(survey(read(worked_example()), (rate, rate))))
    return Standing(
        Cluster(pk=1, name="prod"),
        ModelVersion(pk=1, applications=["app1", "app2"]),
        Survey(model_id=answered_model, at_ns=NOW_NS - age_ns, payload=payload, seen_model=answered_model),
        None,
    )


def test_an_old_answer_is_not_called_current() -> None:
    assert said.state(standing(), NOW_NS) == said.CURRENT
    assert said.state(standing(3 * HOUR_NS), NOW_NS) == ("quiet", "▲ rates of 3 h ago")
    assert said.state(standing(answered_model=2), NOW_NS) == ("quiet", "▲ of an older model")


def test_a_cluster_that_cannot_take_its_configured_burst_is_not_simply_current() -> None:
    tight = standing(rate=0.15)  # 0.16 in both is the most: a fifteenth more
    assert said.state(tight, NOW_NS) == ("quiet", "▽ under its burst")
    assert listing.sentence([tight, standing()], NOW_NS, 2) == (
        "1 of 2 clusters have the headroom they need; 1 could not take the configured burst."
    )


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([standing(), standing()], "All of 2 clusters have the headroom they need."),
        (
            [standing(), standing(3 * HOUR_NS), standing(answered_model=2)],
            "1 of 3 clusters have the headroom they need; nothing current is known of 2.",
        ),
        (
            [standing(), standing(rate=0.15)],
            "1 of 2 clusters have the headroom they need; 1 could not take the configured burst.",
        ),
    ],
)
def test_only_clusters_with_a_current_answer_count_as_having_headroom(
    found: list[Standing], says: str
) -> None:
    assert listing.sentence(found, NOW_NS, len(found)) == says


def test_a_list_that_is_cut_says_so() -> None:
    assert listing.sentence([standing()], NOW_NS, 1200).endswith(
        " Listed are 1 of 1,200, those with an alert first."
    )


def test_headroom_after_a_loss_is_not_known_where_no_loss_was_computed() -> None:
    document = worked_example()
    known = survey(read(document), (0.05, 0.05))
    assert least_after_loss(known) == pytest.approx(-1.0)
    document["nodes"] |= {f"spare-{k}": {"cpu": 1.0} for k in range(MOST_LOST)}
    large = survey(read(document), (0.05, 0.05))
    assert large.losses == ()
    assert least_after_loss(large) is None
