"""App configuration."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """See the package's docstring."""

    name = "webapp.telemetry"
