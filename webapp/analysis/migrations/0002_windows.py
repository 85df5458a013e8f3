"""Window results in day partitions."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analysis", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            # Django creates no partitioned tables
            database_operations=[
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
                        record_count bigint NOT NULL,
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
            ],
            state_operations=[
                migrations.CreateModel(
                    name='Window',
                    fields=[
                        ('pk', models.CompositePrimaryKey('job_id', 'start_ns', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('start_ns', models.BigIntegerField()),
                        ('width_ns', models.BigIntegerField()),
                        ('effective_start_ns', models.BigIntegerField()),
                        ('effective_end_ns', models.BigIntegerField()),
                        ('status', models.CharField(max_length=20)),
                        ('reason', models.TextField()),
                        ('log10_paths', models.FloatField()),
                        ('cp_total', models.FloatField()),
                        ('record_count', models.BigIntegerField()),
                        ('run_id', models.BigIntegerField()),
                        ('activity_cp', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('activity_conventional', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('worker_ids', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                        ('worker_cp', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('worker_conventional', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('operator_ids', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                        ('operator_types', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), size=None)),
                        ('operator_cp', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('operator_conventional', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('operator_workers', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                        ('channel_src', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                        ('channel_dst', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                        ('channel_types', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), size=None)),
                        ('channel_cp', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('channel_conventional', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                        ('job', models.ForeignKey(on_delete=django.db.models.deletion.DO_NOTHING, related_name='windows', to='jobs.job')),
                    ],
                    options={
                        'db_table': 'analysis_window',
                    },
                ),
            ],
        ),
    ]
