"""Who may do what with proposals, rules, freezes and the audit record: every role, every action, jobs of one's own
group and of another, once by the service that pages call and once by the API."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from analytics.model.topology import JobPoll, Operator, Topology
from tests.support.api import Caller
from tests.support.changes import JOB_ID, NAMES, SINCE_MS, SPLIT, draft, make_job, member, person
from tests.support.flink_runs import EDGES
from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_token
from webapp.audit.models import AuditEvent
from webapp.audit.selectors import history_of
from webapp.jobs import reports
from webapp.jobs.models import Job, Role
from webapp.reconfigurations import errors, governance, proposing, selectors, services
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, Freeze, Proposal

pytestmark = pytest.mark.django_db
NOBODY, STRANGER, SUPERUSER = "nobody", "stranger", "superuser"
PEOPLE = (NOBODY, STRANGER, *(role.value for role in Role), SUPERUSER)
OPERATORS = tuple(Operator(key, name, 1, 128) for key, name in NAMES.items())


@dataclass(frozen=True)
class Place:
    """A job with an open proposal and an applied one."""

    job: Job
    waiting: Proposal
    applied: Proposal


def place() -> Place:
    job = make_job()
    topology = Topology(JOB_ID, job.name, "RUNNING", None, OPERATORS, EDGES, running_since_ms=SINCE_MS)
    reports.keep_report(job, JobPoll(time.time_ns(), topology, ()))
    applied = services.propose(None, job, draft())
    verdict = {"outcome": "inconclusive", "reasons": [], "findings": []}
    Attempt.objects.create(proposal=applied)
    Proposal.objects.filter(pk=applied.pk).update(
        state=State.INCONCLUSIVE, applied_at=timezone.now(), verdict=verdict
    )
    return Place(job, services.propose(None, job, draft(split=4)), Proposal.objects.get(pk=applied.pk))


def freeze_first(where: Place) -> None:
    governance.freeze(member(where.job, Role.ADMIN, "boss"), where.job, "a sale")


@dataclass(frozen=True)
class Action:
    """What is tried. ``least`` is the role it needs; None: only superusers. ``service`` returns what it found, and
    raises or returns nothing if refused; ``request`` is method, path and body.
    """

    name: str
    least: Role | None
    service: Callable[[User, Place], Any]
    request: Callable[[Place], tuple[str, str, Any]]
    before: Callable[[Place], None] = lambda where: None
    hidden: int = 404
    """What the API answers about a job that is not to be seen; 200: a list without it."""


def at(where: Place, rest: str = "") -> str:
    return f"/api/v1/proposals/{where.waiting.pk}{rest}"


def on(where: Place, rest: str) -> str:
    return f"/api/v1/jobs/{where.job.pk}/{rest}"


ACTIONS = (
    Action(
        "see", Role.VIEWER, lambda who, it: selectors.proposal(who, it.waiting.pk),
        lambda it: ("GET", at(it), None),
    ),
    Action(
        "list", Role.VIEWER, lambda who, it: list(selectors.proposals(who, it.job)),
        lambda it: ("GET", f"/api/v1/proposals?job={it.job.pk}", None), hidden=200,
    ),
    Action(
        "calibration", Role.VIEWER,
        lambda who, it: [row for row in selectors.proposals(who, it.job) if row.verdict],
        lambda it: ("GET", f"/api/v1/calibration?job={it.job.pk}", None), hidden=200,
    ),
    Action(
        "audit", Role.VIEWER, lambda who, it: list(history_of(who, "proposal", it.waiting.pk)),
        lambda it: ("GET", f"/api/v1/audit?object_type=proposal&object_id={it.waiting.pk}", None), hidden=200,
    ),
    Action(
        "propose", Role.OPERATOR, lambda who, it: proposing.propose_by_hand(who, it.job, {SPLIT: 3}),
        lambda it: ("POST", "/api/v1/proposals", {"job": it.job.pk, "parallelism": {SPLIT: 3}}),
    ),
    Action(
        "go back", Role.OPERATOR, lambda who, it: proposing.propose_way_back(who, it.applied.pk),
        lambda it: ("POST", f"/api/v1/proposals/{it.applied.pk}/revert", {}),
    ),
    Action(
        "approve", Role.APPROVER, lambda who, it: services.approve(who, it.waiting.pk, expected_version=1),
        lambda it: ("POST", at(it, "/approve"), {}),
    ),
    Action(
        "reject", Role.APPROVER,
        lambda who, it: services.reject(who, it.waiting.pk, expected_version=1, reason="no"),
        lambda it: ("POST", at(it, "/reject"), {"reason": "no"}),
    ),
    Action(
        "break glass", Role.ADMIN,
        lambda who, it: services.approve(who, it.waiting.pk, expected_version=1, reason="fire", break_glass=True),
        lambda it: ("POST", at(it, "/approve"), {"reason": "fire", "break_glass": True}),
    ),
    Action(
        "change rules", Role.ADMIN, lambda who, it: governance.change_rules(who, it.job, quorum=2),
        lambda it: ("PATCH", on(it, "rules"), {"quorum": 2}),
    ),
    Action(
        "freeze", Role.ADMIN, lambda who, it: governance.freeze(who, it.job, "a sale"),
        lambda it: ("POST", on(it, "freeze"), {"reason": "a sale"}),
    ),
    Action(
        "lift freeze", Role.ADMIN, lambda who, it: governance.lift_freeze(who, it.job) or True,
        lambda it: ("DELETE", on(it, "freeze"), None), before=freeze_first,
    ),
    Action(
        "freeze everything", None, lambda who, it: governance.freeze(who, None, "a sale"),
        lambda it: ("POST", "/api/v1/freeze", {"reason": "a sale"}), hidden=403,
    ),
)  # fmt: skip
REFUSED = (errors.RefusedError, PermissionDenied)


def comes(name: str, where: Place) -> User:
    """Somebody with this role in the group of that job."""
    if name == STRANGER:
        return person(STRANGER)
    if name == SUPERUSER:
        return person(SUPERUSER, is_superuser=True)
    return member(where.job, Role(name))


def allowed(name: str, action: Action, own: bool) -> bool:
    if name == SUPERUSER:
        return True
    if not own or name in (NOBODY, STRANGER) or action.least is None:
        return False
    return Role(name).rank >= action.least.rank


@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
@pytest.mark.parametrize("action", ACTIONS, ids=[action.name for action in ACTIONS])
def test_the_service_lets_through_who_may_and_records_who_was_refused(action: Action, own: bool) -> None:
    for name in PEOPLE[1:]:
        home, where = place(), place()
        who = comes(name, where if own else home)
        action.before(where)
        try:
            done = bool(action.service(who, where))
        except REFUSED:
            done = False
            assert AuditEvent.objects.filter(actor_id=who.pk, outcome="refused").exists(), name
        assert done == allowed(name, action, own), (name, action.name, own)
        if not done:
            assert untouched(where, frozen=action.before is freeze_first), name
        Freeze.objects.all().delete()


@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
@pytest.mark.parametrize("action", ACTIONS, ids=[action.name for action in ACTIONS])
def test_the_api_lets_through_who_may(action: Action, own: bool) -> None:
    for name in PEOPLE:
        home, where = place(), place()
        action.before(where)
        method, path, body = action.request(where)
        if name == NOBODY:
            assert Caller(None).call(method, path, body).status_code == 401
            continue
        who = comes(name, where if own else home)
        token = create_token(who, "all", [Scope.READ, Scope.DECIDE, Scope.ADMIN])[1]
        answer = Caller(token).call(method, path, body, If_Match="*")
        done = answer.status_code in (200, 201) and answer.json().get("items", True) != []
        assert done == allowed(name, action, own), (name, action.name, own, answer.content)
        if not done:
            seen = own and name != STRANGER
            assert answer.status_code == (403 if seen else action.hidden), (name, answer.content)
            assert untouched(where, frozen=action.before is freeze_first), name
        Freeze.objects.all().delete()


def untouched(where: Place, *, frozen: bool) -> bool:
    rows = Proposal.objects.filter(job=where.job)
    return (
        rows.count() == 2
        and rows.get(pk=where.waiting.pk).version == 1
        and rows.get(pk=where.applied.pk).state == State.INCONCLUSIVE
        and where.job.change_policy.quorum == 1
        and Freeze.objects.filter(lifted_at=None).exists() == frozen
    )


def test_scopes_a_token_lacks_its_owner_cannot_use() -> None:
    where = place()
    admin = member(where.job, Role.ADMIN)
    for scope, may in (
        (Scope.READ, {"GET"}),
        (Scope.DECIDE, {"POST"}),
        (Scope.ADMIN, {"PATCH"}),
        (Scope.INGEST, set()),
    ):
        program = Caller(create_token(admin, scope.value, [scope])[1])
        for method, path, body in (
            ("GET", at(where), None),
            ("POST", at(where, "/reject"), {"reason": ""}),
            ("PATCH", on(where, "rules"), {}),
        ):
            refused = program.call(method, path, body, If_Match="*").status_code == 403
            assert refused == (method not in may), (scope, method)
