"""The digest of a subscription: what of its jobs changed, what limits what, what waits, what came true."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.bursts.models import Cluster
from webapp.jobs.models import Job, JobGroup, Membership
from webapp.notifications import changes, limiters
from webapp.notifications.alert_digest import alerts
from webapp.notifications.alert_models import Alert
from webapp.notifications.alert_selectors import in_period
from webapp.notifications.digest import Digest, Item, Section, Tone
from webapp.notifications.headroom import followed_clusters, low_headroom
from webapp.notifications.models import Subscription
from webapp.notifications.policies import followed_jobs, groups_of
from webapp.notifications.silence import silent
from webapp.wording import count

MOST_ITEMS = 5
"""In a section; the rest is counted, and a page shows it."""


@dataclass(frozen=True, slots=True)
class Common:
    """What is the same for everybody who sees the same jobs; ``open``: somebody has something to decide."""

    sections: tuple[Section, ...]
    open: bool


@dataclass
class Composer:
    """Makes digests; whoever makes many with one composer has what people share worked out once."""

    _kept: dict[Hashable, Common] = field(default_factory=dict)
    _groups: dict[int, frozenset[int]] = field(default_factory=dict)

    def digest(self, row: Subscription, since: datetime, until: datetime) -> Digest:
        """What this subscription's person should hear about the period, as far as they may see it now."""
        zone, person = ZoneInfo(row.zone), row.person
        jobs = followed_jobs(person, row.group)
        common = self._common(row, jobs, since, until, zone)
        sections = list(common.sections)
        if common.open and (waits := changes.waiting(person, jobs, until, zone)):
            sections.insert(0, _decisions(waits))
        about = "all jobs" if row.group is None else row.group.name
        return Digest(about, row.rhythm, _period(since, until, zone), tuple(sections))

    def _common(
        self, row: Subscription, jobs: QuerySet[Job], since: datetime, until: datetime, zone: ZoneInfo
    ) -> Common:
        key = (*self._sight(row.person, row.group), since, until, row.zone)
        if key not in self._kept:
            clusters = followed_clusters(row.person, row.group)
            groups = groups_of(row.person)
            fired = in_period(groups if row.group is None else groups.filter(pk=row.group.pk), since, until)
            self._kept[key] = _worked_out(jobs, clusters, fired, since, until, zone)
        return self._kept[key]

    def _sight(self, person: User, group: JobGroup | None) -> tuple[Hashable, ...]:
        """What decides which jobs a person sees."""
        if person.is_superuser:
            return ("all", group and group.pk)
        if person.pk not in self._groups:
            theirs = Membership.objects.filter(user_id=person.pk).values_list("group_id", flat=True)
            self._groups[person.pk] = frozenset(theirs)
        mine = self._groups[person.pk]
        return (mine, None) if group is None else (group.pk in mine, group.pk)


def _worked_out(
    jobs: QuerySet[Job],
    clusters: QuerySet[Cluster],
    fired: QuerySet[Alert],
    since: datetime,
    until: datetime,
    zone: ZoneInfo,
) -> Common:
    found = []
    if rang := alerts(fired, zone):
        still = sum(item.tone is Tone.HARM for item in rang)
        said = f"{count(still, 'alert')} {'fires' if still == 1 else 'fire'}" if still else "alerts fired"
        found.append(_section("Alerts", said, rang, path="/notifications?tab=alerts"))
    if outcomes := changes.outcomes(jobs, since, until):
        what = count(len(outcomes), "change")
        found.append(_section("What came of changes", f"{what} came to something", outcomes))
    if moved := limiters.moved(jobs, since, until, zone):
        found.append(_section("Limiters that moved", f"{count(len(moved), 'limiter')} moved", moved))
    if tight := low_headroom(clusters, since, until, zone):
        told = f"headroom is, was or soon will be low in {count(len(tight), 'cluster')}"
        found.append(_section("Headroom", told, tight, path="/bursts"))
    quiet = silent(jobs, since, until, zone)
    if quiet.items:
        verb = "reports" if len(quiet.items) == 1 else "report"
        told = f"{count(len(quiet.items), 'job')} no longer {verb}"
        longer = f"{count(quiet.longer, 'job')} silent since before this period." if quiet.longer else ""
        found.append(_section("Jobs without data", told, quiet.items, longer, "/?show=quiet"))
    return Common(tuple(found), changes.open_in(jobs))


def _decisions(waits: Sequence[Item]) -> Section:
    told = f"{count(len(waits), 'decision')} {'waits' if len(waits) == 1 else 'wait'} for you"
    return _section("Decisions that wait for you", told, waits, path="/inbox")


def _section(heading: str, told: str, items: Sequence[Item], also: str = "", path: str = "/") -> Section:
    left = len(items) - MOST_ITEMS
    more = " ".join(filter(None, (f"And {left:,} more." if left > 0 else "", also)))
    return Section(heading, told, tuple(items[:MOST_ITEMS]), more, path if more else "")


def _period(since: datetime, until: datetime, zone: ZoneInfo) -> str:
    first, last = since.astimezone(zone), until.astimezone(zone)
    return f"{first:%a %d %b %Y %H:%M} to {last:%a %d %b %Y %H:%M}, {zone.key}"
