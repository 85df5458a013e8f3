"""Questions about a job: asked by a page, answered by a worker, kept while the windows they rest on stand.

A range that moves with the clock is asked about by its name, so there is one answer for it, which is replaced when
it is `REFRESH` old and newer windows are there. Until the new one comes, the old one stands. A fixed range's answer
stands until one of its windows is analysed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from analytics.model.answers import Answer, UnreadableAnswerError, from_json, to_json
from webapp.analysis.basis import Basis, Budget, around, choose, version
from webapp.analysis.models import Question, QuestionKind, TimelineState
from webapp.jobs.models import Job
from webapp.queue import enqueue

TASK = "workers.tasks.questions.answer"
ANSWERS_VERSION = 2
"""Rises whenever the same windows may give another answer, or answers are written differently."""

REFRESH = timedelta(seconds=20)
LOST = timedelta(seconds=60)
"""A question that waits for so long has been lost on its way, and is asked again."""

TOLD_FOR = timedelta(minutes=5)
"""How long pages mention the answer about a moving range if nobody asks it anew."""

KEPT = timedelta(days=1)
MOST_KEPT = 500
"""Of a job; beyond it the oldest are forgotten."""

ON_RECORDS = Budget(windows=300, records=200_000)
ON_RESULTS = Budget(windows=5_000, records=10**15)
BUDGETS = {
    QuestionKind.WHY: ON_RECORDS,
    QuestionKind.WHAT_IF: ON_RECORDS,
    QuestionKind.RANKING: ON_RECORDS,
    QuestionKind.TRUST: ON_RECORDS,
    QuestionKind.COMPARE: ON_RESULTS,
    QuestionKind.TOGETHER: ON_RESULTS,
}
"""What an answer may rest on: those from records take about a second for that many on one core."""


@dataclass(frozen=True)
class Asked:
    """A question: its kind, what tells it from others, and the ranges ``[from, to)`` (ns) it is about now.

    ``moving`` says that the ranges follow the clock. ``params`` hold only what JSON can say. About one moment a
    question is asked with its job's horizon around it.
    """

    kind: QuestionKind
    params: dict[str, Any]
    ranges_ns: Sequence[tuple[int, int]] = ()
    moving: bool = False
    at_ns: int | None = None

    def sides(self, job: Job) -> list[Basis]:
        """The windows it is about now, one entry a range."""
        budget = BUDGETS[self.kind]
        if self.at_ns is not None:
            return [around(job, self.at_ns, job.gap_horizon_ns, budget)]
        return [choose(job, low, high, budget) for low, high in self.ranges_ns]


def ask(job: Job, asked: Asked) -> Question | None:
    """The question with its answer, asked now if there is none or it is outdated; None if a range has no window.

    A queued one comes back with state ``queued``, and the answer of before if there is one: ask again shortly.
    """
    known = Question.objects.filter(job=job, kind=asked.kind, params=asked.params).first()
    if known is not None and _stands(known, asked, job):
        return known
    sides = asked.sides(job)
    if not all(side.used for side in sides):
        return None
    with transaction.atomic():
        row, created = Question.objects.select_for_update().get_or_create(
            job=job, kind=asked.kind, params=asked.params, defaults=_fresh(job, sides)
        )
        if not created and not _stands(row, asked, job):
            for name, value in _fresh(job, sides).items():
                setattr(row, name, value)
            row.save()
            created = True
        if created:
            _forget(job)
            transaction.on_commit(lambda: enqueue(TASK, row.pk, queue="interactive"))
    return row


def _fresh(job: Job, sides: Sequence[Basis]) -> dict[str, Any]:
    return {
        "basis": [side.to_json() for side in sides],
        "version": _version(job, sides),
        "state": TimelineState.QUEUED,
        "requested_at": timezone.now(),
        "error": "",
    }


def _version(job: Job, sides: Sequence[Basis]) -> str:
    return f"{ANSWERS_VERSION} {version(job, sides)}"


def sides_of(payload: list[dict[str, Any]] | None) -> list[Basis]:
    """What a question or its answer rests on, one entry a range."""
    return [Basis.of_json(side) for side in payload or []]


def _stands(row: Question, asked: Asked, job: Job) -> bool:
    """Whether there is no reason to ask again now."""
    age = timezone.now() - row.requested_at
    if row.state == TimelineState.QUEUED:
        return age < LOST
    if asked.moving and age < REFRESH:
        return True
    sides = sides_of(row.basis)
    if asked.moving and [side.to_ns for side in asked.sides(job)] != [side.to_ns for side in sides]:
        return False
    return row.version == _version(job, sides)


def _forget(job: Job) -> None:
    """Answers nobody asked for since a day, and the oldest beyond what is kept."""
    Question.objects.filter(requested_at__lt=timezone.now() - KEPT).delete()
    surplus = Question.objects.filter(job=job).order_by("-requested_at").values_list("pk", flat=True)
    Question.objects.filter(pk__in=list(surplus[MOST_KEPT:])).delete()


def store(question_id: int, asked_at: datetime, answer: Answer) -> None:
    """Keep an answer, unless the question was asked anew meanwhile."""
    Question.objects.filter(pk=question_id, requested_at=asked_at).update(
        state=TimelineState.READY,
        payload=to_json(answer),
        answered_basis=F("basis"),
        answered_at=timezone.now(),
        error="",
    )


def fail(question_id: int, asked_at: datetime, error: str) -> None:
    """Keep why there is no answer, unless the question was asked anew meanwhile."""
    rows = Question.objects.filter(pk=question_id, requested_at=asked_at)
    rows.update(state=TimelineState.FAILED, error=error[:2000])


def retry(job: Job, asked: Asked) -> None:
    """Ask again what could not be answered."""
    rows = Question.objects.filter(job=job, kind=asked.kind, params=asked.params, state=TimelineState.FAILED)
    for pk in list(rows.values_list("pk", flat=True)):
        rows.filter(pk=pk).update(state=TimelineState.QUEUED, requested_at=timezone.now(), error="")
        enqueue(TASK, pk, queue="interactive")


def answer_of(row: Question | None) -> Answer | None:
    """The newest answer of a question, if there is any that this release can read."""
    if row is None or row.payload is None:
        return None
    try:
        return from_json(row.payload)
    except UnreadableAnswerError:  # of another release, whose version is another: it is being asked anew
        return None


def known(job: Job, asked: Asked) -> Answer | None:
    """The answer if somebody asked already and it is not out of date; asks nobody."""
    row = Question.objects.filter(job=job, kind=asked.kind, params=asked.params).exclude(payload=None).first()
    if row is None or row.answered_at is None:
        return None
    is_old = timezone.now() - row.answered_at > TOLD_FOR if asked.moving else not _stands(row, asked, job)
    return None if is_old else answer_of(row)
