"""What this program can run, of what the theorems promise: by the limits that the mechanisms keep themselves.

A theorem does not mind a universe of 10^14 cells. A mechanism that holds every cell, or counts every small
database, refuses it; such an option is shown, and recommended to nobody. An answer here is the reason, or empty.
"""

from __future__ import annotations

from fractions import Fraction

from understudy.mechanism.small_database.classes import MATRIX_LIMIT
from understudy.mechanism.small_database.levels import Enumeration
from understudy.mechanism.small_database.shells import Kind, Shape
from understudy.planner.inputs import PlanInputs
from understudy.planner.widths import Width
from understudy.standin.dense.weights import DENSE_LIMIT
from understudy.standin.median.median import can_be_held
from understudy.theory.lecture4 import claim1_size_min

CONSTRUCTED_CELLS = 1 << 26
"""Cells up to which a release constructs a table of all of them: that of `releases.methods`, which is above."""

CELLS = "too many cells to run"
DATABASES = "too many small databases to count"


def none(s: PlanInputs, found: Width) -> str:
    """It can be run at any size."""
    del s, found
    return ""


def smalldb(s: PlanInputs, found: Width) -> str:
    """All cells are compared on all queries, and all databases of m rows counted one by one.

    Thresholds and hierarchies are counted without that, and reach larger m; what the queries are, the planner does
    not know.
    """
    cells, size = s.universe or 2, int(found[1].get("m", 1))
    if cells * s.queries > MATRIX_LIMIT:
        return CELLS
    rate = Fraction(s.epsilon or 1) / (2 * size)
    if Enumeration.admits(Shape(Kind.ANY, s.queries, cells), size, s.rows, rate):
        return ""
    return f"{DATABASES}, but for thresholds and hierarchies"


def constructed(s: PlanInputs, found: Width) -> str:
    """The iterative construction holds every cell."""
    del found
    return CELLS if (s.universe or 2) > CONSTRUCTED_CELLS else ""


def dense(s: PlanInputs, found: Width) -> str:
    """Multiplicative weights hold every cell."""
    del found
    return CELLS if (s.universe or 2) > DENSE_LIMIT else ""


def median_update(s: PlanInputs, found: Width) -> str:
    """All databases of the size that Claim 1 asks for, at gaps of half the width, are held."""
    size = claim1_size_min(s.queries, min(found[0], 1.0) / 2)
    return "" if can_be_held(s.universe or 2, size) else DATABASES


def median(s: PlanInputs, found: Width) -> str:
    """All databases of the lecture's n' rows are held."""
    return "" if can_be_held(s.universe or 2, int(found[1].get("n_prime", 1))) else DATABASES
