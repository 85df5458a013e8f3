"""How a channel's receiver fares, so that its messages wait together."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """See the module's docstring."""

    dependencies = (("notifications", "0005_jobs_of_alerts"),)

    operations = (
        migrations.AddField("channel", "failures", models.PositiveIntegerField(default=0)),
        migrations.AddField("channel", "not_before", models.DateTimeField(null=True)),
    )
