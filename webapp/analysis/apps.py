"""App configuration."""

from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    """See the package's docstring."""

    name = "webapp.analysis"
