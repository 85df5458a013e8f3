"""Selectivities and costs per record from what was measured, with flags where the measurements cannot tell.

The model is linear: twice the input costs twice as much and sends on twice as much. Joins and windows need not
obey, and a cost cannot be told from an input that never changed. Both are said, not guessed over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from analytics.bursts.highs import Floats
from analytics.model.diagnostics import Diagnostic

LITTLE_VARIATION = 0.05
"""Standard deviation of a rate as a share of its mean; below it nothing is learnt about what the rate changes."""
DEPENDENT = 0.1
"""Share by which a selectivity may change over the rates seen before it counts as rate-dependent."""
SURE = 3.0
"""Standard errors."""
CONDITION = 100.0
"""Of the normalised rates; above it the costs of components cannot be told apart."""
_PARTS = 4


@dataclass(frozen=True)
class NodeCosts:
    """What components of one node take of one resource.

    ``cost`` (C,) per record with its ``standard_error``, ``fixed`` at any rate; ``condition`` of the rates they
    were told apart by.
    """

    cost: Floats
    standard_error: Floats
    fixed: float
    condition: float


def selectivity(
    inputs: npt.ArrayLike, outputs: npt.ArrayLike, where: str = ""
) -> tuple[float, tuple[Diagnostic, ...]]:
    """Output per input of a stage, from (T,) records in and out of each window.

    Returns
    -------
    float
        Summed outputs over summed inputs; if it depends on the rate, the largest of four ranges of rates, so that a
        plan made with it is safe. 1 without any input.
    tuple of Diagnostic
        ``rate_dependent_selectivity``, ``little_rate_variation``, ``no_input``; ``where`` is their example.
    """
    came, went = np.asarray(inputs, dtype=float), np.asarray(outputs, dtype=float)
    used = (came > 0) & np.isfinite(came) & np.isfinite(went)
    came, went = came[used], went[used]
    if not len(came):
        return 1.0, (Diagnostic("no_input", 1, where),)
    overall = float(went.sum() / came.sum())
    if len(came) < 2 * _PARTS or came.std() < LITTLE_VARIATION * came.mean():
        return overall, (Diagnostic("little_rate_variation", 1, where),)
    if not _depends(came, went, overall):
        return overall, ()
    order = np.argsort(came, kind="stable")
    ratios = [float(went[part].sum() / came[part].sum()) for part in np.array_split(order, _PARTS)]
    words = f"{where}: {ratios[0]:.3g} at low rates, {ratios[-1]:.3g} at high".lstrip(": ")
    return max(ratios), (Diagnostic("rate_dependent_selectivity", 1, words),)


def _depends(came: Floats, went: Floats, overall: float) -> bool:
    """Whether output per input changes with the input, surely and by much."""
    ratio = went / came
    centred = came - came.mean()
    slope = float(centred @ ratio / (centred @ centred))
    rest = ratio - ratio.mean() - slope * centred
    error = float(np.sqrt(rest @ rest / max(len(came) - 2, 1) / (centred @ centred)))
    spread = float(np.quantile(came, 0.95) - np.quantile(came, 0.05))
    return abs(slope) > SURE * error and abs(slope) * spread > DEPENDENT * overall


def node_costs(
    usage: npt.ArrayLike, rates: npt.ArrayLike, where: str = ""
) -> tuple[NodeCosts, tuple[Diagnostic, ...]]:
    """Costs per record of the components on a shared node, by non-negative least squares.

    Parameters
    ----------
    usage
        (T,) What the node used of a resource in each window, per unit of time.
    rates
        (T, C) Records of each component per unit of time.

    Returns
    -------
    NodeCosts
        Zeros if there are fewer windows than unknowns.
    tuple of Diagnostic
        ``little_rate_variation`` if the rates do not tell the components apart; ``too_few_windows``.
    """
    used, came = np.asarray(usage, dtype=float), np.asarray(rates, dtype=float)
    complete = np.isfinite(used) & np.isfinite(came).all(axis=1)
    used, came = used[complete], came[complete]
    windows, count = came.shape
    if windows < count + 2:
        none = np.zeros(count)
        return NodeCosts(none, none, 0.0, float("inf")), (Diagnostic("too_few_windows", 1, where),)
    columns = np.column_stack([came, np.ones(windows)])
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0] = 1.0
    condition = float(np.linalg.cond(columns / scale))
    found, residual = nnls(columns / scale, used)
    variance = residual**2 / (windows - count - 1)
    inverse = np.linalg.pinv((columns / scale).T @ (columns / scale))
    errors = np.sqrt(np.maximum(np.diag(inverse), 0.0) * variance) / scale
    costs = NodeCosts((found / scale)[:count], errors[:count], float(found[count] / scale[count]), condition)
    if condition > CONDITION:
        words = f"{where}: condition {condition:.3g}".lstrip(": ")
        return costs, (Diagnostic("little_rate_variation", 1, words),)
    return costs, ()
