"""Forgetting what nobody needs any more: the bytes of old mails, then the notices of them, old hours and alerts."""

from __future__ import annotations

from datetime import datetime

from webapp.notifications.alert_models import Alert, Silence
from webapp.notifications.models import Delivery, DeliveryState, HourlyLimiter, Message

OVER = (DeliveryState.SENT, DeliveryState.SKIPPED, DeliveryState.FAILED)


def forget(bytes_before: datetime, rows_before: datetime) -> dict[str, int]:
    """Drop what is older; returns how much of each class. A weekly digest looks back seven days."""
    over = Delivery.objects.filter(state__in=OVER)
    return {
        "hourly limiters": HourlyLimiter.objects.filter(hour__lt=bytes_before).delete()[0],
        "old alerts": Alert.objects.filter(resolved_at__lt=rows_before).delete()[0],
        "old silences": Silence.objects.filter(until__lt=rows_before).delete()[0],
        "old messages": Message.objects.filter(state__in=OVER, created_at__lt=rows_before).delete()[0],
        "old notices of mails": over.filter(period_to__lt=rows_before).delete()[0],
        "old mails": over.filter(period_to__lt=bytes_before).exclude(message=None).update(message=None),
    }
