"""Looking after proposals that wait for a decision: time passes, and jobs change under them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from celery import shared_task
from django.db import connection

from analytics.model.plain import from_plain
from analytics.model.reconfigurations import Binding
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from webapp.reconfigurations.policies import rules_of
from webapp.reconfigurations.proposing import follow
from webapp.reconfigurations.selectors import current_binding
from webapp.reconfigurations.services import expire_due, mark_stale
from workers.engines.base import EngineError, UnreachableError
from workers.engines.choose import engine_of

logger = logging.getLogger(__name__)


@shared_task
def follow_recommendations() -> None:
    """Propose what is recommended, where the job's mode allows it."""
    found = follow()
    if found.proposed or found.withdrawn:
        logger.info("proposals.followed proposed=%d withdrawn=%d", found.proposed, found.withdrawn)


@shared_task
def look_after() -> None:
    """Expire what nobody decided, and take off the table what is about a job that is no more."""
    expire_due()
    with _only_one_looks() as mine:
        if mine:
            _look_after_open()


@contextmanager
def _only_one_looks() -> Iterator[bool]:
    """Whether no other worker is at it: engines that answer slowly must not gather up all workers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext('proposals.look_after'))")
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtext('proposals.look_after'))")


def _look_after_open() -> None:
    silent: set[str] = set()  # engines that gave no answer in this sweep are not asked about their other jobs
    rows = Proposal.objects.filter(state=State.PROPOSED).select_related("job").defer("payload", "evidence")
    for proposal in rows:
        bound, rules = from_plain(Binding, proposal.binding), rules_of(proposal.job)
        if rules.engine_url in silent:
            continue
        try:
            seen = engine_of(rules).progress(bound.engine_job_id)
        except EngineError as error:  # an engine out of reach says nothing about its job
            logger.info("proposals.unseen proposal=%d %s", proposal.pk, error)
            if isinstance(error, UnreachableError):
                silent.add(rules.engine_url)
            continue
        # An engine that only listens cannot tell how the job runs, but a collector may have asked.
        running = current_binding(proposal.job) if seen is None else seen.running
        if running is not None:
            mark_stale(proposal.pk, running)
