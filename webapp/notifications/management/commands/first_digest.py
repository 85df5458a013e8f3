"""Subscribe the administrators to a daily digest whose first comes in minutes, so that trying Weir shows one."""

from datetime import timedelta

from django.core.management.base import BaseCommand
from django.utils import timezone

from webapp.accounts.models import User
from webapp.notifications.models import Subscription
from webapp.notifications.services import subscribe

FIRST_AFTER = timedelta(minutes=3)
"""By then the demo's job has results."""


class Command(BaseCommand):
    """``manage.py first_digest``: does nothing once anybody has a subscription."""

    help = "Subscribe the administrators to a daily digest; the first comes in three minutes."

    def handle(self, **options: object) -> None:
        """Who has unsubscribed has a subscription too, a paused one, and stays alone."""
        if Subscription.objects.exists():
            return
        for person in User.objects.filter(is_superuser=True, is_active=True):
            subscribe(person, None, first_due_at=timezone.now() + FIRST_AFTER)
