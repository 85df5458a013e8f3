"""What a token may see and touch of its owner's alerts: one for some jobs only has to do with these alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.api.idempotency import once
from webapp.api.pagination import INT64
from webapp.api.schema import number, text
from webapp.api.views import actor_of, token_of_request
from webapp.audit.services import Entry, record_refused
from webapp.jobs.api import jobs_of
from webapp.jobs.models import JobGroup
from webapp.notifications.policies import groups_of

M = TypeVar("M", bound=Model)
NARROWED = [text("group", "only those of this group"), number("job", "only those about this job")]
"""Parameters of lists, see ``Narrowed``."""


class Narrowed(serializers.Serializer[Any]):
    """What lists can be narrowed to."""

    group = serializers.CharField(required=False, max_length=200)
    job = serializers.IntegerField(required=False, min_value=-INT64, max_value=INT64)


def listed(request: Request, rows: QuerySet[M], group: str = "group") -> QuerySet[M]:
    """Those that the request asks for and its token may see; ``group`` is how they know theirs."""
    asked = Narrowed(data=request.query_params)
    asked.is_valid(raise_exception=True)
    rows = visible(request, rows)
    if "group" in asked.validated_data:
        rows = rows.filter(**{f"{group}__name": asked.validated_data["group"]})
    if "job" in asked.validated_data:
        rows = rows.filter(job=asked.validated_data["job"])
    return rows


def visible(request: Request, rows: QuerySet[M]) -> QuerySet[M]:
    """Those that the token may see."""
    limited = token_of_request(request).jobs
    return rows.filter(job__name__in=limited) if limited else rows


def group_named(request: Request, name: str) -> JobGroup:
    """A group that the token's owner sees.

    Raises
    ------
    ValidationError
        If there is none.
    """
    found = groups_of(actor_of(request)).filter(name=name).first()
    if found is None:
        raise ValidationError({"group": "there is no such group"})
    return found


def keep_to_jobs(request: Request, job_id: int | None) -> None:
    """Let nothing be made by a token for some jobs that is about others too.

    Raises
    ------
    PermissionDenied
        If the job is none of them, or none is named.
    """
    if token_of_request(request).jobs and (job_id is None or not jobs_of(request).filter(pk=job_id).exists()):
        refuse(request, "a token for some jobs only can be used for what is about these alone")


def refuse(request: Request, why: str) -> NoReturn:
    """Refuse what the token may not although its owner may, and write that down."""
    token = token_of_request(request)
    detail = {"method": request.method, "path": request.path[:300], "token": str(token)}
    record_refused(Entry(actor_of(request), "token.use", "token", token.pk, reason=why, detail=detail))
    raise PermissionDenied(why)


def made_once(request: Request, act: Callable[[], Response]) -> Response:
    """Do it once for its ``Idempotency-Key``."""
    return once(request, token_of_request(request), hashlib.sha256(repr(request.data).encode()).digest(), act)


def flag(name: str, says: str) -> OpenApiParameter:
    """A yes or no in the query."""
    return OpenApiParameter(name, bool, OpenApiParameter.QUERY, description=says)
