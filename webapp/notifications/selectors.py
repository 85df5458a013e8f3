"""What the pages ask about notifications."""

from __future__ import annotations

from dataclasses import dataclass

import zstandard
from django.db.models import Count, Q, QuerySet

from webapp.accounts.models import User
from webapp.notifications.carriers import MAIL
from webapp.notifications.models import Carrier, Delivery, DeliveryState, Subscription


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has not arrived: deliveries that wait though they were tried, that were given up, and why."""

    waiting: int
    given_up: int
    carrier: Carrier | None


def subscriptions(actor: User) -> QuerySet[Subscription]:
    """The actor's own, by group."""
    return Subscription.objects.filter(person=actor).select_related("group").order_by("group__name", "id")


def subscription(actor: User, subscription_id: int) -> Subscription | None:
    """One of them."""
    return subscriptions(actor).select_related("person").filter(pk=subscription_id).first()


def history(actor: User) -> QuerySet[Delivery]:
    """What was sent to the actor, skipped or failed, newest first."""
    found = Delivery.objects.filter(subscription__person=actor).defer("message")
    return found.select_related("subscription__group").order_by("-period_to", "-id")


def outbox(actor: User) -> QuerySet[Delivery]:
    """Mails that lie in the outbox since no server is configured: the actor's own, all for a superuser."""
    found = Delivery.objects.filter(to_outbox=True).defer("message").order_by("-id")
    return found if actor.is_superuser else found.filter(subscription__person=actor)


def mail(actor: User, delivery_id: int) -> bytes | None:
    """The bytes of a mail that this person may read; None if there are none."""
    readable = Q(subscription__person=actor)
    if actor.is_superuser:
        readable |= Q(to_outbox=True)
    found = Delivery.objects.filter(readable, pk=delivery_id).exclude(message=None)
    packed = found.values_list("message", flat=True).first()
    return None if packed is None else zstandard.decompress(bytes(packed))


def backlog(actor: User) -> Backlog:
    """What of the actor's mails has not arrived; of everybody's for a superuser."""
    found = (
        Delivery.objects.all() if actor.is_superuser else Delivery.objects.filter(subscription__person=actor)
    )
    open_ = (DeliveryState.DUE, DeliveryState.SENDING)
    counts = found.aggregate(
        waiting=Count("pk", filter=Q(state__in=open_) & ~Q(error="")),
        given_up=Count("pk", filter=Q(state=DeliveryState.FAILED)),
    )
    return Backlog(counts["waiting"], counts["given_up"], Carrier.objects.filter(pk=MAIL).first())
