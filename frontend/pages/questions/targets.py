"""What can be made faster, as it stands in the address, in the database and on the page."""

from __future__ import annotations

import math

from analytics.model.activity import BY_LABEL, ActivityType
from analytics.model.answers import Target, TargetKind
from frontend import words
from frontend.pages.questions.asking import Request

IDLE = (ActivityType.UNKNOWN, ActivityType.WAITING)
FACTORS = (1.5, 2.0, 4.0, math.inf)


def read(text: str, request: Request) -> Target | None:
    """The target of an address: ``operator:map``; None if the job has no such one."""
    kind, _, name = text.partition(":")
    if kind == TargetKind.ACTIVITY:
        code = BY_LABEL.get(name)
        return None if code is None or code in IDLE else Target(TargetKind.ACTIVITY, int(code))
    names = {TargetKind.OPERATOR.value: request.operators, TargetKind.WORKER.value: request.workers}.get(
        kind, {}
    )
    number = next((number for number, known in names.items() if known == name), None)
    return None if number is None else Target(TargetKind(kind), number)


def write(target: Target, request: Request) -> str:
    """The inverse of `read`."""
    if target.kind is TargetKind.ACTIVITY:
        return f"{target.kind.value}:{ActivityType(target.id).label}"
    return f"{target.kind.value}:{name(target, request)}"


def every(request: Request) -> list[Target]:
    """All of a job's operators, workers and types of activity that could be made faster."""
    kinds = [kind for kind in ActivityType if kind not in IDLE]
    return [
        *(Target(TargetKind.OPERATOR, number) for number in request.operators),
        *(Target(TargetKind.WORKER, number) for number in request.workers),
        *(Target(TargetKind.ACTIVITY, int(kind)) for kind in kinds),
    ]


def name(target: Target, request: Request) -> str:
    """The target's own name."""
    if target.kind is TargetKind.ACTIVITY:
        return words.activity(target.id)
    return request.operator(target.id) if target.kind is TargetKind.OPERATOR else request.worker(target.id)


def full(target: Target, request: Request) -> str:
    """The name with what it is, to stand in a list of all kinds."""
    kind = {TargetKind.ACTIVITY: "all", TargetKind.OPERATOR: "operator", TargetKind.WORKER: "worker"}[
        target.kind
    ]
    return f"{kind} {name(target, request)}"


def times(factor: float) -> str:
    """``2×``, ``∞×``."""
    return "∞×" if math.isinf(factor) else f"{factor:g}×"


def factor_text(factor: float) -> str:
    """A factor as it stands in the address."""
    return "infinite" if math.isinf(factor) else f"{factor:g}"
