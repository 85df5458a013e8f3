"""Channels of a group over the API, for its admins. Secrets are given and never shown."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope
from webapp.api.pagination import page
from webapp.api.schema import IDEMPOTENCY_KEY, PAGE, paged
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.notifications import channels as services
from webapp.notifications.api_reach import group_named, made_once, refuse
from webapp.notifications.models import Channel, ChannelKind, DeliveryState, Message


class NewChannel(serializers.Serializer[Any]):
    """A place outside that gets a group's messages."""

    group = serializers.CharField(max_length=200, help_text="the group's name")
    kind = serializers.ChoiceField(ChannelKind.choices)
    name = serializers.CharField(max_length=100)
    address = serializers.CharField(
        default="", allow_blank=True, max_length=900,
        help_text="of a webhook, of Slack the whole secret address; mail addresses, none: those of all members; "
        "PagerDuty needs none",
    )  # fmt: skip
    secret = serializers.CharField(
        default="", allow_blank=True, max_length=200, write_only=True,
        help_text="whsec_… of a webhook, PagerDuty's routing key; stored encrypted and never shown",
    )  # fmt: skip


class ChannelShape(serializers.Serializer[Any]):
    """A place outside that gets a group's messages."""

    id = serializers.IntegerField()
    group = serializers.CharField(source="group.name")
    kind = serializers.ChoiceField(ChannelKind.choices)
    name = serializers.CharField()
    place = serializers.CharField(help_text="what may be shown of its address")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by_name")
    failures = serializers.IntegerField(help_text="tries in a row that its receiver did not take")
    waits_until = serializers.DateTimeField(
        source="not_before", allow_null=True, help_text="after such a try nothing is tried before"
    )


class MessageShape(serializers.Serializer[Any]):
    """A message to a channel, and what became of it."""

    id = serializers.IntegerField()
    title = serializers.CharField(source="content.title")
    state = serializers.ChoiceField(DeliveryState.choices)
    attempts = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    waits_until = serializers.DateTimeField(source="not_before")
    sent_at = serializers.DateTimeField(allow_null=True)
    status = serializers.IntegerField(allow_null=True, help_text="of HTTP")
    took_ms = serializers.IntegerField(allow_null=True)
    answer = serializers.CharField()
    error = serializers.CharField()


def _one(request: Request, channel_id: int) -> Channel:
    row = services.channels(actor_of(request)).filter(pk=channel_id).first()
    if row is None:
        raise Http404("there is no such channel")
    return row


def _shown(row: Channel) -> dict[str, Any]:
    return dict(ChannelShape(row).data)


def _message(row: Message) -> dict[str, Any]:
    return dict(MessageShape(row).data)


class ChannelView(ApiView):
    """What the addresses of channels share: who sees one may change it."""

    scopes = {"*": Scope.ADMIN}  # noqa: RUF012

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """A token for some jobs only sees no channels: they hear of all jobs of a group."""
        super().initial(request, *args, **kwargs)
        if token_of_request(request).jobs:
            refuse(request, "a token for some jobs only cannot be used for channels")

    def handle_exception(self, error: Exception) -> Any:
        """One that was removed meanwhile is not there."""
        if isinstance(error, Channel.DoesNotExist):
            error = Http404("there is no such channel")
        return super().handle_exception(error)


@extend_schema_view(
    get=extend_schema(
        operation_id="list_channels", parameters=PAGE, responses=paged("ChannelPage", ChannelShape),
        description="The channels of the groups that this token's owner is an admin of.",
    ),
    post=extend_schema(
        operation_id="create_channel", parameters=[IDEMPOTENCY_KEY], request=NewChannel,
        responses={201: ChannelShape},
        description="Make a channel. To change one, remove it and make it again.",
    ),
)  # fmt: skip
class ChannelList(ChannelView):
    """``/api/v1/channels``."""

    def get(self, request: Request) -> Response:
        """One page."""
        return Response(page(request, services.channels(actor_of(request)), _shown))

    def post(self, request: Request) -> Response:
        """Make one."""
        asked = NewChannel(data=request.data)
        asked.is_valid(raise_exception=True)
        values = dict(asked.validated_data)

        def act() -> Response:
            group = group_named(request, values.pop("group"))
            row = services.create_channel(actor_of(request), group, **values)
            return Response(_shown(row), 201, headers={"Location": f"/api/v1/channels/{row.pk}"})

        return made_once(request, act)


@extend_schema_view(
    get=extend_schema(operation_id="get_channel", responses=ChannelShape, description="One channel."),
    delete=extend_schema(
        operation_id="remove_channel", responses={204: None}, description="Remove it with its log."
    ),
)
class ChannelDetail(ChannelView):
    """``/api/v1/channels/<id>``."""

    def get(self, request: Request, channel_id: int) -> Response:
        """One."""
        return Response(_shown(_one(request, channel_id)))

    def delete(self, request: Request, channel_id: int) -> Response:
        """Remove it."""
        services.remove_channel(actor_of(request), _one(request, channel_id).pk)
        return Response(status=204)


class ChannelTest(ChannelView):
    """``/api/v1/channels/<id>/test``."""

    @extend_schema(
        operation_id="test_channel", parameters=[IDEMPOTENCY_KEY], request=None, responses={202: MessageShape},
        description="Send a test message; the log says what became of it.",
    )  # fmt: skip
    def post(self, request: Request, channel_id: int) -> Response:
        """Send one."""
        channel = _one(request, channel_id)
        return made_once(
            request,
            lambda: Response(_message(services.test_channel(actor_of(request), channel.pk)), 202),
        )


class ChannelLog(ChannelView):
    """``/api/v1/channels/<id>/messages``."""

    @extend_schema(
        operation_id="list_channel_messages", parameters=PAGE, responses=paged("MessagePage", MessageShape),
        description="What was sent to it and what became of it, newest first.",
    )  # fmt: skip
    def get(self, request: Request, channel_id: int) -> Response:
        """One page."""
        return Response(page(request, _one(request, channel_id).messages.all(), _message, newest_first=True))
