"""What fires already gets its job, so that it can be silenced by it; in a migration of its own, as rows that were
changed must not wait for their constraints while the table is altered."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """``job:7`` is that job, ``proposal:9`` belongs to one."""

    dependencies = (
        ("notifications", "0004_silences_of_jobs"),
        ("reconfigurations", "0003_engine_of_attempts"),
    )
    operations = (
        migrations.RunSQL(
            "UPDATE notifications_alert SET job_id = j.id FROM jobs_job AS j WHERE subject = 'job:' || j.id",
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            "UPDATE notifications_alert SET job_id = p.job_id FROM reconfigurations_proposal AS p "
            "WHERE subject = 'proposal:' || p.id",
            migrations.RunSQL.noop,
        ),
    )
