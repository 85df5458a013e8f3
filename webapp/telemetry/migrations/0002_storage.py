"""What Django cannot say: overlap index, uncompressed payloads, day partitions."""

import django.db.models.deletion
from django.contrib.postgres.operations import BtreeGistExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0001_initial")]

    operations = [
        BtreeGistExtension(),
        migrations.RunSQL(
            # Segments are zstd already: compressing them again only costs time.
            "ALTER TABLE telemetry_segment ALTER COLUMN payload SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            # Serves the one question asked of segments: those of a job that overlap a time range.
            "CREATE INDEX segment_overlap ON telemetry_segment USING gist (job_id, int8range(min_ns, max_ns, '[]'))",
            "DROP INDEX segment_overlap",
        ),
        migrations.SeparateDatabaseAndState(
            # Django creates no partitioned tables
            database_operations=[
                migrations.RunSQL(
                    """
                    CREATE TABLE telemetry_metricsample (
                        series_id bigint NOT NULL REFERENCES telemetry_series (id) ON DELETE CASCADE,
                        at_ns bigint NOT NULL,
                        value double precision NOT NULL,
                        PRIMARY KEY (series_id, at_ns)
                    ) PARTITION BY RANGE (at_ns)
                    """,
                    "DROP TABLE telemetry_metricsample",
                ),
            ],
            state_operations=[
                migrations.CreateModel(
                    name='MetricSample',
                    fields=[
                        ('pk', models.CompositePrimaryKey('series_id', 'at_ns', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('at_ns', models.BigIntegerField()),
                        ('value', models.FloatField()),
                        ('series', models.ForeignKey(on_delete=django.db.models.deletion.DO_NOTHING, related_name='samples', to='telemetry.series')),
                    ],
                    options={
                        'db_table': 'telemetry_metricsample',
                    },
                ),
            ],
        ),
    ]
