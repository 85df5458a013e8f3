"""What digests say about headroom: the one place that reads it."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from webapp.jobs.models import Job
from webapp.notifications.digest import Item


def low_headroom(_jobs: QuerySet[Job], _since: datetime, _until: datetime) -> list[Item]:
    """Clusters of these jobs whose headroom is low or was; none while nothing computes it."""
    return []
