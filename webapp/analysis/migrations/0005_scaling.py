"""How jobs are advised on parallelism, and what was recommended."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0004_standing"), ("jobs", "0003_reports")]

    operations = [
        migrations.CreateModel(
            name="ScalingSetup",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="scaling_setup",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("policy", models.CharField(default="ds2", max_length=40)),
                ("settings", models.JSONField(default=dict)),
                ("targets_per_s", models.JSONField(default=dict)),
                ("enabled", models.BooleanField(default=True)),
                ("memory", models.TextField(null=True)),
                ("seen_ns", models.BigIntegerField(null=True)),
                ("error", models.TextField(blank=True)),
                ("revision", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Recommendation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("policy", models.CharField(max_length=40)),
                ("version", models.IntegerField()),
                ("window_start_ns", models.BigIntegerField()),
                ("window_end_ns", models.BigIntegerField()),
                ("made_at", models.DateTimeField()),
                ("confirmed_at", models.DateTimeField()),
                ("move", models.CharField(max_length=20)),
                ("changes", models.JSONField()),
                ("undecided", models.JSONField()),
                ("why", models.TextField()),
                ("payload", models.BinaryField()),
                ("superseded_at", models.DateTimeField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recommendations",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["job", "-made_at"], name="recommendation_history")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("superseded_at", None)), fields=("job",), name="recommendation_current"
                    )
                ],
            },
        ),
        # zstd already: compressing it again only costs time.
        migrations.RunSQL(
            "ALTER TABLE analysis_recommendation ALTER COLUMN payload SET STORAGE EXTERNAL", migrations.RunSQL.noop
        ),
    ]
