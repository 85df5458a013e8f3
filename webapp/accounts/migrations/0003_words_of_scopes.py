"""The scope *decide* says what else it lets programs do."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    """Words only."""

    dependencies = (("accounts", "0002_token"),)
    operations = (
        migrations.AlterField(
            "token",
            "scopes",
            ArrayField(
                models.CharField(
                    max_length=10,
                    choices=[
                        ("ingest", "send telemetry"),
                        ("read", "read jobs, metrics and results"),
                        ("decide", "decide on proposals, look after alerts"),
                        ("admin", "change settings and manage tokens"),
                    ],
                ),
                size=None,
            ),
        ),
    )
