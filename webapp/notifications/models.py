"""Who wants a digest when, every delivery of one, and how the servers that take them fare."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.jobs.models import Job, JobGroup
from webapp.notifications.alert_models import Alert as Alert  # so that Django finds them
from webapp.notifications.schedule import Rhythm

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Subscription(models.Model):
    """A person's wish for a digest about a job group, or without one about all jobs they may see.

    It comes at ``hour`` on the wall clock of ``zone``. ``next_due_at`` is when the next is due; ``covered_until``
    is where the period of the last one ended, so that nothing falls between two digests.
    """

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions"
    )
    group = models.ForeignKey(JobGroup, null=True, on_delete=models.CASCADE, related_name="subscriptions")
    rhythm = models.CharField(max_length=10, choices=[(item.value, item.value) for item in Rhythm])
    hour = models.PositiveSmallIntegerField(default=7)
    weekday = models.PositiveSmallIntegerField(default=0)
    zone = models.CharField(max_length=60, default="UTC")
    only_if_something = models.BooleanField(default=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    covered_until = models.DateTimeField(null=True)
    next_due_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="subscribed_once", fields=("person", "group", "rhythm"), nulls_distinct=False
            ),
            models.CheckConstraint(name="digest_hour", condition=Q(hour__lte=23)),
            models.CheckConstraint(name="digest_weekday", condition=Q(weekday__lte=6)),
            models.CheckConstraint(name="rhythm_known", condition=Q(rhythm__in=list(Rhythm))),
        )
        indexes = (models.Index(name="subscription_due", fields=("next_due_at",), condition=Q(active=True)),)

    def __str__(self) -> str:
        return f"{self.rhythm} digest of {self.group or 'all jobs'} for {self.person}"


class DeliveryState(models.TextChoices):
    """Where a delivery stands."""

    DUE = "due", "waits to be sent"
    SENDING = "sending", "being sent"
    SENT = "sent", "sent"
    SKIPPED = "skipped", "nothing had happened"
    FAILED = "failed", "given up"


class Delivery(models.Model):
    """One mail to one person: the digest of the period up to ``period_to``.

    ``holder`` works on it until ``lease_until``; then anybody may. ``message`` is the whole mail (zstd), written
    before it is handed over for the first time: every further try sends the same bytes. ``not_before`` ends the
    wait after a failure, ``error`` says what failed last.
    """

    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="deliveries")
    period_from = models.DateTimeField()
    period_to = models.DateTimeField()
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.DUE)
    created_at = models.DateTimeField(auto_now_add=True)
    holder = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField()
    to_address = models.CharField(max_length=254, blank=True)
    subject = models.CharField(max_length=300, blank=True)
    message = models.BinaryField(null=True)
    to_outbox = models.BooleanField(default=False)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="one_digest_a_period", fields=("subscription", "period_to")),
            models.CheckConstraint(name="delivery_state_known", condition=Q(state__in=DeliveryState.values)),
        )
        indexes = (
            models.Index(
                name="delivery_open",  # the claim
                fields=("not_before",),
                condition=Q(state__in=(DeliveryState.DUE, DeliveryState.SENDING)),
            ),
            models.Index(name="delivery_newest", fields=("-id",), condition=Q(to_outbox=True)),  # the outbox
        )

    def __str__(self) -> str:
        return f"{self.subscription_id} up to {self.period_to:%F %R}: {self.state}"


class Carrier(models.Model):
    """How something that takes deliveries fares (``mail``): while ``not_before`` lies ahead nobody tries it."""

    name = models.CharField(max_length=60, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    failed_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class HourlyLimiter(models.Model):
    """What limited a job at the beginning of an hour, kept so that a digest can tell what moved since."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="hourly_limiters", db_index=False)
    hour = models.DateTimeField()
    activity = models.SmallIntegerField()
    operator = models.CharField(max_length=500, blank=True)
    cp = models.FloatField()

    class Meta:
        constraints = (models.UniqueConstraint(name="limiter_of_the_hour", fields=("job", "hour")),)
        indexes = (models.Index(name="limiter_age", fields=("hour",)),)  # forgetting

    def __str__(self) -> str:
        return f"{self.job_id} at {self.hour:%F %R}"


class ChannelKind(models.TextChoices):
    """Where a group's messages can go."""

    WEBHOOK = "webhook", "signed webhook"
    SLACK = "slack", "Slack-compatible webhook"
    PAGERDUTY = "pagerduty", "PagerDuty events"
    SMTP = "smtp", "mail"


class Channel(models.Model):
    """A place outside that gets messages about a job group.

    ``secret`` is encrypted (``webapp.notifications.sealing``) and never shown: what signs a webhook, PagerDuty's
    routing key, or Slack's whole address, which is a secret itself. ``place`` is what is shown of the address.
    A mail's ``address`` is one or more of them, "" for those of all members. After ``failures`` tries in a row that
    the receiver did not take, nothing is tried until ``not_before``.
    """

    group = models.ForeignKey(JobGroup, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=10, choices=ChannelKind.choices)
    name = models.CharField(max_length=100)
    address = models.CharField(max_length=900, blank=True)
    place = models.CharField(max_length=300)
    secret = models.BinaryField()
    failures = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by_name = models.CharField(max_length=200)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="channel_name_once", fields=("group", "name")),
            models.CheckConstraint(name="channel_kind_known", condition=Q(kind__in=ChannelKind.values)),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.group}"


class Message(models.Model):
    """One message to a channel, and what became of it: a row of the channel's delivery log.

    Claimed as a ``Delivery`` is. ``content`` is what it says (``title``, ``text``, ``url``, ``severity``, ``key``,
    ``action``: ``trigger``, ``acknowledge`` or ``resolve``). Messages to a channel with the same key are sent in
    their order.
    """

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="messages", db_index=False)
    content = models.JSONField()
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.DUE)
    created_at = models.DateTimeField(auto_now_add=True)
    holder = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(null=True)
    took_ms = models.PositiveIntegerField(null=True)
    answer = models.TextField(blank=True)
    error = models.TextField(blank=True)

    class Meta:
        indexes = (
            models.Index(
                name="message_open",  # the claim
                fields=("not_before",),
                condition=Q(state__in=(DeliveryState.DUE, DeliveryState.SENDING)),
            ),
            models.Index(name="message_log", fields=("channel", "-id")),
        )

    def __str__(self) -> str:
        return f"message {self.pk} to {self.channel_id}: {self.state}"
