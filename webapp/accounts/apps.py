"""App configuration."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People."""

    name = "webapp.accounts"
