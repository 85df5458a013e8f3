"""Connections over the API: everybody's token may look, an administrator's may change."""

from __future__ import annotations

import hashlib
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope
from webapp.api.etags import check_if_match, etag_of
from webapp.api.idempotency import once
from webapp.api.pagination import page
from webapp.api.problems import ProblemError
from webapp.api.schema import IDEMPOTENCY_KEY, IF_MATCH, PAGE, paged
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.audit.services import Entry, record_refused
from webapp.telemetry.connections import services
from webapp.telemetry.connections.selectors import Connection, State, connections, described
from webapp.telemetry.connections.wanted import (
    DEFAULT_INTERVAL_S,
    INTERVAL_BOUNDS_S,
    KINDS,
    MAX_JOB_NAME,
    Wanted,
)
from webapp.telemetry.models import Source, SourceKind

RETRY_AFTER_S = 5


class NewSource(serializers.Serializer[Any]):
    """A place to ask."""

    kind = serializers.ChoiceField([(kind.value, kind.label) for kind in KINDS])
    location = serializers.CharField(
        max_length=900, help_text="an address of HTTP, or a path on the disk of the workers"
    )
    job = serializers.CharField(
        max_length=MAX_JOB_NAME, default="", allow_blank=True,
        help_text="openmetrics only: the name of the job whose metrics these are",
    )  # fmt: skip
    interval_s = serializers.IntegerField(
        default=DEFAULT_INTERVAL_S, min_value=INTERVAL_BOUNDS_S[0], max_value=INTERVAL_BOUNDS_S[1],
        help_text="openmetrics only: seconds between two scrapes",
    )  # fmt: skip


class SourceChange(serializers.Serializer[Any]):
    """What can be changed."""

    paused = serializers.BooleanField()


class SourceJob(serializers.Serializer[Any]):
    """A job that a source gave."""

    id = serializers.IntegerField()
    name = serializers.CharField()


class SourceShape(serializers.Serializer[Any]):
    """A place that Weir asks by itself, and how that goes."""

    id = serializers.IntegerField(source="source.id")
    kind = serializers.ChoiceField(SourceKind.choices, source="source.kind")
    location = serializers.CharField(source="source.location")
    paused = serializers.BooleanField(source="source.paused")
    interval_s = serializers.IntegerField(source="source.interval_s", allow_null=True)
    created_at = serializers.DateTimeField(source="source.created_at")
    state = serializers.ChoiceField([(state.value, state.value) for state in State])
    error = serializers.CharField(
        source="source.error", help_text="why the last poll failed; empty: it did not"
    )
    failures = serializers.IntegerField(help_text="polls that failed since the last that was answered")
    next_try_at = serializers.DateTimeField(source="next_try", allow_null=True)
    polled_at = serializers.DateTimeField(source="source.polled_at", allow_null=True)
    data_at = serializers.DateTimeField(source="source.data_at", allow_null=True)
    jobs = SourceJob(many=True, help_text="the newest that this token's owner may see")
    job_count = serializers.IntegerField()
    failing_count = serializers.IntegerField(help_text="of what was found there, how many cannot be read")


def shown(found: Connection) -> dict[str, Any]:
    """A connection as the API shows it."""
    return dict(SourceShape(found).data)


def _sources(request: Request) -> QuerySet[Source]:
    """The connections that the token may see: of one for some jobs only, those that feed these alone."""
    token = token_of_request(request)
    rows = connections(actor_of(request))
    return rows.filter(job__name__in=token.jobs) if token.jobs else rows


def _one(request: Request, source_id: int) -> dict[str, Any]:
    row = _sources(request).filter(pk=source_id).first()
    if row is None:
        raise Http404(f"there is no source {source_id}")
    return shown(described(actor_of(request), [row])[0])


def _changeable(request: Request) -> None:
    """A token for some jobs only changes nothing here: most sources give any number of jobs."""
    token = token_of_request(request)
    if token.jobs:
        why = "a token for some jobs only cannot change sources"
        detail = {"method": request.method, "path": request.path, "token": str(token)}
        record_refused(Entry(actor_of(request), "token.use", "token", token.pk, reason=why, detail=detail))
        raise PermissionDenied(why)


def _tag(body: dict[str, Any]) -> str:
    """Of what can be changed, since all the rest changes with every poll."""
    return etag_of({name: body[name] for name in ("id", "paused")})


def _answer(body: dict[str, Any], status: int = 200) -> Response:
    return Response(body, status, headers={"ETag": _tag(body)})


class SourceView(ApiView):
    """What the addresses of sources share."""

    scopes = {"*": Scope.ADMIN, "GET": Scope.READ}  # noqa: RUF012

    def handle_exception(self, error: Exception) -> Any:
        """A source that is busy is asked for again; one that is not to be seen is not there."""
        if isinstance(error, services.BusyError):
            error = ProblemError(503, "busy", str(error), retry_after_s=RETRY_AFTER_S)
        elif isinstance(error, Source.DoesNotExist):
            error = Http404("there is no such source")
        return super().handle_exception(error)


@extend_schema_view(
    get=extend_schema(
        operation_id="list_sources", parameters=PAGE, responses=paged("SourcePage", SourceShape),
        description="The places that Weir asks by itself, and how that goes.",
    ),
    post=extend_schema(
        operation_id="create_source", parameters=[IDEMPOTENCY_KEY], request=NewSource,
        responses={201: SourceShape},
        description="Connect a place; it is asked within seconds, and its state says how that went.",
    ),
)  # fmt: skip
class SourceList(SourceView):
    """``/api/v1/sources``."""

    def get(self, request: Request) -> Response:
        """One page."""
        found = page(request, _sources(request), lambda row: {"row": row})
        items = described(actor_of(request), [item["row"] for item in found["items"]])
        return Response(found | {"items": [shown(item) for item in items]})

    def post(self, request: Request) -> Response:
        """Connect one."""
        _changeable(request)
        asked = NewSource(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        wanted = Wanted(values["kind"], values["location"], values["job"], values["interval_s"])

        def act() -> Response:
            source = services.add_connection(actor_of(request), wanted)
            answer = _answer(_one(request, source.pk), 201)
            answer["Location"] = f"/api/v1/sources/{source.pk}"
            return answer

        digest = hashlib.sha256(repr(request.data).encode()).digest()
        return once(request, token_of_request(request), digest, act)


@extend_schema_view(
    get=extend_schema(operation_id="get_source", responses=SourceShape, description="One source."),
    patch=extend_schema(
        operation_id="change_source", parameters=[IF_MATCH], request=SourceChange, responses=SourceShape,
        description="Pause it or go on. What it gave stays.",
    ),
    delete=extend_schema(
        operation_id="remove_source", responses={204: None},
        description="Ask it no more. Its jobs and all they reported stay.",
    ),
)  # fmt: skip
class SourceDetail(SourceView):
    """``/api/v1/sources/<id>``."""

    def get(self, request: Request, source_id: int) -> Response:
        """One."""
        return _answer(_one(request, source_id))

    @transaction.atomic
    def patch(self, request: Request, source_id: int) -> Response:
        """Pause or resume."""
        _changeable(request)
        check_if_match(request, _tag(_one(request, source_id)))
        wanted = SourceChange(data=request.data)
        wanted.is_valid(raise_exception=True)
        services.pause_connection(actor_of(request), source_id, wanted.validated_data["paused"])
        return _answer(_one(request, source_id))

    def delete(self, request: Request, source_id: int) -> Response:
        """Remove it."""
        _changeable(request)
        services.remove_connection(actor_of(request), source_id)
        return Response(status=204)


@extend_schema_view(
    post=extend_schema(
        operation_id="poll_source", request=None, responses={202: SourceShape},
        description="Have it asked at once, whatever it waits for.",
    )
)  # fmt: skip
class SourcePoll(SourceView):
    """``/api/v1/sources/<id>/poll``."""

    def post(self, request: Request, source_id: int) -> Response:
        """Ask now."""
        _changeable(request)
        services.poll_now(actor_of(request), source_id)
        return _answer(_one(request, source_id), 202)
