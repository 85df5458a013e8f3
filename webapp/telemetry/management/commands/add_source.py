"""Have Weir follow a place by itself."""

from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.telemetry.connections.wanted import ON_DISK, Wanted, checked
from webapp.telemetry.models import SourceKind
from webapp.telemetry.sources import add_source

OVER_NETWORK = (SourceKind.FLINK, SourceKind.AUTOSCALER)
"""An OpenMetrics endpoint also needs a job and an interval: the page and the API ask for them."""


class Command(BaseCommand):
    """``manage.py add_source spark-event-log-directory DIR``, ``manage.py add_source flink URL``."""

    help = (
        "Follow a Spark event log, all that appear in a directory, a Flink cluster or an autoscaler's tables. "
        "Adding one twice changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The kind and the place."""
        parser.add_argument("kind", choices=[kind.value for kind in (*ON_DISK, *OVER_NETWORK)])
        parser.add_argument("location", help="a path, or an address such as http://jobmanager:8081")

    def handle(self, kind: str, location: str, **options: object) -> None:
        """Register the source; collectors pick it up within a second."""
        source = add_source(SourceKind(kind), _place(kind, location))
        self.stdout.write(f"source {source.pk}: {source}")


def _place(kind: str, location: str) -> str:
    """A path in full; an address as the page takes it."""
    if kind in ON_DISK:
        return str(Path(location).resolve())
    try:
        return checked(Wanted(kind, location)).location
    except ValidationError as error:
        raise CommandError("; ".join(error.messages)) from error
