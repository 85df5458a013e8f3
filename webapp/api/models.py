"""Answers kept so that a request sent again gets the same one."""

from django.db import models

from webapp.accounts.models import Token


class IdempotentAnswer(models.Model):
    """What was answered to the first request of a token with this ``Idempotency-Key``.

    ``request`` is the digest of method, address and body: the same key with another request is a mistake.
    """

    token = models.ForeignKey(Token, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request = models.BinaryField(max_length=32)
    status = models.SmallIntegerField(default=0)
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(name="answer_once", fields=("token", "key")),)
        indexes = (models.Index(name="answer_age", fields=("created_at",)),)  # forgetting old ones
