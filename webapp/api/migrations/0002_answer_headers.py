"""What was made, and its version, are told in headers: an answer given again has them too."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('api', '0001_initial'),
    ]

    operations = [
        migrations.AddField('idempotentanswer', 'headers', models.JSONField(default=dict)),
    ]
