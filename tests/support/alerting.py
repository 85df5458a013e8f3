"""Windows with a CP, rules on them, a job with an admin, and who hears of what fires."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pytest

from analytics.model.activity import TYPE_COUNT, ActivityType
from tests.support.changes import make_job, member
from tests.support.receiver import Receiver
from webapp.accounts.models import User
from webapp.analysis.models import Window
from webapp.jobs.models import Job, JobGroup, Role
from webapp.notifications import channels
from webapp.notifications.alert_evaluation import evaluate_due
from webapp.notifications.alert_models import AlertRule, RuleKind
from webapp.notifications.alert_reading import ns
from webapp.notifications.alert_services import RuleDraft, save_rule
from webapp.notifications.models import Channel, Message
from webapp.ops.partitions import ensure_days

SECOND_NS = 1_000_000_000
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
BAD, GOOD = [0.8, 0.9, 0.7], [0.5, 0.4]
"""What fires the rule below, and what ends it."""
COUNT = 1
"""The number of the operator *count*, and of a worker *w*."""


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """Somebody inside the network whom messages may reach."""
    settings.WEIR_ALLOWED_INSIDE = "127.0.0.1/32"
    settings.WEIR_PUBLIC_URL = "https://weir.example"
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def job() -> Job:
    """In a group of its own."""
    return make_job()


@pytest.fixture
def group(job: Job) -> JobGroup:
    """Its group."""
    return group_of(job)


@pytest.fixture
def boss(job: Job) -> User:
    """The admin of its group."""
    return member(job, Role.ADMIN, "boss")


def windows(job: Job, first: datetime, shares: Sequence[float | None]) -> None:
    """A window a second from ``first`` on, in which operator *count*, its worker and processing have these CPs.

    None: the window has no result.
    """
    job.operators.get_or_create(number=COUNT, name="count")
    job.workers.get_or_create(number=COUNT, name="w")
    start = ns(first) // SECOND_NS * SECOND_NS
    rows = [_window(job, start + place * SECOND_NS, cp) for place, cp in enumerate(shares)]
    ensure_days(Window._meta.db_table, [row.start_ns for row in rows])
    Window.objects.bulk_create(rows)


def _window(job: Job, start_ns: int, cp: float | None) -> Window:
    share = cp or 0.0
    by_type = [0.0] * TYPE_COUNT
    by_type[ActivityType.PROCESSING] = share
    return Window(
        job=job, start_ns=start_ns, width_ns=SECOND_NS, effective_start_ns=start_ns,
        effective_end_ns=start_ns + SECOND_NS, status="incomplete" if cp is None else "ok", reason="",
        log10_paths=1.0, cp_total=1.0, record_count=1, run_id=1, activity_cp=by_type, activity_conventional=by_type,
        worker_ids=[COUNT], worker_cp=[share], worker_conventional=[share],
        # an operator's CP is the sum over its activities
        operator_ids=[COUNT, COUNT], operator_types=[4, 6], operator_cp=[share / 2, share / 2],
        operator_conventional=[share, 0.0], operator_workers=[1, 1],
        channel_src=[], channel_dst=[], channel_types=[], channel_cp=[], channel_conventional=[],
    )  # fmt: skip


def cp_draft(name: str = "count is busy", **more: object) -> RuleDraft:
    """CP of operator count above 60 % for 3 windows, over at 50 % for 2."""
    known = {
        "name": name, "kind": RuleKind.OPERATOR_CP, "target": "count", "threshold": 0.6, "clear": 0.5,
        "fire_after": 3, "clear_after": 2, "severity": "critical",
    }  # fmt: skip
    return RuleDraft(**(known | more))  # type: ignore[arg-type]


def rule(actor: User, group: JobGroup, **more: object) -> AlertRule:
    """That rule, stored."""
    return save_rule(actor, group, cp_draft(**more))  # type: ignore[arg-type]


def group_of(job: Job) -> JobGroup:
    """The job's group."""
    assert job.group is not None
    return job.group


def beside(job: Job) -> Job:
    """Another job of the same group."""
    other = make_job()
    Job.objects.filter(pk=other.pk).update(group=job.group)
    return other


def webhook(boss: User, job: Job, receiver: Receiver, kind: str = "webhook") -> Channel:
    """A channel that the receiver reads."""
    secret = "R0UT1NGKEY" if kind == "pagerduty" else SECRET
    return channels.create_channel(
        boss, group_of(job), kind=kind, name=kind, address=f"{receiver.url}/{kind}", secret=secret
    )


def evaluate(at: datetime) -> None:
    """A round at some time, whatever was evaluated when."""
    AlertRule.objects.update(due_at=at)
    assert evaluate_due(at) == AlertRule.objects.count()


def told() -> list[str]:
    """The titles of all messages."""
    return [row.content["title"] for row in Message.objects.order_by("id")]
