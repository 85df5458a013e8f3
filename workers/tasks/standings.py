"""What limits each job now, for the list of all jobs."""

from celery import shared_task

from webapp.analysis import standings


@shared_task
def refresh() -> None:
    """Work out the standings whose results have changed; the next tick goes on if there are many."""
    standings.refresh()
