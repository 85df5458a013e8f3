"""Answers of Flink's REST API (1.18 to 2.3): jobs, their graph, checkpoints, rescales and resource requirements.

The counters of the instances are read by ``flink_counters``, what happened between two answers by
``flink_windows``. Facts about the API: ``docs/static/generated/rest_v1_dispatcher.yml`` of apache/flink, and what
2.3.0 was seen to answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from analytics.decode.batch import Oddities, clean_name
from analytics.decode.json_fields import LATEST_MS, JsonObject, items, mapping, text, whole
from analytics.decode.limits import Budget, Limits, UnreadableFileError
from analytics.model.diagnostics import Diagnostic
from analytics.model.topology import Checkpoint, Checkpoints, Edge, Operator, Rescale, Topology

REST_LIMITS = Limits(max_bytes=32 << 20, max_records=200_000)
"""For one answer: its bytes, and the jobs, operators, edges, instances or metrics in it."""

Diagnostics = tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A line of the overview of jobs. ``scheduler`` is "" before Flink 2.3."""

    id: str
    name: str
    state: str
    scheduler: str
    started_at_ms: int | None


def load(body: bytes, limits: Limits = REST_LIMITS) -> tuple[object, Budget]:
    """The JSON of an answer, and what is left for its parts.

    Raises
    ------
    UnreadableFileError
        If it is no JSON; ``TooLargeError`` if it is longer than the limit.
    """
    budget = Budget(limits)
    budget.take_bytes(len(body))
    try:
        return orjson.loads(body), budget
    except orjson.JSONDecodeError as error:
        raise UnreadableFileError(f"no JSON: {error}") from error


def load_object(body: bytes, field: str, limits: Limits = REST_LIMITS) -> tuple[JsonObject, Budget]:
    """The JSON object of an answer that must have this field, and what is left for its parts.

    Raises
    ------
    UnreadableFileError
        If it is something else, an error message of Flink for instance.
    """
    document, budget = load(body, limits)
    if not isinstance(document, dict) or field not in document:
        raise UnreadableFileError(refusal(body) or f"expected an object with {field}")
    return document, budget


def refusal(body: bytes) -> str:
    """Why Flink refused, in one line without its stack trace; "" if the body is no refusal."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    errors = document.get("errors") if isinstance(document, dict) else None
    if not isinstance(errors, list) or not errors:
        return ""
    lines = [line.strip() for item in errors if isinstance(item, str) for line in item.split("\n")]
    told = [line for line in lines if line and not line.startswith(("at ", "<Exception", "Internal server"))]
    said = told[0] if told else "Flink refused without saying why"
    name, colon, rest = said.partition(": ")
    return (rest if colon and "." in name and " " not in name else said)[:500]


def decode_jobs_overview(body: bytes) -> tuple[tuple[JobSummary, ...], Diagnostics]:
    """The jobs of a cluster, from ``/jobs/overview``.

    Raises
    ------
    UnreadableFileError
        If the answer is something else. A job without id is counted under ``missing_field``.
    """
    document, budget = load_object(body, "jobs")
    oddities = Oddities()
    jobs = []
    for at, job in enumerate(items(document, "jobs")):
        budget.take_records()
        job_id = text(job, "jid")
        if not job_id:
            oddities.add("missing_field", f"job {at} has no jid")
            continue
        name = clean_name(text(job, "name")) or job_id
        jobs.append(
            JobSummary(job_id, name, text(job, "state"), text(job, "schedulerType"), _time(job, "start-time"))
        )
    return tuple(jobs), oddities.diagnostics()


def decode_job(body: bytes) -> tuple[Topology, Diagnostics]:
    """A job's graph and state, from ``/jobs/:id``.

    Flink keeps this page for 3 s: operators may be those of a moment ago, while ``now`` is fresh.

    Raises
    ------
    UnreadableFileError
        If the answer is something else. A vertex that cannot be used is left out and counted under
        ``missing_field`` or ``duplicate_operator``, an edge of an unknown vertex under ``unknown_operator``.
    """
    document, budget = load_object(body, "vertices")
    oddities = Oddities()
    operators: dict[str, Operator] = {}
    for at, vertex in enumerate(items(document, "vertices")):
        budget.take_records()
        operator = _operator(vertex)
        if operator is None:
            oddities.add("missing_field", f"vertex {at} has no id or no parallelism")
        elif operator.id in operators:
            oddities.add("duplicate_operator", f"vertex {operator.id} is there twice")
        else:
            operators[operator.id] = operator
    job_id = text(document, "jid")
    topology = Topology(
        job_id=job_id,
        job_name=clean_name(text(document, "name")) or job_id,
        state=text(document, "state"),
        at_ms=_time(document, "now"),
        operators=tuple(operators.values()),
        edges=_edges(mapping(document, "plan"), operators, budget, oddities),
        scheduler=text(document, "schedulerType"),
        max_parallelism=_positive(document, "maxParallelism"),
        started_at_ms=_time(document, "start-time"),
        running_since_ms=_time(mapping(document, "timestamps"), "RUNNING"),
    )
    return topology, oddities.diagnostics()


def decode_checkpoints(body: bytes) -> tuple[Checkpoints, Diagnostics]:
    """The counts and the latest checkpoints, newest first, from ``/jobs/:id/checkpoints``.

    Raises
    ------
    UnreadableFileError
        If the answer is something else. A checkpoint without number or time is counted under ``missing_field``.
    """
    document, budget = load_object(body, "history")
    oddities = Oddities()
    counts = mapping(document, "counts")
    history = []
    for at, item in enumerate(items(document, "history")):
        budget.take_records()
        checkpoint = _checkpoint(item)
        if checkpoint is None:
            oddities.add("missing_field", f"checkpoint {at} has no id or no trigger_timestamp")
        else:
            history.append(checkpoint)
    known = {state: whole(counts, state) for state in sorted(counts)}
    told = tuple((state, count) for state, count in known.items() if count is not None)
    return Checkpoints(told, tuple(history)), oddities.diagnostics()


def decode_rescales(body: bytes) -> tuple[tuple[Rescale, ...], Diagnostics]:
    """Rescales, from ``/jobs/:id/rescales/history`` (a list) or ``…/details/:uuid`` (one, with its operators).

    Flink 2.3 has these if ``web.adaptive-scheduler.rescale-history.size`` is above 0; else it refuses.

    Raises
    ------
    UnreadableFileError
        If the answer is something else. A rescale without id or start is counted under ``missing_field``.
    """
    document, budget = load(body)
    found = [document] if isinstance(document, dict) and "rescaleUuid" in document else document
    if not isinstance(found, list):
        raise UnreadableFileError(refusal(body) or "expected a list of rescales, or one")
    oddities = Oddities()
    rescales = []
    for at, item in enumerate(found):
        budget.take_records()
        rescale = _rescale(item) if isinstance(item, dict) else None
        if rescale is None:
            oddities.add("missing_field", f"rescale {at} has no rescaleUuid or no startTimestampInMillis")
        else:
            rescales.append(rescale)
    return tuple(rescales), oddities.diagnostics()


def decode_requirements(body: bytes) -> dict[str, tuple[int, int]]:
    """Least and most parallelism asked for by operator id, from ``/jobs/:id/resource-requirements``.

    Raises
    ------
    UnreadableFileError
        If the answer is something else or leaves anything out: what is put back must be complete.
    """
    document, budget = load(body)
    if not isinstance(document, dict) or "errors" in document:
        raise UnreadableFileError(refusal(body) or "expected an object with a parallelism for each vertex")
    bounds = {}
    for operator_id, wanted in document.items():
        budget.take_records()
        parallelism = mapping(wanted, "parallelism") if isinstance(wanted, dict) else {}
        lower, upper = whole(parallelism, "lowerBound"), whole(parallelism, "upperBound")
        if lower is None or upper is None:
            raise UnreadableFileError(f"vertex {operator_id:.60} has no lowerBound or no upperBound")
        bounds[operator_id] = (lower, upper)
    return bounds


def decode_settings(body: bytes) -> dict[str, str]:
    """A configuration as key and value, from ``/jobs/:id/jobmanager/config`` or ``/jobmanager/config``.

    Raises
    ------
    UnreadableFileError
        If the answer is something else.
    """
    document, budget = load(body)
    if not isinstance(document, list):
        raise UnreadableFileError(refusal(body) or "expected a list of keys and values")
    pairs = [item for item in document if isinstance(item, dict)]
    budget.take_records(len(pairs))
    return {text(item, "key"): text(item, "value") for item in pairs if text(item, "key")}


def _operator(vertex: JsonObject) -> Operator | None:
    operator_id, parallelism = text(vertex, "id"), _positive(vertex, "parallelism")
    if not operator_id or parallelism is None:
        return None
    return Operator(
        id=operator_id,
        name=clean_name(text(vertex, "name")) or operator_id,
        parallelism=parallelism,
        max_parallelism=_positive(vertex, "maxParallelism"),
        state=text(vertex, "status"),
        started_at_ms=_time(vertex, "start-time"),
    )


def _edges(
    plan: JsonObject, operators: dict[str, Operator], budget: Budget, oddities: Oddities
) -> tuple[Edge, ...]:
    edges = []
    for node in items(plan, "nodes"):
        target = text(node, "id")
        for arrow in items(node, "inputs"):
            budget.take_records()
            source = text(arrow, "id")
            if source in operators and target in operators:
                edges.append(Edge(source, target, text(arrow, "ship_strategy")))
            else:
                oddities.add("unknown_operator", f"the plan has an edge from {source:.60} to {target:.60}")
    return tuple(edges)


def _checkpoint(item: JsonObject) -> Checkpoint | None:
    number, started_at_ms = whole(item, "id"), _time(item, "trigger_timestamp")
    if number is None or started_at_ms is None:
        return None
    state = text(item, "status")
    running = state == "IN_PROGRESS"
    ended_at_ms = _time(item, "failure_timestamp") or _time(item, "latest_ack_timestamp")
    return Checkpoint(
        id=number,
        state=state,
        started_at_ms=started_at_ms,
        ended_at_ms=None if running else ended_at_ms,
        duration_ms=None if running else _not_negative(item, "end_to_end_duration"),
        state_bytes=_not_negative(item, "state_size") if state == "COMPLETED" else None,
        is_savepoint=item.get("is_savepoint") is True,
        failure=text(item, "failure_message")[:500],
    )


def _rescale(item: JsonObject) -> Rescale | None:
    rescale_id, started_at_ms = text(item, "rescaleUuid"), _time(item, "startTimestampInMillis")
    if not rescale_id or started_at_ms is None:
        return None
    vertices = mapping(item, "vertices")
    changes = [
        (vertex_id, _positive(vertex, "preRescaleParallelism"), _positive(vertex, "postRescaleParallelism"))
        for vertex_id, vertex in vertices.items()
        if isinstance(vertex, dict)
    ]
    return Rescale(
        id=rescale_id,
        outcome=text(item, "terminalState"),
        trigger=text(item, "triggerCause"),
        reason=text(item, "terminatedReason"),
        started_at_ms=started_at_ms,
        ended_at_ms=_time(item, "endTimestampInMillis"),
        changes=tuple(sorted(changes, key=lambda change: change[0])),
    )


def _time(item: JsonObject, field: str) -> int | None:
    """A time in ms since 1970; Flink writes 0 or -1 for none."""
    value = whole(item, field)
    return value if value is not None and 0 < value <= LATEST_MS else None


def _positive(item: JsonObject, field: str) -> int | None:
    value = whole(item, field)
    return value if value is not None and value > 0 else None


def _not_negative(item: JsonObject, field: str) -> int | None:
    value = whole(item, field)
    return value if value is not None and value >= 0 else None
