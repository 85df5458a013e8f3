"""Silences of one job, and the job of every alert."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the columns; the next one fills them."""

    dependencies = (("jobs", "0003_reports"), ("notifications", "0003_alerts"))
    operations = (
        migrations.AddField(
            "alert",
            "job",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="alerts", to="jobs.job"
            ),
        ),
        migrations.AddField(
            "silence",
            "job",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="silences", to="jobs.job"
            ),
        ),
    )
