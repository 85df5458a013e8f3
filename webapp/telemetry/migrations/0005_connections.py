"""Sources that people pause and remove, and endpoints that are scraped."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0004_ingest'),
    ]

    operations = [
        migrations.AddField('source', 'paused', models.BooleanField(default=False)),
        migrations.AddField('source', 'removed_at', models.DateTimeField(null=True)),
        migrations.AddField('source', 'interval_s', models.IntegerField(null=True)),
        migrations.AlterField('source', 'kind', models.CharField(choices=[('spark-event-log', 'Spark event log'), ('spark-event-log-directory', 'Directory of Spark event logs'), ('flink', 'Flink cluster (REST)'), ('flink-job', 'Job of a Flink cluster'), ('openmetrics', 'OpenMetrics endpoint')], max_length=40)),
    ]
