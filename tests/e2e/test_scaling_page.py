"""The Scaling tab of a job: the recommendation card from a recorded Flink run, and the form behind it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from analytics.model import packed
from analytics.model.topology import MemoryUse
from tests.support import fleet, scaling
from tests.support.browser import LOOKS, Visitor, accessibility_faults
from webapp.accounts.models import User
from webapp.analysis.models import Recommendation, ScalingSetup
from webapp.analysis.scaling_setup import WantedSetup, change_setup
from webapp.audit.models import AuditEvent
from webapp.jobs import reports
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.jobs.services import ensure_job

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]
TARGET_PER_S = 1000.0


def advised(target_per_s: float | None = TARGET_PER_S, policy: str = "ds2") -> Job:
    """The recorded run in which `split` held the source back, and what a policy says about it."""
    job = scaling.recorded()
    boss = User.objects.create_superuser("boss")
    targets = {} if target_per_s is None else {scaling.SOURCE_NAME: target_per_s}
    change_setup(boss, job, WantedSetup(policy, targets_per_s=targets))
    fleet.advise_here(time.time_ns())
    return job


def operator(job: Job, name: str) -> None:
    """Makes this person an operator of the job."""
    job.group = JobGroup.objects.create(name="theirs")
    job.save()
    Membership.objects.create(user=User.objects.get(username=name), group=job.group, role=Role.OPERATOR)


def open_tab(visitor: Visitor, job: Job, query: str = "") -> Page:
    page = visitor.go(f"/jobs/{job.pk}?tab=scaling{query}")
    expect(page.locator("#scaling-sentence")).not_to_have_text("Reading …")
    return page


def said(page: Page, term: str) -> str:
    """What the card says after a word on its left."""
    return page.locator("#scaling-card dt", has_text=re.compile(f"^{term}$")).locator("+ dd").inner_text()


def test_the_card_says_what_to_change_why_what_it_brings_and_what_it_costs(alice: Visitor) -> None:
    page = open_tab(alice, advised())
    expect(page.locator("#scaling-sentence")).to_have_text(
        "Rescale bottleneck: split 1 → 6 and count 1 → 2. It would then process all of 1,000/s instead of 199/s."
    )
    assert page.locator("#scaling-card .changes li").all_inner_texts() == ["split 1 → 6", "count 1 → 2"]
    why = said(page, "Why")
    assert "Target input 1,000.0/s ÷ (true rate 199.7/s ÷ 1) = 5.00" in why
    assert why.startswith("split: 1 → 6"), "what changes comes first"
    assert "Source: events: no change: it should deliver 1,000.0/s, as configured." in why
    assert re.search(r"1,000/s \(from 199/s\) · split 83 % busy · count 7\d % busy", said(page, "After"))
    assert "+6 instances (4 → 10)" in said(page, "Costs")
    assert "slots, if operators share them, 1 → 6" in said(page, "Costs")
    assert said(page, "Others").splitlines() == [
        "Flink autoscaler: split 1 → 8, count 1 → 4",
        "Dhalion: split 1 → 5",
    ]
    assert "4 of 4 instances reported" in said(page, "Evidence")
    expect(page.locator("#scaling-basis")).to_contain_text(re.compile(r"UTC, \d+ s old"))
    expect(page.locator("#sentence")).to_contain_text("it reports rates, but not what its workers do")


def test_the_numbers_unfold_and_are_those_of_the_evidence(alice: Visitor) -> None:
    job = advised()
    page = open_tab(alice, job)
    page.click("#scaling-fold-numbers summary")
    row = page.locator("#scaling-numbers tbody tr", has_text="split")
    decision = packed.unpack(Recommendation.objects.get(job=job).payload)["action"]["decision"]
    split = next(item for item in decision["operators"] if item["need"] and item["parallelism"] == 6)
    shown = [float(cell) if cell else None for cell in row.locator("td").evaluate_all(
        "cells => [3, 7].map((place) => cells[place].dataset.raw)"
    )]  # fmt: skip
    assert shown == [split["true_processing_per_s"], split["need"]]
    assert row.locator("td").nth(1).inner_text() == "6"


def test_the_decision_is_computed_again_and_a_changed_one_is_found_out(alice: Visitor) -> None:
    job = advised()
    page = open_tab(alice, job, "&live=0")
    page.click("#scaling-recompute")
    expect(page.locator("#scaling-recomputed")).to_have_text(
        re.compile(
            r"✓ Computed again at .+: split 1 → 6 and count 1 → 2\. Equal to what is stored, bit for bit\."
        )
    )
    row = Recommendation.objects.get(job=job)
    payload = packed.unpack(row.payload)
    payload["action"]["decision"]["operators"][1]["parallelism"] = 7
    Recommendation.objects.filter(pk=row.pk).update(payload=packed.pack(payload))
    page.click("#scaling-recompute")
    expect(page.locator("#scaling-recomputed")).to_contain_text("not the same")


def test_no_change_is_told_with_its_reason_as_fully_as_a_change(alice: Visitor) -> None:
    job = scaling.doubled("calm", 1)
    fleet.advise_here(time.time_ns())
    page = open_tab(alice, job)
    expect(page.locator("#scaling-sentence")).to_have_text(
        "No change for calm, because every operator has what it needs. Its input may grow by 25 % before something"
        " must be done."
    )
    assert "= 1.6, rounded up 2." in said(page, "Why")
    assert "split 80 % busy" in said(page, "Now")
    assert said(page, "Costs") == "nothing: the job is left alone"
    assert "no change" in said(page, "Others")
    settings = {"gc_pressure_limit": 0.3, "metrics_window_s": 0.0, "stabilization_s": 0.0}
    change_setup(User.objects.create_superuser("boss"), job, WantedSetup("flink-autoscaler", settings))
    calm = reports.newest_rates(job)
    assert calm is not None
    short = replace(calm.window, end_ns=calm.window.end_ns + 1, memory=MemoryUse(0.4, 0.61, 0.7))
    reports.keep_rates(job, replace(calm, window=short))
    fleet.advise_here(time.time_ns())
    expect(page.locator("#scaling-sentence")).to_contain_text(
        "No change yet for calm, because the job is short of memory: 40% of the time in garbage collection, the"
        " limit is 30%."
    )
    expect(page.locator("#scaling-card .move")).to_have_text("Waiting")
    assert page.locator("#scaling-card .move").bounding_box()["height"] < 60  # type: ignore[index]
    assert "short of memory: 40 % of the time in garbage collection, 61 % of the heap" in said(
        page, "Evidence"
    )
    chosen, other = (page.get_by_label(name) for name in ("DS2", "Dhalion"))
    colour = "field => getComputedStyle(field).backgroundColor"
    assert chosen.evaluate(colour) != other.evaluate(colour), "which policy is chosen can be seen"


def test_an_operator_says_what_the_source_should_deliver_and_the_next_advice_goes_by_it(
    alice: Visitor,
) -> None:
    job = advised(target_per_s=None)
    operator(job, "alice")
    page = open_tab(alice, job)
    expect(page.locator("#scaling-sentence")).to_contain_text(
        "it is not known what the source should deliver). Say below what it should deliver."
    )
    assert "NO_SOURCE_TARGET" in said(page, "Why")
    field = page.locator(".target input")
    field.fill("many")
    page.click("#scaling-save")
    expect(page.locator("#scaling-saved")).to_contain_text("“many” is no number")
    field.fill("900")
    page.click("#scaling-save")
    expect(page.locator("#scaling-saved")).to_contain_text("Saved at")
    assert ScalingSetup.objects.get(job=job).targets_per_s == {scaling.SOURCE_NAME: 900.0}
    event = AuditEvent.objects.filter(action="scaling.change_setup").order_by("-pk").first()
    assert event is not None
    assert event.actor_name == "alice"
    fleet.advise_here(time.time_ns())
    expect(page.locator("#scaling-sentence")).to_contain_text("split 1 → 5 and count 1 → 2")
    page.click("#scaling-fold-history summary")
    expect(page.locator("#scaling-history tbody tr")).to_have_count(2)


def test_another_policy_is_chosen_and_speaks_from_the_next_rates_on(alice: Visitor) -> None:
    job = advised()
    operator(job, "alice")
    page = open_tab(alice, job)
    page.get_by_label("Dhalion").check()
    page.click("#scaling-save")
    expect(page.locator("#scaling-saved")).to_contain_text("Saved at")
    expect(page.locator("#scaling-message")).to_contain_text("Dhalion was chosen since")
    fleet.advise_here(time.time_ns())
    expect(page.locator("#scaling-sentence")).to_contain_text("split 1 → 5")
    assert "DS2: split 1 → 6, count 1 → 2" in said(page, "Others")


def test_who_may_only_look_cannot_save(alice: Visitor) -> None:
    page = open_tab(alice, advised())
    expect(page.locator("#scaling-denied")).to_contain_text("you need the role operator")
    expect(page.locator("#scaling-save")).to_be_disabled()
    page.evaluate("dash_clientside.set_props('scaling-save', {n_clicks: 1})")
    expect(page.locator("#scaling-saved")).to_contain_text("Not saved: this needs the role operator")


def test_without_rates_or_advice_it_says_what_is_missing(alice: Visitor) -> None:
    page = open_tab(alice, ensure_job("empty"))
    expect(page.locator("#scaling-message")).to_contain_text("Add a Flink cluster")
    expect(page.locator("#scaling-body")).to_be_hidden()
    page = open_tab(alice, scaling.recorded())
    expect(page.locator("#scaling-message")).to_contain_text("Waiting for the first recommendation")
    fleet.advise_here(time.time_ns())
    expect(page.locator("#scaling-card .move")).to_have_text("Cannot decide")


@LOOKS
def test_the_card_is_accessible(visit: Visit, people: None, theme: str, screen: dict[str, int]) -> None:
    job = advised()
    operator(job, "alice")
    window = visit(viewport=screen)
    window.sign_in("alice", path=f"/?theme={theme}")
    page = open_tab(window, job, f"&theme={theme}&live=0")
    for fold in ("numbers", "history"):
        page.click(f"#scaling-fold-{fold} summary")
    page.click("#scaling-recompute")
    expect(page.locator("#scaling-recomputed")).to_contain_text("bit for bit")
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]
