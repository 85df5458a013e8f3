"""All queues, and which task goes where."""

from kombu import Queue

DEFAULT = "default"
INTERACTIVE = "interactive"
SPARK = "spark"

QUEUES = [Queue(DEFAULT), Queue(INTERACTIVE), Queue(SPARK)]
ROUTES = {
    "workers.tasks.analyse.*": {"queue": SPARK},
    "workers.tasks.bursts.simulate": {"queue": INTERACTIVE},
    "workers.tasks.bursts.survey": {"queue": SPARK},
    "workers.tasks.policy_lab.*": {"queue": INTERACTIVE},
    "workers.tasks.questions.*": {"queue": INTERACTIVE},
    "workers.tasks.recommend.*": {"queue": SPARK},
    "workers.tasks.timeline.*": {"queue": INTERACTIVE},
}
