"""The audit record."""

from django.db import models


class Outcome(models.TextChoices):
    """What became of an attempt."""

    DONE = "done", "done"
    REFUSED = "refused", "refused"


class AuditEvent(models.Model):
    """One thing a person, a policy or a worker did or was refused.

    The table is made by the migration: a trigger refuses UPDATE, DELETE and TRUNCATE, so it references no other
    table (a person's deletion would have to change its rows) and names everything as text too. It is not managed by
    Django so that Django never tries to empty it.
    """

    at = models.DateTimeField()
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=200)
    action = models.CharField(max_length=60)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    object_type = models.CharField(max_length=40)
    object_id = models.BigIntegerField(null=True)
    job_id = models.BigIntegerField(null=True)
    job_name = models.CharField(max_length=200)
    reason = models.TextField()
    detail = models.JSONField(default=dict)
    loud = models.BooleanField(default=False)

    class Meta:
        managed = False
        db_table = "audit_event"

    def __str__(self) -> str:
        return f"{self.at:%F %T} {self.actor_name} {self.action} {self.outcome}"
