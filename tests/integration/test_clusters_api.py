"""Clusters over the API: a program sends models and rates, reads answers, and is told clearly what is wrong."""

from __future__ import annotations

import time

import pytest
from django.core.exceptions import ValidationError

from analytics.model.bursts_json import burst_model
from tests.support import clusters, fleet
from tests.support.api import Caller, problem_of, secret
from tests.support.burst_models import worked_example
from webapp.accounts.models import Scope, User
from webapp.bursts import services
from webapp.bursts.models import Cluster
from webapp.bursts.policies import groups_for
from webapp.jobs.models import JobGroup, Membership, Role

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_program_sends_a_model_and_rates_and_reads_what_can_be_taken() -> None:
    program = Caller(secret(Scope.ADMIN, Scope.READ))
    made = program.post("/api/v1/clusters", {"name": "prod", "model": worked_example()})
    assert made.status_code == 201, made.content
    where = made["Location"]
    rates = {"rates": {"app1": 0.05, "app2": 0.05}}
    assert program.call("PUT", f"{where}/rates", rates, If_Match="*").status_code == 200
    clusters.survey_here()
    found = program.get(where).json()
    assert found["answers"]["headroom"]["joint"] == pytest.approx(0.11, abs=1e-7)
    assert (found["stale"], found["error"], found["model_number"]) == (False, "", 1)
    bigger = worked_example()
    bigger["nodes"]["A"]["cpu"] = 2
    newer = program.call("PUT", f"{where}/model", bigger, If_Match="*").json()
    assert (newer["model_number"], newer["stale"]) == (2, True)
    listed = program.get("/api/v1/clusters").json()["items"]
    assert [(one["name"], one["answers"]) for one in listed] == [("prod", None)]
    assert program.call("DELETE", where, If_Match=program.get(where)["ETag"]).status_code == 204
    assert program.get(where).status_code == 404


def test_what_is_wrong_is_told_with_its_place() -> None:
    program = Caller(secret(Scope.ADMIN, Scope.READ))
    document = worked_example()
    document["applications"]["app1"]["stages"][0]["components"][0]["node"] = "Z"
    refused = program.post("/api/v1/clusters", {"name": "prod", "model": document})
    assert refused.status_code == 400
    assert refused.json()["errors"] == [
        {"field": "model", "detail": "applications.app1.stages[0].components[0].node: there is no node 'Z'"}
    ]
    assert program.post("/api/v1/clusters", {"name": "x", "model": {"a": "\0"}}).status_code == 400


def test_an_operator_puts_a_cluster_into_a_group_so_that_it_guards_and_a_viewer_does_not() -> None:
    group = JobGroup.objects.create(name="theirs")
    operator, viewer = (User.objects.create_user(name) for name in ("olga", "vera"))
    Membership.objects.create(user=operator, group=group, role=Role.OPERATOR)
    Membership.objects.create(user=viewer, group=group, role=Role.VIEWER)
    wanted = {"name": "prod", "model": worked_example(), "group": "theirs"}
    for actor, name in ((viewer, "theirs"), (operator, "nobody's")):
        with pytest.raises(ValidationError, match="of which you are an operator"):
            services.group_named(actor, name)
    assert services.group_named(operator, "theirs") == group
    assert [list(groups_for(actor)) for actor in (operator, viewer)] == [[group], []]
    program = Caller(secret(Scope.ADMIN, Scope.READ, owner="olga"))
    refused = program.post("/api/v1/clusters", wanted | {"group": "nobody's"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "group")
    made = program.post("/api/v1/clusters", wanted)
    assert (made.status_code, made.json()["group"]) == (201, "theirs"), made.content
    row = Cluster.objects.get()
    assert (row.group, row.guards) == (group, True)


def test_rates_of_a_time_that_cannot_be_are_refused_with_the_field() -> None:
    program = Caller(secret(Scope.ADMIN, Scope.READ))
    where = program.post("/api/v1/clusters", {"name": "prod", "model": worked_example()})["Location"]
    for at_ns in (2**63 - 1, time.time_ns() + 2 * 3_600_000_000_000, -1):
        refused = program.call(
            "PUT", f"{where}/rates", {"rates": {"app1": 0.05}, "at_ns": at_ns}, If_Match="*"
        )
        assert refused.status_code == 400, refused.content
        assert refused.json()["errors"][0]["field"] == "at_ns"
    body = {"rates": {"app1": 0.05}, "at_ns": time.time_ns()}
    taken = program.call("PUT", f"{where}/rates", body, If_Match="*")
    assert taken.status_code == 200


def test_a_reader_cannot_send_and_a_token_for_some_jobs_sees_no_cluster() -> None:
    reader = Caller(secret(Scope.READ))
    assert reader.post("/api/v1/clusters", {"name": "x", "model": worked_example()}).status_code == 403
    assert Caller(secret(Scope.READ, jobs=("mine",))).get("/api/v1/clusters").status_code == 403


def test_a_program_asks_for_the_routing_of_any_inputs_and_it_is_looked_up_in_the_index() -> None:
    program = Caller(secret(Scope.ADMIN, Scope.READ))
    where = program.post("/api/v1/clusters", {"name": "prod", "model": worked_example()})["Location"]
    before = program.get(f"{where}/plan?at=app1=0.05,app2=0.05").json()
    assert before["found"] == "program", "no worker has built the index yet"
    body = {"rates": {"app1": 0.05, "app2": 0.05}}
    assert program.call("PUT", f"{where}/rates", body, If_Match="*").status_code == 200
    clusters.survey_here()
    after = program.get(f"{where}/plan?at=app1=0.05,app2=0.05").json()
    assert after["found"] in ("near", "any_side")
    assert 0 < after["growth"] <= before["growth"] + 1e-9, "the program's is the most there is"
    base = program.get(f"{where}/plan?at=app1=0,app2=0").json()["growth"]
    at_most = after["growth_at_most"]
    assert before["growth"] - 1e-9 <= at_most <= before["growth"] + 0.01 * base, "certified by cuts"
    model = burst_model(worked_example())[0]
    load = {node.name: 0.0 for node in model.nodes}
    for _, _, one in model.components():
        for resource, cost in one.cost.items():
            assert resource == "cpu"
            load[one.node] += cost * after["plan"][one.name]
    assert all(load[node.name] <= node.capacity["cpu"] + 1e-9 for node in model.nodes), load
    assert after["target"]["app1"] == pytest.approx(0.05 + after["growth"], abs=1e-9)
    for wrong in ("", "app1", "app3=1", "app1=-1", "app1=nan"):
        refused = program.get(f"{where}/plan?at={wrong}")
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "at")


def test_a_program_that_saw_an_older_model_or_older_rates_changes_nothing() -> None:
    program = Caller(secret(Scope.ADMIN, Scope.READ))
    where = program.post("/api/v1/clusters", {"name": "prod", "model": worked_example()})["Location"]
    rates, model = f"{where}/rates", f"{where}/model"
    for address in (rates, model, where):
        assert problem_of(program.call("PATCH" if address == where else "PUT", address, {}), 428)
    assert problem_of(program.call("DELETE", where), 428) == "if_match_required"

    seen = program.get(rates)
    assert seen.json() == {"rates": {}, "at_ns": None}
    first = program.call("PUT", rates, {"rates": {"app1": 0.05}}, If_Match=seen["ETag"])
    assert first.status_code == 200
    late = program.call("PUT", rates, {"rates": {"app1": 0.09}}, If_Match=seen["ETag"])
    assert problem_of(late, 412) == "changed_meanwhile"
    now = program.get(rates)
    assert (now.json()["rates"], now["ETag"]) == ({"app1": 0.05}, first["ETag"])

    seen = program.get(model)
    assert burst_model(seen.json())[0].version == burst_model(worked_example())[0].version
    assert program.call("PUT", model, worked_example(6.5), If_Match=seen["ETag"]).json()["model_number"] == 2
    late = program.call("PUT", model, worked_example(6.0), If_Match=seen["ETag"])
    assert problem_of(late, 412) == "changed_meanwhile"
    assert program.get(where).json()["model_number"] == 2
    again = program.call("PUT", rates, {"rates": {"app2": 0.05}}, If_Match=first["ETag"])
    assert again.status_code == 200, "another model does not change what rates were given"


def test_the_bounds_of_a_cluster_are_changed_over_the_api_one_by_one() -> None:
    program = Caller(secret(Scope.ADMIN, Scope.READ))
    where = program.post("/api/v1/clusters", {"name": "prod", "model": worked_example()})["Location"]
    seen = program.get(where)["ETag"]
    changed = program.call("PATCH", where, {"burst_ratio": 0.5}, If_Match=seen)
    assert (changed.json()["burst_ratio"], changed.json()["alert_ratio"]) == (0.5, 0.1)
    assert problem_of(program.call("PATCH", where, {"alert_ratio": 0.2}, If_Match=seen), 412)
    for wrong in ({"alert_ratio": -1}, {"alert_ratio": 0.2, "name": "x"}, {"group": ""}):
        assert problem_of(program.call("PATCH", where, wrong, If_Match=changed["ETag"]), 400) == "invalid"
    assert program.get(where).json()["alert_ratio"] == 0.1
    assert problem_of(program.call("DELETE", where, If_Match=seen), 412)


def test_an_admin_of_both_groups_moves_a_cluster_over_the_api_and_others_are_refused() -> None:
    here, there = (JobGroup.objects.create(name=name) for name in ("here", "there"))
    olga, ada = (User.objects.create_user(name) for name in ("olga", "ada"))
    for person, role in ((olga, Role.OPERATOR), (ada, Role.ADMIN)):
        for group in (here, there):
            Membership.objects.create(user=person, group=group, role=role)
    operator = Caller(secret(Scope.ADMIN, Scope.READ, owner="olga"))
    admin = Caller(secret(Scope.ADMIN, Scope.READ))
    wanted = {"name": "prod", "model": worked_example(), "group": "here"}
    where = operator.post("/api/v1/clusters", wanted)["Location"]
    tag = operator.get(where)["ETag"]
    refused = operator.call("PATCH", where, {"group": "there"}, If_Match=tag)
    assert problem_of(refused, 403) == "permission_denied"
    both = {"burst_ratio": 0.7, "group": "nowhere"}
    assert problem_of(admin.call("PATCH", where, both, If_Match=tag), 403)
    assert Cluster.objects.get().burst_ratio == 0.2, "a change is made as a whole or not at all"
    model = admin.get(f"{where}/model")["ETag"]
    moved = admin.call("PATCH", where, both | {"group": "there"}, If_Match=tag)
    assert (moved.status_code, moved.json()["group"], moved.json()["burst_ratio"]) == (200, "there", 0.7)
    assert problem_of(operator.call("PATCH", where, {"group": "here"}, If_Match=tag), 412)
    sent = admin.call("PUT", f"{where}/model", worked_example(6.5), If_Match=model)
    assert sent.status_code == 200, "moving it changed nobody's model"
    whole = {"group": "there", "burst_ratio": 0.6, "alert_ratio": 0.1}
    settled = operator.call("PATCH", where, whole, If_Match=admin.get(where)["ETag"])
    assert settled.status_code == 200, "who leaves it in its group moves nothing"


def test_a_program_has_a_model_derived_from_jobs_or_is_told_why_not() -> None:
    program = Caller(secret(Scope.ADMIN, Scope.READ))
    job = fleet.store(fleet.measured(3, time.time_ns(), operators=3, instances=2))
    setup = {"jobs": [job.name], "nodes": {"n1": {"cpu": 8}}, "margin_ratio": 0.1}
    both = program.post("/api/v1/clusters", {"name": "x", "setup": setup, "model": worked_example()})
    for refused in (both, program.post("/api/v1/clusters", {"name": "x"})):
        assert problem_of(refused, 400) == "invalid"
        assert refused.json()["errors"] == [{"field": "model", "detail": "give either a model or a setup"}]
    wrong = program.post("/api/v1/clusters", {"name": "x", "setup": setup | {"jobs": ["nobody"]}})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (400, "setup")
    made = program.post("/api/v1/clusters", {"name": "derived", "setup": setup})
    assert (made.status_code, made.json()["origin"]) == (201, "derived")
    model = program.get(f"{made['Location']}/model").json()
    assert model["margins"] == {"n1": 0.1}
    assert {one["node"] for one in model["applications"][job.name]["stages"][0]["components"]} == {"n1"}
