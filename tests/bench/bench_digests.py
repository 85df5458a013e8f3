"""Digests of 10,000 people through a real SMTP server in a process of its own, by two workers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.bench.setup import weir

PEOPLE = 10_000
GROUPS = 100
WORKERS = 2

_SERVER = """
import asyncio, sys
from collections import Counter
from aiosmtpd.smtp import SMTP
class Keep:
    def __init__(self): self.seen = Counter()
    async def handle_DATA(self, server, session, envelope):
        self.seen.update(envelope.rcpt_tos)
        return "250 OK"
async def main():
    keep = Keep()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(keep), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    import json
    print(json.dumps(keep.seen), flush=True)
asyncio.run(main())
"""
_WORKER = """
import os, django
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
django.setup()
from django.utils import timezone
from webapp.notifications.deliveries import plan_due
from workers.digests import send_due
while plan_due(timezone.now()):
    pass
print(send_due(600).sent, flush=True)
"""


def measure(_home: Path, people: int = PEOPLE) -> dict[str, float]:
    """Seconds from the moment the digests are due until the last is handed over; every mail has a chart."""
    import os

    from webapp.notifications.models import Delivery

    _subscribe(people)
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    port = int(server.stdout.readline())
    environment = os.environ | {"WEIR_SMTP_URL": f"smtp://127.0.0.1:{port}", "WEIR_LOG_LEVEL": "WARNING"}
    began = time.perf_counter()
    workers = [
        subprocess.Popen([sys.executable, "-c", _WORKER], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(WORKERS)
    ]
    told = [int(worker.communicate()[0]) for worker in workers]
    took_s = time.perf_counter() - began
    seen = Counter(json.loads(server.communicate("\n")[0]))
    assert sum(told) == people
    assert len(seen) == people
    assert set(seen.values()) == {1}, "somebody got two mails"
    assert Delivery.objects.filter(state="sent").count() == people
    return {"people": people, "seconds": took_s, "mails_per_s": people / took_s}


def _subscribe(people: int) -> None:
    """People in groups, each with a job whose limiter moved."""
    from django.utils import timezone

    from tests.support.digests import limiter_moved
    from webapp.accounts.models import User
    from webapp.jobs.models import Job, JobGroup, Membership, Role
    from webapp.notifications.models import Subscription

    now = timezone.now()
    groups = [JobGroup.objects.create(name=f"team-{number}") for number in range(GROUPS)]
    for group in groups:
        limiter_moved(Job.objects.create(name=f"digest job of {group.name}", group=group), now)
    users = User.objects.bulk_create(
        User(username=f"person-{number}", email=f"person-{number}@example.org") for number in range(people)
    )
    pairs = [(user, groups[place % GROUPS]) for place, user in enumerate(users)]
    Membership.objects.bulk_create(
        Membership(user=user, group=group, role=Role.APPROVER) for user, group in pairs
    )
    due = now.replace(second=0, microsecond=0)
    Subscription.objects.bulk_create(
        Subscription(person=user, group=group, rhythm="daily", next_due_at=due) for user, group in pairs
    )


if __name__ == "__main__":
    with weir() as home:
        print(json.dumps(measure(home, *map(int, sys.argv[1:])), indent=1))
