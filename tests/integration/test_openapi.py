"""The API's description that is checked in is the one that the code makes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from webapp.api.documents import OPENAPI


def test_the_description_is_current() -> None:
    made = StringIO()
    call_command("spectacular", "--fail-on-warn", "--validate", stdout=made)
    assert made.getvalue() == OPENAPI.read_text(), (
        f"make it anew: manage.py spectacular --file {OPENAPI.relative_to(Path.cwd())}"
    )


@pytest.mark.django_db
def test_anyone_can_read_the_description() -> None:
    answer = Client().get("/api/v1/openapi.yaml")
    assert answer.status_code == 200
    assert yaml.safe_load(answer.content)["openapi"].startswith("3.")
