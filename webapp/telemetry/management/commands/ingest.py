"""Store a file of activities, for trying Weir on a trace of one's own."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.decode.activities import decode_activities
from analytics.model.diagnostics import Diagnostic, merge
from webapp.jobs.services import ensure_job
from webapp.telemetry.services import digest_of, store_batch

LINES_A_BATCH = 50_000


class Command(BaseCommand):
    """``manage.py ingest FILE --job NAME``."""

    help = (
        "Store activities (NDJSON, as python -m analytics reads them). The same file again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The file and whose it is."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--job", required=True, help="name of the job; registered if it is new")

    def handle(self, file: Path, job: str, **options: object) -> None:
        """Store the file batch by batch; a line that cannot be used is reported and the rest kept."""
        owner = ensure_job(job)
        stored = repeated = 0
        found: list[Diagnostic] = []
        try:
            with file.open("rb") as lines:
                while chunk := list(islice(lines, LINES_A_BATCH)):
                    result = store_batch(owner, decode_activities(chunk, str(file)), digest_of(*chunk))
                    stored += 0 if result.duplicate else result.record_count
                    repeated += result.record_count if result.duplicate else 0
                    found += result.diagnostics
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        self.stdout.write(f"{stored} records stored, {repeated} were there already")
        for item in merge(found):
            self.stdout.write(f"{item.code}: {item.count}, such as {item.example}")
