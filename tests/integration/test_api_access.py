"""Who may do what over the API, told with a stranger, tokens of wrong scope, and a token of another job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.support.api import Caller, person, problem_of, secret
from webapp.accounts.models import Scope, Token
from webapp.jobs.models import Job
from webapp.jobs.services import ensure_job

pytestmark = pytest.mark.django_db

READS = (
    "/api/v1/jobs/{job}", "/api/v1/jobs/{job}/settings", "/api/v1/jobs/{job}/operators",
    "/api/v1/jobs/{job}/workers", "/api/v1/jobs/{job}/windows",
)  # fmt: skip
EVERY_ADDRESS = (
    *(("GET", path, Scope.READ) for path in ("/api/v1/jobs", *READS)),
    ("PATCH", "/api/v1/jobs/{job}/settings", Scope.ADMIN),
    ("GET", "/api/v1/tokens", Scope.ADMIN),
    ("POST", "/api/v1/tokens", Scope.ADMIN),
    ("GET", "/api/v1/tokens/1", Scope.ADMIN),
    ("DELETE", "/api/v1/tokens/1", Scope.ADMIN),
)


@pytest.fixture
def job() -> Job:
    return ensure_job("ad-events")


@pytest.mark.parametrize(("method", "path", "scope"), EVERY_ADDRESS)
def test_every_address_asks_for_a_good_token_of_its_scope(
    method: str, path: str, scope: Scope, job: Job
) -> None:
    address = path.format(job=job.pk)
    stranger = Caller(None).call(method, address)
    assert problem_of(stranger, 401) == "not_authenticated"
    assert stranger["WWW-Authenticate"] == "Bearer"
    assert problem_of(Caller("weir_guess").call(method, address), 401) == "authentication_failed"
    others = [item for item in Scope if item != scope]
    refused = Caller(secret(*others)).call(method, address)
    assert problem_of(refused, 403) == "permission_denied"
    assert scope.value in refused.json()["detail"]
    for change in ({"expires_at": timezone.now()}, {"revoked_at": timezone.now()}):
        ended = secret(scope)
        Token.objects.filter(prefix=ended[:12]).update(**change)
        assert problem_of(Caller(ended).call(method, address), 401) == "authentication_failed"


def test_a_session_opens_nothing_in_the_api(job: Job) -> None:
    browser = Client()
    browser.force_login(person())
    assert problem_of(browser.get("/api/v1/jobs"), 401) == "not_authenticated"


@pytest.mark.parametrize("path", READS)
def test_a_token_of_another_job_sees_none_of_this_one(path: str, job: Job) -> None:
    other = ensure_job("orders")
    limited = Caller(secret(Scope.READ, Scope.ADMIN, jobs=("orders",)))
    assert problem_of(limited.get(path.format(job=job.pk)), 404) == "not_found"
    assert limited.get(path.format(job=other.pk)).status_code == 200
    assert [item["name"] for item in limited.get("/api/v1/jobs").json()["items"]] == ["orders"]
    refused = limited.call("PATCH", f"/api/v1/jobs/{job.pk}/settings", {"lateness_ns": 5}, If_Match="*")
    assert problem_of(refused, 404) == "not_found"


def test_a_token_that_asks_too_fast_is_told_when_to_come_again(settings: Any) -> None:
    settings.WEIR_RATE_PER_S, settings.WEIR_RATE_BURST = 1, 3
    hasty, other = Caller(secret(Scope.READ)), Caller(secret(Scope.READ))
    answers = [hasty.get("/api/v1/jobs") for _ in range(5)]
    assert [answer.status_code for answer in answers[:3]] == [200, 200, 200]
    assert problem_of(answers[4], 429) == "rate_limited"
    assert answers[4]["Retry-After"] == "1"
    assert other.get("/api/v1/jobs").status_code == 200
    Token.objects.filter().update(last_used_at=timezone.now() - timedelta(hours=1))


def test_every_error_has_one_shape(job: Job) -> None:
    reader = Caller(secret(Scope.READ, Scope.ADMIN))
    assert problem_of(reader.get("/api/v1/nothing"), 404) == "not_found"
    assert problem_of(reader.get("/api/nothing"), 404) == "not_found"
    assert problem_of(reader.get("/v1/nothing"), 404) == "not_found"
    assert problem_of(reader.get(f"/api/v1/jobs/{2**70}"), 404) == "not_found"
    refused = reader.call("DELETE", "/api/v1/jobs")
    assert problem_of(refused, 405) == "method_not_allowed"
    assert "GET" in refused["Allow"]
    assert problem_of(reader.post("/api/v1/tokens", b"<x/>", Content_Type="text/xml"), 415)
    assert problem_of(reader.post("/api/v1/tokens", b"{"), 400) == "parse_error"
    wrong = reader.post("/api/v1/tokens", {"scopes": ["all"]})
    assert problem_of(wrong, 400) == "invalid"
    assert {item["field"] for item in wrong.json()["errors"]} == {"name", "scopes.0"}
    for query in ("limit=0", "limit=1001", "limit=x", "after=٣", "after=" + "9" * 30):
        assert problem_of(reader.get(f"/api/v1/jobs?{query}"), 400) == "invalid"
    assert problem_of(Client().get("/api/v1/jobs", headers={"host": "evil.example"}), 400)


def test_a_bug_of_ours_is_a_problem_too_and_tells_nothing(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("webapp.jobs.api.visible_jobs", broken)
    answer = Caller(secret(Scope.READ)).get("/api/v1/jobs")
    assert problem_of(answer, 500) == "internal_error"
    assert "secret detail" not in answer.content.decode()
