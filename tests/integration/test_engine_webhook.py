"""The signed webhook: what a receiver can check, what is tried again, and what is on record."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.utils import timezone

from frontend.components.proposals import told
from tests.support.changes import COUNT, JOB_ID, SPLIT, draft, make_job, member
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Role
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, Proposal, Step
from webapp.reconfigurations.services import approve, propose
from webapp.telemetry.models import Annotation
from workers.engines.base import Change, Exchange, RefusedByEngineError, UnreachableError
from workers.engines.webhook import WebhookEngine, sign
from workers.tasks.apply import apply_proposal

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHANGE = Change(JOB_ID, {SPLIT: 5}, "weir-proposal-7", {"kind": "rescale", "job": "words"})
QUICK = (0.01, 0.02)


class Receiver:
    """Answers with the given statuses in turn, then with 204; keeps what came."""

    def __init__(self) -> None:
        self.statuses: list[tuple[int, dict[str, str]]] = []
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.url = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    hook = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.came.append(({key.lower(): value for key, value in self.headers.items()}, body))
            status, headers = hook.statuses.pop(0) if hook.statuses else (204, {})
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: tests read what came from the receiver."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield hook
    server.shutdown()
    server.server_close()


def engine(receiver: Receiver, log: list[Exchange]) -> WebhookEngine:
    return WebhookEngine(receiver.url, SECRET, log.append, waits_s=QUICK, now=lambda: 1_700_000_000.7)


def test_the_signature_is_that_of_the_published_example() -> None:
    # https://github.com/standard-webhooks/standard-webhooks, the specification's reference values
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    body = b'{"test": 2432232314}'
    signed = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_can_check_who_sent_what_and_when(receiver: Receiver) -> None:
    log: list[Exchange] = []
    hook = engine(receiver, log)
    hook.apply(hook.preview(CHANGE, None))
    headers, body = receiver.came[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("weir-proposal-7", "1700000000")
    told: dict[str, Any] = json.loads(body)
    assert told["type"] == "weir.reconfiguration.apply"
    assert told["data"] == {
        "engine_job_id": JOB_ID, "job": "words", "kind": "rescale", "parallelism": {SPLIT: 5},
    }  # fmt: skip
    assert (
        json.loads(json.dumps(hook.revert(CHANGE, None, None)))["body"]["type"]
        == "weir.reconfiguration.revert"
    )
    assert SECRET not in str(log)


def test_what_fails_in_passing_is_tried_again_with_the_same_id(receiver: Receiver) -> None:
    log: list[Exchange] = []
    receiver.statuses = [(503, {}), (0, {})]
    hook = engine(receiver, log)
    hook.apply(hook.preview(CHANGE, None))
    assert [item.status for item in log] == [503, None, 204]
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 1


@pytest.mark.parametrize(
    ("status", "headers"), [(400, {}), (410, {}), (302, {"Location": "http://127.0.0.1:1/"})]
)
def test_a_receiver_that_says_no_is_not_asked_again(
    receiver: Receiver, status: int, headers: dict[str, str]
) -> None:
    log: list[Exchange] = []
    receiver.statuses = [(status, headers)]
    hook = engine(receiver, log)
    with pytest.raises(RefusedByEngineError, match=str(status)):
        hook.apply(hook.preview(CHANGE, None))
    assert len(receiver.came) == len(log) == 1


def test_deliveries_end_at_some_time(receiver: Receiver) -> None:
    log: list[Exchange] = []
    receiver.statuses = [(500, {})] * 9
    hook = engine(receiver, log)
    with pytest.raises(UnreachableError, match="500"):
        hook.apply(hook.preview(CHANGE, None))
    assert len(log) == 3


@pytest.mark.django_db
def test_a_change_is_handed_over_and_every_delivery_is_on_record(receiver: Receiver) -> None:
    job = make_job(engine="webhook", engine_url=receiver.url, webhook_secret=SECRET)
    row = propose(None, job, draft())
    approve(member(job, Role.APPROVER), row.pk, expected_version=1)
    receiver.statuses = [(503, {})]
    apply_proposal(row.pk)
    row = Proposal.objects.get(pk=row.pk)
    assert (row.state, row.state_reason) == (
        State.APPLIED, "handed to: signed webhook; Weir cannot see the job itself",
    )  # fmt: skip
    assert Annotation.objects.get(job=job).label == "Handed over: split 1 → 5, count 1 → 2"
    end = AuditEvent.objects.filter(object_id=row.pk, action="proposal.applied").latest("id")
    assert (
        told.did("applied", end.detail["engine"])
        == "handed it over; what its receiver makes of it is not seen"
    )
    assert [item["status"] for item in row.attempt.exchanges] == [503, 204]
    assert json.loads(receiver.came[1][1])["data"]["parallelism"] == {SPLIT: 5, COUNT: 2}


@pytest.mark.django_db
def test_after_a_crash_the_same_message_is_delivered_again(receiver: Receiver) -> None:
    job = make_job(engine="webhook", engine_url=receiver.url, webhook_secret=SECRET)
    row = propose(None, job, draft())
    approve(member(job, Role.APPROVER), row.pk, expected_version=1)
    apply_proposal(row.pk)
    # as if the worker had died before it wrote down that the receiver had answered
    Attempt.objects.update(step=Step.SENDING, sent_at=None, finished_at=None, lease_until=timezone.now())
    Proposal.objects.filter(pk=row.pk).update(state=State.APPLYING)
    apply_proposal(row.pk)
    assert Proposal.objects.get(pk=row.pk).state == State.APPLIED
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 1
    assert receiver.came[0][1] == receiver.came[1][1]
