"""Window results in day partitions."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("analysis", "0001_initial")]

    operations = [
        migrations.RunSQL(
            """
            CREATE TABLE analysis_window (
                job_id bigint NOT NULL REFERENCES jobs_job (id) ON DELETE CASCADE,
                start_ns bigint NOT NULL,
                width_ns bigint NOT NULL,
                effective_start_ns bigint NOT NULL,
                effective_end_ns bigint NOT NULL,
                status text NOT NULL,
                reason text NOT NULL,
                log10_paths double precision NOT NULL,
                cp_total double precision NOT NULL,
                record_count integer NOT NULL,
                run_id bigint NOT NULL,
                activity_cp double precision[] NOT NULL,
                activity_conventional double precision[] NOT NULL,
                worker_ids integer[] NOT NULL,
                worker_cp double precision[] NOT NULL,
                worker_conventional double precision[] NOT NULL,
                operator_ids integer[] NOT NULL,
                operator_types smallint[] NOT NULL,
                operator_cp double precision[] NOT NULL,
                operator_conventional double precision[] NOT NULL,
                operator_workers integer[] NOT NULL,
                channel_src integer[] NOT NULL,
                channel_dst integer[] NOT NULL,
                channel_types smallint[] NOT NULL,
                channel_cp double precision[] NOT NULL,
                channel_conventional double precision[] NOT NULL,
                PRIMARY KEY (job_id, start_ns)
            ) PARTITION BY RANGE (start_ns)
            """,
            "DROP TABLE analysis_window",
        ),
    ]
