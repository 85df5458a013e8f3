"""A Flink autoscaler's tables in a PostgreSQL of its own, read and never written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from tests.support.api import person
from webapp.accounts.models import User
from webapp.jobs.models import Job
from webapp.jobs.services import ensure_job
from webapp.telemetry import sources
from webapp.telemetry.connections import services
from webapp.telemetry.connections.selectors import State, connections, described
from webapp.telemetry.connections.wanted import Wanted
from webapp.telemetry.models import Annotation, MetricSample, Source, SourceKind
from workers.tasks.autoscaler import poll_autoscaler

pytestmark = pytest.mark.django_db(transaction=True)

JOB_ID, VERTEX = "e5284bd0b3a45e07b2b1e0a5cbb6d2f1", "ea632d67b7d595e5b851708ae9ad79d6"
SCHEMA = """
    CREATE TABLE t_flink_autoscaler_state_store (
        id BIGSERIAL NOT NULL, update_time TIMESTAMP NOT NULL, job_key TEXT NOT NULL, state_type TEXT NOT NULL,
        state_value TEXT NOT NULL, PRIMARY KEY (id), UNIQUE (job_key, state_type));
    CREATE TABLE t_flink_autoscaler_event_handler (
        id BIGINT NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY, create_time TIMESTAMP NOT NULL,
        update_time TIMESTAMP NOT NULL, job_key VARCHAR(191) NOT NULL, reason VARCHAR(500) NOT NULL,
        event_type VARCHAR(100) NOT NULL, message TEXT NOT NULL, event_count INTEGER NOT NULL,
        event_key VARCHAR(100) NOT NULL);
"""


@dataclass
class Tables:
    """The autoscaler's database, and its address without the password."""

    address: str
    autoscaler: psycopg.Connection

    def event(self, message: str) -> None:
        self.autoscaler.execute(
            "INSERT INTO t_flink_autoscaler_event_handler (create_time, update_time, job_key, reason, event_type, "
            "message, event_count, event_key) VALUES (now() AT TIME ZONE 'UTC', now() AT TIME ZONE 'UTC', %s, "
            "'ScalingReport', 'Normal', %s, 1, '1')",
            (JOB_ID, message),
        )

    def state(self, kind: str, value: object) -> None:
        self.autoscaler.execute(
            "INSERT INTO t_flink_autoscaler_state_store (update_time, job_key, state_type, state_value) "
            "VALUES (now(), %s, %s, %s) "
            "ON CONFLICT (job_key, state_type) DO UPDATE SET state_value = excluded.state_value",
            (JOB_ID, kind, json.dumps(value)),
        )


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    known = connection.settings_dict
    host, port, user, password = (str(known[name]) for name in ("HOST", "PORT", "USER", "PASSWORD"))
    server = {"host": host, "port": port, "user": user, "password": password}
    with psycopg.connect(dbname="postgres", autocommit=True, **server) as admin:
        admin.execute("DROP DATABASE IF EXISTS autoscaler")
        admin.execute("CREATE DATABASE autoscaler")
        try:
            passwords = tmp_path / "passwords"
            passwords.write_text(f"{host}:{port}:autoscaler:{user}:{password}\n")
            passwords.chmod(0o600)
            monkeypatch.setenv("PGPASSFILE", str(passwords))
            with psycopg.connect(dbname="autoscaler", autocommit=True, **server) as own:
                own.execute(SCHEMA)
                yield Tables(f"postgresql://{user}@{host}:{port}/autoscaler", own)
        finally:
            admin.execute("DROP DATABASE autoscaler WITH (FORCE)")


@pytest.fixture
def root() -> User:
    found = person("root")
    found.is_staff = True
    found.save()
    return found


def connect(root: User, address: str) -> Source:
    return services.add_connection(root, Wanted("flink-autoscaler", address))


def at(seconds_ago: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))


def test_what_it_decided_and_measured_appears_with_the_job_it_looks_after(tables: Tables, root: User) -> None:
    followed = ensure_job("orders", engine_job_id=JOB_ID)
    tables.event("Scaling execution enabled, begin scaling vertices:{ … }")
    tables.state("scalingHistory", {VERTEX: {at(60): {"currentParallelism": 2, "newParallelism": 5}}})
    tables.state(
        "collectedMetrics", {at(30): {"vertexMetrics": {VERTEX: {"LOAD": 0.5}}, "globalMetrics": {}}}
    )
    source = connect(root, tables.address)
    assert sources.due(SourceKind.AUTOSCALER, not_since=sources.QUIET_EVERY) == [source.pk]
    poll_autoscaler(source.pk)
    (shown,) = described(root, list(connections(root)))
    assert (shown.state, [job.name for job in shown.jobs]) == (State.CONNECTED, ["orders"])
    notes = Annotation.objects.filter(job=followed).order_by("kind")
    assert [(note.kind, note.label[:30]) for note in notes] == [
        ("autoscaler", "ScalingReport: Scaling executi"),
        ("autoscaler-scaling", f"{VERTEX}: 2 → 5"[:30]),
    ]
    assert abs(notes[0].start_ns - time.time_ns()) < 120 * 10**9
    assert [sample.value for sample in MetricSample.objects.filter(series__job=followed)] == [0.5]


def test_a_row_that_is_updated_in_place_updates_what_is_stored_and_a_second_look_adds_nothing(
    tables: Tables, root: User
) -> None:
    tables.event("first")
    source = connect(root, tables.address)
    for _ in range(2):
        poll_autoscaler(source.pk)
    tables.autoscaler.execute(
        "UPDATE t_flink_autoscaler_event_handler SET message = 'again', event_count = 2"
    )
    poll_autoscaler(source.pk)
    job = Job.objects.get()
    assert job.name == JOB_ID, "nobody else named it"
    assert [note.label for note in Annotation.objects.all()] == ["ScalingReport (2 times): again"]
    assert job.batches.count() == 2


def test_tables_that_are_not_there_or_not_to_be_read_are_a_state_and_not_a_crash(
    tables: Tables, root: User
) -> None:
    source = connect(root, tables.address)
    tables.autoscaler.execute("ALTER TABLE t_flink_autoscaler_event_handler RENAME TO gone")
    poll_autoscaler(source.pk)
    source.refresh_from_db()
    assert "the autoscaler's tables are not there" in source.error
    nobody = connect(root, "postgresql://reader@127.0.0.1:1/autoscaler")
    poll_autoscaler(nobody.pk)
    nobody.refresh_from_db()
    assert nobody.error.startswith("cannot be read")
    assert "\n" not in nobody.error
    assert [item.failures for item in described(root, list(connections(root)))] == [1, 1]
