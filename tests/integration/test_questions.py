"""Questions are answered by a task from what is stored, and asked again only when there is a reason."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from celery.signals import after_task_publish
from django.utils import timezone

from analytics.critical_path import analyse, every_window_edges, trust, why
from analytics.critical_path.collocation import propose_collocation
from analytics.critical_path.compare import compare
from analytics.critical_path.what_if import paths, rank, what_if
from analytics.model.activity import ActivityType
from analytics.model.answers import Target, TargetKind, TrustLimits
from analytics.model.results import Windows
from tests.support import seed
from webapp.analysis import basis, questions
from webapp.analysis.models import Question, QuestionKind, TimelineState, Window
from webapp.analysis.questions import Asked
from webapp.jobs.models import Job
from workers import records
from workers.tasks.questions import answer

S = 1_000_000_000
FIRST, SECONDS = 1_790_000_000, 30
RANGE = (FIRST * S, (FIRST + SECONDS) * S)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job() -> Job:
    made = seed.make_job("ad-events")
    Job.objects.update(finished=True)  # so that its last windows are closed
    made.refresh_from_db()
    seed.stream(made, FIRST, SECONDS)
    made.refresh_from_db()
    return made


def asked(kind: QuestionKind, *ranges: tuple[int, int], **params: object) -> Asked:
    return Asked(kind, {"from_ns": RANGE[0], "to_ns": RANGE[1], **params}, ranges or (RANGE,))


def answered(job: Job, question: Asked) -> object:
    row = questions.ask(job, question)
    assert row is not None
    answer(row.pk)
    row = questions.ask(job, question)
    assert row is not None
    assert (row.state, row.error) == (TimelineState.READY, "")
    return questions.answer_of(row)


def edges(job: Job) -> list:
    loaded = records.load(job, *RANGE)
    windows = Windows(job.window_ns, FIRST, SECONDS)
    found, _ = every_window_edges(
        *loaded[:3], windows, bounds_ns=loaded.bounds_ns, horizon_ns=job.gap_horizon_ns
    )
    return list(found)


def summaries(job: Job, first: int, count: int) -> list:
    loaded = records.load(job, first * S, (first + count) * S)
    windows = Windows(job.window_ns, first, count)
    return analyse(*loaded[:3], windows, bounds_ns=loaded.bounds_ns, horizon_ns=job.gap_horizon_ns)[0]


def test_the_ranking_is_that_of_the_records(job: Job) -> None:
    found = answered(job, asked(QuestionKind.RANKING))
    assert found == rank(edges(job))
    assert found.window_count == SECONDS  # type: ignore[attr-defined]


@pytest.mark.parametrize("factor", [1.5, 2.0, math.inf])
def test_what_would_be_saved_is_that_of_the_records(job: Job, factor: float) -> None:
    said = "infinite" if math.isinf(factor) else factor
    found = answered(job, asked(QuestionKind.WHAT_IF, target_kind="operator", target=1, factor=said))
    assert found == what_if(edges(job), Target(TargetKind.OPERATOR, 1), factor, most_steps=0)
    assert found.saved_ns > 0  # type: ignore[attr-defined]


def test_the_paths_of_one_window_are_those_of_the_records(job: Job) -> None:
    start_ns = RANGE[0] + 3 * S
    params = {"window_ns": start_ns, "target_kind": "worker", "target": 0, "factor": 2.5}
    found = answered(job, Asked(QuestionKind.WHAT_IF, params, ((start_ns, start_ns + 1),)))
    assert found == paths(*edges(job)[3], Target(TargetKind.WORKER, 0), 2.5)
    assert found.now  # type: ignore[attr-defined]
    assert found.window.path  # type: ignore[attr-defined]


def test_an_answer_of_another_release_is_asked_anew(job: Job) -> None:
    question = asked(QuestionKind.RANKING)
    answered(job, question)
    Question.objects.update(version="0 x", payload={"kind": "WhatIfRanking", "rows": []})
    row = questions.ask(job, question)
    assert row is not None
    assert (row.state, questions.answer_of(row)) == (TimelineState.QUEUED, None)
    assert questions.known(job, question) is None
    answer(row.pk)
    assert questions.answer_of(Question.objects.get()) == rank(edges(job))


def test_why_workers_waited_is_that_of_the_records(job: Job) -> None:
    found = answered(job, asked(QuestionKind.WHY))
    assert found == why.combined([why.why(*item, trace_end_ns=job.last_ns) for item in edges(job)])
    assert found.wait_count >= SECONDS  # type: ignore[attr-defined]


def test_why_one_worker_waited_at_one_time_follows_the_chain_as_far_as_was_read(job: Job) -> None:
    at_ns = RANGE[0] + 10 * S + S // 2
    question = Asked(QuestionKind.WHY, {"worker": 0, "at_ns": at_ns}, at_ns=at_ns)
    found = answered(job, question)
    loaded = records.load(job, *RANGE)
    assert found == why.why_at(*loaded[:3], 0, at_ns, job.window_ns, horizon_ns=job.gap_horizon_ns)
    assert found.wait_count == 1  # type: ignore[attr-defined]
    assert found.groups[0].hop == 1  # type: ignore[attr-defined]


def test_what_changed_is_told_from_the_stored_results(job: Job) -> None:
    middle = RANGE[0] + 10 * S
    found = answered(job, asked(QuestionKind.COMPARE, (RANGE[0], middle), (middle, RANGE[1])))
    assert found == compare(summaries(job, FIRST, 10), summaries(job, FIRST + 10, 20))
    assert found.changes  # type: ignore[attr-defined]


def test_who_belongs_together_is_told_from_the_stored_results(job: Job) -> None:
    found = answered(job, asked(QuestionKind.TOGETHER))
    hosts = [host for _, host in sorted(job.workers.values_list("number", "host"))]
    assert found == propose_collocation(summaries(job, FIRST, SECONDS), hosts)
    assert found.proposals  # type: ignore[attr-defined]


def test_the_trust_in_a_trace_is_that_of_the_records_and_of_reading_them(job: Job) -> None:
    batch = job.batches.get()
    batch.diagnostics = [{"code": "unmatched_sent", "count": 2, "example": "c1"}]
    batch.save()
    limits = TrustLimits(message_ns=2_000_000)
    found = answered(job, asked(QuestionKind.TRUST, longest_message_ns=2_000_000))
    loaded = records.load(job, *RANGE)
    direct = trust.check_trust(
        *loaded[:3], Windows(job.window_ns, FIRST, SECONDS), limits=limits, bounds_ns=loaded.bounds_ns,
        horizon_ns=job.gap_horizon_ns,
    )  # fmt: skip
    assert found.checks == direct.checks  # type: ignore[attr-defined]
    assert any(check.count for check in found.checks)  # type: ignore[attr-defined]
    assert [item.code for item in found.diagnostics] == ["unmatched_sent"]  # type: ignore[attr-defined]


def test_windows_with_a_gap_between_are_answered_as_one(job: Job) -> None:
    later = FIRST + 1000
    seed.stream(job, later, 5)
    job.refresh_from_db()
    wide = (RANGE[0], (later + 5) * S)
    row = questions.ask(job, asked(QuestionKind.RANKING, wide, far=True))
    assert row is not None
    used = questions.sides_of(row.basis)[0].used
    assert used == SECONDS + 5, "a thousand windows of silence do not count"
    starts = basis.starts_ns(job, questions.sides_of(row.basis)[0])
    assert [windows.count for _, windows in records.stretches(job, starts)] == [SECONDS, 5]
    found = answered(job, asked(QuestionKind.RANKING, wide, far=True))
    assert found.window_count + found.windows_left_out == used  # type: ignore[attr-defined]
    checked = answered(job, asked(QuestionKind.TRUST, wide, far=True))
    assert checked.window_count == used  # type: ignore[attr-defined]


def test_too_many_windows_are_cut_to_the_newest_and_that_is_told(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(questions.BUDGETS, QuestionKind.RANKING, questions.Budget(7, 10**6))
    found = answered(job, asked(QuestionKind.RANKING))
    (side,) = questions.sides_of(Question.objects.get().answered_basis)
    assert (side.used, side.of, found.window_count) == (7, SECONDS, 7)  # type: ignore[attr-defined]
    assert (side.from_ns, side.to_ns) == (RANGE[1] - 7 * S, RANGE[1])
    monkeypatch.setitem(questions.BUDGETS, QuestionKind.RANKING, questions.Budget(7, 1))
    row = questions.ask(job, asked(QuestionKind.RANKING, again=True))
    assert row is not None
    assert questions.sides_of(row.basis)[0].used == 1, "at least one window, however large"


def test_a_question_is_asked_once_until_its_windows_are_analysed_again(job: Job) -> None:
    question = asked(QuestionKind.RANKING)
    answered(job, question)
    before = Question.objects.get()
    again = questions.ask(job, question)
    assert again is not None
    assert (again.pk, again.requested_at) == (before.pk, before.requested_at)
    Window.objects.filter(start_ns=RANGE[0]).update(run_id=10**6)
    stale = questions.ask(job, question)
    assert stale is not None
    assert (stale.pk, stale.state) == (before.pk, TimelineState.QUEUED)
    assert questions.answer_of(stale) is not None, "the old answer stands until the new one is there"


def test_a_moving_range_is_asked_anew_for_newer_windows_but_not_all_the_time(job: Job) -> None:
    def now(extra: int) -> Asked:
        span = (RANGE[0], RANGE[1] + extra * S)
        return Asked(QuestionKind.RANKING, {"range": "15m"}, (span,), moving=True)

    answered(job, now(0))
    seed.stream(job, FIRST + SECONDS, 5)
    early = questions.ask(job, now(5))
    assert early is not None
    assert early.state == TimelineState.READY
    Question.objects.update(requested_at=timezone.now() - questions.REFRESH)
    due = questions.ask(job, now(5))
    assert due is not None
    assert (due.state, Question.objects.count()) == (TimelineState.QUEUED, 1)


def test_an_answer_to_a_question_that_was_asked_anew_is_dropped(job: Job) -> None:
    row = questions.ask(job, asked(QuestionKind.RANKING))
    assert row is not None
    before = row.requested_at
    Question.objects.update(requested_at=before + timedelta(seconds=1))
    questions.store(row.pk, before, rank([]))
    questions.fail(row.pk, before, "too late")
    row.refresh_from_db()
    assert (row.state, row.payload, row.error) == (TimelineState.QUEUED, None, "")


def test_a_question_that_cannot_be_answered_says_why_and_can_be_asked_again(job: Job) -> None:
    question = asked(QuestionKind.RANKING)
    row = questions.ask(job, question)
    assert row is not None
    Job.objects.filter(pk=job.pk).update(first_ns=None)
    with pytest.raises(LookupError):
        answer(row.pk)
    failed = questions.ask(job, question)
    assert failed is not None
    assert (failed.state, failed.error) == (TimelineState.FAILED, "the job has no records")
    Job.objects.filter(pk=job.pk).update(first_ns=job.first_ns)
    questions.retry(job, question)
    answer(row.pk)
    healed = questions.ask(job, question)
    assert healed is not None
    assert healed.state == TimelineState.READY


def test_old_answers_are_forgotten(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    first = questions.ask(job, asked(QuestionKind.RANKING))
    Question.objects.update(requested_at=timezone.now() - questions.KEPT)
    second = questions.ask(job, asked(QuestionKind.TRUST))
    assert first is not None
    assert second is not None
    assert [row.pk for row in Question.objects.all()] == [second.pk]
    monkeypatch.setattr(questions, "MOST_KEPT", 2)
    for number in range(4):
        questions.ask(job, asked(QuestionKind.TRUST, number=number))
    kept = {row.params.get("number") for row in Question.objects.all()}
    assert kept == {2, 3}


def test_a_range_without_windows_asks_nobody(job: Job) -> None:
    assert questions.ask(job, asked(QuestionKind.TRUST, (0, S))) is None
    assert not Question.objects.exists()


def test_a_question_is_handed_to_the_workers_of_pages_once(job: Job) -> None:
    queues: list[str] = []

    def note(routing_key: str = "", **_: object) -> None:
        queues.append(routing_key)

    after_task_publish.connect(note)
    questions.ask(job, asked(QuestionKind.RANKING))
    questions.ask(job, asked(QuestionKind.RANKING))
    after_task_publish.disconnect(note)
    assert queues == ["interactive"]


def test_activity_types_are_targets_like_operators_and_workers(job: Job) -> None:
    code = int(ActivityType.DATA_MESSAGE)
    found = answered(job, asked(QuestionKind.WHAT_IF, target_kind="activity", target=code, factor="infinite"))
    assert found == what_if(edges(job), Target(TargetKind.ACTIVITY, code), math.inf, most_steps=0)


def test_an_answer_is_mentioned_elsewhere_only_while_it_is_fresh(job: Job) -> None:
    question = asked(QuestionKind.RANKING)
    assert questions.known(job, question) is None
    assert not Question.objects.exists(), "mentioning asks nobody"
    assert answered(job, question) == questions.known(job, question)
    Window.objects.filter(start_ns=RANGE[0]).update(run_id=10**6)
    assert questions.known(job, question) is None
    moving = Asked(QuestionKind.RANKING, {"range": "15m"}, (RANGE,), moving=True)
    assert answered(job, moving) == questions.known(job, moving)
    Question.objects.update(answered_at=timezone.now() - questions.TOLD_FOR - timedelta(seconds=1))
    assert questions.known(job, moving) is None
