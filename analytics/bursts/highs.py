"""HiGHS, set up the way every program here needs it: one thread, warm simplex, tight tolerances."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]

INFINITY = float("inf")
FEASIBILITY = 1e-9
"""Of scaled rows and reduced costs; HiGHS's own default of 1e-7 would cost headroom its seventh digit."""
HIGHS_FEASIBILITY = 1e-7
_ENDS = (
    highspy.HighsModelStatus.kOptimal,
    highspy.HighsModelStatus.kUnbounded,
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)


class SolverError(RuntimeError):
    """HiGHS gave up on a program that has an answer."""


@dataclass(frozen=True)
class Bounds:
    """The least and most of each row or column."""

    lower: Floats
    upper: Floats


def maximiser(matrix: sparse.csc_array, cost: Floats, columns: Bounds, rows: Bounds) -> highspy.Highs:
    """A warm solver of: maximise cost · x within the bounds of x and of matrix · x.

    Entries of the matrix that are there but 0 stay there, for those that are to change.
    """
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = columns.lower, columns.upper
    program.row_lower_, program.row_upper_ = rows.lower, rows.upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    program.a_matrix_.index_ = matrix.indices.astype(np.int32)
    program.a_matrix_.value_ = matrix.data
    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        # Presolve would make every question start cold.
        ("presolve", "off"),
        ("solver", "simplex"),
        # Devex: at these sizes steepest-edge weights take longer to compute than they save.
        ("simplex_dual_edge_weight_strategy", 1),
    ):
        highs.setOptionValue(option, value)
    _set_tolerance(highs, FEASIBILITY)
    highs.passModel(program)
    return highs


def solved(highs: highspy.Highs) -> highspy.HighsModelStatus:
    """Solve from the last basis; where that leads nowhere, from none, then with HiGHS's own tolerances."""
    highs.run()
    status: highspy.HighsModelStatus = highs.getModelStatus()
    for tolerance in (FEASIBILITY, HIGHS_FEASIBILITY):
        if status in _ENDS:
            break
        _set_tolerance(highs, tolerance)
        highs.clearSolver()
        highs.run()
        status = highs.getModelStatus()
        _set_tolerance(highs, FEASIBILITY)
    return status


def _set_tolerance(highs: highspy.Highs, tolerance: float) -> None:
    """Of rows and of reduced costs."""
    for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(option, tolerance)
