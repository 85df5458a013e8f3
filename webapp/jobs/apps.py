"""App configuration."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """See the package's docstring."""

    name = "webapp.jobs"
