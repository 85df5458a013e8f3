"""Recommendations are kept, confirmed and superseded; people with the role set how a job is advised."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command

from analytics.model import packed
from analytics.model.decisions import Move
from tests.support import fleet
from webapp.accounts.models import User
from webapp.analysis import advice, recommendations
from webapp.analysis.models import Recommendation, ScalingSetup
from webapp.analysis.scaling_setup import WantedSetup, change_setup, setup_of
from webapp.audit.models import AuditEvent, Outcome
from webapp.jobs.models import Job, JobGroup, Membership, Rates, Role
from webapp.jobs.reports import Measured

pytestmark = pytest.mark.django_db(transaction=True)

SECOND_NS = 1_000_000_000


@pytest.fixture
def now_ns() -> int:
    return time.time_ns()


def person(role: Role | None, *jobs: Job) -> User:
    """A person with this role on the jobs."""
    user = User.objects.create_user(username=str(role))
    group, _ = JobGroup.objects.get_or_create(name="theirs")
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(group=group)
    for job in jobs:
        job.refresh_from_db()
    if role is not None:
        Membership.objects.create(user=user, group=group, role=role)
    return user


def later(seen: Measured, seconds: int, **parallelism: int) -> Measured:
    """The same numbers in a later window, with some operators at another parallelism."""
    window = seen.window
    operators = tuple(
        replace(item, parallelism=parallelism.get(item.id, item.parallelism))
        for item in seen.topology.operators
    )
    rates = tuple(
        replace(
            item,
            expected=(count := parallelism.get(item.operator_id, item.expected)),
            instances=tuple(replace(item.instances[0], instance=k) for k in range(count))
            if item.operator_id in parallelism
            else item.instances,
        )
        for item in window.operators
    )
    start_ns, end_ns = (at_ns + seconds * SECOND_NS for at_ns in (window.start_ns, window.end_ns))
    return Measured(
        replace(seen.topology, operators=operators),
        replace(window, start_ns=start_ns, end_ns=end_ns, operators=rates),
    )


def proposed(job: Job) -> dict[str, int]:
    row = advice.current(job)
    assert row is not None
    return {item["operator_id"]: item["proposed"] for item in row.changes}


def test_the_same_advice_confirms_the_current_recommendation_with_the_newer_evidence(now_ns: int) -> None:
    seen = fleet.measured(1, now_ns - 60 * SECOND_NS)
    job = fleet.store(seen)
    _, first = fleet.advise_here(now_ns)
    assert (len(first.fresh), first.confirmed, first.late) == (1, 0, 0)
    assert fleet.advise_here(now_ns)[0] == [], "the policy has seen these rates"
    fleet.store(later(seen, 30))
    _, second = fleet.advise_here(now_ns)
    assert (len(second.fresh), second.confirmed, second.late) == (0, 1, 0)
    row = Recommendation.objects.get(job=job)
    assert row.window_end_ns == seen.window.end_ns + 30 * SECOND_NS
    assert row.confirmed_at > row.made_at
    assert packed.unpack(row.payload)["evidence"]["seen"]["window"]["end_ns"] == row.window_end_ns


def test_other_advice_supersedes_and_stays_in_the_history(now_ns: int) -> None:
    seen = fleet.measured(1, now_ns - 60 * SECOND_NS)
    job = fleet.store(seen)
    fleet.advise_here(now_ns)
    before = proposed(job)
    assert before
    fleet.store(later(seen, 30, **before))
    fleet.advise_here(now_ns)
    assert proposed(job) != before
    old, new = advice.history(job).order_by("pk")
    assert old.superseded_at is not None
    assert old.superseded_at == new.made_at
    assert new.superseded_at is None
    assert advice.current(job) == new


def test_a_policy_remembers_that_it_asked_only_once_the_job_runs_otherwise(now_ns: int) -> None:
    seen = fleet.measured(1, now_ns - 90 * SECOND_NS)
    job = fleet.store(seen)
    boss = person(Role.OPERATOR, job)
    change_setup(boss, job, WantedSetup(settings={"warm_up_intervals": 2}))
    fleet.advise_here(now_ns)
    wanted = proposed(job)
    fleet.store(later(seen, 30))
    fleet.advise_here(now_ns)
    assert proposed(job) == wanted, "nobody has done it: it is asked again, without a warm-up"
    fleet.store(later(seen, 60, **wanted))
    fleet.advise_here(now_ns)
    row = advice.current(job)
    assert row is not None
    assert row.move == Move.WAIT
    assert "warming up" in row.why


def test_rates_that_cannot_be_read_are_told_and_hold_up_no_other_job(now_ns: int) -> None:
    good, bad = (fleet.store(fleet.measured(seed, now_ns)) for seed in (1, 2))
    Rates.objects.filter(job=bad).update(payload=packed.pack({"topology": {}, "window": None}))
    fleet.advise_here(now_ns)
    assert advice.current(good) is not None
    assert advice.current(bad) is None
    assert "KeyError" in setup_of(bad).error
    assert setup_of(good).error == ""
    assert recommendations.due(now_ns) == [], "it is not tried again until there are other rates"
    fleet.store(later(fleet.measured(2, now_ns), 1))
    fleet.advise_here(now_ns)
    assert advice.current(bad) is not None
    assert setup_of(bad).error == ""


def test_a_window_that_cannot_be_read_wipes_nothing_of_what_the_policy_remembers(now_ns: int) -> None:
    seen = fleet.measured(1, now_ns - 90 * SECOND_NS)
    job = fleet.store(seen)
    fleet.advise_here(now_ns - 90 * SECOND_NS)
    before = setup_of(job).memory
    assert before
    fleet.store(later(seen, 30))
    newest = Rates.objects.filter(job=job).latest("at_ns")
    Rates.objects.filter(pk=newest.pk).update(payload=packed.pack({"topology": {}, "window": None}))
    fleet.advise_here(now_ns)
    assert setup_of(job).error
    assert setup_of(job).memory == before


def test_a_null_character_in_a_name_holds_up_nobody(now_ns: int) -> None:
    seen = fleet.measured(1, now_ns)
    operators = tuple(replace(item, name=f"{item.name}\0") for item in seen.topology.operators)
    job = fleet.store(replace(seen, topology=replace(seen.topology, operators=operators)), name="null")
    fleet.advise_here(now_ns)
    row = advice.current(job)
    assert row is not None
    assert "\0" not in row.why
    assert row.changes[0]["name"].endswith("\ufffd")
    call_command("recompute", "--all", stdout=io.StringIO())


def test_what_was_computed_with_a_setup_that_has_changed_since_is_dropped(now_ns: int) -> None:
    from analytics.spark.jobs.scaling import advise_stored
    from analytics.spark.rates import PostgresRates
    from webapp.telemetry import segment_store

    job = fleet.store(fleet.measured(1, now_ns))
    stored = list(PostgresRates(segment_store.address()).read(recommendations.due(now_ns)))
    change_setup(person(Role.OPERATOR, job), job, WantedSetup(policy="dhalion"))
    kept = recommendations.keep([advise_stored(one) for one in stored])
    assert (kept.fresh, kept.confirmed, kept.late) == ((), 0, 1)
    assert advice.current(job) is None
    fleet.advise_here(now_ns)
    row = advice.current(job)
    assert row is not None
    assert row.policy == "dhalion"
    late = recommendations.keep([advise_stored(one) for one in stored])
    assert late.late == 1


def test_old_rates_finished_jobs_and_jobs_switched_off_get_no_advice(now_ns: int) -> None:
    old = fleet.store(fleet.measured(1, now_ns - recommendations.FRESH_NS - SECOND_NS))
    finished, off, on = (fleet.store(fleet.measured(seed, now_ns)) for seed in (2, 3, 4))
    Job.objects.filter(pk=finished.pk).update(finished=True)
    change_setup(person(Role.OPERATOR, off), off, WantedSetup(enabled=False))
    assert [job_id for job_id, _ in recommendations.due(now_ns)] == [on.pk]
    assert old.pk not in dict(recommendations.due(now_ns))


def test_an_operator_of_the_job_sets_how_it_is_advised_and_it_is_audited(now_ns: int) -> None:
    job = fleet.store(fleet.measured(1, now_ns))
    boss = person(Role.OPERATOR, job)
    fleet.advise_here(now_ns)
    change_setup(boss, job, WantedSetup(targets_per_s={"operator-0": 900}), reason="Christmas")
    assert setup_of(job).memory is not None, "other targets are no reason to forget"
    fleet.advise_here(now_ns)
    row = advice.current(job)
    assert row is not None
    told = advice.tell(row)
    assert [(item.operator_id, item.rate_per_s, item.method) for item in told.seen.targets] == [
        ("operator-0", 900.0, "configured")
    ]
    change_setup(boss, job, WantedSetup(settings={"ds2": {"scaling_factor": 0.5}}))
    assert setup_of(job).memory is None
    events = AuditEvent.objects.filter(action="scaling.change_setup", job_id=job.pk).order_by("id")
    assert [event.reason for event in events] == ["Christmas", ""]
    assert events[0].detail["after"]["targets_per_s"] == {"operator-0": 900.0}


def test_a_viewer_and_a_stranger_cannot_set_how_a_job_is_advised(now_ns: int) -> None:
    job = fleet.store(fleet.measured(1, now_ns))
    for user in (person(Role.VIEWER, job), person(None, job)):
        with pytest.raises(PermissionDenied):
            change_setup(user, job, WantedSetup(policy="dhalion"))
    assert not ScalingSetup.objects.exists()
    refused = AuditEvent.objects.filter(action="scaling.change_setup", outcome=Outcome.REFUSED, job_id=job.pk)
    assert refused.count() == 2


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (WantedSetup(policy="magic"), "no such policy"),
        (WantedSetup(settings={"speed": 1}), "no such setting: speed"),
        (WantedSetup(settings={"ds2": {"speed": 1}}), "no such setting: speed"),
        (WantedSetup(settings={"ds2": 3}), "wrong kind"),
        (WantedSetup(settings={"activation_intervals": 0}), "at least 1"),
        (WantedSetup(settings={"activation_intervals": 1.5}), "wrong kind"),
        (WantedSetup(settings={"ds2": {"scaling_factor": "nan"}}), "at least 0"),
        (WantedSetup(settings={"ds2": {"min_parallelism": 9, "max_parallelism": 8}}), "min_parallelism"),
        (WantedSetup(settings={"combine": "mean"}), "wrong kind"),
        (
            WantedSetup("flink-autoscaler", {"excluded_periods": ["25:00-26:00"]}),
            "an hour or minute that no day has",
        ),
        (WantedSetup("flink-autoscaler", {"utilization_target": 0}), "more than 0"),
        (WantedSetup(targets_per_s={"operator-0": float("inf")}), "records per second"),
        (WantedSetup(targets_per_s={"operator-0": -1}), "records per second"),
        (WantedSetup(targets_per_s={"operator-0": 10**400}), "records per second"),
    ],
)
def test_a_setup_that_makes_no_sense_is_refused_with_the_reason(
    now_ns: int, wanted: WantedSetup, said: str
) -> None:
    job = fleet.store(fleet.measured(1, now_ns))
    with pytest.raises(ValidationError, match=said):
        change_setup(person(Role.OPERATOR, job), job, wanted)


def test_a_recommendation_is_told_with_its_formulas_predictions_and_other_opinions(now_ns: int) -> None:
    seen = fleet.measured(1, now_ns, operators=3)
    job = fleet.store(seen)
    boss = person(Role.OPERATOR, job)
    change_setup(boss, job, WantedSetup(targets_per_s={"operator-0": 5_000}))
    fleet.advise_here(now_ns)
    row = advice.current(job)
    assert row is not None
    told = advice.tell(row)
    assert "should deliver 5,000.0/s, as configured" in told.sentences[0]
    assert "÷" in told.sentences[1]
    assert told.as_it_is is not None
    assert told.afterwards is not None
    assert told.as_it_is.achieved_ratio < told.afterwards.achieved_ratio == 1.0
    assert [(item.reported, item.expected) for item in told.reported] == [(4, 4)] * 3
    others = advice.opinions(row, told.seen)
    assert [item.policy for item in others] == ["flink-autoscaler", "dhalion"]
    assert all(len(item.decision.operators) == 3 for item in others)


def recompute(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("recompute", *arguments, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def test_stored_recommendations_are_recomputed_bit_for_bit(now_ns: int) -> None:
    for seed in range(30):
        fleet.store(fleet.odd(seed, now_ns))
    fleet.advise_here(now_ns)
    assert recompute("--all") == (0, "30 recommendations, 0 differ\n")
    assert recompute("--job", "job-3") == (0, "1 recommendations, 0 differ\n")
    with pytest.raises(CommandError, match="no job"):
        recompute("--job", "nobody")


def test_a_tampered_or_unreadable_recommendation_is_found(now_ns: int) -> None:
    jobs = [fleet.store(fleet.measured(seed, now_ns, operators=3)) for seed in range(6)]
    fleet.advise_here(now_ns)
    rows = [Recommendation.objects.get(job=job) for job in jobs]
    contents = [packed.unpack(row.payload) for row in rows]
    contents[0]["action"]["decision"]["operators"][1]["need"] += 1e-9
    contents[1]["evidence"]["seen"]["targets"][0]["rate_per_s"] *= 2
    contents[2]["evidence"]["version"] = 99
    for row, content in zip(rows[:3], contents, strict=False):
        Recommendation.objects.filter(pk=row.pk).update(payload=packed.pack(content))
    Recommendation.objects.filter(pk=rows[3].pk).update(payload=b"nonsense")
    Recommendation.objects.filter(pk=rows[4].pk).update(why="because I say so")
    code, said = recompute("--all")
    assert code == 1
    lines = said.splitlines()
    assert len(lines) == 6
    assert "job-0" in lines[0]
    assert "decision.operators[1].need is" in lines[0]
    assert "another action" in lines[1]
    assert "version 1 here, the evidence is of 99" in lines[2]
    assert "cannot be read" in lines[3]
    assert "why is stored as 'because I say so'" in lines[4]
    assert lines[5] == "6 recommendations, 5 differ"
