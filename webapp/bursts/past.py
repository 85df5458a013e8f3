"""How headroom and rates of a cluster went, thinned in the database: what a page draws of a long time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from webapp.bursts.models import HeadroomPoint, ModelVersion
from webapp.bursts.selectors import Standing

MOST_POINTS = 2_000
_PEAK = """
    SELECT max(one.rate)
    FROM bursts_headroompoint AS point CROSS JOIN LATERAL unnest(point.rates) WITH ORDINALITY AS one (rate, place)
    WHERE point.cluster_id = %s AND point.at_ns BETWEEN %s AND %s AND point.version = ANY(%s)
    GROUP BY one.place ORDER BY one.place
"""


class Point(NamedTuple):
    """Headroom at one time, as `webapp.bursts.models.HeadroomPoint` has it."""

    at_ns: int
    ratio: float
    least_after_loss: float | None


@dataclass(frozen=True, slots=True)
class Rates:
    """Earlier rates: the highest of each application (none known: empty), and those of a pair, oldest first."""

    peak: tuple[float, ...]
    trail: tuple[tuple[float, float], ...]


def history(cluster_id: int, from_ns: int, to_ns: int) -> list[Point]:
    """Headroom from one time to another, in order; of very many points every n-th, the last among them."""
    return [Point(*row) for row in _thinned(_points(cluster_id, from_ns, to_ns), "ratio", "least_after_loss")]


def rates(standing: Standing, span: tuple[int, int], pair: tuple[int, int] | None) -> Rates:
    """Earlier rates of the same applications; read once for an answer, however often somebody asks.

    Points of models with other applications, or in another order, are left out: their rates are not these ones.
    """
    if standing.model is None:
        return Rates((), ())
    newest = standing.survey.computed_at if standing.survey is not None else None
    return _rates(standing.cluster.pk, tuple(standing.model.applications), span, pair, newest)


@lru_cache(maxsize=32)
def _rates(
    cluster_id: int,
    applications: tuple[str, ...],
    span: tuple[int, int],
    pair: tuple[int, int] | None,
    _newest: datetime | None,
) -> Rates:
    same = ModelVersion.objects.filter(cluster_id=cluster_id, applications=list(applications))
    versions = list(same.values_list("version", flat=True).distinct())
    with connection.cursor() as cursor:
        cursor.execute(_PEAK, [cluster_id, *span, versions])
        peak = tuple(rate for (rate,) in cursor.fetchall())
    if pair is None:
        return Rates(peak, ())
    rows = _thinned(_points(cluster_id, *span).filter(version__in=versions), *(f"rates__{q}" for q in pair))
    return Rates(peak, tuple((across, up) for _, across, up in rows))


def _points(cluster_id: int, from_ns: int, to_ns: int) -> QuerySet[HeadroomPoint]:
    return HeadroomPoint.objects.filter(cluster_id=cluster_id, at_ns__gte=from_ns, at_ns__lte=to_ns)


def _thinned(rows: QuerySet[HeadroomPoint], *columns: str) -> Sequence[tuple[Any, ...]]:
    """``(at_ns, columns …)`` of at most `MOST_POINTS` rows, evenly by number, the last among them."""
    step = -(-rows.count() // MOST_POINTS) or 1
    if step > 1:
        place = Window(RowNumber(), order_by=F("at_ns").desc())
        rows = rows.annotate(place=place).annotate(rest=F("place") % step).filter(rest=1)
    return list(rows.order_by("at_ns").values_list("at_ns", *columns))
