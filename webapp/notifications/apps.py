"""App configuration."""

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    """Digests and deliveries."""

    name = "webapp.notifications"
