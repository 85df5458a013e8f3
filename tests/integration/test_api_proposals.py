"""Proposals, rules, freezes, calibration and the audit record over the API, as programs with tokens meet them."""

from __future__ import annotations

import csv
import io
import time

import pytest
from django.utils import timezone

from tests.support import scaling
from tests.support.api import Caller, problem_of
from tests.support.changes import COUNT, SPLIT, draft, make_job, member, person
from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_token
from webapp.audit.models import AuditEvent
from webapp.jobs import reports
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, Mode, Proposal
from webapp.reconfigurations.services import propose
from webapp.reconfigurations.verification import way_back

pytestmark = pytest.mark.django_db
PROPOSALS = "/api/v1/proposals"


def caller(who: User, *scopes: Scope, jobs: tuple[str, ...] = ()) -> Caller:
    return Caller(create_token(who, "test", scopes or (Scope.READ, Scope.DECIDE), jobs=jobs)[1])


@pytest.fixture
def job() -> Job:
    return make_job()


@pytest.fixture
def bob(job: Job) -> User:
    return member(job, Role.APPROVER, "bob")


def test_a_proposal_is_read_approved_and_not_approved_twice(job: Job, bob: User) -> None:
    row, program = propose(None, job, draft(risks=("large state",))), caller(bob)
    address = f"{PROPOSALS}/{row.pk}"
    shown = program.get(address)
    assert shown["ETag"] == '"1"'
    body = shown.json()
    assert (body["state"], body["described"], body["why_not"]["approve"]) == (
        "proposed", "split 1 → 5, count 1 → 2", "",
    )  # fmt: skip
    assert body["evidence"] == {"why": "split needs 4.52 instances"}
    assert [item["action"] for item in body["history"]] == ["proposal.propose"]
    assert problem_of(program.post(f"{address}/approve", {}), 428) == "if_match_required"
    assert problem_of(program.post(f"{address}/approve", {}, If_Match='"1"'), 400) == "reason_required"
    assert problem_of(program.post(f"{address}/approve", {"reason": "go"}, If_Match='"7"'), 412)
    assert problem_of(program.post(f"{address}/approve", {"reason": "go"}, If_Match="nonsense"), 412)
    done = program.post(f"{address}/approve", {"reason": "go"}, If_Match='"1"')
    assert (done.status_code, done.json()["state"], done["ETag"]) == (200, "approved", '"2"')
    assert done.json()["votes"][0] | {"at": ""} == {
        "voter_name": bob.username, "approves": True, "reason": "go", "at": "",
    }  # fmt: skip
    late = program.post(f"{address}/approve", {"reason": "go"}, If_Match='"1"')
    assert problem_of(late, 409) == "already_decided"
    assert AuditEvent.objects.filter(object_id=row.pk, outcome="refused").count() == 4


def test_a_request_with_a_key_that_is_sent_again_gets_the_first_answer(job: Job, bob: User) -> None:
    row, program = propose(None, job, draft()), caller(bob)
    address, tag = f"{PROPOSALS}/{row.pk}/reject", {"If_Match": '"1"', "Idempotency_Key": "k"}
    first = program.post(address, {"reason": "not today"}, **tag)
    again = program.post(address, {"reason": "not today"}, **tag)
    assert first.status_code == again.status_code == 200
    assert again["Idempotent-Replayed"] == "true"
    assert again.json()["version"] == first.json()["version"] == 2
    other = program.post(address, {"reason": "never"}, **tag)
    assert problem_of(other, 422) == "idempotency_key_reused"
    assert not AuditEvent.objects.filter(object_id=row.pk, outcome="refused").exists()


def test_a_refusal_is_in_the_audit_record_also_if_the_request_has_a_key(job: Job, bob: User) -> None:
    row, program = propose(None, job, draft()), caller(bob)
    late = program.post(f"{PROPOSALS}/{row.pk}/reject", {"reason": "no"}, If_Match='"7"', Idempotency_Key="k")
    assert problem_of(late, 412)
    assert AuditEvent.objects.filter(object_id=row.pk, outcome="refused").count() == 1


def test_a_rejection_needs_a_reason(job: Job, bob: User) -> None:
    row, program = propose(None, job, draft()), caller(bob)
    address = f"{PROPOSALS}/{row.pk}/reject"
    assert problem_of(program.post(address, {"reason": " "}, If_Match="*"), 400) == "reason_required"
    assert program.post(address, {"reason": "no"}, If_Match="*").json()["state"] == "rejected"


def test_glass_is_broken_only_by_an_admin_with_a_token_for_it(job: Job, bob: User) -> None:
    row, admin = propose(None, job, draft()), member(job, Role.ADMIN)
    address, body = f"{PROPOSALS}/{row.pk}/approve", {"reason": "outage", "break_glass": True}
    assert "scope admin" in caller(admin).post(address, body, If_Match="*").json()["detail"]
    as_bob = caller(bob, Scope.DECIDE, Scope.READ, Scope.ADMIN).post(address, body, If_Match="*")
    assert problem_of(as_bob, 403) == "permission_denied"
    done = caller(admin, Scope.DECIDE, Scope.READ, Scope.ADMIN).post(address, body, If_Match="*")
    assert done.json()["break_glass"] is True
    loud = caller(bob).get(f"/api/v1/audit?loud=true&object_type=proposal&object_id={row.pk}").json()["items"]
    assert [(item["action"], item["actor_name"]) for item in loud] == [
        ("proposal.break_glass", admin.username)
    ]


def test_lists_are_paged_newest_first_and_narrowed(job: Job, bob: User) -> None:
    rows = []
    for count in range(2, 7):
        rows.append(propose(None, job, draft(split=count)).pk)
    program, found, after = caller(bob), [], ""
    while True:
        answer = program.get(f"{PROPOSALS}?limit=2&job={job.pk}{after}").json()
        found += [item["id"] for item in answer["items"]]
        if answer["next"] is None:
            break
        after = f"&after={answer['next']}"
    assert found == rows[::-1]
    waiting = program.get(f"{PROPOSALS}?waiting=true&job={job.pk}").json()["items"]
    assert [item["id"] for item in waiting] == rows[-1:]
    superseded = program.get(f"{PROPOSALS}?state=superseded&policy=ds2&kind=rescale").json()["items"]
    assert {item["id"] for item in superseded} >= set(rows[:-1])
    for wrong in ("state=gone", "kind=x", "job=x", "waiting=maybe", "limit=0", f"job={2**64}"):
        assert problem_of(program.get(f"{PROPOSALS}?{wrong}"), 400) == "invalid"


def measured_job(mode: Mode) -> Job:
    job = scaling.recorded(f"measured-{time.time_ns()}")
    job.group = JobGroup.objects.create(name=job.name)
    job.save()
    ChangePolicy.objects.create(job=job, mode=mode)
    return job


def test_a_person_proposes_by_hand_and_somebody_else_must_approve() -> None:
    job = measured_job(Mode.RECOMMEND)
    anna = member(job, Role.APPROVER)
    program = caller(anna)
    wanted = {"job": job.pk, "parallelism": {SPLIT: 5, COUNT: 2}, "reason": "the sale"}
    made = program.post(PROPOSALS, wanted, Idempotency_Key="a")
    assert (made.status_code, made["Location"]) == (201, f"{PROPOSALS}/{made.json()['id']}")
    assert made.json()["evidence"]["reason"] == "the sale"
    assert "yourself" in made.json()["why_not"]["approve"]
    again = program.post(PROPOSALS, wanted, Idempotency_Key="a")
    assert again.json()["id"] == made.json()["id"]
    assert (again["Location"], again["ETag"]) == (made["Location"], made["ETag"])
    own = program.post(f"{made['Location']}/approve", {"reason": "so"}, If_Match=made["ETag"])
    assert problem_of(own, 403) == "permission_denied"
    for body, code in (
        ({"job": job.pk, "parallelism": {SPLIT: 500}}, "invalid"),
        ({"job": job.pk, "parallelism": {"ffff": 5}}, "invalid"),
        ({"job": job.pk, "parallelism": {"ff\x00ff": 5}}, "invalid"),
        ({"job": job.pk, "parallelism": {SPLIT: "many"}}, "invalid"),
        ({"job": job.pk}, "invalid"),
        ({"job": job.pk, "recommended": True, "parallelism": {SPLIT: 2}}, "invalid"),
    ):
        assert problem_of(program.post(PROPOSALS, body), 400) == code
    assert problem_of(program.post(PROPOSALS, {"job": 2**62, "parallelism": {SPLIT: 5}}), 404) == "not_found"
    assert problem_of(program.post(PROPOSALS, {"job": job.pk, "recommended": True}), 409) == "outdated"
    stranger = caller(person("stranger")).post(PROPOSALS, wanted)
    assert problem_of(stranger, 404) == "not_found"


def test_an_applied_change_is_taken_back_by_a_proposal_which_is_made_once() -> None:
    job = measured_job(Mode.RECOMMEND)
    anna = member(job, Role.OPERATOR)
    report = reports.newest_report(job)
    assert report is not None
    program = caller(anna)
    made = program.post(PROPOSALS, {"job": job.pk, "parallelism": {SPLIT: 5}}).json()["id"]
    early = program.post(f"{PROPOSALS}/{made}/revert", {})
    assert problem_of(early, 409) == "already_decided"
    row = Proposal.objects.get(pk=made)
    from webapp.reconfigurations.models import Attempt

    Attempt.objects.create(proposal=row)
    Proposal.objects.filter(pk=made).update(state=State.INCONCLUSIVE, applied_at=timezone.now())
    back = program.post(f"{PROPOSALS}/{made}/revert", {"reason": "no gain"})
    assert back.status_code == 201, back.content
    assert (back.json()["undoes_id"], back.json()["change"]) == (made, {"parallelism": {SPLIT: 1}})
    assert program.post(f"{PROPOSALS}/{made}/revert", {}).json()["id"] == back.json()["id"]
    row = Proposal.objects.select_related("attempt", "job").get(pk=made)
    assert way_back(row).change == {"parallelism": {SPLIT: 1}}


def test_rules_are_changed_by_admins_who_saw_them(job: Job, bob: User) -> None:
    admin, address = member(job, Role.ADMIN), f"/api/v1/jobs/{job.pk}/rules"
    program = caller(admin, Scope.READ, Scope.ADMIN)
    shown = program.get(address)
    assert (shown.json()["mode"], "webhook_secret" in shown.json()) == ("recommend", False)
    changed = program.call("PATCH", address, {"mode": "automatic", "quorum": 2}, If_Match=shown["ETag"])
    assert (changed.status_code, changed.json()["mode"], changed.json()["quorum"]) == (200, "automatic", 2)
    stale = program.call("PATCH", address, {"quorum": 1}, If_Match=shown["ETag"])
    assert problem_of(stale, 412) == "changed_meanwhile"
    secret = program.call("PATCH", address, {"webhook_secret": "whsec_c2VjcmV0"}, If_Match="*")
    assert "c2VjcmV0" not in secret.content.decode()
    assert secret["ETag"] != changed["ETag"]
    for wrong in (
        {"mode": "yolo"}, {"quorum": 0}, {"speed": 1}, {"settle_s": 10}, {"expires_after_s": 1},
        {"windows": [{"days": ["someday"]}]}, {"windows": [7]}, {"auto_max_factor": 0.5}, {"engine": "flink"},
        {"windows": [{"days": ["mon"], "from": "09:00", "to": "10:00", "zone": "UTC", "\x00": 1}]},
        {"windows": [{"days": ["mon"], "from": "09:00+02:00", "to": "10:00", "zone": "UTC"}]},
    ):  # fmt: skip
        assert problem_of(program.call("PATCH", address, wrong, If_Match="*"), 400) == "invalid", wrong
    as_bob = caller(bob, Scope.READ, Scope.ADMIN).call("PATCH", address, {"quorum": 1}, If_Match="*")
    assert problem_of(as_bob, 403) == "permission_denied"
    assert caller(bob).get(address).json()["quorum"] == 2


def test_a_freeze_stops_approvals_until_it_is_lifted(job: Job, bob: User) -> None:
    admin, address = member(job, Role.ADMIN), f"/api/v1/jobs/{job.pk}/freeze"
    program = caller(admin, Scope.READ, Scope.ADMIN)
    row = propose(None, job, draft())
    assert program.get(address).json() == {"frozen": False, "freeze": None}
    assert problem_of(program.post(address, {}), 400) == "reason_required"
    frozen = program.post(address, {"reason": "a sale"}).json()
    assert (frozen["frozen"], frozen["freeze"]["reason"]) == (True, "a sale")
    assert problem_of(program.post(address, {"reason": "again"}), 409) == "already_decided"
    held = caller(bob).post(f"{PROPOSALS}/{row.pk}/approve", {}, If_Match="*")
    assert problem_of(held, 409) == "frozen"
    assert program.call("DELETE", f"{address}?reason=over").json()["frozen"] is False
    assert problem_of(program.call("DELETE", address), 409) == "already_decided"
    assert problem_of(program.post("/api/v1/freeze", {"reason": "all"}), 403) == "permission_denied"
    root = caller(person("root", is_superuser=True), Scope.READ, Scope.ADMIN)
    assert root.post("/api/v1/freeze", {"reason": "all"}).json()["frozen"] is True
    assert problem_of(caller(bob).post(f"{PROPOSALS}/{row.pk}/approve", {}, If_Match="*"), 409) == "frozen"
    assert root.call("DELETE", "/api/v1/freeze").json() == {"frozen": False, "freeze": None}


def test_the_audit_record_is_searched_and_exported(job: Job, bob: User) -> None:
    row = propose(None, job, draft())
    program = caller(bob)
    program.post(f"{PROPOSALS}/{row.pk}/reject", {"reason": "=cmd|calc"}, If_Match="*")
    found = program.get(f"/api/v1/audit?job_id={job.pk}&action=proposal.reject").json()["items"]
    assert [(item["actor_name"], item["outcome"]) for item in found] == [(bob.username, "done")]
    text = b"".join(program.get(f"/api/v1/audit.csv?job_id={job.pk}").streaming_content).decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["action"] for line in lines] == ["proposal.reject", "proposal.propose"]
    assert lines[0]["reason"] == "'=cmd|calc"
    other = caller(person("stranger")).get(f"/api/v1/audit?job_id={job.pk}").json()
    assert other == {"items": [], "next": None}
    for wrong in ("since=yesterday", "text=%00", "outcome=maybe", "object_id=x"):
        assert problem_of(program.get(f"/api/v1/audit?{wrong}"), 400) == "invalid"
    until = timezone.now().isoformat().replace("+", "%2B")
    assert program.get(f"/api/v1/audit?job_id={job.pk}&since={until}").json()["items"] == []


def test_what_was_predicted_and_measured_is_listed_by_policy(job: Job, bob: User) -> None:
    row = propose(None, job, draft())
    verdict = {"outcome": "verified", "reasons": [], "findings": []}
    Proposal.objects.filter(pk=row.pk).update(state=State.VERIFIED, verdict=verdict)
    found = caller(bob).get("/api/v1/calibration?policy=ds2").json()["items"]
    assert [(item["proposal_id"], item["verdict"]["outcome"]) for item in found] == [(row.pk, "verified")]
    assert caller(bob).get("/api/v1/calibration?policy=dhalion").json()["items"] == []


def test_a_token_for_one_job_neither_sees_nor_decides_about_others(job: Job, bob: User) -> None:
    other = make_job()
    Membership.objects.create(user=bob, group=other.group, role=Role.ADMIN)
    mine, theirs = propose(None, job, draft()), propose(None, other, draft())
    scopes = (Scope.READ, Scope.DECIDE, Scope.ADMIN)
    limited = caller(bob, *scopes, jobs=(job.name,))
    assert [item["id"] for item in limited.get(PROPOSALS).json()["items"]] == [mine.pk]
    for method, path, body in (
        ("GET", f"{PROPOSALS}/{theirs.pk}", None),
        ("POST", f"{PROPOSALS}/{theirs.pk}/approve", {}),
        ("POST", f"{PROPOSALS}/{theirs.pk}/reject", {"reason": "no"}),
        ("POST", f"{PROPOSALS}/{theirs.pk}/revert", {}),
        ("POST", PROPOSALS, {"job": other.pk, "parallelism": {SPLIT: 2}}),
        ("GET", f"/api/v1/jobs/{other.pk}/rules", None),
        ("POST", f"/api/v1/jobs/{other.pk}/freeze", {"reason": "so"}),
    ):
        assert problem_of(limited.call(method, path, body, If_Match="*"), 404) == "not_found", path
    assert {item["job_name"] for item in limited.get("/api/v1/audit").json()["items"]} <= {job.name}
    assert problem_of(limited.post("/api/v1/freeze", {"reason": "so"}), 403) == "permission_denied"
    assert Proposal.objects.get(pk=theirs.pk).state == State.PROPOSED
    assert problem_of(limited.get(f"{PROPOSALS}/{2**70}"), 404) == "not_found"
    assert problem_of(caller(bob).post(f"{PROPOSALS}/{2**70}/revert", {}), 404) == "not_found"
