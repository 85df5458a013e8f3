"""Handing work to the workers by name, so that webapp imports none of them."""

from functools import cache

from celery import Celery
from django.conf import settings


@cache
def _client() -> Celery:
    return Celery("webapp", broker=settings.REDIS_URL, set_as_current=False)


def enqueue(task: str, *args: object, queue: str) -> None:
    """Have ``task`` run by whoever reads ``queue``. Call it after the transaction that it depends on."""
    _client().send_task(task, args=args, queue=queue, ignore_result=True)
