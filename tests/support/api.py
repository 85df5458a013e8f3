"""Calling the API in tests: people with tokens, and Django's client speaking JSON."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import Client

from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_token


def person(name: str = "ada") -> User:
    """A person who can sign in."""
    found = User.objects.filter(username=name).first()
    return found or User.objects.create_user(name, password="correct horse battery")


def superuser(name: str = "root") -> User:
    """A person who may do everything."""
    found = User.objects.filter(username=name).first()
    return found or User.objects.create_superuser(name, password="correct horse battery")


def secret(*scopes: Scope, jobs: tuple[str, ...] = (), owner: str = "ada") -> str:
    """The secret of a new token."""
    return create_token(person(owner), "test", scopes, jobs=jobs)[1]


class Caller:
    """A program with a token, or without one."""

    def __init__(self, token: str | None) -> None:
        self._client = Client(raise_request_exception=False)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """A request with a JSON body (bytes are sent as they are). Headers are named Content_Type and so on."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = named.pop("Content-Type", "application/json")
        return self._client.generic(
            method,
            path,
            body if isinstance(body, bytes) else _json(body),
            content_type=kind,
            headers=self._headers | named,
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)


def _json(body: Any) -> bytes:
    return b"" if body is None else orjson.dumps(body)


def problem_of(answer: Any, status: int) -> str:
    """The code of a problem, after checking that it is one of this status."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["type"]
    assert body["title"]
    assert body["detail"]
    return str(body["code"])
