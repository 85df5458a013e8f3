"""Recorded answers of Flink as a collector would have read them."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from analytics.decode.flink_counters import decode_listed_counters
from analytics.decode.flink_rest import decode_job
from analytics.model.topology import InstanceWindow, JobPoll

GOLDEN = Path(__file__).parents[1] / "golden" / "flink"


def answer(name: str) -> bytes:
    """The body of a single recorded answer."""
    document = json.loads((GOLDEN / f"{name}.json").read_bytes())
    recorded = isinstance(document, dict) and "response" in document
    return orjson.dumps(document["response"] if recorded else document)


def series(name: str) -> list[dict[str, Any]]:
    """The polls of a recorded run: time in s since 1970, and bodies by path."""
    lines = gzip.decompress((GOLDEN / f"{name}.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def poll(recorded: dict[str, Any], page: dict[str, Any] | None = None) -> JobPoll:
    """What the decoders make of one poll; ``page`` replaces the job's page."""
    at_ns = round(recorded["t"] * 1e9)
    pages = [body for path, body in recorded["responses"].items() if path.count("/") == 2]
    topology, _ = decode_job(orjson.dumps(page or pages[0]))
    counters = []
    for operator in topology.operators:
        bodies = [
            orjson.dumps(body)
            for path, body in recorded["responses"].items()
            if f"/{operator.id}/metrics?" in path
        ]
        told, _ = decode_listed_counters(bodies, operator, topology, at_ns)
        counters += told
    return JobPoll(at_ns, topology, tuple(counters))


def polls(name: str) -> list[JobPoll]:
    return [poll(recorded) for recorded in series(name)]


def by_name(windows: Sequence[InstanceWindow], of: JobPoll) -> dict[str, list[InstanceWindow]]:
    """The windows of each operator, by the operator's name."""
    names = {operator.id: operator.name for operator in of.topology.operators}
    found: dict[str, list[InstanceWindow]] = {name: [] for name in names.values()}
    for window in windows:
        found[names[window.operator_id]].append(window)
    return found
