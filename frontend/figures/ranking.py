"""The few groups that matter, and the rest in one: what a chart draws and its list names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from frontend.figures.base import Values
from webapp.analysis.shares import Share

TOP = 6


@dataclass(frozen=True, eq=False)
class Series:
    """One group: name, CP and profile over the range (shares of 1) and per step. ``kind`` is an activity code."""

    name: str
    cp: float
    profile: float
    cp_steps: Values
    profile_steps: Values
    kind: int = 0
    members: tuple[tuple[str, float, float], ...] = ()


def ranked(
    shares: Sequence[Share],
    name: Callable[[Share], str],
    profile_total: float = 1.0,
    kind: Callable[[Share], int] | None = None,
    always: Callable[[Share], bool] = lambda share: False,
) -> list[Series]:
    """The top six by CP in that order, then "others (n)".

    ``profile_total`` divides the conventional profile; shares for which ``always`` holds are never hidden.
    """
    ordered = sorted(shares, key=lambda share: (-share.cp, -share.conventional, share.key))
    kept = [share for i, share in enumerate(ordered) if i < TOP or always(share) or len(ordered) == TOP + 1]
    rest = [share for share in ordered if share not in kept]
    total = profile_total or 1.0
    rows = [
        Series(
            name(share), share.cp, share.conventional / total, share.cp_steps, share.conventional_steps / total,
            kind(share) if kind else 0,
        )
        for share in kept
    ]  # fmt: skip
    return [*rows, _others(rest, name, total)] if rest else rows


def _others(rest: Sequence[Share], name: Callable[[Share], str], total: float) -> Series:
    return Series(
        name=f"others ({len(rest)})",
        cp=sum(share.cp for share in rest),
        profile=sum(share.conventional for share in rest) / total,
        cp_steps=np.sum([share.cp_steps for share in rest], axis=0),
        profile_steps=np.sum([share.conventional_steps for share in rest], axis=0) / total,
        members=tuple((name(share), share.cp, share.conventional / total) for share in rest),
    )
