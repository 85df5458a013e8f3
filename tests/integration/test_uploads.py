"""Uploaded files: what becomes of them, what is refused, and what is left of those that break off."""

from __future__ import annotations

import gzip
import io
import os
import socket
from datetime import timedelta
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from frontend.components import upload_parts
from frontend.state import View
from tests.support import seed, uploads
from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_token
from webapp.analysis import policy_lab
from webapp.jobs import reports
from webapp.jobs.models import Engine, Job
from webapp.telemetry.models import Batch, Segment
from webapp.telemetry.uploads import files, reading, selectors, services, work
from webapp.telemetry.uploads.models import Upload
from workers.tasks import uploads as tasks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _empty_folder() -> None:
    for path in files.folder().iterdir():
        path.unlink()


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def alices(alice: User) -> Client:
    return signed_in(alice)


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("bob")


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def post(client: Client, data: bytes, name: str = "trace", **more: str) -> tuple[int, dict[str, object]]:
    body = {"file": SimpleUploadedFile(name, data), **more}
    answer = client.post("/api/v1/uploads", body)
    return answer.status_code, answer.json()


def upload(client: Client, data: bytes, name: str = "trace.json", **more: str) -> Upload:
    status, answer = post(client, data, name, **more)
    assert status == 201, answer
    uploads.work()
    return Upload.objects.get(pk=answer["id"])


def store(client: Client, row: Upload, job: str = "") -> Upload:
    answer = client.post(f"/api/v1/uploads/{row.pk}/store", {"job": job} if job else {}, "application/json")
    assert answer.status_code == 202, answer.json()
    uploads.work()
    row.refresh_from_db()
    return row


def on_disk() -> list[str]:
    return sorted(path.name for path in files.folder().iterdir())


def test_a_chrome_trace_is_understood_stored_and_has_results_where_its_link_leads(alices: Client) -> None:
    row = upload(alices, uploads.chrome_trace(), "resize.json")
    assert (row.state, row.format, row.job_name) == ("understood", "chrome", "resize")
    assert row.preview is not None
    assert row.preview["records"] == 40 * (2 + 3 * 3)
    assert [item["type"] for item in row.preview["types"]] == [
        "control_message",
        "processing",
        "scheduling",
        "waiting",
    ]
    assert row.preview["worker_names"] == ["coordinator", "worker 1", "worker 2", "worker 3"]
    assert row.preview["from_ns"] == uploads.START_US * 1000
    assert row.preview["window_ns"] == 100_000_000, "four seconds make forty windows of 100 ms"
    assert row.preview["rows"][0]["type"] == "scheduling"
    assert Batch.objects.count() == 0, "a preview stores nothing"
    stored = store(alices, row)
    assert (stored.state, stored.stored_count, stored.repeated_count) == ("stored", 440, 0)
    assert on_disk() == [], "the file is not needed any more"
    job = Job.objects.get(name="resize")
    assert (job.finished, job.window_ns, job.engine) == (True, 100_000_000, Engine.OTHER)
    before = selectors.result(stored)
    assert before is not None
    assert not before.is_analysed
    seed.analyse()
    found = selectors.result(stored)
    assert found is not None
    assert found.is_analysed
    assert found.windows_done == 40
    from webapp.analysis.selectors import limits

    limited = limits(job, found.from_ns, found.to_ns).limiter
    assert limited is not None
    assert limited.operator == "resize"
    assert limited.cp > 0.5


def test_a_spark_event_log_names_its_job_and_gives_what_reading_the_file_gives(alices: Client) -> None:
    row = upload(alices, uploads.SPARK_LOG.read_bytes(), uploads.SPARK_LOG.name)
    assert (row.state, row.format) == ("understood", "spark-event-log")
    assert row.job_name == "troubled"
    whole = reading.read(uploads.SPARK_LOG, "log", "spark-event-log", row.created_at)
    stored = store(alices, row)
    assert stored.stored_count == len(whole.records) > 100
    assert Job.objects.get(name="troubled").engine == Engine.SPARK
    assert sum(Segment.objects.values_list("record_count", flat=True)) == len(whole.records)


def test_logs_of_ds2_become_rates_that_every_policy_can_be_tried_on(alices: Client) -> None:
    topology = b"1,lines,1,2,count,2\n"
    rows = [
        b"%d,%d,%d,%d,1000,500,250,125\n" % (operator, instance, total, epoch * 10**10)
        for epoch in range(1, 7)
        for operator, instance, total in ((1, 0, 1), (2, 0, 2), (2, 1, 2))
    ]
    row = upload(alices, topology + b"".join(rows), "wordcount.csv")
    assert (row.state, row.format, row.job_name) == ("understood", "ds2", "wordcount"), row.error
    assert row.preview is not None
    assert (row.preview["epochs"], row.preview["operator_names"]) == (6, ["lines", "count"])
    assert [item["code"] for item in row.diagnostics] == ["times_moved"], (
        "they count from the start of the run"
    )
    assert "6 epochs of rates and 2 operators" in str(upload_parts.sentence(row, None))
    assert "lines, count" in str(upload_parts.found(row, View.parse("")))
    row = store(alices, row)
    assert row.state == "stored"
    assert "/policy-lab?job=" in str(upload_parts.sentence(row, None))
    job = Job.objects.get(name="wordcount")
    from_ns, to_ns = row.preview["epochs_ns"]
    kept = reports.rates(job, from_ns, to_ns)
    assert [item.window.length_s for item in kept] == [10.0] * 6
    assert [item.parallelism for item in kept[0].topology.operators] == [1, 2]
    assert policy_lab.has_rates(job)
    again = store(alices, upload(alices, topology + b"".join(rows), "wordcount.csv"))
    assert again.state == "stored"
    assert len(reports.rates(job, from_ns, to_ns)) == 6


def test_the_same_file_for_the_same_job_stores_nothing_and_says_so(alices: Client) -> None:
    data = uploads.activity_lines(1000)
    store(alices, upload(alices, data, "a.ndjson"), "job")
    again = store(alices, upload(alices, data, "copy.ndjson"), "job")
    assert (again.state, again.stored_count, again.repeated_count) == ("stored", 1000, 1000)
    assert (Batch.objects.count(), Segment.objects.count()) == (1, 1)
    other = store(alices, upload(alices, data, "copy.ndjson"), "another")
    assert other.repeated_count == 0
    assert Segment.objects.count() == 2


def test_a_worker_that_dies_between_two_pieces_loses_and_repeats_nothing(
    alices: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PIECE_RECORDS", 100)
    row = upload(alices, uploads.activity_lines(950), "a.ndjson")
    alices.post(f"/api/v1/uploads/{row.pk}/store", {}, "application/json")
    stored_before, killed_at = work.store_piece, 4

    def dies(row: Upload, job: Job, number: int, piece: object) -> None:
        if number == killed_at:
            raise SystemExit("killed")
        stored_before(row, job, number, piece)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "store_piece", dies)
    with pytest.raises(SystemExit):
        tasks.store(row.pk)
    row.refresh_from_db()
    assert (row.state, row.stored_count) == ("storing", 400), "progress can be seen"
    assert on_disk() == [f"{row.pk}.ndjson"]
    Upload.objects.update(changed_at=timezone.now() - work.LEFT_AFTER)
    assert work.left_behind() == [(services.STORE, row.pk)]
    killed_at = -1
    tasks.store(row.pk)
    row.refresh_from_db()
    assert (row.state, row.stored_count, row.repeated_count) == ("stored", 950, 400)
    assert sum(Segment.objects.values_list("record_count", flat=True)) == 950


def test_a_trace_in_pieces_has_the_results_of_the_whole_trace(
    alices: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from webapp.analysis.models import Window

    def shares(job: str) -> list[tuple[int, str, list[float]]]:
        rows = Window.objects.filter(job__name=job).order_by("start_ns")
        return list(rows.values_list("start_ns", "status", "activity_cp"))

    data = uploads.chrome_trace(30)
    store(alices, upload(alices, data), "whole")
    monkeypatch.setattr(reading, "PIECE_RECORDS", 7)
    store(alices, upload(alices, data), "pieces")
    seed.analyse()
    assert Batch.objects.filter(job__name="pieces").count() == 330 // 7 + 1
    assert len(shares("whole")) == 30
    assert shares("pieces") == shares("whole")


def test_an_upload_another_worker_has_is_left_alone(alices: Client, postgres_url: str) -> None:
    _, answer = post(alices, uploads.activity_lines(10), "a.ndjson")
    name = settings.DATABASES["default"]["NAME"]
    with psycopg.connect(postgres_url.rsplit("/", 1)[0] + f"/{name}", autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(hashtext('upload'), %s::int)", [answer["id"]])
        tasks.preview(answer["id"])
        assert Upload.objects.get().state == "received"
        other.execute("SELECT pg_advisory_unlock_all()")  # closing alone lets go a moment later
    tasks.preview(answer["id"])
    assert Upload.objects.get().state == "understood"


def test_a_file_on_which_workers_die_is_given_up(alices: Client) -> None:
    post(alices, uploads.activity_lines(10), "a.ndjson")
    Upload.objects.update(attempts=work.MOST_ATTEMPTS, state="reading")
    row = Upload.objects.get()
    tasks.preview(row.pk)
    row.refresh_from_db()
    assert row.state == "failed"
    assert "stopped 3 times" in row.error


@pytest.mark.parametrize(
    ("data", "name", "format_name", "says"),
    [
        (b"\x89PNG garbage" * 100, "x.json", "chrome", "x.json"),
        (b"PAR1 not really", "x.parquet", "", "x.parquet"),
        (gzip.compress(b"a" * 5_000, mtime=0)[:-20], "x.gz", "activities", "gzip"),
        (b"no json at all\n" * 5, "x.ndjson", "activities", "nothing can be used: not_json (5): line 1: "),
        (b'{"Event":"SparkListenerLogStart"}\n', "log", "spark-event-log", "nothing in it"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_its_own_words(
    alices: Client, data: bytes, name: str, format_name: str, says: str
) -> None:
    row = upload(alices, data, name, **({"format": format_name} if format_name else {}))
    assert row.state == "refused"
    assert says in row.error
    assert str(files.folder()) not in row.error, "where it lies here is nobody's business"
    answer = alices.post(f"/api/v1/uploads/{row.pk}/store", {"job": "x"}, "application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert Job.objects.count() == 0


def test_a_file_of_the_wrong_format_is_read_again_as_another(alices: Client, alice: User) -> None:
    row = upload(alices, uploads.activity_lines(10), "a.json", format="chrome")
    assert row.state == "refused"
    services.read_as(alice, row.pk, "activities")
    uploads.work()
    row.refresh_from_db()
    assert (row.state, row.record_count) == ("understood", 10)


def test_what_is_odd_is_told_and_the_rest_is_good(alices: Client) -> None:
    row = upload(alices, b"oops\n" + uploads.activity_lines(10) + b"{}\n", "a.ndjson")
    assert row.record_count == 10
    assert {item["code"]: item["count"] for item in row.diagnostics} == {"missing_field": 1, "not_json": 1}


def test_times_that_lie_years_apart_are_refused(alices: Client) -> None:
    data = uploads.activity_lines(2, 0) + uploads.activity_lines(2)
    row = upload(alices, data, "a.ndjson")
    assert row.state == "refused"
    assert "days apart" in row.error


def test_a_long_trace_gets_wide_windows_and_does_not_fit_a_job_with_narrow_ones(alices: Client) -> None:
    month = 30 * 86_400 * 10**9
    start = 1_700_000_000_000_000_000
    row = upload(
        alices, uploads.activity_lines(2, start) + uploads.activity_lines(2, start + month), "a.ndjson"
    )
    assert row.preview is not None
    assert row.preview["window_ns"] == 60 * 10**9
    Job.objects.create(name="seconds")
    answer = alices.post(f"/api/v1/uploads/{row.pk}/store", {"job": "seconds"}, "application/json")
    assert answer.status_code == 409
    assert "windows of 1 s" in answer.json()["detail"]
    assert store(alices, row, "month").state == "stored"


def test_limits_are_said_and_nothing_is_kept(alices: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with override_settings(WEIR_UPLOAD_MAX_BYTES=1000):
        status, answer = post(alices, uploads.activity_lines(100), "a.ndjson")
        assert (status, answer["code"], answer["type"]) == (413, "too_large", "about:blank")
        assert "1,000 bytes" in str(answer["detail"])
    with override_settings(WEIR_UPLOAD_MAX_BYTES=100_000):
        assert post(alices, uploads.activity_lines(10_000), "a.ndjson")[0] == 413
    with monkeypatch.context() as patched:
        patched.setattr(files, "KEEP_FREE_BYTES", 1 << 60)
        assert post(alices, b"{}", "a.ndjson")[1]["code"] == "disk_full"
    assert post(alices, b"\1\2\3", "unheard.of")[1]["code"] == "unknown_format"
    assert post(alices, b"{}", "a", format="word")[1]["code"] == "unknown_format"
    assert post(alices, b"", "a.ndjson")[0] == 400
    assert on_disk() == []
    assert not Upload.objects.exists()
    monkeypatch.setattr(services, "MOST_KEPT", 1)
    assert post(alices, b"{}", "a.ndjson")[0] == 201
    assert post(alices, b"{}", "b.ndjson")[1]["code"] == "too_many_uploads"
    assert len(on_disk()) == 1


def test_a_file_with_too_many_records_is_refused_while_it_is_read(alices: Client) -> None:
    with override_settings(WEIR_UPLOAD_MAX_RECORDS=50):
        row = upload(alices, uploads.activity_lines(100), "a.ndjson")
    assert row.state == "refused"
    assert "50 records" in row.error


def test_a_transfer_that_breaks_off_leaves_nothing(alices: Client, live_server: LiveServer) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.ndjson"\r\n\r\n'
        + uploads.activity_lines(30_000)
        + b"\r\n--b--\r\n"
    )
    where = urlsplit(live_server.url)
    head = (
        f"POST /api/v1/uploads HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n"
        f"Cookie: sessionid={alices.cookies['sessionid'].value}; csrftoken={'a' * 32}\r\n"
        f"X-CSRFToken: {'a' * 32}\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    for length in (10, len(body) // 2, len(body) - 3):
        with socket.create_connection((where.hostname, where.port)) as wire:
            wire.sendall(head + body[:length])
            wire.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: wire.recv(65_536), b""))
        assert b"HTTP/1.1 400" in answer, length
        assert b"incomplete" in answer
        assert on_disk() == []
    assert not Upload.objects.exists()
    with socket.create_connection((where.hostname, where.port)) as wire:
        wire.sendall(head + body)
        assert b"HTTP/1.1 201" in b"".join(iter(lambda: wire.recv(65_536), b""))
    assert len(on_disk()) == 1


def test_a_body_that_is_no_form_with_a_file_is_the_callers_mistake(alices: Client) -> None:
    assert alices.post("/api/v1/uploads", {"format": "chrome"}).status_code == 400
    assert alices.post("/api/v1/uploads", {"file": "no file"}).status_code == 400
    assert alices.post("/api/v1/uploads", b"{}", "application/json").status_code == 415
    twice = {"file": [SimpleUploadedFile("a", b"{}"), SimpleUploadedFile("b", b"{}")]}
    assert alices.post("/api/v1/uploads", twice).status_code == 400
    assert on_disk() == []


def test_a_stranger_can_do_nothing(alices: Client) -> None:
    row = upload(alices, uploads.activity_lines(10), "a.ndjson")
    stranger = Client()
    assert post(stranger, b"{}")[0] == 401
    for method, path in (
        ("get", ""),
        ("get", f"/{row.pk}"),
        ("post", f"/{row.pk}/store"),
        ("delete", f"/{row.pk}"),
    ):
        answer = getattr(stranger, method)(f"/api/v1/uploads{path}")
        assert answer.status_code == 401, (method, path)
        assert answer["Content-Type"] == "application/problem+json"
    assert len(on_disk()) == 1


def test_a_page_must_send_the_csrf_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert post(client, uploads.activity_lines(10), "a.ndjson")[0] == 403
    assert on_disk() == []


def test_another_persons_upload_can_be_neither_seen_nor_stored(alices: Client, bob: User) -> None:
    row = upload(alices, uploads.activity_lines(10), "a.ndjson")
    bobs = signed_in(bob)
    assert bobs.get("/api/v1/uploads").json()["items"] == []
    assert bobs.get(f"/api/v1/uploads/{row.pk}").status_code == 404
    assert bobs.post(f"/api/v1/uploads/{row.pk}/store", {"job": "x"}, "application/json").status_code == 404
    assert bobs.delete(f"/api/v1/uploads/{row.pk}").status_code == 404
    root = signed_in(User.objects.create_superuser("root"))
    assert root.get(f"/api/v1/uploads/{row.pk}").json()["state"] == "understood"
    assert root.post(f"/api/v1/uploads/{row.pk}/store", {"job": "x"}, "application/json").status_code == 404
    assert Job.objects.count() == 0


def test_a_program_uploads_with_a_token_once_per_key(alice: User) -> None:
    _, secret = create_token(alice, "ci", [Scope.INGEST], jobs=["nightly"])
    _, reader = create_token(alice, "reader", [Scope.READ])
    data = uploads.activity_lines(10)

    def send(key: str, secret: str = secret, **more: str) -> tuple[int, dict[str, object]]:
        answer = Client().post(
            "/api/v1/uploads", {"file": io.BytesIO(data), **more},
            headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": key},
        )  # fmt: skip
        return answer.status_code, answer.json()

    assert send("1", reader, format="activities", job="nightly")[0] == 403
    assert send("1", format="activities", job="other")[0] == 403
    first = send("1", format="activities", job="nightly")
    again = send("1", format="activities", job="nightly")
    assert (first[0], again[0], first[1]["id"]) == (201, 201, again[1]["id"])
    assert Upload.objects.count() == 1
    assert len(on_disk()) == 1
    uploads.work()
    headers = {"Authorization": f"Bearer {secret}"}
    path = f"/api/v1/uploads/{first[1]['id']}/store"
    assert Client().post(path, {"job": "other"}, "application/json", headers=headers).status_code == 403
    assert Client().post(path, {}, "application/json", headers=headers).status_code == 202
    uploads.work()
    assert Upload.objects.get().state == "stored"


def test_a_token_for_one_job_knows_nothing_of_uploads_for_others(alices: Client, alice: User) -> None:
    mine = upload(alices, uploads.activity_lines(10), "a.ndjson", job="nightly")
    other = upload(alices, uploads.activity_lines(11), "b.ndjson", job="secret")
    _, secret = create_token(alice, "ci", [Scope.INGEST], jobs=["nightly"])
    program = Client(headers={"Authorization": f"Bearer {secret}"})
    listed = program.get("/api/v1/uploads").json()["items"]
    assert [item["id"] for item in listed] == [mine.pk]
    path = f"/api/v1/uploads/{other.pk}"
    assert program.get(path).status_code == program.delete(path).status_code == 404
    for wanted in ({}, {"job": "nightly"}):
        assert program.post(f"{path}/store", wanted, "application/json").status_code == 404
    assert Upload.objects.count() == 2
    assert program.delete(f"/api/v1/uploads/{mine.pk}").status_code == 204


def test_files_that_nobody_stored_and_rests_of_transfers_go_after_a_day(alices: Client) -> None:
    row = upload(alices, uploads.activity_lines(10), "a.ndjson")
    rest = files.folder() / "receiving-x"
    rest.write_bytes(b"half")
    work.clean_up()
    assert len(on_disk()) == 2
    old = timezone.now() - work.FILE_KEPT_FOR - timedelta(minutes=1)
    Upload.objects.update(changed_at=old)
    os.utime(rest, (old.timestamp(), old.timestamp()))
    work.clean_up()
    row.refresh_from_db()
    assert (row.state, on_disk()) == ("expired", [])
    answer = alices.post(f"/api/v1/uploads/{row.pk}/store", {"job": "x"}, "application/json")
    assert answer.status_code == 409


def test_discarding_an_upload_removes_its_file(alices: Client) -> None:
    row = upload(alices, uploads.activity_lines(10), "a.ndjson")
    assert alices.delete(f"/api/v1/uploads/{row.pk}").status_code == 204
    assert on_disk() == []
    assert alices.get(f"/api/v1/uploads/{row.pk}").status_code == 404


def test_a_file_keeps_no_more_of_its_name_on_disk_than_its_last_suffix() -> None:
    folder = files.folder()
    assert files.path_of(7, "../../etc/passwd") == folder / "7"
    assert files.path_of(7, "app-1.zstd.inprogress") == folder / "7.zstd"
    assert files.path_of(7, "events_1_app.lz4.compact") == folder / "7.lz4"
    assert files.path_of(7, "x.so/../y z") == folder / "7"


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("app.log", "app"), ("trace.json.gz", "trace"), ("app-1.zstd.inprogress", "app-1"), ("plain", "plain"),
        (".gz", ".gz"),
    ],
)  # fmt: skip
def test_a_job_is_named_after_its_file(name: str, job: str) -> None:
    assert services.name_of_file(name) == job
