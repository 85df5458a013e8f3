"""People, and the tokens by which programs act for them."""

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models


class User(AbstractUser):
    """A person who signs in. Our own model from the start, since a later swap means moving every reference."""


class Scope(models.TextChoices):
    """What a token may be used for."""

    INGEST = "ingest", "send telemetry"
    READ = "read", "read jobs, metrics and results"
    DECIDE = "decide", "decide on proposals, look after alerts"
    ADMIN = "admin", "change settings and manage tokens"


class Token(models.Model):
    """A secret that lets a program act for its owner. Only the SHA-256 of the secret is kept.

    The secret has 256 random bits, so a plain digest cannot be turned back by guessing. ``jobs`` are the names of
    the only jobs it may touch; empty means all that its owner may. They are names, since a job may be named here
    before it reports for the first time.
    """

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    digest = models.BinaryField(max_length=32, unique=True)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope.choices))
    jobs = ArrayField(models.CharField(max_length=200), default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        indexes = (models.Index(name="token_owner", fields=("owner", "id")),)  # the owner's list

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def may_touch(self, job_name: str) -> bool:
        """Whether the token may be used for a job of this name."""
        return not self.jobs or job_name in self.jobs
