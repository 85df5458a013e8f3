"""Replays of the policy lab."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0005_scaling")]

    operations = [
        migrations.CreateModel(
            name="Replay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200, unique=True)),
                ("params", models.JSONField()),
                ("version", models.TextField()),
                ("newest_ns", models.BigIntegerField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("queued", "queued"), ("ready", "ready"), ("failed", "failed")],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("requested_at", models.DateTimeField()),
                ("payload", models.JSONField(null=True)),
                ("answered_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="replays",
                        to="jobs.job",
                    ),
                ),
            ],
        ),
    ]
