"""Replays of the policy lab, for a page that waits for them."""

from celery import shared_task

from webapp.analysis import policy_lab
from webapp.analysis.models import Replay


@shared_task
def compute(key: str) -> None:
    """Replay what was asked for and keep the answer. What is gone needs none."""
    row = Replay.objects.select_related("job").filter(key=key).first()
    if row is None:
        return
    try:
        policy_lab.store(key, row.requested_at, policy_lab.compute(row))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        policy_lab.fail(key, row.requested_at, f"{type(error).__name__}: {error}")
        raise
