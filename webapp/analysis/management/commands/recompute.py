"""Check that stored recommendations follow from their evidence."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.analysis import recomputing
from webapp.jobs.models import Job


class Command(BaseCommand):
    """``manage.py recompute --job ad-events`` or ``--all``."""

    help = (
        "Compute stored recommendations again from their evidence and compare them bit for bit. Prints a line for"
        " each that differs or cannot be read, and then ends with 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which recommendations."""
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--job", help="those of this job")
        which.add_argument("--all", action="store_true", help="those of all jobs")

    def handle(self, **options: Any) -> None:
        """Print the differences, and how many were compared."""
        job = Job.objects.filter(name=options["job"]).first()
        if job is None and not options["all"]:
            raise CommandError(f"there is no job {options['job']}")
        count = differ = 0
        for row in recomputing.stored(job):
            count += 1
            found = recomputing.difference(row)
            if found is not None:
                differ += 1
                self.stdout.write(f"{row.job.name}: recommendation {row.pk} of {row.made_at:%F %T}: {found}")
        self.stdout.write(f"{count} recommendations, {differ} differ")
        if differ:
            raise SystemExit(1)
