"""A timeline is computed once for a window's result, decoded once in a process, and never shown when outdated."""

import pytest

from tests.support import seed
from webapp.analysis import selectors, timelines
from webapp.analysis.models import Timeline, TimelineState, Window
from webapp.jobs.models import Job
from workers.tasks import timeline as task

pytestmark = pytest.mark.django_db(transaction=True)
FIRST_SECOND = 1_700_000_000


@pytest.fixture
def job() -> Job:
    made = seed.make_job("ad-events")
    seed.stream(made, FIRST_SECOND, 6)
    return made


def newest(job: Job) -> int:
    found = selectors.newest_window_ns(job)
    assert found is not None
    return found


def analysed_again(job: Job, start_ns: int) -> None:
    Window.objects.filter(job=job, start_ns=start_ns).update(run_id=-1)


def test_looking_twice_asks_once(job: Job) -> None:
    first = timelines.timeline(job, newest(job))
    again = timelines.timeline(job, newest(job))
    assert first is not None
    assert again is not None
    assert (first.pk, first.requested_at) == (again.pk, again.requested_at)
    assert again.state == TimelineState.QUEUED
    assert timelines.timeline(job, 12345) is None


def test_looking_does_not_read_the_edges(job: Job, django_assert_max_num_queries: object) -> None:
    start_ns = newest(job)
    timelines.timeline(job, start_ns)
    with django_assert_max_num_queries(2) as captured:  # type: ignore[operator]
        timelines.timeline(job, start_ns)
    assert not any("payload" in query["sql"] for query in captured.captured_queries)


def test_the_edges_of_a_computed_timeline_are_decoded_once(
    job: Job, django_assert_num_queries: object
) -> None:
    row = timelines.timeline(job, newest(job))
    assert row is not None
    task.compute(row.pk)
    ready = timelines.timeline(job, newest(job))
    assert ready is not None
    assert ready.state == TimelineState.READY
    index = timelines.opened(ready)
    assert len(index.path) > 0
    assert index.worker_cp.sum() == pytest.approx(
        float(index.edges.cp[index.edges.src == index.edges.dst].sum())
    )
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert timelines.opened(ready) is index


def test_a_timeline_of_a_window_that_was_analysed_again_is_asked_for_anew(job: Job) -> None:
    row = timelines.timeline(job, newest(job))
    assert row is not None
    task.compute(row.pk)
    analysed_again(job, newest(job))
    anew = timelines.timeline(job, newest(job))
    assert anew is not None
    assert (anew.pk, anew.state, anew.run_id) == (row.pk, TimelineState.QUEUED, -1)
    with pytest.raises(LookupError):
        timelines.opened(anew)


def test_decoded_edges_are_let_go_of_when_there_are_too_many(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = list(Window.objects.filter(job=job).order_by("start_ns").values_list("start_ns", flat=True))[:3]
    rows = [timelines.timeline(job, start) for start in starts]
    for row in rows:
        assert row is not None
        task.compute(row.pk)
    ready = [Timeline.objects.get(pk=row.pk) for row in rows if row is not None]
    monkeypatch.setattr(timelines, "KEPT_EDGES", 1)
    kept = [timelines.opened(row) for row in ready]
    assert timelines.opened(ready[-1]) is kept[-1]
    assert timelines.opened(ready[0]) is not kept[0]
