"""Proposals made of recommendations, and predictions that say what the sources should deliver."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('analysis', '0005_scaling'),
        ('reconfigurations', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='proposal',
            name='recommendation',
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='proposals',
                to='analysis.recommendation',
            ),
        ),
        migrations.AddField(
            model_name='proposal',
            name='payload',
            field=models.BinaryField(null=True),
        ),
        migrations.AlterField(
            model_name='changepolicy',
            name='mode',
            field=models.CharField(
                choices=[
                    ('observe', 'observe: Weir proposes nothing by itself, and nothing is changed'),
                    ('recommend', 'recommend: people decide'),
                    ('automatic', 'automatic within limits: people decide what is beyond them'),
                ],
                default='observe', max_length=10,
            ),
        ),
        migrations.RunSQL(
            """
            UPDATE reconfigurations_proposal SET prediction = '{"targets_per_s": []}'::jsonb || prediction
            WHERE prediction <> '{}'::jsonb
            """,
            migrations.RunSQL.noop,
        ),
    ]
