"""App configuration."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """See the package's docstring."""

    name = "webapp.audit"
