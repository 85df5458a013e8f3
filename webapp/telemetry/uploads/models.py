"""A file that somebody uploaded, from the first byte to the job it became."""

from django.conf import settings
from django.db import models

from webapp.jobs.models import Job


class UploadState(models.TextChoices):
    """How far an upload is. The file is kept until it is stored, discarded or expired."""

    RECEIVED = "received", "received"
    READING = "reading", "being read"
    UNDERSTOOD = "understood", "understood"
    STORING = "storing", "being stored"
    STORED = "stored", "stored"
    REFUSED = "refused", "refused"
    FAILED = "failed", "failed"
    EXPIRED = "expired", "expired"


UNDER_WAY = (UploadState.RECEIVED, UploadState.READING, UploadState.STORING)
"""States that a worker moves on from; all others wait for a person, or are the end."""


class Upload(models.Model):
    """One uploaded file.

    ``digest`` is the SHA-256 of its bytes. ``preview`` is what was understood
    (:func:`webapp.telemetry.uploads.preview.of`). ``stored_count`` counts records that are in the store,
    ``repeated_count`` those of them that were there before. ``created_job`` tells whether storing it made its job.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="uploads")
    name = models.CharField(max_length=255)
    size_bytes = models.BigIntegerField()
    digest = models.BinaryField(max_length=32)
    format = models.CharField(max_length=40)
    job_name = models.CharField(max_length=200, blank=True)
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="uploads")
    created_job = models.BooleanField(default=False)
    state = models.CharField(max_length=20, choices=UploadState.choices, default=UploadState.RECEIVED)
    preview = models.JSONField(null=True)
    diagnostics = models.JSONField(default=list)
    stored_count = models.BigIntegerField(default=0)
    repeated_count = models.BigIntegerField(default=0)
    attempts = models.SmallIntegerField(default=0)
    error = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "telemetry"
        indexes = (
            models.Index(name="upload_recent", fields=("owner", "-created_at")),  # somebody's list
            models.Index(name="upload_state", fields=("state", "changed_at")),  # what a worker left behind
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"

    @property
    def file_kept(self) -> bool:
        """Whether its file should still be on disk."""
        return self.state not in (UploadState.STORED, UploadState.EXPIRED)

    @property
    def record_count(self) -> int:
        """How many records were understood; 0 before the preview."""
        return int(self.preview["records"]) if self.preview else 0
