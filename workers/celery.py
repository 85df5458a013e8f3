"""The Celery application."""

import os
from typing import Any

import django
from celery import Celery
from celery.signals import worker_init

from analytics.critical_path.kernels import load_kernels
from workers import queues
from workers.schedule import SCHEDULE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# Django's system checks load all addresses, and with them the pages, which no worker needs.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
django.setup()

app = Celery("weir")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    task_queues=queues.QUEUES,
    task_default_queue=queues.DEFAULT,
    task_routes=queues.ROUTES,
    task_create_missing_queues=False,  # a typo in a queue's name is an error, not a queue nobody reads
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    beat_schedule=SCHEDULE,
    imports=[
        f"workers.tasks.{name}"
        for name in (
            "analyse",
            "apply",
            "autoscaler",
            "bursts",
            "collect",
            "flink",
            "notify",
            "openmetrics",
            "policy_lab",
            "proposals",
            "pulse",
            "questions",
            "recommend",
            "standings",
            "timeline",
            "upkeep",
            "uploads",
            "verify",
        )
    ],
)
app.set_default()


@worker_init.connect
def warm_up(**_: Any) -> None:
    """Before the first task: start the Spark session, or load the kernels that timelines need."""
    if queues.SPARK in app.amqp.queues.consume_from:
        from workers.spark import start

        start()
    elif queues.INTERACTIVE in app.amqp.queues.consume_from:
        load_kernels()
