"""What this program can run, of what the theorems promise: by the limits that the mechanisms keep themselves.

A theorem does not mind a universe of 10^14 cells. A mechanism that holds every cell, or counts every small
database, refuses it; such an option is shown, and recommended to nobody. An answer here is the reason, or empty.
"""

from __future__ import annotations

from understudy.mechanism.small_database.card import CELLS, DATABASES
from understudy.standin.dense.weights import DENSE_LIMIT
from understudy.standin.median.median import can_be_held
from understudy.theory.lecture4 import claim1_size_min
from understudy.theory.planned import PlanInputs, Width

CONSTRUCTED_CELLS = 1 << 26
"""Cells up to which a release constructs a table of all of them: that of `releases.methods`, which is above."""


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
