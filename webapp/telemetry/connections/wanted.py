"""What a person wants to connect, and everything that can be wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError

from webapp.telemetry.connections.addresses import AddressError, database_address, http_address, path_on_disk
from webapp.telemetry.models import SourceKind

ON_DISK = (SourceKind.SPARK_EVENT_LOG_DIRECTORY, SourceKind.SPARK_EVENT_LOG)
OVER_NETWORK = (SourceKind.FLINK, SourceKind.OPENMETRICS, SourceKind.AUTOSCALER)
KINDS = (*OVER_NETWORK, *ON_DISK)
"""What a person can connect; sources of the other kinds are found by Weir."""

INTERVAL_BOUNDS_S = (5, 3600)
DEFAULT_INTERVAL_S = 15
MAX_JOB_NAME = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be connected. A job and an interval belong to OpenMetrics endpoints only."""

    kind: str
    location: str
    job_name: str = ""
    interval_s: int = DEFAULT_INTERVAL_S


def checked(wanted: Wanted) -> Wanted:
    """The same, tidied.

    Raises
    ------
    ValidationError
        With one line for each field that is wrong.
    """
    if wanted.kind not in KINDS:
        raise ValidationError({"kind": f"expected one of {', '.join(KINDS)}"})
    wrong = _wrong_with_job(wanted)
    location = ""
    try:
        location = _tidied(wanted)
    except AddressError as error:
        wrong["location"] = str(error)
    if wrong:
        raise ValidationError(wrong)
    return replace(wanted, location=location, job_name=wanted.job_name.strip())


def _tidied(wanted: Wanted) -> str:
    if wanted.kind == SourceKind.AUTOSCALER:
        return database_address(wanted.location)
    return (path_on_disk if wanted.kind in ON_DISK else http_address)(wanted.location)


def _wrong_with_job(wanted: Wanted) -> dict[str, str]:
    name = wanted.job_name.strip()
    if wanted.kind != SourceKind.OPENMETRICS:
        told = "only for OpenMetrics endpoints: other sources name their jobs themselves"
        return {"job": told} if name else {}
    wrong = {}
    if not 0 < len(name) <= MAX_JOB_NAME or "\0" in name:
        wrong["job"] = f"name the job whose metrics these are, in 1 to {MAX_JOB_NAME} characters"
    low, high = INTERVAL_BOUNDS_S
    if not low <= wanted.interval_s <= high:
        wrong["interval_s"] = f"expected {low} to {high} seconds"
    return wrong
