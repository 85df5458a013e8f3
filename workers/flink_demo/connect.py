"""Make a running Weir follow the demo's Flink and propose changes (``python -m workers.flink_demo.connect URL``).

What is set here an administrator can set too; the audit record says that it was the demo.
"""

from __future__ import annotations

import os
import sys

import django
from django.db import transaction

from workers.flink_demo.job import NAME, SOURCE_OPERATOR, VIEWS_PER_S

WHO = "make demo-flink"


def connect(address: str) -> None:
    """Follow the cluster, tell what its source should deliver, and have changes proposed and applied through it."""
    from webapp.analysis.models import ScalingSetup
    from webapp.audit.services import Entry, record
    from webapp.jobs.models import Engine
    from webapp.jobs.services import ensure_job
    from webapp.reconfigurations.models import ChangePolicy, EngineKind, Mode
    from webapp.telemetry.models import SourceKind
    from webapp.telemetry.sources import add_source

    with transaction.atomic():
        job = ensure_job(NAME, Engine.FLINK)
        ScalingSetup.objects.update_or_create(
            job=job, defaults={"targets_per_s": {SOURCE_OPERATOR: VIEWS_PER_S}}
        )
        rules = {"mode": Mode.RECOMMEND, "engine": EngineKind.FLINK, "engine_url": address}
        ChangePolicy.objects.update_or_create(job=job, defaults=rules)
        source = add_source(SourceKind.FLINK, address)
        detail = {"location": address, "target_per_s": VIEWS_PER_S, "mode": Mode.RECOMMEND.value}
        record(Entry(WHO, "source.add", "source", source.pk, job.pk, job.name, detail=detail))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    connect(sys.argv[1])
