"""App configuration."""

from django.apps import AppConfig


class ReconfigurationsConfig(AppConfig):
    """See the package's docstring."""

    name = "webapp.reconfigurations"
