"""Asking a Flink cluster over REST: which jobs there are, and how one of them stands.

Every answer is bounded in size and time. What Flink does not tell is missing from the result, never zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from analytics.decode.flink_counters import (
    counter_queries,
    decode_listed_counters,
    decode_memory,
    decode_metric_list,
    memory_queries,
    metric_queries,
    pending_record_names,
)
from analytics.decode.flink_rest import (
    REST_LIMITS,
    JobSummary,
    decode_checkpoints,
    decode_job,
    decode_jobs_overview,
    decode_rescales,
    refusal,
)
from analytics.decode.limits import UnreadableFileError
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.topology import (
    Checkpoints,
    InstanceCounters,
    JobPoll,
    MemoryUse,
    Operator,
    Rescale,
    Topology,
)
from workers.collectors.http import FetchError, fetch, make_client

_Answer = TypeVar("_Answer")
_Value = TypeVar("_Value")

WITHIN_S = 10.0
OK, NOT_FOUND = 200, 404
MEMORY_EVERY_NS = 5_000_000_000


class FlinkError(Exception):
    """The cluster cannot be asked, or refused; the message is one line for people."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    """A job's answers to one poll, and what was odd about them."""

    poll: JobPoll
    diagnostics: tuple[Diagnostic, ...]


class FlinkCluster:
    """A JobManager's REST API. One may be used by several threads."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._client = make_client()
        self._memory: tuple[int, MemoryUse | None] = (0, None)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def jobs(self) -> tuple[tuple[JobSummary, ...], tuple[Diagnostic, ...]]:
        """The jobs the cluster knows, finished ones too."""
        return self._decoded("/jobs/overview", decode_jobs_overview)

    def poll(self, job_id: str, at_ns: int) -> Asked:
        """A job's graph, the counters of every instance, and what waits in its sources."""
        topology, odd = self._decoded(f"/jobs/{job_id}", decode_job)
        counters: list[InstanceCounters] = []
        told = [*odd]
        lags: list[tuple[str, float]] = []
        sources = {operator.id for operator in topology.sources()}
        for operator in topology.operators:
            found, odd = self._counters(topology, job_id, operator, at_ns)
            counters += found
            told += odd
            if operator.id in sources and (lag := self._lag(job_id, operator)) is not None:
                lags.append((operator.id, lag))
        return Asked(JobPoll(at_ns, topology, tuple(counters), tuple(lags), self.memory(at_ns)), merge(told))

    def memory(self, at_ns: int) -> MemoryUse | None:
        """How short of memory the TaskManagers are, asked for once for all jobs; None if they do not tell."""
        asked_ns, known = self._memory
        if at_ns - asked_ns >= MEMORY_EVERY_NS:
            known = self._ask_memory()
            self._memory = at_ns, known
        return known

    def _ask_memory(self) -> MemoryUse | None:
        path = "/taskmanagers/metrics"
        try:
            return decode_memory([self._get(f"{path}?{query}") for query in memory_queries()])
        except FlinkError as error:
            if error.status is None:
                raise
        except UnreadableFileError:
            pass  # what memory there is must not keep the counters from being stored
        return None

    def checkpoints(self, job_id: str) -> Checkpoints | None:
        """The job's checkpoints; None if the cluster does not tell."""
        found = self._if_there(f"/jobs/{job_id}/checkpoints")
        return None if found is None else _read(f"/jobs/{job_id}/checkpoints", found, decode_checkpoints)[0]

    def rescales(self, job_id: str) -> tuple[Rescale, ...]:
        """The job's rescales as far as the cluster keeps them; none before Flink 2.3."""
        path = f"/jobs/{job_id}/rescales/history"
        found = self._if_there(path)
        return () if found is None else _read(path, found, decode_rescales)[0]

    def _counters(
        self, topology: Topology, job_id: str, operator: Operator, at_ns: int
    ) -> tuple[tuple[InstanceCounters, ...], tuple[Diagnostic, ...]]:
        path = f"/jobs/{job_id}/vertices/{operator.id}/metrics"
        bodies = [self._get(f"{path}?{query}") for query in counter_queries(operator.parallelism)]
        return _read(path, bodies, lambda answers: decode_listed_counters(answers, operator, topology, at_ns))

    def _lag(self, job_id: str, operator: Operator) -> float | None:
        """Records that wait in a source; None if one of its instances does not tell."""
        path = f"/jobs/{job_id}/vertices/{operator.id}/metrics"
        names = pending_record_names(_read(path, self._get(path), decode_metric_list))
        told: dict[str, float | None] = {}
        for query in metric_queries(names):
            told |= _read(path, self._get(f"{path}?{query}"), decode_metric_list)
        known = [value for name in names if (value := told.get(name)) is not None]
        return sum(known) if names and len(known) == len(names) >= operator.parallelism else None

    def _decoded(self, path: str, decode: Callable[[bytes], _Value]) -> _Value:
        return _read(path, self._get(path), decode)

    def _if_there(self, path: str) -> bytes | None:
        try:
            return self._get(path)
        except FlinkError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def _get(self, path: str) -> bytes:
        try:
            answer = fetch(
                self._client, self.address + path, max_bytes=REST_LIMITS.max_bytes, within_s=WITHIN_S
            )
        except FetchError as error:
            raise FlinkError(f"{self.address}{path}: {error}") from error
        if answer.status != OK:
            said = refusal(answer.body) or answer.reason
            raise FlinkError(f"{path} was answered with {answer.status}: {said}", answer.status)
        return answer.body


def _read(path: str, answer: _Answer, decode: Callable[[_Answer], _Value]) -> _Value:
    try:
        return decode(answer)
    except UnreadableFileError as error:
        raise FlinkError(f"the answer to {path} cannot be read: {error}") from error
