"""The guides are served in the app, to people who signed in."""

import pytest
from django.test import Client

from webapp.accounts.models import User
from webapp.ops.help import DOCS

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(client: Client) -> Client:
    client.force_login(User.objects.create_user("alice"))
    return client


def test_a_stranger_is_sent_to_sign_in(client: Client) -> None:
    answer = client.get("/help")
    assert answer.status_code == 302
    assert answer.url == "/sign-in?next=/help"  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", sorted(str(p.relative_to(DOCS).with_suffix("")) for p in DOCS.rglob("*.md")))
def test_every_page_of_the_docs_can_be_read(alice: Client, path: str) -> None:
    title = (DOCS / f"{path}.md").read_text().splitlines()[0].removeprefix("# ")
    assert f"<h1>{title}</h1>" in alice.get(f"/help/{path}").content.decode()


@pytest.mark.parametrize("name", ["missing", "../README", "adr/../guide", "adr/0001-embedded-servers.md"])
def test_nothing_else_can_be_read(alice: Client, name: str) -> None:
    assert alice.get(f"/help/{name}").status_code == 404
