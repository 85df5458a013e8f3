"""What limits each job now, a row a job."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0003_questions")]

    operations = [
        migrations.CreateModel(
            name="Standing",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="standing",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("outdated_at", models.DateTimeField(null=True)),
                ("computed_at", models.DateTimeField(null=True)),
                ("activity", models.SmallIntegerField(null=True)),
                ("operator", models.CharField(blank=True, max_length=500)),
                ("cp", models.FloatField(null=True)),
                ("conventional", models.FloatField(null=True)),
                ("unknown_cp", models.FloatField(null=True)),
                ("input_rows_per_s", models.FloatField(null=True)),
                (
                    "sparkline",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(null=True), default=list, size=None
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("outdated_at__isnull", False)),
                        fields=["outdated_at"],
                        name="standing_outdated",
                    )
                ]
            },
        )
    ]
