"""Which job a page's address is about."""

from __future__ import annotations

import re

from dash.exceptions import PreventUpdate

from frontend.request import actor
from webapp.analysis import selectors
from webapp.jobs.models import Job


def job_at(path: str) -> Job:
    """The job whose page this is, as far as the person may see it.

    Raises
    ------
    PreventUpdate
        If it is no page of a job: somebody is just leaving or coming, and the callback came too late or too early.
    LookupError
        If there is no such job for this person.
    """
    found = re.match(r"/jobs/(\d{1,18})(?:/|$)", path or "")
    if found is None:
        raise PreventUpdate
    job = selectors.job(actor(), int(found[1]))
    if job is None:
        raise LookupError(f"no job at {path}")
    return job
