"""Whatever people, policies, sweeps and workers do, in whatever order, proposals live by the table."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.support.changes import binding, draft, make_job, member
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Role
from webapp.reconfigurations import governance
from webapp.reconfigurations.errors import RefusedError
from webapp.reconfigurations.lifecycle import IN_FLIGHT, TRANSITIONS, IllegalTransitionError, State, check
from webapp.reconfigurations.models import Mode, Proposal
from webapp.reconfigurations.services import approve, expire_due, mark_stale, propose, reject, withdraw
from webapp.reconfigurations.steps import locked, move

pytestmark = pytest.mark.django_db
PICK = st.integers(0, 5)


class Life(RuleBasedStateMachine):
    """One job, its people, and everything that can be tried."""

    def __init__(self) -> None:
        super().__init__()
        self.job = make_job(quorum=1)
        self.people = [member(self.job, role) for role in Role]
        self.known: dict[int, str] = {}

    def pick(self, number: int) -> int | None:
        found = list(Proposal.objects.filter(job=self.job).order_by("-id").values_list("pk", flat=True))
        return found[number % len(found)] if found else None

    def attempt(self, act: object, by_policy: bool = False) -> None:
        refused = AuditEvent.objects.filter(job_id=self.job.pk, outcome="refused")
        before = refused.count()
        try:
            act()  # type: ignore[operator]
        except RefusedError:
            if by_policy and refused.count() == before:  # told once an hour, not with every window
                assert refused.filter(actor_name="policy ds2", action="proposal.propose").exists()
            else:
                assert refused.count() == before + 1

    @rule(split=st.integers(2, 6), by=st.none() | st.integers(0, 3))
    def propose(self, split: int, by: int | None) -> None:
        who = None if by is None else self.people[by]
        self.attempt(lambda: propose(who, self.job, draft(split=split)), by_policy=who is None)

    @rule(which=PICK, by=st.integers(0, 3), version=st.sampled_from([None, 1, 2]), glass=st.booleans())
    def approve(self, which: int, by: int, version: int | None, glass: bool) -> None:
        if (pk := self.pick(which)) is not None:
            act = {"expected_version": version, "reason": "so", "break_glass": glass}
            self.attempt(lambda: approve(self.people[by], pk, **act))  # type: ignore[arg-type]

    @rule(which=PICK, by=st.integers(0, 3), reason=st.sampled_from(["", "no"]))
    def reject(self, which: int, by: int, reason: str) -> None:
        if (pk := self.pick(which)) is not None:
            self.attempt(lambda: reject(self.people[by], pk, expected_version=None, reason=reason))

    @rule(which=PICK)
    def time_passes(self, which: int) -> None:
        if (pk := self.pick(which)) is not None:
            Proposal.objects.filter(pk=pk).update(expires_at=timezone.now() - timedelta(seconds=1))

    @rule()
    def sweep(self) -> None:
        expire_due()

    @rule(which=PICK)
    def the_policy_thinks_again(self, which: int) -> None:
        if (pk := self.pick(which)) is not None:
            withdraw(pk, "policy ds2", "nothing to change any more")

    @rule(which=PICK, split=st.integers(1, 2))
    def the_job_is_seen(self, which: int, split: int) -> None:
        if (pk := self.pick(which)) is not None:
            mark_stale(pk, binding(split=split))

    @rule(number=st.integers(0, 2))
    def rules_change(self, number: int) -> None:
        governance.change_rules(self.people[3], self.job, mode=list(Mode)[number], quorum=1 + number % 2)

    @rule(lift=st.booleans())
    def freeze(self, lift: bool) -> None:
        act = governance.lift_freeze if lift else governance.freeze
        self.attempt(lambda: act(self.people[3], self.job, "because"))

    @rule(which=PICK, to=st.sampled_from(State))
    def a_worker_moves_it(self, which: int, to: State) -> None:
        pk = self.pick(which)
        if pk is None or to in (State.PROPOSED, State.APPROVED):
            return
        with transaction.atomic():
            row = locked(pk)
            if to in TRANSITIONS[State(row.state)]:
                move(row, to, who="worker", action="step")
            else:
                with pytest.raises(IllegalTransitionError):
                    move(row, to, who="worker", action="step")

    @invariant()
    def steps_are_in_the_table_and_on_record(self) -> None:
        for row in Proposal.objects.filter(job=self.job):
            was = self.known.get(row.pk, State.PROPOSED)
            told = AuditEvent.objects.filter(object_type="proposal", object_id=row.pk, outcome="done")
            assert was == row.state or row.state in TRANSITIONS[State(was)], f"{was} became {row.state}"
            assert told.filter(detail__has_key="to").count() == row.version - 1
            self.known[row.pk] = row.state

    @invariant()
    def one_waits_and_one_is_in_flight(self) -> None:
        mine = Proposal.objects.filter(job=self.job)
        assert mine.filter(state=State.PROPOSED).count() <= 1
        assert mine.filter(state__in=IN_FLIGHT).count() <= 1


def test_proposals_live_by_the_table() -> None:
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.parametrize("before", State)
def test_the_table_names_every_state_and_nothing_follows_an_end(before: State) -> None:
    for after in State:
        if after in TRANSITIONS[before]:
            check(before, after)
        else:
            with pytest.raises(IllegalTransitionError):
                check(before, after)
    assert before == State.PROPOSED or any(before in follow for follow in TRANSITIONS.values())
