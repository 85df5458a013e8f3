"""A worker killed by kill -9 at every step of applying, reverting and verifying: the next one finds the truth, and
nothing is applied twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.support.celery_worker import celery_worker, kill, wait_for
from tests.support.changes import COUNT, SPLIT, draft, make_job, member, trail
from tests.support.flink_engine_server import FlinkServer, flink_server, recorded
from tests.support.flink_runs import around
from webapp.jobs.models import Job, Role
from webapp.queue import enqueue
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, ChangePolicy, Mode, Proposal, Step
from webapp.reconfigurations.services import approve, propose
from webapp.reconfigurations.verification import way_back
from workers.tasks.apply import apply_proposal
from workers.tasks.verify import verify_due

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]
QUEUE = "default"


@pytest.fixture
def flink() -> Iterator[FlinkServer]:
    with flink_server() as server:
        yield server


@pytest.fixture
def job(flink: FlinkServer) -> Job:
    return make_job(Mode.RECOMMEND, engine="flink", engine_url=flink.url, apply_limit_s=60)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "worker.log"
    path.touch()
    return path


def again(row: Proposal) -> Proposal:
    return Proposal.objects.select_related("attempt", "job").get(pk=row.pk)


def go_on(row: Proposal) -> Proposal:
    """What the sweep has the next worker do once the dead one's lease is over."""
    Attempt.objects.filter(proposal=row).update(lease_until=timezone.now() - timedelta(seconds=1))
    for _ in range(10):
        apply_proposal(row.pk)
        if again(row).state not in (State.APPROVED, State.APPLYING):
            return again(row)
    raise AssertionError(f"still {again(row).state}")


def to_go_back(job: Job, flink: FlinkServer) -> Proposal:
    """An open proposal to take back one that was applied and made things worse."""
    first = propose(None, job, draft())
    approve(member(job, Role.APPROVER), first.pk, expected_version=1)
    go_on(first)
    Proposal.objects.filter(pk=first.pk).update(state=State.REGRESSED)
    flink.puts.clear()
    return propose(None, job, way_back(again(first)))


# where the worker waited when it was killed, how far it had written down that it got, how many PUTs had arrived
STAGES = [
    ("observe", Step.STARTED, 0),
    ("put", Step.SENDING, 0),
    ("put_done", Step.SENDING, 1),
    ("poll", Step.SENT, 1),
    ("history", Step.SENT, 1),
]


@pytest.mark.parametrize("undoing", [False, True], ids=["apply", "revert"])
@pytest.mark.parametrize(("stage", "step", "arrived"), STAGES, ids=[stage for stage, *_ in STAGES])
def test_kill_9_then_the_next_worker_ends_it_with_one_put(
    job: Job, flink: FlinkServer, tmp_path: Path, log: Path, stage: str, step: Step, arrived: int, undoing: bool
) -> None:  # fmt: skip
    row = to_go_back(job, flink) if undoing else propose(None, job, draft())
    flink.stall = stage
    with celery_worker(QUEUE, tmp_path, log) as worker:
        approve(member(job, Role.APPROVER), row.pk, expected_version=1)
        wait_for(f"a worker that waits at {stage}", flink.stalled.is_set, log)
        kill(worker)
    half = again(row)
    assert (half.state, half.attempt.step, len(flink.puts)) == (State.APPLYING, step, arrived)
    if stage == "put":
        flink.drop()  # it never arrives
    else:
        flink.release()
    done = go_on(row)
    assert done.state == State.APPLIED, done.state_reason
    assert len(flink.puts) == 1
    assert flink.puts[0] == recorded("requirements" if undoing else "requirements_put")
    assert done.attempt.takeovers >= 1
    assert [action for action, _ in trail(row.pk)].count("proposal.applied") == 1
    if undoing:
        assert again(row).undoes is not None
        assert again(row).undoes.state == State.REVERTED


def test_a_put_that_somebody_overwrote_while_nobody_watched_is_not_repeated(
    job: Job, flink: FlinkServer, tmp_path: Path, log: Path
) -> None:
    row = propose(None, job, draft())
    flink.stall = "put_done"
    with celery_worker(QUEUE, tmp_path, log) as worker:
        approve(member(job, Role.APPROVER), row.pk, expected_version=1)
        wait_for("the PUT", flink.stalled.is_set, log)
        kill(worker)
    flink.release()
    flink.set_parallelism(split=7)
    done = go_on(row)
    assert done.state == State.APPLY_FAILED
    assert done.state_reason.startswith("the worker stopped, and then ")
    assert len(flink.puts) == 1


def hold_rates(row: Proposal) -> None:
    """The worker waits where it reads what was measured."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE jobs_rates IN ACCESS EXCLUSIVE MODE")


def hold_proposal(row: Proposal) -> None:
    """The worker has judged, and waits to write the verdict."""
    Proposal.objects.select_for_update().get(pk=row.pk)


def hold_rules(row: Proposal) -> None:
    """The verdict is written, and the worker waits to propose the way back, in the same transaction."""
    ChangePolicy.objects.select_for_update().get(job=row.job)


@pytest.mark.parametrize(
    "held", [hold_rates, hold_proposal, hold_rules], ids=["measure", "verdict", "way-back"]
)
def test_kill_9_while_a_verdict_is_made_leaves_neither_verdict_nor_way_back(
    job: Job, flink: FlinkServer, tmp_path: Path, log: Path, held: Callable[[Proposal], None]
) -> None:
    row = propose(None, job, draft())
    approve(member(job, Role.APPROVER), row.pk, expected_version=1)
    row = go_on(row)
    around(row, 880, 400, {SPLIT: 0.2, COUNT: 0.2})
    with celery_worker(QUEUE, tmp_path, log) as worker:
        with transaction.atomic():
            held(row)
            enqueue("workers.tasks.verify.verify_due", queue=QUEUE)
            wait_for("a worker that waits for the lock", somebody_waits, log)
            kill(worker)
        assert again(row).state == State.APPLIED
        assert not Proposal.objects.filter(undoes=row).exists()
    verify_due()
    verify_due()
    assert again(row).state == State.REGRESSED
    assert Proposal.objects.filter(undoes=row).count() == 1


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees one moment of it otherwise
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])
