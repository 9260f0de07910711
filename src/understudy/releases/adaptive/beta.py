"""Which error bars a release may tell, and how β, the probability that some bar fails, is shared by its steps.

The rule for every bar
    A bar rests on a weighted sum of noises. It may use a noise only with a weight that was fixed before that noise
    was drawn, and its half-width must be fixed by then as well, or belong to one of several half-widths that were
    listed beforehand and pay for each of them (`sequential`). A proof about a bar therefore has to name the last
    decision that its weights depend on, and to use no noise from before it.

    What would break the rule is to add up the precisions of all measurements that were made in the end and to
    read a normal quantile off the sum: how often a marginal is measured depends on noise that is in the sum.
    Measuring again whenever the first number lies within 1.96 standard deviations, and then averaging, makes a bar
    of nominal 5% fail in 8.3% of all cases.

The shares
    A quantile depends on the logarithm of its probability, so most of β goes where most cells are: 8 parts of 10
    to the last sweep, 1 to the measurements of the rounds, 1 to the 1-way marginals. A sweep over pairs alone
    leaves one part more to the 1-way marginals, and one to the last gaps, which bound what it does not measure.
    The number of rows, where it is private, has its twelfth of β before that: it is bought before all else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import sqrt

from understudy.domain.domain import Clique, Domain

ROWS_PART = Fraction(1, 12)
"""Of β, for the number of rows where it is private."""


@dataclass(frozen=True, kw_only=True)
class BetaShares:
    """The probabilities with which the bars of each step may fail; they sum to β at most."""

    rows: Fraction
    one_way: Fraction
    picks: Fraction
    gaps: Fraction
    sweep: Fraction

    @classmethod
    def of(
        cls, beta: Fraction, *, private_rows: bool, pairs: bool, sweep: bool, sweeps_workload: bool
    ) -> BetaShares:
        """By public facts: whether the number of rows is `private_rows`, whether the workload has `pairs` to look
        at, whether there is a last `sweep`, and whether that one is over the workload itself.
        """
        rows = beta * ROWS_PART if private_rows else Fraction(0)
        if not pairs:
            parts = (10, 0, 0, 0)
        elif not sweep:
            parts = (2, 6, 2, 0)
        else:
            parts = (1, 1, 0, 8) if sweeps_workload else (2, 1, 1, 6)
        one_way, picks, gaps, last = (Fraction(part, 10) * (beta - rows) for part in parts)
        return cls(rows=rows, one_way=one_way, picks=picks, gaps=gaps, sweep=last)

    @property
    def after_first(self) -> Fraction:
        """What rounds and a sweep have: where the 1-way marginals are measured again instead, it is theirs."""
        return self.picks + self.gaps + self.sweep

    @property
    def with_first_again(self) -> dict[str, Fraction]:
        """The shares by name, where the 1-way marginals were measured again."""
        return {"rows": self.rows, "one_way": self.one_way, "first again": self.after_first}


def cells_to_cover(domain: Domain, clique: Clique, *, rows_public: bool) -> int:
    """The cells of a marginal whose errors can fail apart from each other.

    Where the number of rows is public, the two cells of a binary attribute are told so that they sum to it: their
    errors are opposite, and one bar is about both.
    """
    size = domain.size(clique)
    return 1 if rows_public and len(clique) == 1 and size == 2 else size


def beta_of_cells(
    domain: Domain, cliques: Iterable[Clique], beta: Fraction, *, rows_public: bool, alike: bool = False
) -> dict[Clique, Fraction]:
    """β of each cell of each marginal; over all cells to be covered they sum to `beta` at most.

    A marginal's part grows with the square root of its cells, between one part for each marginal, which makes the
    bars of large ones long, and one for each cell, which does that to small ones. Where all marginals are `alike`,
    each has one part, as direct questions have: bars are then longer than theirs by one factor.
    """
    cells = {clique: cells_to_cover(domain, clique, rows_public=rows_public) for clique in cliques}
    parts = {
        clique: Fraction(1) if alike else Fraction(round(1000 * sqrt(count)), 1000)
        for clique, count in cells.items()
    }
    whole = sum(parts.values())
    return {clique: beta * parts[clique] / whole / count for clique, count in cells.items()}


def beta_of_swept(
    domain: Domain,
    cliques: Sequence[Clique],
    orders: Sequence[int],
    beta: Fraction,
    *,
    rows_public: bool,
    alike: bool = False,
) -> dict[Clique, Fraction]:
    """β of each cell of swept cliques, and of the marginals of these orders in them; all their bars hold jointly
    but for `beta`.
    """
    parts = [part for order in orders for clique in cliques for part in combinations(clique, order)]
    whole = dict.fromkeys((*cliques, *parts))
    return beta_of_cells(domain, whole, beta, rows_public=rows_public, alike=alike)
