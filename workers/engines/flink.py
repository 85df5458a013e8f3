"""Flink's REST API: declaring how many instances each operator may have (FLIP-291, Flink 1.18 and later).

A PUT *declares* bounds for all vertices and is answered before anything happens, so what comes of it is polled.
The lower bound is always 1: a higher one that the slots do not allow is ignored without an error. There is no
version to write against, the last writer wins, so everything is read again just before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from analytics.decode.flink_rest import (
    decode_job,
    decode_requirements,
    decode_rescales,
    decode_settings,
    refusal,
)
from analytics.decode.limits import UnreadableFileError
from analytics.model.reconfigurations import Observed, binding_of
from analytics.model.topology import Topology
from workers.engines.base import (
    Change,
    EngineError,
    Exchange,
    Note,
    RefusedByEngineError,
    Request,
    UnreachableError,
)
from workers.engines.http import ask, parsed

AUTOSCALERS = ("job.autoscaler", "kubernetes.operator.job.autoscaler")


class FlinkEngine:
    """The jobs of one JobManager at ``url``."""

    def __init__(self, url: str, note: Note | None = None) -> None:
        self.url = url.rstrip("/")
        self.note = note

    def observe(self, engine_job_id: str) -> Observed:
        """See ``base.Engine``."""
        topology = self._topology(engine_job_id, self.note)
        asked, told = self._requirements(engine_job_id)
        settings = self._settings(engine_job_id)
        return Observed(
            binding_of(topology), topology.state, _settled(topology), asked, owner(settings),
            _refusal(topology, settings) or told,
        )  # fmt: skip

    def progress(self, engine_job_id: str) -> Observed:
        """See ``base.Engine``."""
        kept: list[Exchange] = []  # a poll goes on record only if it brings nothing: there are many
        try:
            topology = self._topology(engine_job_id, kept.append)
        except EngineError:
            if self.note is not None:
                for item in kept:
                    self.note(item)
            raise
        return Observed(binding_of(topology), topology.state, _settled(topology))

    def preview(self, change: Change, seen: Observed | None) -> Request:
        """See ``base.Engine``: every vertex is named, since Flink refuses a body that leaves one out."""
        now = {} if seen is None else {key: most for key, _, most in seen.asked or ()}
        return self._put(change.engine_job_id, now | dict(change.parallelism))

    def revert(self, change: Change, before: Observed | None, seen: Observed | None) -> Request:
        """See ``base.Engine``."""
        if before is None or before.asked is None:
            return self.preview(change, seen)
        return self._put(change.engine_job_id, {key: most for key, _, most in before.asked})

    def apply(self, request: Request) -> None:
        """See ``base.Engine``."""
        body = json.dumps(request["body"]).encode()
        headers = {"Content-Type": "application/json"}
        answer = ask(request["method"], request["url"], self.note, body=body, headers=headers)
        if answer.is_server_error and not refusal(answer.content):
            raise UnreachableError(_said(answer))  # not Flink's words but a proxy's: it may have arrived
        if answer.status_code != httpx.codes.OK:
            raise RefusedByEngineError(_said(answer))

    def arrived(self, request: Request, seen: Observed | None) -> bool:
        """See ``base.Engine``."""
        wanted = {key: _bounds(item) for key, item in request["body"].items()}
        return seen is not None and {key: (least, most) for key, least, most in seen.asked or ()} == wanted

    def record(self, engine_job_id: str, since_ms: int) -> Any:
        """See ``base.Engine``: Flink 2.3 keeps rescales if it is told to."""
        history = ask("GET", self._job(engine_job_id, "/rescales/history"), self.note)
        try:
            rescales, _ = decode_rescales(history.content)
        except UnreadableFileError:
            return None
        ours = [item for item in rescales if item.started_at_ms >= since_ms]
        if not ours:
            return None
        latest = max(ours, key=lambda item: item.started_at_ms)
        found = ask("GET", self._job(engine_job_id, f"/rescales/details/{latest.id}"), self.note)
        return parsed(found) if found.status_code == httpx.codes.OK else None

    def _job(self, engine_job_id: str, rest: str = "") -> str:
        return f"{self.url}/jobs/{engine_job_id}{rest}"

    def _put(self, engine_job_id: str, most: Mapping[str, int]) -> Request:
        body = {key: {"parallelism": {"lowerBound": 1, "upperBound": count}} for key, count in most.items()}
        return {"method": "PUT", "url": self._job(engine_job_id, "/resource-requirements"), "body": body}

    def _topology(self, engine_job_id: str, note: Note | None) -> Topology:
        answer = ask("GET", self._job(engine_job_id), note)
        try:
            return decode_job(answer.content)[0]
        except UnreadableFileError as error:
            raise _unread(answer) from error

    def _requirements(self, engine_job_id: str) -> tuple[tuple[tuple[str, int, int], ...] | None, str]:
        answer = ask("GET", self._job(engine_job_id, "/resource-requirements"), self.note)
        try:
            found = decode_requirements(answer.content)
        except UnreadableFileError:
            return None, f"Flink does not tell its requirements: {_said(answer)}"
        return tuple((key, *bounds) for key, bounds in sorted(found.items())), ""

    def _settings(self, engine_job_id: str) -> dict[str, str]:
        """What the JobManager is configured with, over it what the job was submitted with."""
        answer = ask("GET", self._job(engine_job_id, "/jobmanager/config"), self.note)
        try:
            settings = decode_settings(answer.content)
        except UnreadableFileError:
            settings = {}  # before Flink 1.16 there is no such page
        try:
            job = ask("GET", self._job(engine_job_id, "/config"), self.note).json()
            own = job["execution-config"]["user-config"]
        except (ValueError, KeyError, TypeError):
            own = {}
        return settings | (
            {str(key): str(value) for key, value in own.items()} if isinstance(own, dict) else {}
        )


def owner(settings: Mapping[str, str]) -> str:
    """Who else decides the parallelism of a job with these settings; "" if nobody does."""
    for prefix in AUTOSCALERS:
        enabled = settings.get(f"{prefix}.enabled", "").lower() == "true"
        if enabled and settings.get(f"{prefix}.scaling.enabled", "true").lower() == "true":
            return f"Flink's autoscaler ({prefix}.enabled is true)"
    if settings.get("scheduler-mode", "").lower() == "reactive":
        return "whoever adds TaskManagers, such as KEDA or an HPA (scheduler-mode is reactive)"
    return ""


def _refusal(topology: Topology, settings: Mapping[str, str]) -> str:
    if topology.state != "RUNNING":
        return f"the job is {topology.state or 'in no known state'}, not RUNNING"
    scheduler = topology.scheduler or settings.get("jobmanager.scheduler", "")
    if scheduler.lower() != "adaptive":
        return f"its scheduler is {scheduler or 'unknown'}: only the adaptive one changes a running job"
    return ""


def _settled(topology: Topology) -> bool:
    return topology.state == "RUNNING" and all(item.state == "RUNNING" for item in topology.operators)


def _bounds(item: Any) -> tuple[int, int]:
    return item["parallelism"]["lowerBound"], item["parallelism"]["upperBound"]


def _unread(answer: httpx.Response) -> EngineError:
    """What an answer to a look amounts to that is not what was asked for: only 4xx are a word about the job."""
    kind = RefusedByEngineError if answer.is_client_error else UnreachableError
    return kind(_said(answer))


def _said(answer: httpx.Response) -> str:
    return f"Flink answered {answer.status_code}: {refusal(answer.content) or answer.text[:200] or 'nothing'}"
