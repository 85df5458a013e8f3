"""Pages by key: ``?limit=&after=``, where ``after`` is the ``next`` of the page before.

A page costs the same however far along it is, and rows that come meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request

from webapp.api.problems import ProblemError

DEFAULT_LIMIT, MAX_LIMIT = 100, 1_000
INT64 = 2**63 - 1

M = TypeVar("M", bound=Model)


def page(
    request: Request, rows: QuerySet[M], show: Callable[[M], dict[str, Any]], key: str = "id",
    max_limit: int = MAX_LIMIT, *, newest_first: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """``{"items": […], "next": key or null}``, in the order of ``key``, a whole number that is unique here.

    ``newest_first`` is the other way round.
    """
    limit = whole_number(request, "limit", DEFAULT_LIMIT, low=1, high=max_limit)
    after = whole_number(request, "after", None)
    if after is not None:
        rows = rows.filter(**{f"{key}__{'lt' if newest_first else 'gt'}": after})
    found = list(rows.order_by(f"-{key}" if newest_first else key)[: limit + 1])
    more = len(found) > limit
    shown = found[:limit]
    return {
        "items": [show(row) for row in shown],
        "next": str(getattr(shown[-1], key)) if more else None,
    }


def whole_number(
    request: Request, name: str, default: int | None, *, low: int = -INT64, high: int = INT64
) -> Any:
    """A query parameter.

    Raises
    ------
    ProblemError
        400 if it is no whole number between ``low`` and ``high``.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = int(text) if len(text) <= 20 and text.isascii() else None
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        wrong = f"expected a whole number between {low} and {high}"
        raise ProblemError(
            400, "invalid", "some parameters are wrong", errors=[{"field": name, "detail": wrong}]
        )
    return value
