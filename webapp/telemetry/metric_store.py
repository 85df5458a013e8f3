"""Metric samples into their table: series by digest, numbers by COPY.

A number that is there already is replaced, so a sample sent twice is one. Most deliveries bring new ones only,
and the plain COPY succeeds; only if one of its rows exists are they merged through a temporary table.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from numpy.typing import NDArray
from psycopg.errors import CheckViolation, UniqueViolation

from analytics.decode.known import Known
from analytics.model.diagnostics import Diagnostic
from analytics.model.metrics import MetricSample as MetricValue
from analytics.model.samples import MetricBatch, Numbered, Series, batch_of
from analytics.model.trace import Int64
from webapp.jobs.models import Job
from webapp.ops.binary_copy import HEADER, TRAILER
from webapp.ops.partitions import DAY_NS, check_days, ensure_days
from webapp.telemetry import models
from webapp.telemetry.numbered import Kept

_TABLE = "telemetry_metricsample"
HOUR_NS = 3_600_000_000_000
SETTLE = timedelta(minutes=2)
"""How long an hour waits for more samples before it is rolled up."""

MAX_CACHED = 500_000
_digests: Known[Series, bytes] = Known(16 << 20)
"""Of series seen before: computing a digest takes longer than all else about a sample."""

_ids: dict[tuple[int, bytes], int] = {}
"""Ids of committed series of this process; ids and jobs are never given twice, so an entry is right or gone."""

_OF_NUMBERS = Kept(2)
"""The same by the numbers of a decoder: of a series the job that it was last stored for, and its id there."""

_ROW = np.dtype(
    [
        ("fields", ">i2"), ("size_1", ">i4"), ("series", ">i8"), ("size_2", ">i4"), ("at_ns", ">i8"),
        ("size_3", ">i4"), ("value", ">f8"),
    ]
)  # fmt: skip


def digest_of_series(name: str, labels: Sequence[tuple[str, str]]) -> bytes:
    """What tells a series from all others of its job, 16 bytes; ``labels`` are sorted."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (name, *(text for pair in labels for text in pair)):
        data = part.encode()
        digest.update(struct.pack(">I", len(data)) + data)
    return digest.digest()


def from_values(values: Iterable[MetricValue]) -> MetricBatch:
    """Single samples as a batch."""
    positions: dict[Series, int] = {}
    rows = [
        (
            positions.setdefault(Series(item.name, item.labels), len(positions)),
            item.at_ns,
            item.value,
            0,
            False,
        )
        for item in values
    ]
    return batch_of(tuple(positions), rows)


def put(job: Job, batch: MetricBatch) -> tuple[int, tuple[Diagnostic, ...]]:
    """Store a batch's samples; returns how many, and what became of the others. Call it inside a transaction.

    A stale sample ends its series. Samples of series above the job's limit are left out under
    ``too_many_series``: other series and other jobs go on.
    """
    if not len(batch):
        return 0, ()
    ids, used = _known_ids(job, batch)
    new = np.flatnonzero(used & (ids < 0))
    if len(new):
        ids[new] = _series_ids(job, [batch.series[at] for at in new.tolist()])
        _remember_numbers(job, batch, new, ids[new])
    series = ids[batch.position]
    kept = series >= 0
    _end(series[kept & batch.stale], batch.at_ns[kept & batch.stale])
    stored = kept & ~batch.stale
    if stored.any():
        _write(series[stored], batch.at_ns[stored], batch.value[stored])
        _note_for_rollup(job, batch.at_ns[stored])
    over = int(np.count_nonzero(~kept))
    if not over:
        return int(np.count_nonzero(kept)), ()
    example = f"job {job.name} has {settings.WEIR_MAX_SERIES_PER_JOB} series, as many as it may"
    return int(np.count_nonzero(kept)), (Diagnostic("too_many_series", over, example),)


def all_known(job: Job, batch: MetricBatch) -> bool:
    """Whether storing this batch adds rows of samples and touches nothing of any series."""
    ids, used = _known_ids(job, batch)
    return bool((ids[used] >= 0).all()) and not batch.stale.any()


def _known_ids(job: Job, batch: MetricBatch) -> tuple[Int64, NDArray[np.bool_]]:
    """The ids of the batch's series, -1 where it takes more to find them, and which have samples."""
    used = np.zeros(len(batch.series), np.bool_)
    used[batch.position] = True
    if batch.numbered is None:
        return np.full(len(used), -1, np.int64), used
    owners, ids = _OF_NUMBERS.get(batch.numbered)
    return np.where(owners == job.pk, ids, -1), used


def _remember_numbers(job: Job, batch: MetricBatch, at: NDArray[np.intp], ids: Int64) -> None:
    if batch.numbered is not None:
        numbering, numbers = batch.numbered
        made = Numbered(numbering, numbers[at[ids >= 0]])
        transaction.on_commit(lambda: _OF_NUMBERS.keep(made, job.pk, ids[ids >= 0]))


def _series_ids(job: Job, series: Sequence[Series]) -> list[int]:
    """The id of each series, made now if it is new; -1 where the job may have no more."""
    digests = [_digests.get(item) or _digest(item) for item in series]
    job_id = job.pk
    cached = [_ids.get((job_id, digest), -1) for digest in digests]
    if -1 not in cached:
        return cached
    known = {digest: pk for digest, pk in zip(digests, cached, strict=True) if pk >= 0}
    fresh = {digest: item for digest, item in zip(digests, series, strict=True) if digest not in known}
    if fresh:
        made = _look_up(job, fresh)
        if missing := {digest: item for digest, item in fresh.items() if digest not in made}:
            made |= _create(job, missing)
        known |= made
        transaction.on_commit(lambda: _remember(job.pk, made))
    return [known.get(digest, -1) for digest in digests]


def _digest(series: Series) -> bytes:
    size = len(series.name) + sum(len(name) + len(value) for name, value in series.labels)
    return _digests.keep(series, digest_of_series(series.name, series.labels), size)


def _remember(job_id: int, made: Mapping[bytes, int]) -> None:
    if len(_ids) + len(made) > MAX_CACHED:
        _ids.clear()
    _ids.update({(job_id, digest): pk for digest, pk in made.items()})


def _look_up(job: Job, wanted: Mapping[bytes, Series]) -> dict[bytes, int]:
    rows = models.Series.objects.filter(job=job, digest__in=list(wanted)).values_list("digest", "id", "kind")
    found = {bytes(digest): (pk, kind) for digest, pk, kind in rows}
    for digest, (pk, kind) in found.items():
        if kind == "unknown" != (told := wanted[digest].kind):
            models.Series.objects.filter(pk=pk).update(kind=told)
    return {digest: pk for digest, (pk, _) in found.items()}


def _create(job: Job, wanted: Mapping[bytes, Series]) -> dict[bytes, int]:
    """The caller holds the job's row lock, so nobody else makes series of it now."""
    room = settings.WEIR_MAX_SERIES_PER_JOB - models.Series.objects.filter(job=job).count()
    rows = [
        models.Series(job=job, name=item.name, labels=dict(item.labels), digest=digest, kind=item.kind)
        for digest, item in list(wanted.items())[: max(0, room)]
    ]
    models.Series.objects.bulk_create(rows, batch_size=5_000)
    return {bytes(row.digest): row.pk for row in rows}


def _end(series: Int64, at_ns: Int64) -> None:
    if not len(series):
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE telemetry_series SET ended_ns = greatest(ended_ns, said.at_ns) FROM "
            "(SELECT id, max(at_ns) AS at_ns FROM unnest(%s::bigint[], %s::bigint[]) AS t(id, at_ns) GROUP BY id) "
            "AS said WHERE telemetry_series.id = said.id",
            [series.tolist(), at_ns.tolist()],
        )


def _write(series: Int64, at_ns: Int64, value: NDArray[np.float64]) -> None:
    days = _steps(at_ns, DAY_NS)
    check_days(len(days))
    if (np.diff(series) <= 0).any():
        order = np.lexsort((at_ns, series))
        series, at_ns, value = series[order], at_ns[order], value[order]
    rows = _rows(series, at_ns, value)
    if not _copied(rows):
        ensure_days(_TABLE, days)
        if not _copied(rows):
            _merge(rows)


def _copied(rows: bytes) -> bool:
    """Whether all could be added: none is there already, and their days have partitions."""
    try:
        with transaction.atomic():
            _copy(_TABLE, rows)
    except (
        UniqueViolation,
        CheckViolation,
    ):  # COPY ends outside what Django wraps, so these are psycopg's own
        return False
    return True


def _steps(times_ns: Int64, length_ns: int) -> list[int]:
    """The beginnings of the days or hours that these times fall into."""
    first, last = int(times_ns.min()) // length_ns, int(times_ns.max()) // length_ns
    if last - first <= 1:  # nearly always, and sorting the times costs more
        return [step * length_ns for step in range(first, last + 1)]
    return [step * length_ns for step in np.unique(times_ns // length_ns).tolist()]


def _merge(rows: bytes) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE IF NOT EXISTS incoming (series_id bigint, at_ns bigint, "
            "value double precision, number bigint GENERATED ALWAYS AS IDENTITY) ON COMMIT DROP"
        )
        cursor.execute("TRUNCATE incoming")
        _copy("incoming", rows)
        cursor.execute(
            "INSERT INTO telemetry_metricsample (series_id, at_ns, value) SELECT DISTINCT ON (series_id, at_ns) "
            "series_id, at_ns, value FROM incoming ORDER BY series_id, at_ns, number DESC "
            "ON CONFLICT (series_id, at_ns) DO UPDATE SET value = excluded.value"
        )


def _copy(table: str, rows: bytes) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} (series_id, at_ns, value) FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.write(HEADER + rows + TRAILER)


def _rows(series: Int64, at_ns: Int64, value: NDArray[np.float64]) -> bytes:
    """Rows in the binary COPY format, all at once."""
    rows = np.empty(len(series), _ROW)
    rows["fields"], rows["size_1"], rows["size_2"], rows["size_3"] = 3, 8, 8, 8
    rows["series"], rows["at_ns"], rows["value"] = series, at_ns, value
    return rows.tobytes()


def _note_for_rollup(job: Job, at_ns: Int64) -> None:
    """Have these hours rolled up. Touching the row makes a roll-up under way wait, or come again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO telemetry_rollupdue (job_id, hour_ns, not_before) "
            "SELECT %s, hour_ns, %s FROM unnest(%s::bigint[]) AS t(hour_ns) "
            "ON CONFLICT (job_id, hour_ns) DO UPDATE SET not_before = telemetry_rollupdue.not_before",
            [job.pk, timezone.now() + SETTLE, _steps(at_ns, HOUR_NS)],
        )
