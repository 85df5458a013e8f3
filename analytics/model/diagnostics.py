"""What was odd about the input: dirty traces give diagnostics, not exceptions."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One kind of oddity: a stable ``code``, how often it was seen, and one example in words."""

    code: str
    count: int
    example: str


def merge(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Add up diagnostics with the same code, keeping the first example; sorted by code."""
    merged: dict[str, Diagnostic] = {}
    for item in diagnostics:
        seen = merged.get(item.code)
        merged[item.code] = Diagnostic(item.code, item.count + seen.count, seen.example) if seen else item
    return tuple(merged[code] for code in sorted(merged))
