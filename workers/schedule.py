"""What happens by itself, and how often. A tick nobody took in time expires; the next does its work."""

from typing import Any

SCHEDULE: dict[str, dict[str, Any]] = {
    "analyse closed windows": {
        "task": "workers.tasks.analyse.closed_windows",
        "schedule": 0.5,
        "options": {"expires": 1},
    },
    "apply what is approved": {
        "task": "workers.tasks.apply.apply_due",
        "schedule": 2.0,
        "options": {"expires": 4},
    },
    "verify what was applied": {
        "task": "workers.tasks.verify.verify_due",
        "schedule": 10.0,
        "options": {"expires": 20},
    },
    "propose what is recommended": {
        "task": "workers.tasks.proposals.follow_recommendations",
        "schedule": 20.0,
        "options": {"expires": 40},
    },
    "look after open proposals": {
        "task": "workers.tasks.proposals.look_after",
        "schedule": 20.0,
        "options": {"expires": 40},
    },
    "recommend parallelisms": {
        "task": "workers.tasks.recommend.recommend",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "derive burst models": {
        "task": "workers.tasks.bursts.derive",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "survey clusters": {
        "task": "workers.tasks.bursts.survey",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "poll sources": {
        "task": "workers.tasks.collect.poll_sources",
        "schedule": 1.0,
        "options": {"expires": 2},
    },
    "poll Flink": {
        "task": "workers.tasks.flink.poll_flink",
        "schedule": 1.0,
        "options": {"expires": 2},
    },
    "read autoscalers' tables": {
        "task": "workers.tasks.autoscaler.poll_autoscalers",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "scrape endpoints": {
        "task": "workers.tasks.openmetrics.scrape_endpoints",
        "schedule": 1.0,
        "options": {"expires": 2},
    },
    "keep what limits each job": {
        "task": "workers.tasks.standings.refresh",
        "schedule": 2.0,
        "options": {"expires": 4},
    },
    "note what limits each job, for digests": {
        "task": "workers.tasks.notify.note_limiters",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "send digests": {
        "task": "workers.tasks.notify.send_digests",
        "schedule": 10.0,
        "options": {"expires": 20},
    },
    "evaluate alert rules": {
        "task": "workers.tasks.notify.evaluate_alerts",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "send messages to channels": {
        "task": "workers.tasks.notify.send_messages",
        "schedule": 2.0,
        "options": {"expires": 4},
    },
    "tend uploads": {
        "task": "workers.tasks.uploads.tend",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "roll up metrics": {
        "task": "workers.tasks.upkeep.roll_up_metrics",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "forget what is old": {
        "task": "workers.tasks.upkeep.forget_old",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
    "show that beat and worker live": {
        "task": "workers.tasks.pulse.pulse",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
}
