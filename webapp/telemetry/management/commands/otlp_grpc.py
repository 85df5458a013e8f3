"""Run the OTLP server for gRPC."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from webapp.telemetry.otlp_grpc import serve


class Command(BaseCommand):
    """``manage.py otlp_grpc --port 4317``."""

    help = "Receive OpenTelemetry over gRPC until interrupted."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to listen."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=4317)

    def handle(self, **options: Any) -> None:
        """Serve until SIGINT or SIGTERM."""
        stopping = threading.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, lambda *_: stopping.set())
        serve(f"{options['host']}:{options['port']}", stopping)
