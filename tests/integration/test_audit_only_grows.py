"""The audit record can only grow, survives refusals and deletions, and is searched and exported by who may."""

from __future__ import annotations

import csv

import pytest
from django.db import Error, connection, transaction
from django.test import Client

from tests.support.changes import make_job, member, person, proposal
from webapp.audit.models import AuditEvent
from webapp.audit.selectors import Search, export_csv, history_of, search
from webapp.audit.services import Entry, record, record_refused
from webapp.jobs.models import Role
from webapp.reconfigurations.errors import NoSuchProposalError
from webapp.reconfigurations.services import approve, reject

pytestmark = pytest.mark.django_db


def newest(action: str) -> AuditEvent:
    return AuditEvent.objects.filter(action=action).latest("id")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_event SET reason = 'never happened'",
        "DELETE FROM audit_event",
        "TRUNCATE audit_event",
        "INSERT INTO audit_event (id, actor_name, action, outcome, object_type) VALUES (1, 'x', 'x', 'done', 'x') "
        "ON CONFLICT (id) DO UPDATE SET reason = 'never happened'",
    ],
)
def test_the_application_cannot_change_what_is_in_the_audit_record(statement: str) -> None:
    record(Entry("weir", "test.kept", "test", 1, reason="it happened"))
    with pytest.raises(Error, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert newest("test.kept").reason == "it happened"


def test_what_is_recorded_goes_with_the_transaction_and_what_is_refused_stays() -> None:
    def attempt() -> None:
        with transaction.atomic():
            record(Entry("weir", "test.undone", "test", 1))
            record_refused(Entry("weir", "test.refused", "test", 1, reason="no"))
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        attempt()
    assert not AuditEvent.objects.filter(action="test.undone").exists()
    assert newest("test.refused").outcome == "refused"


def test_who_did_it_is_still_named_when_the_account_is_gone() -> None:
    job = make_job()
    bob = member(job, Role.APPROVER, "bob")
    open_one = proposal(job)
    reject(bob, open_one.pk, expected_version=1, reason="too many")
    name, number = bob.username, bob.pk
    bob.delete()
    event = history_of(person("root", is_superuser=True), "proposal", open_one.pk).last()
    assert event is not None
    assert (event.actor_name, event.actor_id, event.action, event.reason) == (
        name, number, "proposal.reject", "too many",
    )  # fmt: skip


def test_a_person_reads_what_concerns_their_jobs_and_a_stranger_does_not() -> None:
    job = make_job()
    viewer, stranger = member(job, Role.VIEWER), person("stranger")
    open_one = proposal(job)
    assert [event.action for event in history_of(viewer, "proposal", open_one.pk)] == ["proposal.propose"]
    assert list(history_of(stranger, "proposal", open_one.pk)) == []
    assert search(viewer, Search(text="PROPOSE", job_id=job.pk)).count() == 1
    assert search(viewer, Search(text="break", job_id=job.pk)).count() == 0


def test_a_stranger_who_tried_in_vain_learns_nothing_from_their_own_trail() -> None:
    job, stranger = make_job(), person("stranger")
    open_one = proposal(job)
    with pytest.raises(NoSuchProposalError):
        approve(stranger, open_one.pk, expected_version=1)
    record(Entry(stranger, "test.own", "account", stranger.pk))
    assert [event.action for event in search(stranger)] == ["test.own"]
    assert job.name not in "".join(export_csv(stranger))
    tried = search(member(job, Role.VIEWER), Search(actor_name=stranger.username))
    assert [event.outcome for event in tried] == ["refused"], "who may see the job reads who tried"
    client = Client()
    client.force_login(stranger)
    saved = b"".join(client.get("/audit.csv").streaming_content).decode()
    assert ("test.own" in saved, job.name in saved) == (True, False)


def test_an_export_is_csv_whose_free_text_no_spreadsheet_runs() -> None:
    job = make_job()
    entry = Entry(
        "weir", "test.export", "job", job.pk, job.pk, job.name, reason='=HYPERLINK("x"), "quoted"\nline'
    )
    record(entry)
    rows = list(csv.DictReader(export_csv(member(job, Role.VIEWER), Search(job_id=job.pk))))
    assert [(row["action"], row["reason"]) for row in rows] == [
        ("test.export", '\'=HYPERLINK("x"), "quoted"\nline')
    ]
