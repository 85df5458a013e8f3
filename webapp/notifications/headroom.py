"""What digests say about headroom: clusters that cannot take their burst, could not, or soon will not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet

from webapp.bursts.models import Cluster, HeadroomAlert
from webapp.bursts.policies import visible_clusters
from webapp.bursts.selectors import forecast
from webapp.jobs.models import JobGroup
from webapp.jobs.policies import Actor
from webapp.notifications.digest import Item, Tone
from webapp.wording import percent

SOON = timedelta(days=7)


def followed_clusters(actor: Actor, group: JobGroup | None) -> QuerySet[Cluster]:
    """The clusters a digest is about, as far as the person may see them.

    Raises
    ------
    PermissionDenied
        If the account is disabled.
    """
    clusters = visible_clusters(actor)
    return clusters if group is None else clusters.filter(group=group)


def low_headroom(clusters: QuerySet[Cluster], since: datetime, until: datetime, zone: ZoneInfo) -> list[Item]:
    """Those with an alert in the period, the least headroom first; then those whose trend leads below it soon."""
    found = Q(closed_ns=None) | Q(closed_ns__gt=_ns(since))
    rows = HeadroomAlert.objects.filter(found, cluster__in=clusters, opened_ns__lte=_ns(until))
    newest: dict[int, HeadroomAlert] = {}
    for row in rows.select_related("cluster").order_by("opened_ns"):
        newest[row.cluster_id] = row
    alerts = sorted(newest.values(), key=lambda row: (row.closed_ns is not None, row.least_ratio))
    items = [_alert(row, zone) for row in alerts]
    for cluster in clusters.exclude(pk__in=newest).order_by("name"):
        trend = forecast(cluster, _ns(until))
        if trend.at_s is not None and trend.at_s <= (until + SOON).timestamp():
            at = datetime.fromtimestamp(trend.at_s, zone)
            below = f"headroom falls below {percent(cluster.alert_ratio)} about {at:%a %d %b %H:%M}"
            line = f"By the trend of the last week {below}."
            items.append(Item(cluster.name, f"/bursts/{cluster.pk}", (line,), Tone.WARN))
    return items


def _alert(row: HeadroomAlert, zone: ZoneInfo) -> Item:
    opened = _at(row.opened_ns, zone)
    below = f"below {percent(row.threshold_ratio)}"
    if row.closed_ns is None:
        lines = [f"Headroom is {below} since {opened}; the least was {percent(row.least_ratio)}."]
        tone = Tone.HARM
    else:
        closed = _at(row.closed_ns, zone)
        lines = [f"Headroom was {below} from {opened} to {closed}; the least was {percent(row.least_ratio)}."]
        tone = Tone.WARN
    if row.limit:
        lines.append(f"What stopped growth: {row.limit.rstrip('.')}.")
    return Item(row.cluster.name, f"/bursts/{row.cluster_id}", tuple(lines), tone)


def _at(at_ns: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at_ns / 1e9, UTC).astimezone(zone):%a %d %b %H:%M}"


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
