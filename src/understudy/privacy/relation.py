"""The neighbouring relation: which two tables must be hard to tell apart, and how far they can move a look.

Whatever gets noise is a vector of whole numbers that is a sum over rows, or a number made of such a vector: a row
in cell a of the universe adds the column v_a of a matrix (`columns`). Two neighbouring tables have all rows in
common but

    replace      one row, which lies in cell a of one table and b of the other: the sums differ by v_a - v_b;
    add-remove   the rows a₁, …, a_k of one person, k ≤ m = `max_rows`, which one of the two tables lacks: the
                 sums differ by the sum of their columns.

Every sensitivity of the program follows from five lemmas, in which ‖·‖ is the L1 or the Euclidean norm.

    Lemma 1 (sums)       The sums of neighbours are apart by at most max ‖v_a - v_b‖ under `replace`, and by at
                         most m·max ‖v_a‖ under `add-remove`. Both are attained: by any two rows that are farthest
                         apart, and by m rows that all lie in a longest column, where the triangle inequality is an
                         equality. (`Relation.moves`, `Relation.moves_squared`)
    Lemma 2 (stacks)     Of vectors side by side the L1 distances add up, and so do the squared Euclidean ones. So
                         the sum of the parts' sensitivities bounds that of the whole, and attains it where one
                         pair of neighbours is worst for every part. A vector times a whole number w moves |w|
                         times as far. (`Sensitivity.__add__`, `Sensitivity.__mul__`)
    Lemma 3 (distances)  By the triangle inequality ‖c - g‖₁ moves by at most the L1 sensitivity of c, for every
                         fixed g; of a single count c that is |c - g|. (`Sensitivity.of_distance`)
    Lemma 4 (maps)       A map of each row to a row of another universe, as the merging of values is, takes
                         neighbours to neighbours or to equal tables; so what holds of sums over the rows of the
                         other universe holds of the same sums after the map.
    Lemma 5 (numbers)    A number that is no sum, and that one more row raises by between l and h whatever
                         the other rows are, as the number of different values by 0 or 1, moves no further than a
                         sum over rows of weights between l and h does: under `replace` both tables have the number
                         of their common rows and between l and h more, under `add-remove` the m rows are added
                         one after the other. (`columns.CountColumns` of one cell)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from understudy.errors import ParameterError


class Neighbours(StrEnum):
    """Which two tables must be hard to tell apart, as a declaration names it.

    REPLACE     one row is exchanged for another; the number of rows n is public [Lecture 4, Definition 3(a)].
    ADD_REMOVE  one person's rows are added or removed; n is private.
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far neighbouring tables can be apart, in lattice steps: exact integers."""

    l1: int
    l2_squared: int

    def __add__(self, other: Sensitivity) -> Sensitivity:
        """Of two vectors side by side, by Lemma 2."""
        return Sensitivity(self.l1 + other.l1, self.l2_squared + other.l2_squared)

    def __mul__(self, weight: int) -> Sensitivity:
        """Of the vector times a whole number, by Lemma 2."""
        return Sensitivity(abs(weight) * self.l1, weight**2 * self.l2_squared)

    def repeated(self, times: int) -> Sensitivity:
        """Of so many vectors side by side, each moved so far at most, by Lemma 2."""
        return Sensitivity(times * self.l1, times * self.l2_squared)

    @property
    def of_distance(self) -> Sensitivity:
        """Of the L1 distance of the vector from a public one, which is a single number: Lemma 3."""
        return Sensitivity(self.l1, self.l1**2)


NOTHING = Sensitivity(0, 0)
"""Of a vector that nobody can move."""


class Columns(Protocol):
    """What one row adds to a vector of sums: column v_a of a matrix of whole numbers, for a row in cell a."""

    @property
    def longest(self) -> Sensitivity:
        """At least max ‖v_a‖₁ and max ‖v_a‖², over all cells."""
        ...

    @property
    def farthest(self) -> Sensitivity:
        """At least max ‖v_a - v_b‖₁ and max ‖v_a - v_b‖², over all pairs of cells."""
        ...


@dataclass(frozen=True, slots=True)
class Relation:
    """The declared neighbours, and the most rows that one person can have.

    A person of several rows cannot be replaced row by row: that needs add-remove. Raises ParameterError otherwise,
    and for fewer rows than 1, with which every sensitivity would be 0 and counts be released as they are.
    """

    kind: Neighbours
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise ParameterError(f"a person has at least one row, not {self.max_rows}")
        if self.kind is Neighbours.REPLACE and self.max_rows != 1:
            raise ParameterError(
                "a privacy unit of several rows needs `neighbours: add-remove`: replacing a person "
                "changes the number of rows"
            )

    def __str__(self) -> str:
        """As events name it (`event.Located`): ``replace``, or ``add-remove`` and the rows of a person."""
        return self.kind.value if self.rows_are_public else f"{self.kind.value} {self.max_rows}"

    @property
    def rows_are_public(self) -> bool:
        """Whether all neighbours of a table have as many rows as it has."""
        return self.kind is Neighbours.REPLACE

    # ---- how far neighbours are apart

    def moves(self, columns: Columns) -> Sensitivity:
        """How far neighbours can be apart in a vector to which each row adds one of the columns: Lemma 1."""
        return columns.farthest if self.kind is Neighbours.REPLACE else columns.longest * self.max_rows

    def moves_squared(self, longest: Callable[[], Fraction], farthest: Callable[[], Fraction]) -> Fraction:
        """The same for columns with rational entries, in squared Euclidean norms alone: Lemma 1.

        `longest` finds max ‖v_a‖² and `farthest` max ‖v_a - v_b‖², or more; the one that matters is called.
        """
        return farthest() if self.kind is Neighbours.REPLACE else self.max_rows**2 * longest()

    # ---- what else depends on the relation

    @property
    def steps_to_replace(self) -> int:
        """Steps between neighbours that lead from a table to one in which one row is another.

        One under `replace`; two under `add-remove`: the row is removed, then the other one added. By group privacy
        a look that is ε-DP for neighbours is so with ε times the steps for tables that are so far apart, and one
        that is ρ-zCDP with ρ times their square. [BunSteinke16, Proposition 1.9]
        """
        return 1 if self.kind is Neighbours.REPLACE else 2

    @property
    def cells_of_a_difference(self) -> int:
        """Cells of the universe that must be looked at for what many single counts cost one pair of neighbours.

        Two under `replace`, those of both rows; one under `add-remove`, where all rows of a person may lie in the
        worst cell, which is what each count's own price is made for. (`joint`)
        """
        return 2 if self.kind is Neighbours.REPLACE else 1
