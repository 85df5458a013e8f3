"""Tokens: shown once, kept as digests, limited, expiring, revocable."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.support.api import Caller, person, problem_of, secret
from webapp.accounts.models import Scope, Token, User
from webapp.accounts.services import InvalidTokenError, create_token, revoke_token, token_of
from webapp.audit.models import AuditEvent

pytestmark = pytest.mark.django_db


def test_a_secret_opens_its_token_and_is_stored_nowhere() -> None:
    token, opened = create_token(person(), "collector", ["ingest"])
    assert token_of(opened) == token
    assert opened.startswith(token.prefix)
    row = Token.objects.filter(pk=token.pk).values().get()
    assert opened not in str(row)
    assert opened.encode() not in bytes(row["digest"])
    assert len(opened) >= 45


def test_the_last_use_is_noted_but_not_with_every_request() -> None:
    token, opened = create_token(person(), "collector", ["ingest"])
    assert token.last_used_at is None
    token_of(opened)
    first = Token.objects.get().last_used_at
    assert first is not None
    token_of(opened)
    assert Token.objects.get().last_used_at == first
    Token.objects.update(last_used_at=first - timedelta(minutes=2))
    token_of(opened)
    assert Token.objects.get().last_used_at > first


def test_unknown_expired_and_revoked_tokens_and_those_of_disabled_people_open_nothing() -> None:
    owner = person()
    token, opened = create_token(owner, "t", ["read"], expires_at=timezone.now() + timedelta(days=1))
    for wrong in ("", "weir_", opened[:-1], opened + "x", "wéir\0"):
        with pytest.raises(InvalidTokenError, match="unknown"):
            token_of(wrong)
    Token.objects.update(expires_at=timezone.now())
    with pytest.raises(InvalidTokenError, match="expired"):
        token_of(opened)
    Token.objects.update(expires_at=None)
    User.objects.update(is_active=False)
    with pytest.raises(InvalidTokenError, match="disabled"):
        token_of(opened)
    revoke_token(owner, token.pk)
    with pytest.raises(InvalidTokenError, match="revoked"):
        token_of(opened)


def test_nobody_revokes_a_token_of_another_person() -> None:
    token, opened = create_token(person("ada"), "t", ["read"])
    with pytest.raises(Token.DoesNotExist):
        revoke_token(person("eve"), token.pk)
    assert token_of(opened) == token
    tried = AuditEvent.objects.get(action="token.revoke", object_id=token.pk)
    assert (tried.actor_name, tried.outcome) == ("eve", "refused")


def test_what_is_done_and_tried_with_tokens_is_in_the_audit_record() -> None:
    owner = person("olga")
    reader, secret_of_reader = create_token(owner, "reader", ["read"])
    revoke_token(owner, create_token(owner, "gone", ["read"])[0].pk)
    with pytest.raises(PermissionDenied):
        create_token(owner, "more", ["admin"], within=reader)
    answer = Caller(secret_of_reader).post("/api/v1/tokens", {"name": "x", "scopes": ["read"]})
    assert problem_of(answer, 403) == "permission_denied"
    told = AuditEvent.objects.filter(actor_id=owner.pk).order_by("id")
    assert [(event.action, event.outcome) for event in told] == [
        ("token.create", "done"), ("token.create", "done"), ("token.revoke", "done"),
        ("token.create", "refused"), ("token.use", "refused"),
    ]  # fmt: skip
    assert told[4].detail["path"] == "/api/v1/tokens"
    assert not any(secret_of_reader in str(event.detail) for event in told)


@pytest.mark.parametrize(
    ("name", "scopes", "jobs"),
    [
        ("", ["read"], []),
        ("t", [], []),
        ("t", ["root"], []),
        ("t", ["read"], ["x" * 201]),
        ("t\0", ["read"], []),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(name: str, scopes: list[str], jobs: list[str]) -> None:
    with pytest.raises(ValidationError):
        create_token(person(), name, scopes, jobs=jobs)


def test_a_token_gives_nothing_that_it_does_not_have() -> None:
    owner = person()
    day = timezone.now() + timedelta(days=1)
    limited, _ = create_token(owner, "t", ["admin", "read"], jobs=["a", "b"], expires_at=day)
    child, _ = create_token(owner, "c", ["read"], jobs=["a"], expires_at=day, within=limited)
    assert (child.scopes, child.jobs) == (["read"], ["a"])
    for scopes, jobs, until in (
        (["ingest"], ["a"], day),
        (["read"], [], day),
        (["read"], ["c"], day),
        (["read"], ["a"], None),
    ):
        with pytest.raises(PermissionDenied):
            create_token(owner, "c", scopes, jobs=jobs, expires_at=until, within=limited)


def test_the_command_prints_the_secret_alone_on_standard_output() -> None:
    person("admin")
    out, err = StringIO(), StringIO()
    call_command(
        "create_token",
        "--name",
        "c",
        "--scope",
        "ingest",
        "--job",
        "a",
        "--days",
        "3",
        stdout=out,
        stderr=err,
    )
    token = token_of(out.getvalue().strip())
    assert (token.owner.username, token.scopes, token.jobs) == ("admin", ["ingest"], ["a"])
    assert out.getvalue().strip() not in err.getvalue()
    for wrong in (["--user", "nobody"], ["--days", "-1"], ["--days", "99999999999"]):
        with pytest.raises(CommandError):
            call_command("create_token", "--name", "c", "--scope", "read", *wrong)


def test_an_administrator_makes_lists_and_revokes_tokens_over_the_api() -> None:
    admin = Caller(secret(Scope.ADMIN, Scope.READ))
    made = admin.post("/api/v1/tokens", {"name": "dashboards", "scopes": ["read"]})
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    reader = Caller(made.json()["secret"])
    assert reader.get("/api/v1/jobs").status_code == 200
    listed = admin.get("/api/v1/tokens").json()["items"]
    assert [item["name"] for item in listed] == ["test", "dashboards"]
    assert all("secret" not in item for item in listed)
    address = f"/api/v1/tokens/{made.json()['id']}"
    assert admin.call("DELETE", address).json()["revoked_at"]
    assert problem_of(reader.get("/api/v1/jobs"), 401) == "authentication_failed"
    assert admin.get(address).json()["revoked_at"]
    assert problem_of(Caller(secret(Scope.ADMIN, owner="eve")).get(address), 404) == "not_found"


def test_a_token_made_twice_with_one_key_is_one_and_its_secret_is_told_once() -> None:
    admin = Caller(secret(Scope.ADMIN, Scope.READ))
    wanted = {"name": "n", "scopes": ["read"]}
    first = admin.post("/api/v1/tokens", wanted, Idempotency_Key="k")
    again = admin.post("/api/v1/tokens", wanted, Idempotency_Key="k")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == first.json() | {"secret": None}
    assert Token.objects.filter(name="n").count() == 1
    other = admin.post("/api/v1/tokens", {"name": "m", "scopes": ["read"]}, Idempotency_Key="k")
    assert problem_of(other, 422) == "idempotency_key_reused"
    assert (
        problem_of(admin.post("/api/v1/tokens", wanted, Idempotency_Key="k" * 201), 400)
        == "bad_idempotency_key"
    )


def test_a_refused_request_leaves_its_key_free() -> None:
    admin = Caller(secret(Scope.ADMIN, Scope.READ))
    assert problem_of(
        admin.post("/api/v1/tokens", {"name": "n", "scopes": ["ingest"]}, Idempotency_Key="k"), 403
    )
    assert (
        admin.post("/api/v1/tokens", {"name": "n", "scopes": ["read"]}, Idempotency_Key="k").status_code
        == 201
    )
