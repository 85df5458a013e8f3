"""Real PostgreSQL and Valkey for tests: started once a test run, stopped even if the run is killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from webapp.ops.embedded import EmbeddedPostgres, EmbeddedValkey, Watchdog

FAST_BUT_UNSAFE = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""A test database need not survive a power cut."""


@dataclass(frozen=True, slots=True)
class Services:
    """What a test run was given: its own state directory and two running servers."""

    home: Path
    postgres_url: str
    valkey_url: str


@contextmanager
def state_directory() -> Iterator[Path]:
    """A state directory of its own, removed afterwards together with data that had to be placed elsewhere."""
    home = Path(tempfile.mkdtemp(prefix="weir-test-"))
    try:
        yield home
    finally:
        elsewhere = home / "elsewhere"
        if elsewhere.is_symlink():
            shutil.rmtree(elsewhere.resolve())
        shutil.rmtree(home)


@contextmanager
def running_services(settings: dict[str, str] | None = None) -> Iterator[Services]:
    """PostgreSQL and Valkey on a fresh state directory."""
    with ExitStack() as stack:
        home = stack.enter_context(state_directory())
        watchdog = stack.enter_context(Watchdog())
        postgres = EmbeddedPostgres(home, watchdog=watchdog, settings=settings or FAST_BUT_UNSAFE)
        stack.callback(postgres.stop)
        valkey = EmbeddedValkey(home, watchdog=watchdog)
        stack.callback(valkey.stop)
        yield Services(home, postgres.start(), valkey.start())


def export(services: Services) -> None:
    """Point Django, Celery and every child process at the services."""
    os.environ["WEIR_HOME"] = str(services.home)
    os.environ["DATABASE_URL"] = services.postgres_url
    os.environ["REDIS_URL"] = services.valkey_url


def fresh_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment in which Weir brings its own servers, on the given state directory."""
    ours = {"DATABASE_URL", "REDIS_URL", "WEIR_HOME"}
    return (
        {key: value for key, value in os.environ.items() if key not in ours} | {"WEIR_HOME": str(home)} | more
    )
