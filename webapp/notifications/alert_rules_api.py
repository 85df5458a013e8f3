"""Alert rules over the API: seen by the group's viewers, made and changed by its admins, previewed by all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope
from webapp.api.etags import check_if_match
from webapp.api.pagination import INT64, page
from webapp.api.schema import IDEMPOTENCY_KEY, IF_MATCH, PAGE, NsField, paged
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.notifications import alert_selectors, alert_services
from webapp.notifications.alert_models import AlertRule, RuleKind, Severity
from webapp.notifications.alert_services import Previewed, RuleDraft
from webapp.notifications.alert_words import condition
from webapp.notifications.api_reach import (
    NARROWED,
    group_named,
    keep_to_jobs,
    listed,
    made_once,
    refuse,
    visible,
)

MOST_EPISODES = 100
"""Told of a subject in a preview, the newest; the rest is counted."""
ABOUT_JOB = "the id of the one job it is about; null: about all of the group"


class RuleFields(serializers.Serializer[Any]):
    """What a rule says. Thresholds are shares of 1 (CP, headroom), records (backlog) or seconds."""

    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(RuleKind.choices)
    job = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=INT64, help_text=ABOUT_JOB
    )
    target = serializers.CharField(
        required=False, allow_blank=True, max_length=500,
        help_text="the activity, operator or worker; of a backlog the metric, empty: what Flink says",
    )  # fmt: skip
    threshold = serializers.FloatField(
        required=False, help_text="fires above it, or below (headroom, expiry)"
    )
    clear = serializers.FloatField(required=False, help_text="where it is over; without it: at the threshold")
    fire_after = serializers.IntegerField(
        required=False, min_value=1, max_value=1_000, help_text="values in a row until it fires; else 1"
    )
    clear_after = serializers.IntegerField(
        required=False, min_value=1, max_value=1_000, help_text="values in a row until it is over; else 1"
    )
    severity = serializers.ChoiceField(Severity.choices, required=False)


class NewRule(RuleFields):
    """A rule of a group."""

    group = serializers.CharField(max_length=200, help_text="the group's name")


class RuleTried(NewRule):
    """A rule to try."""

    name = serializers.CharField(max_length=100, default="preview")


class RuleShape(serializers.Serializer[Any]):
    """A rule of a group."""

    id = serializers.IntegerField()
    group = serializers.CharField(source="group.name")
    job = serializers.IntegerField(source="job_id", allow_null=True, help_text=ABOUT_JOB)
    name = serializers.CharField()
    kind = serializers.ChoiceField(RuleKind.choices)
    target = serializers.CharField()
    threshold = serializers.FloatField()
    clear = serializers.FloatField()
    fire_after = serializers.IntegerField()
    clear_after = serializers.IntegerField()
    severity = serializers.ChoiceField(Severity.choices)
    condition = serializers.SerializerMethodField(help_text="when it fires and when that is over, in words")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by_name")
    error = serializers.CharField(help_text="why it could not be evaluated the last time; empty: it was")

    def get_condition(self, row: AlertRule) -> str:
        """As the page says it."""
        return condition(row)


class EpisodeShape(serializers.Serializer[Any]):
    """A time in which the rule would have fired."""

    from_ns = NsField()
    to_ns = NsField(allow_null=True, help_text="null: it fires still")
    worst = serializers.FloatField()


class PreviewedShape(serializers.Serializer[Any]):
    """What the rule would have done about one subject."""

    name = serializers.CharField()
    path = serializers.CharField(help_text="its page")
    value_count = serializers.IntegerField(help_text="on how many values that rests")
    episode_count = serializers.IntegerField()
    episodes = EpisodeShape(many=True, help_text=f"the newest {MOST_EPISODES}, in the order of time")


class PreviewShape(serializers.Serializer[Any]):
    """What the rule would have done in the last 24 h."""

    condition = serializers.CharField()
    subjects = PreviewedShape(many=True)


def draft_of(values: Mapping[str, Any], old: AlertRule | None = None) -> RuleDraft:
    """The rule as it is wanted: what was given, and for the rest what there is.

    Raises
    ------
    ValidationError
        Without a threshold where one is needed.
    """
    known = {} if old is None else {item.name: getattr(old, item.name) for item in fields(RuleDraft)}
    known |= {("job_id" if name == "job" else name): value for name, value in values.items()}
    known.pop("group", None)
    if "threshold" not in known:
        if known["kind"] != RuleKind.REGRESSED:
            raise ValidationError({"threshold": "a number is needed"})
        known["threshold"] = 0.0  # there is only yes and no
    known.setdefault("clear", known["threshold"])
    return RuleDraft(**known)


def _asked(request: Request, form: serializers.Serializer[Any], old: AlertRule | None = None) -> RuleDraft:
    form.is_valid(raise_exception=True)
    draft = draft_of(form.validated_data, old)
    keep_to_jobs(request, draft.job_id)
    if token_of_request(request).jobs and draft.kind == RuleKind.HEADROOM:
        refuse(request, "a token for some jobs only cannot be used for clusters")
    return draft


def _one(request: Request, rule_id: int, *, lock: bool = False) -> AlertRule:
    rows = visible(request, alert_selectors.rules(actor_of(request)))
    row = (rows.select_for_update(of=("self",)) if lock else rows).filter(pk=rule_id).first()
    if row is None:
        raise Http404("there is no such rule")
    return row


def shown(row: AlertRule) -> dict[str, Any]:
    """A rule as the API shows it."""
    return dict(RuleShape(row).data)


def _answer(row: AlertRule, status: int = 200) -> Response:
    return Response(shown(row), status, headers={"ETag": alert_services.revision(row)})


class RuleView(ApiView):
    """What the addresses of rules share."""

    scopes = {"*": Scope.ADMIN, "GET": Scope.READ}  # noqa: RUF012


@extend_schema_view(
    get=extend_schema(
        operation_id="list_alert_rules", parameters=[*PAGE, *NARROWED], responses=paged("AlertRulePage", RuleShape),
        description="The rules of the groups that this token's owner is in.",
    ),
    post=extend_schema(
        operation_id="create_alert_rule", parameters=[IDEMPOTENCY_KEY], request=NewRule,
        responses={201: RuleShape},
        description="Make a rule, as an admin of its group. It is looked at within 15 s.",
    ),
)  # fmt: skip
class RuleList(RuleView):
    """``/api/v1/alert-rules``."""

    def get(self, request: Request) -> Response:
        """One page."""
        return Response(page(request, listed(request, alert_selectors.rules(actor_of(request))), shown))

    def post(self, request: Request) -> Response:
        """Make one."""
        form = NewRule(data=request.data)
        draft = _asked(request, form)

        def act() -> Response:
            group = group_named(request, form.validated_data["group"])
            row = alert_services.save_rule(actor_of(request), group, draft)
            answer = _answer(_one(request, row.pk), 201)
            answer["Location"] = f"/api/v1/alert-rules/{row.pk}"
            return answer

        return made_once(request, act)


@extend_schema_view(
    get=extend_schema(
        operation_id="get_alert_rule", responses=RuleShape, description="One rule, with an ETag to change it by."
    ),
    patch=extend_schema(
        operation_id="change_alert_rule", parameters=[IF_MATCH], request=RuleFields(partial=True),
        responses=RuleShape,
        description="Change what is given. If it watches something else then, its alerts are over.",
    ),
    delete=extend_schema(
        operation_id="remove_alert_rule", responses={204: None},
        description="Forget it with its history. Channels that know of an alert of it hear that it is over.",
    ),
)  # fmt: skip
class RuleDetail(RuleView):
    """``/api/v1/alert-rules/<id>``."""

    def get(self, request: Request, rule_id: int) -> Response:
        """One."""
        return _answer(_one(request, rule_id))

    @transaction.atomic
    def patch(self, request: Request, rule_id: int) -> Response:
        """Change it, if it is still as the asker saw it."""
        row = _one(request, rule_id, lock=True)
        check_if_match(request, alert_services.revision(row))
        draft = _asked(request, RuleFields(data=request.data, partial=True), row)
        alert_services.save_rule(actor_of(request), row.group, draft, row.pk)
        return _answer(_one(request, rule_id))

    def delete(self, request: Request, rule_id: int) -> Response:
        """Remove it."""
        alert_services.remove_rule(actor_of(request), _one(request, rule_id).pk)
        return Response(status=204)


class RulePreview(ApiView):
    """``/api/v1/alert-rules/preview``."""

    @extend_schema(
        operation_id="preview_alert_rule", request=RuleTried, responses=PreviewShape,
        description="When a rule would have fired in the last 24 h, decided as it decides on new values; nothing "
        "is stored.",
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """Try it on the past."""
        form = RuleTried(data=request.data)
        draft = _asked(request, form)
        group = group_named(request, form.validated_data["group"])
        found = alert_services.preview(actor_of(request), group, draft, timezone.now())
        words = condition(alert_services.checked(group, draft))
        return Response({"condition": words, "subjects": [_previewed(item) for item in found]})


def _previewed(item: Previewed) -> dict[str, Any]:
    newest = [asdict(episode) for episode in item.episodes[-MOST_EPISODES:]]
    told = {"name": item.name, "path": item.path, "value_count": item.value_count}
    return told | {"episode_count": len(item.episodes), "episodes": newest}
