"""How headroom went: thinned in the database, of the same applications only, and not read for every slider."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support import clusters
from tests.support.burst_models import worked_example
from webapp.accounts.models import User
from webapp.bursts import past, selectors, services
from webapp.bursts.models import Cluster, HeadroomPoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worked() -> Cluster:
    boss = User.objects.create_superuser("boss")
    made = clusters.worked(boss, app1=0.05, app2=0.07)
    clusters.survey_here()
    return made


def long_past(cluster: Cluster, count: int, now_ns: int) -> None:
    """Points a second apart, the first the highest."""
    version = cluster.versions.get(superseded_at=None).version
    HeadroomPoint.objects.bulk_create(
        HeadroomPoint(
            cluster=cluster, at_ns=now_ns - (count - k) * 10**9, version=version,
            rates=[0.09 if k == 0 else 0.01, 0.02], ratio=k / count, joint=0.0, single=0.0,
        )
        for k in range(count)
    )  # fmt: skip


def test_a_long_history_is_thinned_evenly_and_keeps_its_last_point(worked: Cluster) -> None:
    now_ns = HeadroomPoint.objects.get().at_ns
    long_past(worked, 4_500, now_ns)
    found = past.history(worked.pk, 0, now_ns)
    assert len(found) == -(-4_501 // 3)
    assert found[-1].at_ns == now_ns
    assert found[-1].least_after_loss == pytest.approx(-1.0)
    assert found[0].least_after_loss is None
    assert {later.at_ns - earlier.at_ns for earlier, later in pairwise(found)} == {3 * 10**9}


def test_earlier_rates_are_read_once_for_an_answer_and_the_peak_misses_no_point(worked: Cluster) -> None:
    now_ns = HeadroomPoint.objects.get().at_ns
    long_past(worked, 4_500, now_ns)
    standing = selectors.standing(worked)
    first = past.rates(standing, (0, now_ns), (1, 0))
    assert first.peak == (0.09, 0.07)
    assert first.trail[-1] == (0.07, 0.05)
    assert len(first.trail) == -(-4_501 // 3)
    with CaptureQueriesContext(connection) as asked:
        assert past.rates(standing, (0, now_ns), (1, 0)) is first
    assert len(asked) == 0
    services.set_rates(User.objects.get(), worked, {"app2": 0.1}, time.time_ns())
    clusters.survey_here()
    assert past.rates(selectors.standing(worked), (0, 2 * now_ns), (1, 0)).peak == (0.09, 0.1)


def test_rates_of_other_applications_are_not_taken_for_those_of_now(worked: Cluster) -> None:
    boss, document = User.objects.get(), worked_example()
    turned = document | {"applications": dict(reversed(document["applications"].items()))}
    services.upload_model(boss, worked, turned)
    span = (0, 2 * time.time_ns())
    standing = selectors.standing(worked)
    assert not standing.comparable, "the answers' first rate is the second application's now"
    assert past.rates(standing, span, (0, 1)).peak == ()
    services.set_rates(boss, worked, {"app1": 0.01}, time.time_ns())
    clusters.survey_here()
    standing = selectors.standing(worked)
    assert standing.comparable
    assert past.rates(standing, span, (0, 1)) == past.Rates((0.07, 0.01), ((0.07, 0.01),))
    assert len(past.history(worked.pk, *span)) == 2, "headroom itself is comparable over all models"
