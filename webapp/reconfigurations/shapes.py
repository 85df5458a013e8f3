"""Proposals as the API shows them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from webapp.accounts.models import User
from webapp.api.schema import ObjectField
from webapp.audit.api import EventShape
from webapp.audit.selectors import history_of
from webapp.reconfigurations import policies, selectors
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, Kind, Proposal, Vote

ACTIONS = ("approve", "reject", "break_glass")
MAX_HISTORY = 200


class JobName(serializers.Serializer[Any]):
    """The job that a proposal is about."""

    id = serializers.IntegerField()
    name = serializers.CharField()


class ProposalShape(serializers.ModelSerializer[Proposal]):
    """A proposal as lists have it."""

    job = JobName()
    kind = serializers.ChoiceField(Kind.choices)
    state = serializers.ChoiceField(State.choices)
    proposed_by = serializers.CharField(source="proposed_by_name", help_text="a person, or a policy")
    change = ObjectField(help_text='of a rescale: {"parallelism": {operator id: instances}}')
    described = serializers.SerializerMethodField(help_text="the change in a line")
    prediction = ObjectField()
    risks = serializers.ListField(
        child=serializers.CharField(), help_text="with any an approval needs a reason"
    )
    recommendation_id = serializers.IntegerField(allow_null=True)
    supersedes_id = serializers.IntegerField(allow_null=True)
    undoes_id = serializers.IntegerField(allow_null=True, help_text="the proposal that this one takes back")

    class Meta:
        model = Proposal
        fields: tuple[str, ...] = (
            "id", "version", "job", "kind", "state", "state_reason", "described", "change", "prediction", "risks",
            "shortfall_per_s", "policy", "policy_version", "proposed_by", "by_hand", "automatic", "break_glass",
            "created_at", "changed_at", "expires_at", "decided_at", "applied_at", "recommendation_id",
            "supersedes_id", "undoes_id",
        )  # fmt: skip

    def get_described(self, row: Proposal) -> str:
        """In a line."""
        return described(row)


class VoteShape(serializers.ModelSerializer[Vote]):
    """One person's word."""

    class Meta:
        model = Vote
        fields = ("voter_name", "approves", "reason", "at")


class AttemptShape(serializers.ModelSerializer[Attempt]):
    """What was sent to the engine, and what it answered."""

    request = ObjectField(allow_null=True)
    before = ObjectField(allow_null=True)
    after = ObjectField(allow_null=True)
    rescale = ObjectField(allow_null=True)
    exchanges = serializers.ListField(child=ObjectField(), help_text="all requests with their answers")

    class Meta:
        model = Attempt
        fields = (
            "step", "started_at", "sent_at", "finished_at", "takeovers", "outcome", "request", "before", "after",
            "rescale", "exchanges",
        )  # fmt: skip


class RefusalsShape(serializers.Serializer[Any]):
    """Why an action would be refused now; empty: it would not be."""

    approve = serializers.CharField(allow_blank=True)
    reject = serializers.CharField(allow_blank=True)
    break_glass = serializers.CharField(allow_blank=True)


class WholeProposal(ProposalShape):
    """A proposal with all that speaks for it and all that happened to it."""

    binding = ObjectField(help_text="the running job it was made for")
    evidence = ObjectField()
    rules = ObjectField(help_text="the job's rules when it was made")
    quorum = serializers.SerializerMethodField(help_text="how many people must approve")
    votes = VoteShape(many=True)
    attempt = serializers.SerializerMethodField()
    verdict = ObjectField(allow_null=True)
    why_not = serializers.SerializerMethodField()
    history = serializers.SerializerMethodField(help_text="what happened to it, refused attempts too")

    class Meta(ProposalShape.Meta):
        fields = (
            *ProposalShape.Meta.fields, "binding", "evidence", "rules", "quorum", "votes", "attempt", "verdict",
            "why_not", "history",
        )  # fmt: skip

    def get_quorum(self, row: Proposal) -> int:
        """How many."""
        return policies.quorum_of(row)

    @extend_schema_field(AttemptShape(allow_null=True))
    def get_attempt(self, row: Proposal) -> dict[str, Any] | None:
        """The one there is, if any."""
        attempt = Attempt.objects.filter(proposal=row).first()
        return None if attempt is None else dict(AttemptShape(attempt).data)

    @extend_schema_field(RefusalsShape)
    def get_why_not(self, row: Proposal) -> dict[str, str]:
        """For the person who asks."""
        return {action: selectors.why_not(self._actor, row, action) for action in ACTIONS}

    @extend_schema_field(EventShape(many=True))
    def get_history(self, row: Proposal) -> list[dict[str, Any]]:
        """In its order."""
        events = history_of(self._actor, "proposal", row.pk)[:MAX_HISTORY]
        return [dict(item) for item in EventShape(events, many=True).data]

    @property
    def _actor(self) -> User:
        actor: User = self.context["actor"]
        return actor
