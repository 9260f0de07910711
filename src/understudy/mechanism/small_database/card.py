"""SmallDB as the planner and the documents know it: the widths of its theorems, and where it can be run."""

from __future__ import annotations

from fractions import Fraction

from understudy.mechanism.card import Card, Family
from understudy.mechanism.small_database.classes import MATRIX_LIMIT
from understudy.mechanism.small_database.levels import Enumeration
from understudy.mechanism.small_database.shells import Kind, Shape
from understudy.privacy.event import Selection
from understudy.theory.lectures9_10 import smalldb_best, smalldb_vc_best
from understudy.theory.planned import PRIVACY, PlanInputs, Planned, Width, planned_epsilon

CELLS = "too many cells to run"
DATABASES = "too many small databases to count"


def _width(s: PlanInputs) -> Width:
    design = smalldb_best(s.rows, s.universe or 2, s.queries, planned_epsilon(s), s.beta)
    return design.error, {"alpha": design.alpha, "m": design.m}


def _vc_width(s: PlanInputs) -> Width:
    design = smalldb_vc_best(s.rows, s.universe or 2, s.vc or 1, planned_epsilon(s), s.beta)
    return design.error, {"alpha": design.alpha, "m": design.m}


def _limit(s: PlanInputs, found: Width) -> str:
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


CARD = Card(
    name="SmallDB (exact)",
    family=Family.DATABASE,
    privacy="ε",
    accuracy="α + (2/εn)(ln C(m+K-1, m) + ln 1/β)",
    source="Lectures 9-10, corrected",
    events=(Selection,),
    plans=(
        Planned(
            name="smalldb",
            promises=PRIVACY,
            theorem="Lectures 9-10, Proposition 6 (corrected)",
            width=_width,
            limit=_limit,
            needs=("universe",),
            note="queries are fixed in advance",
        ),
        Planned(
            name="smalldb-vc",
            promises=PRIVACY,
            theorem="Lectures 9-10, Theorem 11 (explicit constants)",
            width=_vc_width,
            limit=_limit,
            needs=("universe", "vc"),
            note="queries are fixed in advance",
        ),
    ),
)
