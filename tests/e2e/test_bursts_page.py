"""Bursts in a browser: making a cluster, its three answers, the map that follows sliders, and what it rests on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support import clusters
from tests.support.browser import DESKTOP, PHONE, Visitor, accessibility_faults
from tests.support.burst_models import worked_example
from webapp.accounts.models import User
from webapp.bursts import services, simulations
from webapp.bursts.models import Cluster, Simulation
from webapp.jobs.models import JobGroup, Membership, Role
from webapp.jobs.services import ensure_job
from webapp.reconfigurations.models import ChangePolicy, EngineKind, Mode

pytestmark = pytest.mark.browser


def boss() -> User:
    return User.objects.filter(is_superuser=True).first() or User.objects.create_superuser("boss")


def with_history(rate: float = 0.05) -> Cluster:
    """The worked example after some steps up to its rates."""
    now_ns = time.time_ns()
    cluster = clusters.cluster(
        boss(), "prod", worked_example(), {"app1": 0.02, "app2": 0.02}, now_ns - 60 * 10**9
    )
    for step in range(1, 4):
        clusters.survey_here()
        part = 0.02 + (rate - 0.02) * step / 3
        services.set_rates(boss(), cluster, {"app1": part, "app2": part}, now_ns - (40 - 10 * step) * 10**9)
    clusters.survey_here()
    return cluster


def open_cluster(visitor: Visitor, cluster: Cluster, query: str = "") -> Page:
    page = visitor.go(f"/bursts/{cluster.pk}{query}")
    expect(page.locator("#burst-sentence")).not_to_have_text("Reading …", timeout=60_000)
    return page


def slide(page: Page, name: str, value: int) -> None:
    """Move a slider, as a person with a mouse does in one go."""
    page.locator(f'[data-slider="{name}"] input').evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', {bubbles: true})); }",
        str(value),
    )


def corners(page: Page) -> list[list[float]]:
    """The corners of the drawn region."""
    return page.locator("#chart-burst-map .js-plotly-plot").evaluate(
        "chart => chart.data[0].x.map((x, k) => [x, chart.data[0].y[k]])"
    )


def test_somebody_uploads_a_model_and_rates_and_reads_the_three_answers(alice: Visitor) -> None:
    page = alice.go("/bursts")
    expect(page.locator("#clusters-list")).to_contain_text("No cluster yet")
    page.click("#cluster-form summary")
    expect(page.locator("#cluster-group")).to_have_value("none")
    page.fill("#cluster-name", "prod")
    page.fill("#cluster-text", '{"nodes": {"A": {"cpu": "four"}}, "applications": {}}')
    page.click("#cluster-add")
    expect(page.locator("#cluster-said")).to_contain_text("nodes.A.cpu: must be a number of at least 0")
    page.fill("#cluster-text", json.dumps(worked_example()))
    page.click("#cluster-add")
    expect(page.locator("h1")).to_have_text("prod")
    clusters.survey_here()
    expect(page.locator("#burst-message")).to_contain_text("the input rate of app1 is not known")
    page.fill("#burst-rates", "app1 = 0.05\napp2 = 0.05")
    page.click("#burst-rates-save")
    expect(page.locator("#burst-done")).to_contain_text("Saved")
    for nothing in ("", "20000"):
        page.fill("#burst-ratio", nothing)
        page.click("#burst-bounds-save")
        expect(page.locator("#burst-done")).to_contain_text("expected a number from 0 to 10,000")
        page.fill("#burst-ratio", "20")
        page.click("#burst-bounds-save")
        expect(page.locator("#burst-done")).to_have_text("Saved.")
    clusters.survey_here()
    expect(page.locator("#burst-sentence")).to_have_text(
        re.compile(
            r"All inputs of prod can grow by 220 % at once before something drops\. Half more than the peak in the"
            r" last 15 min ✓ fits \(up to 3\.2 × the peak does\)\. First to stop it: cpu of [AB] and cpu of [AB]\."
        )
    )
    page.goto(alice.address + "/bursts")
    row = page.locator("#clusters-list tbody tr")
    expect(row).to_contain_text("prod")
    expect(row).to_contain_text("+220 %")
    expect(row).to_contain_text("current")
    assert accessibility_faults(page) == []
    row.locator("a").click()
    expect(page.locator("#burst-sentence")).to_contain_text("can grow by 220 %")
    document = worked_example()
    document["applications"]["renamed"] = document["applications"].pop("app1")
    services.upload_model(boss(), Cluster.objects.get(), document)
    expect(page.locator("#burst-message")).to_contain_text("The model has other applications now")
    expect(page.locator("#burst-sentence")).to_have_text("Nothing is known yet about prod as it is now.")


def test_a_slider_moves_the_map_and_the_number_and_the_address_keeps_it(alice: Visitor) -> None:
    cluster = with_history()
    page = open_cluster(alice, cluster)
    expect(page.locator("#list-burst-map tbody tr")).to_have_count(3)
    drawn = sorted((round(x, 6), round(y, 6)) for x, y in corners(page))
    assert drawn == [(0, 0), (0, 0), (0, 0.2), (0.1, 0.2), (0.25, 0), (0.25, 0.1)]
    page.locator('select[data-param="node"]').select_option("dest1")
    slide(page, "cap", 50)
    expect(page.locator("#burst-sentence")).to_contain_text("If we had 50 % of the capacity of dest1: ")
    expect(page.locator("#burst-sentence")).to_contain_text("can grow by 150 % at once")
    expect(page.locator("#burst-basis")).to_contain_text(re.compile(r"solved in \d+ ms"))
    page.wait_for_function(
        "Math.max(...document.querySelector('#chart-burst-map .js-plotly-plot').data[0].x) < 0.126"
    )
    address = page.url
    slide(page, "rate", 300)
    expect(page.locator("#burst-sentence")).to_contain_text("must be shed")
    page.goto(address)
    expect(page.locator("#burst-sentence")).to_contain_text("can grow by 150 % at once")
    assert page.locator('[data-slider="cap"] input').input_value() == "50"
    page.get_by_role("button", name="As it is").click()
    expect(page.locator("#burst-sentence")).to_contain_text("All inputs of prod can grow by 220 %")
    assert page.locator('[data-slider="cap"] input').input_value() == "100"
    page.locator('select[data-param="lose"]').select_option("A")
    expect(page.locator("#burst-sentence")).to_contain_text("If we had lost A: ")


def test_the_routing_becomes_a_proposal_that_can_be_opened(alice: Visitor) -> None:
    job = ensure_job("app1")
    job.group = JobGroup.objects.create(name="theirs")
    job.save()
    person = User.objects.get(username="alice")
    Membership.objects.create(user=person, group=job.group, role=Role.OPERATOR)
    ChangePolicy.objects.create(job=job, mode=Mode.RECOMMEND, engine=EngineKind.WEBHOOK)
    cluster = services.create_cluster(person, "prod", worked_example(), group=job.group)
    services.set_rates(person, cluster, {"app1": 0.05, "app2": 0.05}, time.time_ns())
    clusters.survey_here()
    page = open_cluster(alice, cluster)
    expect(page.locator("#under-burst-plan")).to_contain_text("rounded to 128 key groups")
    page.fill("#burst-reason", "before the sale")
    page.click("#burst-propose")
    page.locator("#burst-proposed a").click()
    expect(page.locator("main")).to_contain_text("every burst up to the headroom fits")
    expect(page.locator("main")).to_contain_text("Rounded to 128 key groups, all inputs of prod can grow by")


def test_of_two_people_the_later_is_told_what_the_other_saved_and_an_admin_moves_the_cluster(
    alice: Visitor, visit: Callable[..., Visitor]
) -> None:
    groups = [JobGroup.objects.create(name=name) for name in ("here", "there")]
    for person in User.objects.filter(username__in=("alice", "bob")):
        for group in groups:
            role = Role.ADMIN if person.username == "alice" else Role.OPERATOR
            Membership.objects.create(user=person, group=group, role=role)
    person = User.objects.get(username="alice")
    cluster = services.create_cluster(person, "prod", worked_example(), group=groups[0])
    services.set_rates(person, cluster, {"app1": 0.0512345678, "app2": 0.05}, time.time_ns())
    clusters.survey_here()
    bob = visit(color_scheme="dark", viewport=PHONE)
    bob.is_signed_in("bob")
    first, second = open_cluster(alice, cluster), open_cluster(bob, cluster)
    for page in (first, second):
        page.click("#burst-forms summary")
        expect(page.locator("#burst-rates")).to_have_value("app1 = 0.0512345678\napp2 = 0.05")
    expect(second.locator("#burst-forms")).to_contain_text(
        "Group: here. Moving it to another takes an admin of both."
    )
    first.fill("#burst-rates", "app1 = 0.07\napp2 = 0.05")
    first.click("#burst-rates-save")
    expect(first.locator("#burst-done")).to_contain_text("Saved.")
    second.fill("#burst-rates", "app1 = 0.05")
    second.click("#burst-rates-save")
    said = second.locator("#burst-done")
    expect(said).to_contain_text("Not saved: somebody else changed the rates of prod meanwhile.")
    expect(said).to_contain_text("Given now: app1 = 0.07, app2 = 0.05.")
    expect(second.locator("#burst-rates")).to_have_value("app1 = 0.05")
    assert accessibility_faults(second) == []
    assert Cluster.objects.get().rates == {"app1": 0.07, "app2": 0.05}
    second.click("#burst-rates-save")
    expect(said).to_contain_text("Saved.")
    assert Cluster.objects.get().rates == {"app1": 0.05}, "having read what was there, he replaced it"

    first.get_by_role("textbox", name="Group").click()
    first.get_by_role("option", name="there").click()
    first.click("#burst-move")
    expect(first.locator("#burst-done")).to_contain_text("It is in the group there now")
    second.fill("#burst-ratio", "50")
    second.click("#burst-bounds-save")
    expect(said).to_contain_text("Now it is in the group there, the configured burst is 20 %")
    assert Cluster.objects.get().burst_ratio == 0.2
    assert accessibility_faults(first) == []


def test_simulated_bursts_tell_what_each_way_to_route_drops(alice: Visitor) -> None:
    cluster = with_history()
    page = alice.go(f"/bursts/{cluster.pk}/simulator")
    expect(page.locator("#bursts-said")).to_have_text("Playing bursts …")
    simulations.compute(Simulation.objects.get().pk)
    expect(page.locator("#bursts-said")).to_contain_text(
        "BARRE's routing drops nothing; burst-unaware misses"
    )
    expect(page.locator("#list-bursts-missed tbody tr")).to_have_count(25)
    assert accessibility_faults(page) == []


def test_the_page_is_accessible_and_fits_in_both_themes_on_desk_and_phone(alice: Visitor) -> None:
    cluster = with_history(0.14)
    for theme, screen in (("light", DESKTOP), ("dark", PHONE)):
        alice.page.set_viewport_size(screen)
        fits(open_cluster(alice, cluster, f"?theme={theme}"))


def fits(page: Page) -> None:
    expect(page.locator("#list-burst-losses tbody tr")).to_have_count(4)
    expect(page.locator("#list-burst-maps .small-button")).to_have_count(1)
    expect(page.locator("#list-burst-plan tbody tr")).to_have_count(4)
    expect(page.locator("#list-burst-binding tbody tr")).to_have_count(2)
    expect(page.locator("#list-burst-alerts")).to_have_text("Headroom was never below its alert.")
    expect(page.locator("#under-burst-apps")).to_contain_text("any one of them by")
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
