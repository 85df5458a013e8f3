"""App configuration."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """See the package's docstring."""

    name = "webapp.api"
