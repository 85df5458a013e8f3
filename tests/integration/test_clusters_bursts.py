"""What changes leave for bursts: told with every rescale, a reason to refuse, and routing as a proposal."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import replace

import pytest

from analytics.model.burst_answers import Strategy
from analytics.model.reconfigurations import binding_of
from tests.support import clusters, fleet
from tests.support.burst_models import worked_example
from tests.support.changes import member
from tests.support.receiver import Receiver
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.bursts import deriving, services, simulations
from webapp.bursts.headroom import Effect, TooLittleHeadroomError, checked_effect
from webapp.bursts.models import Cluster
from webapp.bursts.rebalancing import propose_rebalance
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.jobs.services import ensure_job
from webapp.reconfigurations.errors import InvalidProposalError, NotAllowedError
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, EngineKind, Kind, Mode, Proposal
from webapp.reconfigurations.services import Draft, approve, propose
from workers.tasks.apply import apply_proposal

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = f"whsec_{base64.b64encode(b'a key of some length, for tests.').decode()}"


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss")


def measured_job() -> tuple[Job, Draft]:
    """A job of a group with rates, and a draft that halves its last operator."""
    seen = fleet.measured(3, time.time_ns(), operators=3, instances=4)
    job = fleet.store(seen)
    job.group = JobGroup.objects.create(name="theirs")
    job.save()
    ChangePolicy.objects.create(job=job, mode=Mode.RECOMMEND)
    change = {"parallelism": {"operator-2": 2}}
    return job, Draft(Kind.RESCALE, change, binding_of(seen.topology))


def test_every_rescale_says_what_is_left_for_bursts_before_and_after(boss: User) -> None:
    job, draft = measured_job()
    told = propose(boss, job, draft).evidence["burst_headroom"]
    assert told["cluster"] == "", "it is in no cluster: the job alone counts"
    assert told["after"] <= told["before"]
    assert told["says"].startswith("the job's input can grow by")
    more = Draft(Kind.RESCALE, {"parallelism": {f"operator-{k}": 8 for k in range(3)}}, draft.binding)
    told = propose(boss, job, more).evidence["burst_headroom"]
    assert told["after"] == pytest.approx(2 * (told["before"] + 1) - 1), (
        "twice the instances, twice the input"
    )


def test_a_scale_down_that_leaves_less_than_the_configured_burst_is_refused_with_that_reason(
    boss: User,
) -> None:
    job, draft = measured_job()
    cluster = deriving.create_derived(boss, "prod", {"jobs": [job.name]}, group=job.group)
    clusters.survey_here()
    services.set_bounds(boss, cluster, burst_ratio=50.0, alert_ratio=0.0)
    with pytest.raises(
        TooLittleHeadroomError, match="too little would be left for bursts: all inputs of the cluster"
    ):
        propose(boss, job, draft)
    assert not Proposal.objects.exists()
    event = AuditEvent.objects.filter(action="proposal.propose", outcome="refused").latest("id")
    assert "the configured burst is 5e+03 %" in event.reason
    ChangePolicy.objects.update_or_create(job=job, defaults={"mode": Mode.RECOMMEND})
    for _ in range(3):
        with pytest.raises(TooLittleHeadroomError):
            propose(None, job, replace(draft, policy="ds2"))
    tried = AuditEvent.objects.filter(job_id=job.pk, actor_name="policy ds2", outcome="refused")
    assert tried.count() == 1, "a policy that tries on and on does not fill the record"
    services.set_bounds(boss, cluster, burst_ratio=0.0, alert_ratio=0.0)
    told = propose(boss, job, Draft(draft.kind, {"parallelism": {"operator-2": 8}}, draft.binding))
    assert told.evidence["burst_headroom"]["cluster"] == "prod", (
        "a scale-up is not refused, and says the cluster's"
    )


def test_every_cluster_that_has_the_job_guards_its_own_burst(boss: User) -> None:
    job, draft = measured_job()
    tight = deriving.create_derived(boss, "tight", {"jobs": [job.name], "margin_ratio": 0.1}, group=job.group)
    roomy = deriving.create_derived(boss, "roomy", {"jobs": [job.name]}, group=job.group)
    clusters.survey_here()
    services.set_bounds(boss, tight, burst_ratio=0.0, alert_ratio=0.0)
    services.set_bounds(boss, roomy, burst_ratio=50.0, alert_ratio=0.0)
    with pytest.raises(TooLittleHeadroomError, match="all inputs of the cluster roomy"):
        propose(boss, job, replace(draft, change={"parallelism": {"operator-2": 3}}))


def test_what_the_model_does_not_tell_is_said_in_words(boss: User) -> None:
    job, draft = measured_job()
    cost = {"components": [{"name": "c", "node": "A", "cost": {"cpu": 1e-9}}]}
    document = {
        "nodes": {"A": {"cpu": 1.0}},
        "applications": {job.name: {"stages": [{"name": "operator-2"} | cost]}},
    }
    cluster = services.create_cluster(boss, "prod", document, group=job.group)
    clusters.survey_here()
    told = propose(boss, job, draft).evidence["burst_headroom"]
    assert told["cluster"] == "prod"
    assert told["after"] == told["before"]
    assert told["says"].endswith("; the model does not tell how instances limit operator-2")
    limited = document["applications"][job.name]["stages"][0]["components"][0] | {"cap": 1e9}
    document["applications"][job.name]["stages"][0]["components"] = [limited]
    services.upload_model(boss, cluster, document)
    assert "does not tell" not in checked(job)


def checked(job: Job) -> str:
    found = checked_effect(job, {"operator-2": 4}, {"operator-2": 2}, guard=False)
    assert found is not None
    return found.says


def test_a_cluster_whose_answers_are_of_other_applications_does_not_guard_and_says_so(boss: User) -> None:
    job, _ = measured_job()
    document = worked_example()
    both = {job.name: document["applications"]["app1"], "app2": document["applications"]["app2"]}
    cluster = services.create_cluster(boss, "prod", document | {"applications": both}, group=job.group)
    services.set_rates(boss, cluster, {job.name: 0.05, "app2": 0.01}, time.time_ns())
    clusters.survey_here()
    assert checked(job).startswith("all inputs of the cluster prod")
    turned = dict(reversed(both.items()))
    services.upload_model(boss, cluster, document | {"applications": turned})
    assert checked(job).startswith("the job's input")
    assert "not counted, since there is no answer for its current model: prod" in checked(job)
    clusters.survey_here()
    assert checked(job).startswith("all inputs of the cluster prod")


def rebalanced(boss: User, engine: EngineKind = EngineKind.WEBHOOK, **rules: str) -> tuple[Job, Cluster]:
    job = ensure_job("app1")
    job.group = JobGroup.objects.create(name="ours")
    job.save()
    ChangePolicy.objects.create(job=job, mode=Mode.RECOMMEND, engine=engine, **rules)
    cluster = services.create_cluster(boss, "prod", worked_example(), group=job.group)
    services.set_rates(boss, cluster, {"app1": 0.05, "app2": 0.05}, time.time_ns())
    clusters.survey_here()
    return job, cluster


def test_the_plan_becomes_a_rebalance_proposal_in_whole_key_groups(boss: User) -> None:
    job, cluster = rebalanced(boss)
    proposal = propose_rebalance(boss, cluster, job, "before the sale")
    assert proposal.kind == Kind.REBALANCE
    shares = proposal.change["rebalance"]["components"]
    assert set(shares) == {"c1", "c3"}, "the second stage runs on one node"
    assert sum(one["key_groups"] for one in shares.values()) == 128
    headroom = proposal.evidence["headroom"]
    assert headroom["exact_all_by"] == pytest.approx(0.11, abs=1e-6)
    assert 0.10 < headroom["rounded_all_by"] <= headroom["exact_all_by"] + 1e-9
    assert "app2" in proposal.risks[0]


def test_an_approved_rebalance_is_handed_over_with_its_fractions_and_key_groups(boss: User) -> None:
    receiver = Receiver()
    job, cluster = rebalanced(boss, engine_url=receiver.url, webhook_secret=SECRET)
    proposal = propose_rebalance(boss, cluster, job, "before the sale")
    approve(member(job, Role.APPROVER), proposal.pk, expected_version=1, reason="it has room")
    apply_proposal(proposal.pk)
    receiver.close()
    proposal.refresh_from_db()
    assert proposal.state == State.APPLIED, proposal.state_reason
    ((_, headers, body),) = receiver.got
    told = json.loads(body)
    assert headers["webhook-signature"].startswith("v1,")
    assert (told["data"]["kind"], told["data"]["job"]) == ("rebalance", "app1")
    handed = told["data"]["change"]["rebalance"]["components"]
    assert handed == proposal.change["rebalance"]["components"]


def test_a_change_of_a_job_without_known_costs_promises_nothing() -> None:
    nothing = Effect(before=None, after=None, configured=None, cluster="", version="")
    assert nothing.says == "nothing that is known limits the job's input"


def test_what_moves_no_keys_and_who_may_not_are_refused(boss: User) -> None:
    job, cluster = rebalanced(boss, EngineKind.FLINK)
    with pytest.raises(InvalidProposalError, match="moves no keys"):
        propose_rebalance(boss, cluster, job)
    ChangePolicy.objects.update(engine=EngineKind.WEBHOOK)
    viewer = User.objects.create_user("vera")
    Membership.objects.create(user=viewer, group=job.group, role=Role.VIEWER)
    with pytest.raises(NotAllowedError):
        propose_rebalance(viewer, cluster, job)
    services.upload_model(boss, cluster, worked_example(6.5))
    with pytest.raises(InvalidProposalError, match="no answers yet for the current model"):
        propose_rebalance(boss, cluster, job)


def test_a_simulation_is_asked_for_once_played_and_kept(boss: User) -> None:
    cluster = clusters.worked(boss)
    version = cluster.versions.get()
    row = simulations.ask(version, (0.05, 0.05))
    assert simulations.ask(version, (0.0501, 0.05)).pk == row.pk, "a drift of a rate asks for no other one"
    assert simulations.results(row) == []
    simulations.compute(row.pk)
    row.refresh_from_db()
    found = simulations.results(row)
    assert {one.strategy for one in found} == set(Strategy)
    barre = [one for one in found if one.strategy is Strategy.BARRE]
    assert all(one.missed <= 1e-6 * one.offered for one in barre if one.intensity_ratio < 2.2), (
        "the headroom is 220 %"
    )
    crowded = simulations.ask(version, (0.3, 0.3))
    simulations.compute(crowded.pk)
    crowded.refresh_from_db()
    assert (crowded.state, crowded.error) == ("failed", "the rates do not fit even without bursts")
