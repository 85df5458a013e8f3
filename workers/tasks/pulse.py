"""Signs of life."""

from celery import shared_task

from webapp.ops.health import beat


@shared_task
def pulse() -> None:
    """Sent by beat and run by the default worker: when it arrives, both are alive."""
    beat("beat")
    beat("worker")
