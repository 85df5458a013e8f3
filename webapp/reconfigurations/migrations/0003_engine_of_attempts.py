"""Attempts remember through what they were applied; those before, by what their job's rules say now."""

from django.db import migrations, models


def fill(apps, _schema):
    attempts = apps.get_model('reconfigurations', 'Attempt').objects
    for engine in ('flink', 'webhook'):
        attempts.filter(proposal__job__change_policy__engine=engine).update(engine=engine)


class Migration(migrations.Migration):

    dependencies = [('reconfigurations', '0002_from_recommendations')]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='engine',
            field=models.CharField(
                choices=[
                    ('dry-run', 'dry run: nothing is sent'), ('flink', "Flink's REST API"),
                    ('webhook', 'signed webhook'),
                ],
                default='dry-run', max_length=10,
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
