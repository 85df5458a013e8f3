"""Have Weir follow a place by itself."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from webapp.telemetry.models import SourceKind
from webapp.telemetry.sources import add_source


class Command(BaseCommand):
    """``manage.py add_source spark-event-log-directory DIR``."""

    help = "Follow a Spark event log, or all that appear in a directory. Adding one twice changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """The kind and the path."""
        parser.add_argument("kind", choices=SourceKind.values)
        parser.add_argument("location", type=Path)

    def handle(self, kind: str, location: Path, **options: object) -> None:
        """Register the source; collectors pick it up within a second."""
        source = add_source(SourceKind(kind), str(location.resolve()))
        self.stdout.write(f"source {source.pk}: {source}")
