"""How short of memory a job's processes were, beside the rates that were measured then."""

from __future__ import annotations

from typing import Any

from dash import html

from analytics.model.topology import MemoryUse
from frontend import words

SHORT_GC_RATIO, SHORT_HEAP_RATIO = 0.2, 0.95
"""From here on rates say more about memory than about parallelism; Weir's own judgement, for the colour only."""


def told(use: MemoryUse | None) -> list[Any]:
    """The figures after the other evidence; nothing if the engine reported none."""
    if use is None:
        return []
    known = (
        (use.gc_ratio, "of the time in garbage collection"),
        (use.heap_ratio, "of the heap in use"),
        (use.metaspace_ratio, "of the metaspace in use"),
    )
    said = ", ".join(f"{words.percent(share)} {of}" for share, of in known if share is not None)
    short = (use.gc_ratio or 0) >= SHORT_GC_RATIO or (use.heap_ratio or 0) >= SHORT_HEAP_RATIO
    if not short:
        return [f" · memory: {said}"]
    return [html.Span(f" · short of memory: {said}; more instances may not help", className="warn")]
