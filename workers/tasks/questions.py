"""Answers to questions about a job, for a page that waits for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from celery import shared_task

from analytics.critical_path import every_window_edges, trust, why
from analytics.critical_path.collocation import propose_collocation
from analytics.critical_path.compare import compare
from analytics.critical_path.what_if import Window, paths, rank, what_if
from analytics.model.answers import Answer, Target, TargetKind, TrustLimits
from analytics.model.results import Windows
from webapp.analysis import basis, questions
from webapp.analysis.models import Question, QuestionKind
from webapp.analysis.selectors import reading_diagnostics
from workers import records


@shared_task
def answer(question_id: int) -> None:
    """Answer a question and keep it. One that is gone needs no answer."""
    row = Question.objects.select_related("job").filter(pk=question_id).first()
    if row is None:
        return
    try:
        questions.store(row.pk, row.requested_at, _ANSWERS[QuestionKind(row.kind)](row, row.params))
    except (LookupError, ValueError) as error:
        questions.fail(row.pk, row.requested_at, str(error))
        raise


def _stretches(row: Question) -> Iterator[tuple[records.Loaded, Windows]]:
    (side,) = questions.sides_of(row.basis)
    return records.stretches(row.job, basis.starts_ns(row.job, side))


def _windows(row: Question) -> Iterator[Window]:
    for loaded, windows in _stretches(row):
        found, _ = every_window_edges(
            *loaded[:3], windows, bounds_ns=loaded.bounds_ns, horizon_ns=row.job.gap_horizon_ns
        )
        yield from found


def _ranking(row: Question, _params: dict[str, Any]) -> Answer:
    return rank(_windows(row))


def _what_if(row: Question, params: dict[str, Any]) -> Answer:
    target = Target(TargetKind(params["target_kind"]), params["target"])
    factor = math.inf if params["factor"] == "infinite" else float(params["factor"])
    if "window_ns" in params:
        return paths(*next(_windows(row)), target, factor)
    return what_if(_windows(row), target, factor, most_steps=0)


def _why(row: Question, params: dict[str, Any]) -> Answer:
    worker: int | None = params.get("worker")
    hops: int = params.get("hops", why.HOPS)
    if worker is not None and "at_ns" in params:
        (side,) = questions.sides_of(row.basis)
        loaded = records.load(row.job, side.from_ns, side.to_ns)
        # The chain may lead to anywhere in what was read, and no further.
        return why.why_at(
            *loaded[:3],
            worker,
            params["at_ns"],
            row.job.window_ns,
            hops=hops,
            horizon_ns=row.job.gap_horizon_ns,
        )
    end_ns = row.job.last_ns
    return why.combined(
        [
            why.why(summary, edges, hops=hops, worker=worker, trace_end_ns=end_ns)
            for summary, edges in _windows(row)
        ]
    )


def _compare(row: Question, _params: dict[str, Any]) -> Answer:
    before, after = (basis.summaries(row.job, side) for side in questions.sides_of(row.basis))
    return compare(before, after)


def _together(row: Question, _params: dict[str, Any]) -> Answer:
    (side,) = questions.sides_of(row.basis)
    known = dict(row.job.workers.values_list("number", "host"))
    hosts = [known.get(number, "") for number in range(max(known, default=-1) + 1)]
    return propose_collocation(basis.summaries(row.job, side), hosts)


def _trust(row: Question, params: dict[str, Any]) -> Answer:
    limits = TrustLimits(
        params.get("longest_operator_ns"),
        params.get("longest_message_ns"),
        params.get("longest_pause_ns"),
        bool(params.get("progress")),
    )
    (side,) = questions.sides_of(row.basis)
    parts = [
        trust.check_trust(
            *loaded[:3], windows, limits=limits, bounds_ns=loaded.bounds_ns, horizon_ns=row.job.gap_horizon_ns
        )
        for loaded, windows in _stretches(row)
    ]
    return trust.combined(parts, reading_diagnostics(row.job, side.from_ns, side.to_ns))


_ANSWERS: dict[QuestionKind, Callable[[Question, dict[str, Any]], Answer]] = {
    QuestionKind.WHY: _why,
    QuestionKind.WHAT_IF: _what_if,
    QuestionKind.RANKING: _ranking,
    QuestionKind.COMPARE: _compare,
    QuestionKind.TOGETHER: _together,
    QuestionKind.TRUST: _trust,
}
