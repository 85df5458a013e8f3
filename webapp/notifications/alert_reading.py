"""What alert rules look at: for every subject of a rule the values since it was looked at last, or of the past."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from analytics.alerting.machine import Point
from analytics.model import packed
from analytics.model.activity import BY_LABEL
from webapp.bursts.models import Cluster, HeadroomPoint
from webapp.jobs.models import Job, Operator, Rates, Worker
from webapp.notifications.alert_models import AlertRule, RuleKind
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from webapp.telemetry.models import Batch

LOOK_BACK = timedelta(hours=1)
"""How far the first look at a subject reaches, and any look at one that was not looked at for longer."""
EVERY = timedelta(seconds=15)
"""How often a rule is evaluated, and how dense the past of what has no values of its own is looked at."""
WORSE_FOR = timedelta(days=1)
MINUTE_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Series:
    """A subject and its values in the order of time; at ``gone_ns`` it ceased to be.

    ``job_id``: the job that it is or belongs to.
    """

    key: str
    name: str
    path: str
    points: tuple[Point, ...]
    gone_ns: int | None = None
    job_id: int | None = None


def ns(at: datetime) -> int:
    """Nanoseconds since 1970."""
    return round(at.timestamp() * 1e6) * 1_000


def current(rule: AlertRule, seen_ns: Mapping[str, int], now: datetime) -> list[Series]:
    """Every subject with the values that came since ``seen_ns``; of what has none of its own, one for now."""
    floor = ns(now - LOOK_BACK)

    def since(key: str) -> int:
        return max(seen_ns.get(key, floor), floor)

    match rule.kind:
        case RuleKind.NO_DATA:
            return [_job_series(job, [_age(job, now)]) for job in _jobs(rule)]
        case RuleKind.EXPIRING:
            found = _proposals(rule).filter(state=State.PROPOSED, expires_at__gt=now)
            return [_proposal_series(row, [_left(row, now)]) for row in found]
        case RuleKind.REGRESSED:
            worse = _regressed(rule, now - WORSE_FOR).filter(state=State.REGRESSED)
            return [_proposal_series(row, [Point(ns(now), 1.0)]) for row in worse]
    return _stored(rule, since, now)


def past(rule: AlertRule, since: datetime, now: datetime) -> list[Series]:
    """Every subject with all its values from ``since`` on, for a preview."""
    match rule.kind:
        case RuleKind.NO_DATA:
            return [_job_series(job, list(_ages(job, since, now))) for job in _jobs(rule)]
        case RuleKind.EXPIRING:
            return list(_expired(rule, since, now))
        case RuleKind.REGRESSED:
            return list(_made_worse(rule, since, now))
    return _stored(rule, lambda _: ns(since), now)


def _jobs(rule: AlertRule) -> QuerySet[Job]:
    jobs = Job.objects.filter(group=rule.group_id, finished=False).order_by("name")
    return jobs if rule.job_id is None else jobs.filter(pk=rule.job_id)


def _job_series(job: Job, points: Sequence[Point], tab: str = "") -> Series:
    return Series(f"job:{job.pk}", job.name, f"/jobs/{job.pk}{tab}", tuple(points), job_id=job.pk)


def _stored(rule: AlertRule, since: Callable[[str], int], now: datetime) -> list[Series]:
    """What was stored as a series."""
    if rule.kind == RuleKind.HEADROOM:
        return [_headroom(row, since(f"cluster:{row.pk}")) for row in _clusters(rule)]
    jobs = list(_jobs(rule))
    times = {job.pk: int(since(f"job:{job.pk}")) for job in jobs}
    if rule.kind == RuleKind.BACKLOG:
        read = _metric if rule.target else _lag
        found = read(rule, times, now)
        return [_job_series(job, found.get(job.pk, []), "?tab=scaling") for job in jobs]
    numbers = _numbers(rule, jobs)
    found = _cp(rule, {pk: (times[pk], number) for pk, number in numbers.items()})
    return [_job_series(job, found.get(job.pk, [])) for job in jobs if job.pk in numbers]


def _clusters(rule: AlertRule) -> QuerySet[Cluster]:
    return Cluster.objects.filter(group=rule.group_id).order_by("name")


def _headroom(cluster: Cluster, since_ns: int) -> Series:
    rows = HeadroomPoint.objects.filter(cluster=cluster, at_ns__gt=since_ns).order_by("at_ns")
    points = tuple(Point(*row) for row in rows.values_list("at_ns", "ratio"))
    return Series(f"cluster:{cluster.pk}", cluster.name, f"/bursts/{cluster.pk}", points)


def _numbers(rule: AlertRule, jobs: Sequence[Job]) -> dict[int, int]:
    """The number behind the rule's target in each job that has one of that name."""
    if rule.kind == RuleKind.ACTIVITY_CP:
        return {job.pk: int(BY_LABEL[rule.target]) for job in jobs}
    model: type[Operator | Worker] = Operator if rule.kind == RuleKind.OPERATOR_CP else Worker
    found = model._default_manager.filter(job__in=jobs, name=rule.target)
    return dict(found.values_list("job_id", "number"))


_CP = {
    RuleKind.ACTIVITY_CP: "w.activity_cp[s.number + 1]",
    RuleKind.OPERATOR_CP: "coalesce((SELECT sum(p.cp) FROM unnest(w.operator_ids, w.operator_cp) AS p(id, cp) "
    "WHERE p.id = s.number), 0)",
    RuleKind.WORKER_CP: "coalesce((SELECT sum(p.cp) FROM unnest(w.worker_ids, w.worker_cp) AS p(id, cp) "
    "WHERE p.id = s.number), 0)",
}


def _cp(rule: AlertRule, wanted: Mapping[int, tuple[int, int]]) -> dict[int, list[Point]]:
    """CP of every window after a time, by job; unknown where a window has no result."""
    sql = (
        f"SELECT s.job_id, w.start_ns, CASE WHEN w.status = 'ok' THEN {_CP[RuleKind(rule.kind)]} END "  # noqa: S608
        "FROM unnest(%s::bigint[], %s::bigint[], %s::int[]) AS s(job_id, since_ns, number) "
        "JOIN analysis_window AS w ON w.job_id = s.job_id AND w.start_ns > s.since_ns AND w.start_ns > %s "
        "ORDER BY 1, 2"
    )
    times = [since for since, _ in wanted.values()]
    return _points(
        sql, [list(wanted), times, [number for _, number in wanted.values()], min(times, default=0)]
    )


def _metric(rule: AlertRule, times: Mapping[int, int], now: datetime) -> dict[int, list[Point]]:
    """Each full minute's sum over the series of a metric of their last value in it."""
    sql = (
        "SELECT job_id, minute * %s, sum(value) FROM (SELECT DISTINCT ON (x.job_id, x.id, m.at_ns / %s) x.job_id, "
        "m.at_ns / %s AS minute, m.value FROM unnest(%s::bigint[], %s::bigint[]) AS s(job_id, since_ns) "
        "JOIN telemetry_series AS x ON x.job_id = s.job_id AND x.name = %s "
        "JOIN telemetry_metricsample AS m ON m.series_id = x.id AND m.at_ns >= s.since_ns + %s AND m.at_ns < %s "
        "ORDER BY x.job_id, x.id, m.at_ns / %s, m.at_ns DESC) AS newest GROUP BY 1, 2 ORDER BY 1, 2"
    )
    end = ns(now - EVERY) // MINUTE_NS * MINUTE_NS
    since = [at // MINUTE_NS * MINUTE_NS for at in times.values()]
    return _points(
        sql, [MINUTE_NS, MINUTE_NS, MINUTE_NS, list(times), since, rule.target, MINUTE_NS, end, MINUTE_NS]
    )


def _points(sql: str, values: list[Any]) -> dict[int, list[Point]]:
    found: dict[int, list[Point]] = {}
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        for job_id, at_ns, value in cursor.fetchall():
            found.setdefault(job_id, []).append(Point(int(at_ns), None if value is None else float(value)))
    return found


def _lag(rule: AlertRule, times: Mapping[int, int], now: datetime) -> dict[int, list[Point]]:
    """Records that waited outside each job at the end of every window of its rates, where its sources told."""
    found: dict[int, list[Point]] = {}
    for pk, since in times.items():
        rows = Rates.objects.filter(job=pk, at_ns__gt=since, at_ns__lte=ns(now)).order_by("at_ns")
        for at_ns, payload in rows.values_list("at_ns", "payload"):
            operators = packed.unpack(payload)["window"]["operators"]
            known = [item["lag_last"] for item in operators if item.get("lag_last") is not None]
            found.setdefault(pk, []).append(Point(at_ns, float(sum(known)) if known else None))
    return found


def _age(job: Job, now: datetime) -> Point:
    return Point(ns(now), (now - (job.last_received_at or job.created_at)).total_seconds())


def _ages(job: Job, since: datetime, now: datetime) -> Iterator[Point]:
    came = list(
        Batch.objects.filter(job=job, received_at__gt=since - timedelta(days=1), received_at__lte=now)
        .order_by("received_at")
        .values_list("received_at", flat=True)
    )
    at = max(since, job.created_at)
    while at <= now:
        place = bisect_right(came, at)
        last = came[place - 1] if place else max(job.created_at, since - timedelta(days=1))
        yield Point(ns(at), (at - last).total_seconds())
        at += EVERY


def _proposals(rule: AlertRule) -> QuerySet[Proposal]:
    found = Proposal.objects.filter(job__group=rule.group_id).select_related("job").defer("payload")
    return (found if rule.job_id is None else found.filter(job=rule.job_id)).order_by("pk")


def _proposal_series(row: Proposal, points: Sequence[Point], gone_ns: int | None = None) -> Series:
    name = f"proposal {row.pk}: {row.kind} {row.job.name}"
    return Series(f"proposal:{row.pk}", name, f"/proposals/{row.pk}", tuple(points), gone_ns, row.job_id)


def _left(row: Proposal, at: datetime) -> Point:
    return Point(ns(at), (row.expires_at - at).total_seconds())


def _expired(rule: AlertRule, since: datetime, now: datetime) -> Iterator[Series]:
    for row in _proposals(rule).filter(expires_at__gt=since, created_at__lte=now):
        decided = row.decided_at or (row.changed_at if row.state != State.PROPOSED else row.expires_at)
        end, at = min(decided, row.expires_at), max(row.created_at, since)
        points = []
        while at < min(end, now):
            points.append(_left(row, at))
            at += EVERY
        yield _proposal_series(row, points, ns(end) if end <= now else None)


def _regressed(rule: AlertRule, since: datetime) -> QuerySet[Proposal]:
    """What was found since then to have made things worse; the verdict's times compare as they are written."""
    return _proposals(rule).filter(verdict__outcome="regressed", verdict__judged_at__gt=since.isoformat())


def _made_worse(rule: AlertRule, since: datetime, now: datetime) -> Iterator[Series]:
    for row in _regressed(rule, since):
        at = datetime.fromisoformat((row.verdict or {})["judged_at"])
        end = at + WORSE_FOR if row.state == State.REGRESSED else row.changed_at
        yield _proposal_series(row, [Point(ns(at), 1.0)], ns(end) if end <= now else None)
