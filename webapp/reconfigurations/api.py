"""Proposals over the API: looking, proposing by hand, approving, rejecting, going back.

What a service refuses becomes a problem of that status and code (``webapp.api.problems``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope
from webapp.api.idempotency import once
from webapp.api.pagination import INT64, page
from webapp.api.problems import ProblemError
from webapp.api.schema import IDEMPOTENCY_KEY, IF_MATCH, PAGE, number, paged, text
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.jobs.api import job_of, jobs_of
from webapp.reconfigurations import proposing, selectors, services
from webapp.reconfigurations.errors import StaleViewError
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Kind, Proposal
from webapp.reconfigurations.shapes import ProposalShape, WholeProposal

MAX_REASON, MAX_OPERATORS, MAX_INSTANCES = 2_000, 1_000, 100_000
FLAG = {"true": True, "false": False}


class Filters(serializers.Serializer[Any]):
    """What a list can be narrowed to."""

    job = serializers.IntegerField(required=False, min_value=-INT64, max_value=INT64)
    state = serializers.ChoiceField(State.choices, required=False)
    kind = serializers.ChoiceField(Kind.choices, required=False)
    policy = serializers.CharField(required=False, allow_blank=True, max_length=60)
    waiting = serializers.BooleanField(required=False, default=False)


class NewProposal(serializers.Serializer[Any]):
    """A rescale that a person thought of, or with ``recommended`` what is recommended now."""

    job = serializers.IntegerField(min_value=-INT64, max_value=INT64, help_text="the job's id")
    recommended = serializers.BooleanField(default=False)
    parallelism = serializers.DictField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_INSTANCES), default=dict,
        help_text="instances by operator id; not with `recommended`",
    )  # fmt: skip
    reason = serializers.CharField(default="", allow_blank=True, max_length=MAX_REASON)

    def validate_parallelism(self, given: dict[str, int]) -> dict[str, int]:
        """Operator ids are text."""
        if len(given) > MAX_OPERATORS or not all(name.isprintable() for name in given):
            raise serializers.ValidationError("expected at most 1,000 operator ids")
        return given

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """One or the other."""
        if given["recommended"] == bool(given["parallelism"]):
            raise serializers.ValidationError({"parallelism": "give either this or `recommended`"})
        return given


class Approval(serializers.Serializer[Any]):
    """An approval."""

    reason = serializers.CharField(
        default="", allow_blank=True, max_length=MAX_REASON,
        help_text="needed for what is flagged risky, and to break glass",
    )  # fmt: skip
    break_glass = serializers.BooleanField(
        default=False, help_text="go past the rules: admins only, with a token of scope admin"
    )


class Reason(serializers.Serializer[Any]):
    """Why."""

    reason = serializers.CharField(default="", allow_blank=True, max_length=MAX_REASON)


class ProposalView(ApiView):
    """What the addresses of proposals share."""

    scopes = {"*": Scope.DECIDE, "GET": Scope.READ}  # noqa: RUF012

    def handle_exception(self, error: Exception) -> Any:
        """Who saw an earlier state gets 412, as ``If-Match`` has it."""
        if isinstance(error, StaleViewError):
            error = ProblemError(412, error.code, str(error))
        return super().handle_exception(error)


def _visible(request: Request) -> QuerySet[Proposal]:
    return selectors.proposals(actor_of(request)).filter(job__in=jobs_of(request))


def _check_touchable(request: Request, proposal_id: int) -> None:
    """A token for some jobs only cannot tell what there is about others; the service knows only its owner."""
    limited = bool(token_of_request(request).jobs)
    if proposal_id > INT64 or (limited and not _visible(request).filter(pk=proposal_id).exists()):
        raise Http404("there is no such proposal")


def _whole(request: Request, proposal_id: int) -> Response:
    row = _visible(request).filter(pk=proposal_id).prefetch_related("votes").first()
    if row is None:
        raise Http404("there is no such proposal")
    shown = WholeProposal(row, context={"actor": actor_of(request)}).data
    return Response(dict(shown), headers={"ETag": f'"{row.version}"'})


def _expected(request: Request) -> int | None:
    """The version that ``If-Match`` names; None for ``*``, -1 if it names none."""
    given = request.headers.get("If-Match")
    if given is None:
        raise ProblemError(428, "if_match_required", "send the ETag of what you saw as If-Match")
    tag = given.strip()
    if tag == "*":
        return None
    named = tag[1:-1] if len(tag) > 2 and tag[0] == tag[-1] == '"' else ""
    return int(named) if named.isascii() and named.isdigit() and len(named) < 10 else -1


def _once(request: Request, act: Callable[[], Response]) -> Response:
    digest = hashlib.sha256(repr((request.data, request.headers.get("If-Match"))).encode()).digest()
    return once(request, token_of_request(request), digest, act)


class ProposalList(ProposalView):
    """``/api/v1/proposals``."""

    @extend_schema(
        operation_id="list_proposals",
        parameters=[
            *PAGE,
            number("job", "only those about this job"),
            text("state", "only those in this state", enum=State.values),
            text("kind", "only those of this kind", enum=Kind.values),
            text("policy", "only those of this policy; empty: of none"),
            OpenApiParameter(
                "waiting", OpenApiTypes.BOOL, OpenApiParameter.QUERY,
                description="only those that wait for the decision of this token's owner",
            ),
        ],
        responses=paged("ProposalPage", ProposalShape),
        description="Proposals about the jobs this token may see, newest first.",
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        """One page."""
        asked = Filters(data=request.query_params)
        asked.is_valid(raise_exception=True)
        wanted = dict(asked.validated_data)
        rows = _visible(request).defer("payload", "evidence", "verdict", "rules")
        if wanted.pop("waiting"):
            rows = rows.filter(pk__in=selectors.inbox(actor_of(request)).order_by().values("pk"))
        if "job" in wanted:
            wanted["job_id"] = wanted.pop("job")
        rows = rows.filter(**wanted)
        return Response(page(request, rows, lambda row: dict(ProposalShape(row).data), newest_first=True))

    @extend_schema(
        operation_id="create_proposal", parameters=[IDEMPOTENCY_KEY], request=NewProposal,
        responses={201: WholeProposal},
        description="Propose a rescale by hand, or what is recommended now. Somebody else must approve it.",
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """Propose."""
        asked = NewProposal(data=request.data)
        asked.is_valid(raise_exception=True)
        values, actor = asked.validated_data, actor_of(request)

        def act() -> Response:
            job = job_of(request, values["job"])
            if values["recommended"]:
                row = proposing.propose_recommended(actor, job, values["reason"])
            else:
                row = proposing.propose_by_hand(actor, job, values["parallelism"], values["reason"])
            return _made(request, row)

        return _once(request, act)


class ProposalDetail(ProposalView):
    """``/api/v1/proposals/<id>``."""

    @extend_schema(
        operation_id="get_proposal", responses=WholeProposal,
        description="A proposal with its evidence, votes, attempt, verdict and history. Its ETag is its version.",
    )  # fmt: skip
    def get(self, request: Request, proposal_id: int) -> Response:
        """One."""
        return _whole(request, proposal_id)


class ProposalApprove(ProposalView):
    """``/api/v1/proposals/<id>/approve``."""

    @extend_schema(
        operation_id="approve_proposal", parameters=[IF_MATCH, IDEMPOTENCY_KEY], request=Approval,
        responses=WholeProposal,
        description="Vote for it; with enough votes it is approved and applied. 409 if nothing is left to decide.",
    )  # fmt: skip
    def post(self, request: Request, proposal_id: int) -> Response:
        """Approve."""
        asked = Approval(data=request.data)
        asked.is_valid(raise_exception=True)
        values, expected = asked.validated_data, _expected(request)
        _check_touchable(request, proposal_id)
        if values["break_glass"] and Scope.ADMIN not in token_of_request(request).scopes:
            raise PermissionDenied("breaking glass needs a token of scope admin")

        def act() -> Response:
            services.approve(actor_of(request), proposal_id, expected_version=expected, **values)
            return _whole(request, proposal_id)

        return _once(request, act)


class ProposalReject(ProposalView):
    """``/api/v1/proposals/<id>/reject``."""

    @extend_schema(
        operation_id="reject_proposal", parameters=[IF_MATCH, IDEMPOTENCY_KEY], request=Reason,
        responses=WholeProposal,
        description="End it, with a reason. 409 if nothing is left to decide.",
    )  # fmt: skip
    def post(self, request: Request, proposal_id: int) -> Response:
        """Reject."""
        asked = Reason(data=request.data)
        asked.is_valid(raise_exception=True)
        values, expected = asked.validated_data, _expected(request)
        _check_touchable(request, proposal_id)

        def act() -> Response:
            services.reject(actor_of(request), proposal_id, expected_version=expected, **values)
            return _whole(request, proposal_id)

        return _once(request, act)


class ProposalRevert(ProposalView):
    """``/api/v1/proposals/<id>/revert``."""

    @extend_schema(
        operation_id="revert_proposal", parameters=[IDEMPOTENCY_KEY], request=Reason,
        responses={201: WholeProposal},
        description="Propose to take an applied change back; the proposal to do so if it waits already.",
    )  # fmt: skip
    def post(self, request: Request, proposal_id: int) -> Response:
        """Propose the way back."""
        asked = Reason(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        _check_touchable(request, proposal_id)

        def act() -> Response:
            return _made(request, proposing.propose_way_back(actor_of(request), proposal_id, **values))

        return _once(request, act)


def _made(request: Request, row: Proposal) -> Response:
    answer = _whole(request, row.pk)
    answer.status_code = 201
    answer["Location"] = f"/api/v1/proposals/{row.pk}"
    return answer
