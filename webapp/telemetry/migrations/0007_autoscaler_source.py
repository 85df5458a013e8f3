"""The tables of a Flink autoscaler as a source."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0006_samples_without_key'),
    ]

    operations = [
        migrations.AlterField('source', 'kind', models.CharField(choices=[('spark-event-log', 'Spark event log'), ('spark-event-log-directory', 'Directory of Spark event logs'), ('flink', 'Flink cluster (REST)'), ('flink-job', 'Job of a Flink cluster'), ('openmetrics', 'OpenMetrics endpoint'), ('flink-autoscaler', 'Flink autoscaler (its tables in PostgreSQL)'), ('flink-autoscaler-job', 'Job of a Flink autoscaler')], max_length=40)),
    ]
