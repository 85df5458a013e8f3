"""Series by digest, rollups in day partitions, and what was refused."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def fill_digests(apps, schema_editor):
    """Give every series the digest that the store will look for."""
    from webapp.telemetry.metric_store import digest_of_series

    series = apps.get_model("telemetry", "Series")
    for row in series.objects.all().iterator():
        row.digest = digest_of_series(row.name, tuple(sorted(row.labels.items())))
        row.save(update_fields=["digest"])


def rollup(name):
    return migrations.SeparateDatabaseAndState(
        database_operations=[
            migrations.RunSQL(
                f"""
                CREATE TABLE telemetry_{name.lower()} (
                    series_id bigint NOT NULL REFERENCES telemetry_series (id) ON DELETE CASCADE,
                    at_ns bigint NOT NULL,
                    minimum double precision NOT NULL,
                    maximum double precision NOT NULL,
                    total double precision NOT NULL,
                    count integer NOT NULL,
                    last double precision NOT NULL,
                    PRIMARY KEY (series_id, at_ns)
                ) PARTITION BY RANGE (at_ns)
                """,
                f"DROP TABLE telemetry_{name.lower()}",
            )
        ],
        state_operations=[
            migrations.CreateModel(
                name=name,
                fields=[
                    ('pk', models.CompositePrimaryKey('series_id', 'at_ns', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('at_ns', models.BigIntegerField()),
                    ('minimum', models.FloatField()),
                    ('maximum', models.FloatField()),
                    ('total', models.FloatField()),
                    ('count', models.IntegerField()),
                    ('last', models.FloatField()),
                    ('series', models.ForeignKey(on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='telemetry.series')),
                ],
                options={'db_table': f'telemetry_{name.lower()}'},
            )
        ],
    )


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_token'),
        ('telemetry', '0003_upload'),
    ]

    operations = [
        migrations.AddField('series', 'digest', models.BinaryField(max_length=16, null=True)),
        migrations.AddField('series', 'kind', models.CharField(default='unknown', max_length=10)),
        migrations.AddField('series', 'ended_ns', models.BigIntegerField(null=True)),
        migrations.RunPython(fill_digests, migrations.RunPython.noop, elidable=True),
        # checks of foreign keys that still wait would keep the table from being altered
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField('series', 'digest', models.BinaryField(max_length=16)),
        migrations.RemoveConstraint('series', 'series_once'),
        migrations.AddConstraint('series', models.UniqueConstraint(fields=('job', 'digest'), name='series_digest_once')),
        migrations.AddIndex('series', models.Index(fields=['job', 'name'], name='series_name')),
        rollup('MinuteRollup'),
        rollup('HourRollup'),
        migrations.CreateModel(
            name='RollupDue',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour_ns', models.BigIntegerField()),
                ('not_before', models.DateTimeField()),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='jobs.job')),
            ],
            options={
                'indexes': [models.Index(fields=['not_before'], name='rollup_due')],
                'constraints': [models.UniqueConstraint(fields=('job', 'hour_ns'), name='rollup_due_once')],
            },
        ),
        migrations.CreateModel(
            name='Refused',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_name', models.CharField(max_length=120)),
                ('job_name', models.CharField(blank=True, max_length=200)),
                ('kind', models.CharField(max_length=40)),
                ('code', models.CharField(max_length=60)),
                ('reason', models.CharField(max_length=1000)),
                ('first_bytes', models.BinaryField()),
                ('size_bytes', models.BigIntegerField()),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('token', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.token')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-id'], name='refused_recent')],
            },
        ),
    ]
