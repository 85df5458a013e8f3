"""App configuration."""

from django.apps import AppConfig


class OpsConfig(AppConfig):
    """See the package's docstring."""

    name = "webapp.ops"
