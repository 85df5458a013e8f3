"""Registers the app."""

from django.apps import AppConfig


class BurstsConfig(AppConfig):
    """Burst models of clusters and what was computed from them."""

    name = "webapp.bursts"
