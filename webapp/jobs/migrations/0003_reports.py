"""What engines say about jobs, and the rates made of it, in day partitions, which Django cannot create."""

import django.db.models.deletion
from django.db import migrations, models


def daily(table, name, related_name):
    return migrations.SeparateDatabaseAndState(
        database_operations=[
            migrations.RunSQL(
                f"""
                CREATE TABLE {table} (
                    job_id bigint NOT NULL REFERENCES jobs_job (id) ON DELETE CASCADE,
                    at_ns bigint NOT NULL,
                    payload bytea NOT NULL,
                    PRIMARY KEY (job_id, at_ns)
                ) PARTITION BY RANGE (at_ns)
                """,
                f"DROP TABLE {table}",
            ),
            # zstd already: compressing it again only costs time.
            migrations.RunSQL(
                f"ALTER TABLE {table} ALTER COLUMN payload SET STORAGE EXTERNAL", migrations.RunSQL.noop
            ),
        ],
        state_operations=[
            migrations.CreateModel(
                name=name,
                fields=[
                    (
                        "pk",
                        models.CompositePrimaryKey(
                            "job_id", "at_ns", blank=True, editable=False, primary_key=True, serialize=False
                        ),
                    ),
                    ("at_ns", models.BigIntegerField()),
                    ("payload", models.BinaryField()),
                    (
                        "job",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.DO_NOTHING, related_name=related_name, to="jobs.job"
                        ),
                    ),
                ],
                options={"db_table": table},
            )
        ],
    )


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_groups")]

    operations = [daily("jobs_report", "Report", "reports"), daily("jobs_rates", "Rates", "rates")]
