"""Every number of an answer leads to a segment that is there: in the timeline of the window that its link opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from analytics.model.answers import CheckState, TrustAnswer, WhyAnswer
from frontend.asked import Wish
from frontend.pages.questions import asking, compare, together, trust, what_if, why
from frontend.state import View
from tests.support import seed
from webapp.analysis import questions, timelines
from webapp.analysis.edge_index import EdgeIndex
from webapp.analysis.models import TimelineState
from webapp.jobs.models import Job
from workers.tasks.questions import answer
from workers.tasks.timeline import compute

S = 1_000_000_000
FIRST, SECONDS = 1_790_000_000, 30

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job() -> Job:
    made = seed.make_job("ad-events")
    Job.objects.update(finished=True)
    seed.stream(made, FIRST, SECONDS)
    made.refresh_from_db()
    return made


def drawn(job: Job, tab: asking.Tab, more: str = "") -> tuple[list[Any], asking.Page]:
    """The answers of a tab and what it shows of them."""
    from frontend.state import iso

    query = f"?tab={tab.key}&from={iso(FIRST * S)}&to={iso((FIRST + SECONDS) * S)}{more}"
    request = asking.Request(job, View.parse(query), Wish.parse(query), False, (FIRST + SECONDS) * S)
    for _ in range(3):  # what is asked may follow from an answer
        asked = tab.ask(request)
        assert not isinstance(asked, str), asked
        for item in asked:
            row = questions.ask(job, item)
            assert row is not None
            answer(row.pk)
    answers = [questions.answer_of(questions.ask(job, item)) for item in tab.ask(request)]
    return answers, tab.draw(request, answers)


def leads(shown: Any) -> Iterator[dict[str, str | None]]:
    """All changes of the address that components, or marks of charts, make."""
    if isinstance(shown, list | tuple):
        for part in shown:
            yield from leads(part)
    elif hasattr(shown, "to_plotly_json"):
        props = shown.to_plotly_json()["props"]
        if "data-set" in props:
            yield json.loads(props["data-set"])
        yield from leads(props.get("children"))


def marks(page: asking.Page) -> Iterator[dict[str, str | None]]:
    for part in page.panels.values():
        for trace in (part.figure or {"data": []})["data"]:
            yield from map(json.loads, trace.get("customdata", []))


def edges_of(job: Job, start_ns: int, known: dict[int, EdgeIndex]) -> EdgeIndex:
    if start_ns not in known:
        row = timelines.timeline(job, start_ns)
        assert row is not None, f"no window begins at {start_ns}"
        if row.state != TimelineState.READY:
            compute(row.pk)
        row = timelines.timeline(job, start_ns)
        assert row is not None
        known[start_ns] = timelines.opened(row)
    return known[start_ns]


def found(job: Job, changes: Iterator[dict[str, str | None]]) -> list[int]:
    """Which segments the links open that name one; all of them must be there."""
    known: dict[int, EdgeIndex] = {}
    numbers = []
    for change in changes:
        if change.get("tab") != "timeline" or not change.get("segment"):
            continue
        start_ns = int(change["window"] or "")
        number = View.parse(f"?segment={change['segment']}").segment.find(edges_of(job, start_ns, known))
        assert number is not None, change
        numbers.append(number)
    return numbers


def test_what_was_waited_for(job: Job) -> None:
    (told,), page = drawn(job, why.TAB)
    assert isinstance(told, WhyAnswer)
    assert len(found(job, leads(page.panels["chain"].listed))) == len(told.groups) > 5


def test_where_checks_fail_or_measure(job: Job) -> None:
    (told,), page = drawn(job, trust.TAB, "&longest_message_ms=5&longest_operator_ms=1&longest_pause_ms=1")
    assert isinstance(told, TrustAnswer)
    failed = [check for check in told.checks if check.state is CheckState.FAILED]
    assert (
        len(found(job, leads(page.panels["checks"].listed)))
        == sum(len(check.examples) for check in failed)
        > 10
    )


def test_where_a_compared_group_had_most(job: Job) -> None:
    from frontend.state import iso

    middle = (FIRST + SECONDS // 2) * S
    ranges = (
        f"&a_from={iso(FIRST * S)}&a_to={iso(middle)}&b_from={iso(middle)}&b_to={iso((FIRST + SECONDS) * S)}"
    )
    _, page = drawn(job, compare.TAB, ranges)
    assert len(found(job, leads(page.panels["changes"].listed))) > 20


def test_the_messages_that_would_no_longer_cross_hosts(job: Job) -> None:
    (told,), page = drawn(job, together.TAB)
    partners = sum(len(proposal.beside) for proposal in told.proposals)
    assert len(found(job, leads(page.panels["proposals"].listed))) == partners > 0


def test_the_steps_of_the_path_as_it_is_and_as_it_would_be(job: Job) -> None:
    told, page = drawn(job, what_if.TAB, "&factor=3.5")
    steps = len(told[2].now) + len(told[2].window.path)
    assert len(found(job, leads(page.panels["paths"].listed))) == steps > 3
    assert len(found(job, marks(page))) > 3
