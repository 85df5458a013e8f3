"""What was acknowledged is there, once: ten clients at once, a server killed before commit, a database away."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.support.services import FAST_BUT_UNSAFE, state_directory
from tests.support.waiting import eventually
from tests.support.web import Web, web_on
from webapp.ops.embedded import EmbeddedPostgres, EmbeddedValkey, Watchdog
from webapp.ops.embedded.watchdog import CHECKOUT

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def postgres_and_web() -> Iterator[tuple[EmbeddedPostgres, Web]]:
    with state_directory() as home, Watchdog() as watchdog:
        postgres = EmbeddedPostgres(home, watchdog=watchdog, settings=FAST_BUT_UNSAFE)
        valkey = EmbeddedValkey(home, watchdog=watchdog)
        try:
            with web_on(home, postgres.start(), valkey.start(), WEIR_RATE_PER_S="100000") as web:
                web.start("web")
                yield postgres, web
        finally:
            valkey.stop()
            postgres.stop()


@pytest.fixture(scope="module")
def token(postgres_and_web: tuple[EmbeddedPostgres, Web]) -> str:
    return postgres_and_web[1].token("ingest")


def line(number: int) -> bytes:
    start = 1_700_000_000_000_000_000 + number * 1_000_000
    return b'{"type":"processing","worker":"w","start_ns":%d,"end_ns":%d}\n' % (start, start + 500_000)


def send(client: httpx.Client, job: str, number: int) -> httpx.Response:
    return client.post("/api/v1/activities", params={"job": job}, content=line(number), headers=NDJSON)


def counts(web: Web, job: str) -> tuple[int, int]:
    """Batches and records of a job."""
    with psycopg.connect(web.database_url) as connection:
        found = connection.execute(
            "SELECT (SELECT count(*) FROM telemetry_batch b WHERE b.job_id = j.id), "
            "(SELECT coalesce(sum(record_count), 0) FROM telemetry_segment s WHERE s.job_id = j.id) "
            "FROM jobs_job j WHERE name = %s",
            [job],
        ).fetchone()
    return (int(found[0]), int(found[1])) if found else (0, 0)


def test_ten_clients_at_once_lose_nothing_and_store_nothing_twice(
    postgres_and_web: tuple[EmbeddedPostgres, Web], token: str
) -> None:
    _, web = postgres_and_web
    together = threading.Barrier(10)

    def one(client_number: int) -> list[int]:
        together.wait()
        with web.client(token) as client:
            # Neighbours send the same bodies, as senders do that did not hear the answer.
            return [send(client, "crowd", (client_number // 2) * 10 + i).status_code for i in range(10)]

    with ThreadPoolExecutor(10) as pool:
        statuses = [status for found in pool.map(one, range(10)) for status in found]
    assert set(statuses) == {200}
    assert counts(web, "crowd") == (50, 50)


def test_a_server_killed_between_receiving_and_committing_has_stored_nothing_and_takes_it_again(
    postgres_and_web: tuple[EmbeddedPostgres, Web], token: str
) -> None:
    _, web = postgres_and_web
    with web.client(token) as client:
        assert send(client, "crash", 0).status_code == 200
    unanswered: list[Exception] = []

    def sender() -> None:
        try:
            with web.client(token) as client:
                send(client, "crash", 1)
        except httpx.HTTPError as error:
            unanswered.append(error)

    with psycopg.connect(web.database_url) as holder:
        holder.execute("SELECT 1 FROM jobs_job WHERE name = 'crash' FOR UPDATE")
        thread = threading.Thread(target=sender)
        thread.start()
        eventually(lambda: _somebody_waits(web), "the delivery waits for the job's lock")
        web.kill("web")
        thread.join(30)
    assert len(unanswered) == 1
    web.start("web")
    assert counts(web, "crash") == (1, 1)
    with web.client(token) as client:
        again = send(client, "crash", 1)
        assert (again.status_code, again.json()["duplicate"]) == (200, False)
    assert counts(web, "crash") == (2, 2)


def _somebody_waits(web: Web) -> bool:
    with psycopg.connect(web.database_url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        ).fetchone()
    return bool(found and found[0])


def test_while_the_database_is_away_senders_are_told_to_come_again_and_nothing_is_lost(
    postgres_and_web: tuple[EmbeddedPostgres, Web], token: str
) -> None:
    postgres, web = postgres_and_web
    acknowledged: list[int] = []
    refused: list[httpx.Response] = []
    over = threading.Event()

    def sender() -> None:
        number = 0
        with web.client(token) as client:
            while not over.is_set():
                answer = send(client, "away", number)
                if answer.status_code == 200:
                    acknowledged.append(number)
                    number += 1
                else:
                    refused.append(answer)
                time.sleep(0.02)

    thread = threading.Thread(target=sender)
    thread.start()
    try:
        eventually(lambda: len(acknowledged) > 10, "some are stored", 60)
        port = postgres.port
        postgres.stop()
        eventually(lambda: len(refused) > 5, "some are refused", 60)
        time.sleep(10)
        postgres.restart()
        assert postgres.port == port
        before = len(acknowledged)
        eventually(lambda: len(acknowledged) > before + 10, "they are stored again", 60)
    finally:
        over.set()
        thread.join(60)
    for answer in refused:
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.json()["code"] == "database_unavailable"
    assert counts(web, "away") == (len(acknowledged), len(acknowledged))


def test_a_taken_port_keeps_the_grpc_server_waiting_and_nobody_else(
    postgres_and_web: tuple[EmbeddedPostgres, Web],
) -> None:
    _, web = postgres_and_web
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = ["otlp_grpc", "--port", str(taken.getsockname()[1])]
        log = web.home / "taken.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, str(CHECKOUT / "manage.py"), *command],
                env=web.environment, stdout=file, stderr=file,
            )  # fmt: skip
        try:
            eventually(lambda: "port_taken" in log.read_text(), "it says that the port is taken", 60)
            assert process.poll() is None
        finally:
            process.terminate()
            assert process.wait(30) == 0
