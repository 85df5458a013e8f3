"""Timelines of single windows: asked for by a page, computed by a worker, kept while the result stands."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from django.db import transaction
from django.utils import timezone

from analytics.decode.chrome_out import chrome_trace
from analytics.model import edges as edge_bytes
from webapp.analysis import edge_index
from webapp.analysis.edge_index import EdgeIndex
from webapp.analysis.models import Timeline, TimelineState, Window
from webapp.jobs.models import Job
from webapp.queue import enqueue

TASK = "workers.tasks.timeline.compute"
LOST_AFTER_S = 30
KEPT_EDGES = 2_000_000
"""How many decoded edges a process keeps, about 80 bytes each: what a page zooms into is decoded once."""

_decoded: OrderedDict[tuple[int, int], EdgeIndex] = OrderedDict()
_decoding = Lock()


def timeline(job: Job, start_ns: int) -> Timeline | None:
    """The timeline of the window that starts there, without its edges; asked for now if it is missing or outdated.

    None if the window has no result. A queued one comes back with state ``queued``: ask again shortly.
    """
    run_id = Window.objects.filter(job=job, start_ns=start_ns).values_list("run_id", flat=True).first()
    if run_id is None:
        return None
    rows = Timeline.objects.filter(job=job, start_ns=start_ns).defer("payload")
    row = rows.first()
    if row is not None and not _must_be_asked_for(row, run_id):
        return row
    with transaction.atomic():
        _, created = Timeline.objects.get_or_create(job=job, start_ns=start_ns, defaults={"run_id": run_id})
        locked = rows.select_for_update().get()
        if created or _must_be_asked_for(locked, run_id):
            locked.run_id, locked.state, locked.error = run_id, TimelineState.QUEUED, ""
            locked.save(update_fields=("run_id", "state", "error", "requested_at"))
            transaction.on_commit(lambda: enqueue(TASK, locked.pk, queue="interactive"))
    return locked


def _must_be_asked_for(row: Timeline, run_id: int) -> bool:
    waited_s = (timezone.now() - row.requested_at).total_seconds()
    return row.run_id != run_id or (row.state == TimelineState.QUEUED and waited_s > LOST_AFTER_S)


def opened(row: Timeline) -> EdgeIndex:
    """The edges of a timeline that is ready, in order; kept, since a page looks at them again and again.

    Raises ``LookupError`` if it is not ready any more.
    """
    key = (row.pk, row.run_id)
    with _decoding:  # of several requests for a window only the first decodes it
        found = _decoded.get(key)
        if found is None:
            ready = Timeline.objects.filter(pk=row.pk, run_id=row.run_id, state=TimelineState.READY)
            payload = ready.values_list("payload", flat=True).first()
            if payload is None:
                raise LookupError("the timeline was outdated meanwhile")
            found = _decoded[key] = edge_index.index(edge_bytes.decode(payload))
        _decoded.move_to_end(key)
        while len(_decoded) > 1 and sum(len(kept.edges.src) for kept in _decoded.values()) > KEPT_EDGES:
            _decoded.popitem(last=False)
    return found


def as_chrome_trace(row: Timeline) -> bytes:
    """A timeline that is ready as a Chrome trace, which Perfetto opens; names for the numbers of its job.

    Raises ``LookupError`` as `opened` does.
    """
    workers = dict(row.job.workers.values_list("number", "name"))
    operators = dict(row.job.operators.values_list("number", "name"))
    return b"".join(chrome_trace([opened(row).edges], _listed(workers), _listed(operators)))


def _listed(names: dict[int, str]) -> list[str]:
    return [names.get(number, "") for number in range(max(names, default=-1) + 1)]


def store(timeline_id: int, run_id: int, payload: bytes) -> None:
    """Keep a computed timeline, unless the window was analysed again meanwhile."""
    Timeline.objects.filter(pk=timeline_id, run_id=run_id).update(state=TimelineState.READY, payload=payload)


def fail(timeline_id: int, run_id: int, error: str) -> None:
    """Keep why a timeline could not be computed, unless the window was analysed again meanwhile."""
    Timeline.objects.filter(pk=timeline_id, run_id=run_id).update(
        state=TimelineState.FAILED, error=error[:2000]
    )


def retry(job: Job, start_ns: int) -> None:
    """Compute a timeline again that failed."""
    failed = Timeline.objects.filter(job=job, start_ns=start_ns, state=TimelineState.FAILED)
    for pk in failed.values_list("pk", flat=True):
        failed.update(state=TimelineState.QUEUED, requested_at=timezone.now(), error="")
        enqueue(TASK, pk, queue="interactive")
