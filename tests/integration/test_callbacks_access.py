"""Who may do what through the pages' callbacks: every role and a stranger, on their own job and on a foreign one.

The requests are forged: buttons that a page would not show are pressed all the same.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.http import HttpResponse
from django.utils import timezone

from analytics.model.topology import JobPoll, Operator, Topology
from tests.support.callbacks import call, signed_in
from tests.support.changes import SPLIT, binding, draft, make_job, member, person
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.jobs import reports
from webapp.jobs.models import Job, Membership, Role
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, ChangePolicy, Freeze, Proposal
from webapp.reconfigurations.services import propose

pytestmark = pytest.mark.django_db(transaction=True)
Act = Callable[[User, Job, Proposal], HttpResponse]


def decide(action: str) -> Act:
    def act(who: User, job: Job, row: Proposal) -> HttpResponse:
        data = {"proposal": row.pk, "version": row.version, "action": action, "reason": "because", "sent": 1}
        return call(signed_in(who), "decide-do.data", {"decide-do.data": data, "url.search": ""})

    return act


def press(button: str, **more: object) -> Act:
    def act(who: User, job: Job, row: Proposal) -> HttpResponse:
        on_proposal = button == "proposal-way-back"
        path = f"/proposals/{row.pk}" if on_proposal else f"/jobs/{job.pk}"
        given = {f"{button}.n_clicks": 1, "url.pathname": path, "url.search": "", **more}
        return call(signed_in(who), f"{button}.n_clicks", given)

    return act


def by_hand(who: User, job: Job, row: Proposal) -> HttpResponse:
    ids = [{"type": "hand", "operator": SPLIT}]
    pattern = '{"operator":["ALL"],"type":"hand"}'
    given = {
        "propose-by-hand.n_clicks": 1, "url.pathname": f"/jobs/{job.pk}", "hand-reason.value": "because",
        f"{pattern}.value": [(ids[0], "7")], f"{pattern}.id": [(ids[0], ids[0])],
    }  # fmt: skip
    return call(signed_in(who), "propose-by-hand.n_clicks", given)


def state_is(state: State) -> Callable[[Job, Proposal], bool]:
    return lambda job, row: Proposal.objects.get(pk=row.pk).state == state


def by_person(job: Job, row: Proposal) -> bool:
    return Proposal.objects.filter(job=job, by_hand=True).exists()


def frozen(job: Job, row: Proposal) -> bool:
    return Freeze.objects.filter(job=job).exists()


def two_must_agree(job: Job, row: Proposal) -> bool:
    return ChangePolicy.objects.get(job=job).quorum == 2


def has_role(job: Job, row: Proposal) -> bool:
    return Membership.objects.filter(group=job.group, user__username="newcomer").exists()


def rules() -> Act:
    texts = {"scaled_by": "", "engine_url": "", "webhook_secret": ""}
    numbers = {"quorum": "2", "expires_after_s": "60", "auto_max_factor": "2", "auto_max_parallelism": "32",
               "auto_max_per_day": "4", "apply_limit_s": "120", "settle_s": "90"}  # fmt: skip
    fields = {f"rules-{key}.value": value for key, value in (texts | numbers).items()}
    return press("rules-save", **fields, **{"rules-mode.value": "recommend", "rules-engine.value": "dry-run"})


ACTIONS: dict[str, tuple[Act, Role, Callable[[Job, Proposal], bool]]] = {
    "approve": (decide("approve"), Role.APPROVER, state_is(State.APPROVED)),
    "reject": (decide("reject"), Role.APPROVER, state_is(State.REJECTED)),
    "break_glass": (decide("break_glass"), Role.ADMIN, state_is(State.APPROVED)),
    "propose by hand": (by_hand, Role.OPERATOR, by_person),
    "freeze": (press("freeze-job", **{"freeze-reason.value": "a sale"}), Role.ADMIN, frozen),
    "rules": (rules(), Role.ADMIN, two_must_agree),
    "roles": (
        press("role-set", **{"role-person.value": "newcomer", "role-role.value": "viewer"}), Role.ADMIN, has_role,
    ),
}  # fmt: skip


def known_job() -> tuple[Job, Proposal]:
    """A job that its engine was asked about, with an open proposal."""
    job = make_job()
    operators = tuple(Operator(item.id, item.name, item.parallelism, 128) for item in binding().operators)
    topology = Topology(binding().engine_job_id, "job", "RUNNING", None, operators, ())
    reports.keep_report(job, JobPoll(int(timezone.now().timestamp()) * 10**9, topology, ()))
    return job, propose(None, job, draft())


def refusals(who: User) -> int:
    return AuditEvent.objects.filter(actor_id=who.pk, outcome="refused").count()


@pytest.mark.parametrize("action", ACTIONS)
def test_each_role_can_do_what_it_may_and_nothing_else(action: str) -> None:
    act, needed, happened = ACTIONS[action]
    person("x")
    User.objects.get_or_create(username="newcomer")
    for role in (None, *Role):
        job, row = known_job()
        foreign, theirs = known_job()
        who = member(job, role) if role is not None else person("stranger")
        allowed = role is not None and role.rank >= needed.rank
        act(who, job, row)
        assert happened(job, row) is allowed, (action, role)
        assert (refusals(who) == 0) is allowed, (action, role)
        before = refusals(who)
        answer = act(who, foreign, theirs)
        assert not happened(foreign, theirs), (action, role, "on a foreign job")
        assert refusals(who) == before + 1, (action, role, "on a foreign job")
        assert "there is no such" in answer.content.decode()
        assert foreign.name not in answer.content.decode()


def test_only_superusers_freeze_and_free_all_jobs_and_only_once() -> None:
    job, row = known_job()
    admin, boss = member(job, Role.ADMIN), User.objects.create_superuser("boss")
    everything = Freeze.objects.filter(job=None, lifted_at=None)
    freeze = press("freeze-all", **{"freeze-reason.value": "a sale"})
    lift = press("lift-all")
    assert "Not done" in freeze(admin, job, row).content.decode()
    assert not everything.exists()
    assert "Not done" in press("freeze-all")(boss, job, row).content.decode(), "without a reason"
    freeze(boss, job, row)
    assert everything.get().reason == "a sale"
    assert "frozen already" in freeze(boss, job, row).content.decode()
    approver = member(job, Role.APPROVER)
    assert "boss froze everything" in decide("approve")(approver, job, row).content.decode()
    assert "Not done" in lift(admin, job, row).content.decode()
    lift(boss, job, row)
    assert not everything.exists()
    assert Proposal.objects.get(pk=row.pk).state == State.PROPOSED


def test_a_forged_decision_of_a_viewer_and_of_a_stranger_changes_nothing_and_is_recorded() -> None:
    job, row = known_job()
    viewer, stranger = member(job, Role.VIEWER), person("stranger")
    for who, said in ((viewer, "needs the role approver"), (stranger, "there is no such proposal")):
        answer = decide("approve")(who, job, row)
        assert said in answer.content.decode()
        event = AuditEvent.objects.filter(actor_id=who.pk).latest("id")
        assert (event.action, event.outcome, event.object_id) == ("proposal.approve", "refused", row.pk)
    row.refresh_from_db()
    assert (row.state, row.version) == (State.PROPOSED, 1)
    assert not row.votes.exists()


def test_the_way_back_is_proposed_by_operators_only() -> None:
    for role in (None, *Role):
        job, row = known_job()
        Attempt.objects.create(proposal=row, step="finished")
        Proposal.objects.filter(pk=row.pk).update(state=State.REGRESSED, applied_at=timezone.now())
        who = member(job, role) if role is not None else person("stranger")
        press("proposal-way-back")(who, job, row)
        may = role is not None and role.rank >= Role.OPERATOR.rank
        assert row.ways_back.exists() is may, role


def test_nonsense_in_a_decision_decides_nothing() -> None:
    job, row = known_job()
    boss = member(job, Role.ADMIN)
    nonsense = (
        None, [], {"proposal": "1"}, {"proposal": row.pk, "action": "apply"}, {"proposal": True},
        {"proposal": 2**70, "action": "approve"}, {"proposal": row.pk, "version": "1", "action": "approve"},
    )  # fmt: skip
    for data in nonsense:
        answer = call(signed_in(boss), "decide-do.data", {"decide-do.data": data, "url.search": ""})
        assert answer.status_code in (200, 204), data
    row.refresh_from_db()
    assert row.state == State.PROPOSED


def test_every_role_reads_the_pages_of_its_own_jobs_and_finds_none_of_foreign_ones() -> None:
    foreign, theirs = known_job()
    for role in (None, *Role):
        job, row = known_job()
        who = signed_in(member(job, role) if role is not None else person("stranger"))
        own = role is not None
        for one, proposal, found in ((job, row, own), (foreign, theirs, False)):
            pages = [(f"/proposals/{proposal.pk}", None)]
            pages += [(f"/jobs/{one.pk}", tab) for tab in ("limits", "scaling", "changes", "rules")]
            for path, tab in pages:
                given = {"route.data": {"path": path, "tab": tab}}
                shown = call(who, "route.data", given, "page.children").content.decode()
                assert ("not-found" not in shown) is found, (role, path, tab)
                assert (one.name in shown) <= found, (role, path, tab)


def test_the_audit_file_has_what_its_reader_may_see() -> None:
    job, row = known_job()
    boss, stranger = member(job, Role.ADMIN), person("stranger")
    decide("reject")(boss, job, row)
    decide("reject")(stranger, job, row)

    def lines(who: User, query: str = "") -> list[str]:
        answer = signed_in(who).get(f"/audit.csv{query}")
        return b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[attr-defined]

    assert any("proposal.reject,done" in line for line in lines(boss, f"?job={job.pk}"))
    assert any("proposal.reject,refused" in line for line in lines(boss, "?outcome=refused"))
    assert lines(stranger)[1:] == [], "the record may not tell them that there is such a job"
    assert lines(boss, "?action=nothing%00")[1:] == []
    assert signed_in(boss).post("/audit.csv").status_code == 405
