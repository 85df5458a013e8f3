"""A job that people look after, its rules, and proposals about it."""

from __future__ import annotations

from itertools import count
from typing import Any

from analytics.model.reconfigurations import Binding, BoundOperator, Prediction
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.jobs.services import ensure_job
from webapp.reconfigurations.models import ChangePolicy, Kind, Mode, Proposal
from webapp.reconfigurations.services import Draft, propose

_numbers = count()
SOURCE, SPLIT = "0c80f7e50ab54b30f6a2580946f9e942", "4c316878fdbd0126d4087d26baae01f4"
COUNT, SINK = "b71731f1c0df9c3076c4a455334d0ad6", "4d648856f35492026b8f75b0a6ec795e"
NAMES = {SOURCE: "Source: events", SPLIT: "split", COUNT: "count", SINK: "out: Writer"}


def person(name: str, **more: Any) -> User:
    """Somebody with an account."""
    return User.objects.create(username=f"{name}-{next(_numbers)}", **more)


def make_job(mode: Mode = Mode.RECOMMEND, **rules: Any) -> Job:
    """A job in a group of its own, with rules."""
    number = next(_numbers)
    job = ensure_job(f"job-{number}")
    job.group = JobGroup.objects.create(name=f"team-{number}")
    job.save()
    ChangePolicy.objects.create(job=job, mode=mode, **rules)
    return job


def member(job: Job, role: Role, name: str = "") -> User:
    """Somebody with this role on the job."""
    who = person(name or role.value)
    Membership.objects.create(user=who, group=job.group, role=role)
    return who


JOB_ID, SINCE_MS = "6f401b19aaf3b35a621ba5ff55a2bbcc", 1795254208415


def binding(engine_job_id: str = JOB_ID, since_ms: int | None = SINCE_MS, **parallelism: int) -> Binding:
    """The recorded job: a source, split, count and a sink with one instance each, unless told."""
    counts = {SOURCE: 1, SPLIT: 1, COUNT: 1, SINK: 1} | {
        key: parallelism[name] for key, name in NAMES.items() if name in parallelism
    }
    operators = tuple(BoundOperator(key, NAMES[key], number, 128) for key, number in counts.items())
    return Binding(engine_job_id, since_ms, operators)


def draft(split: int = 5, counts: int = 2, **more: Any) -> Draft:
    """What DS2 proposed for the recorded job."""
    known = {
        "kind": Kind.RESCALE,
        "change": {"parallelism": {SPLIT: split, COUNT: counts}},
        "binding": binding(),
        "prediction": Prediction(((SOURCE, 900.0),), ((SPLIT, 0.9), (COUNT, 0.7))),
        "evidence": {"why": "split needs 4.52 instances"},
        "policy": "ds2",
        "policy_version": 1,
    }
    return Draft(**(known | more))


def proposal(job: Job, actor: User | None = None, **more: Any) -> Proposal:
    """An open proposal about the job, by a policy unless somebody made it by hand."""
    return propose(actor, job, draft(**more))


def trail(proposal_id: int) -> list[tuple[str, str]]:
    """What the audit record says about a proposal, in its order."""
    rows = AuditEvent.objects.filter(object_type="proposal", object_id=proposal_id).order_by("id")
    return list(rows.values_list("action", "outcome"))
