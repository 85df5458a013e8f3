"""Celery. Tasks are thin: they load, call a pure function, and hand the result to a service."""
