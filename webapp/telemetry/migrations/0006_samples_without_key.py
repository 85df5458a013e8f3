"""Samples without a foreign key: checking it took twice as long as all else about storing a sample.

What deletes series (a job's deletion) deletes their samples by a trigger instead. A sample that comes in the moment
its series goes belongs to nothing, is seen by nobody, and goes with its day.
"""

import django.db.models.deletion
from django.db import migrations, models

WITHOUT = """
    ALTER TABLE telemetry_metricsample DROP CONSTRAINT telemetry_metricsample_series_id_fkey;
    CREATE FUNCTION telemetry_forget_samples() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM telemetry_metricsample WHERE series_id IN (SELECT id FROM gone);
        RETURN NULL;
    END $$;
    CREATE TRIGGER forget_samples AFTER DELETE ON telemetry_series REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION telemetry_forget_samples();
"""
WITH = """
    DROP TRIGGER forget_samples ON telemetry_series;
    DROP FUNCTION telemetry_forget_samples();
    DELETE FROM telemetry_metricsample WHERE series_id NOT IN (SELECT id FROM telemetry_series);
    ALTER TABLE telemetry_metricsample ADD CONSTRAINT telemetry_metricsample_series_id_fkey
        FOREIGN KEY (series_id) REFERENCES telemetry_series (id) ON DELETE CASCADE;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0005_connections'),
    ]

    operations = [
        migrations.RunSQL(
            WITHOUT, WITH,
            state_operations=[
                migrations.AlterField('metricsample', 'series', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='samples', to='telemetry.series')),
            ],
        ),
    ]
