"""How precisely a round measures each residual of the marginals that it picked: as far as it is not known yet.

A marginal C that is measured by itself, with noise of variance v in each cell, tells the residual of A ⊆ C with
the precision 1/(v·Π_{i ∈ C∖A} k_i), and pays for all of them: of a table of two by two cells three quarters of the
price go to the number of rows and to the two single columns, which are known, and two triples that share a pair
pay for it twice. So a round adds up, over its marginals, the precision that each residual would get, and buys what
is missing. What it saves makes all precisions larger, until the price is spent:

    bought_A = max(s·wanted_A - known_A, `LEAST`·s·wanted_A),   with s such that the price is that of the round.

`LEAST` is for the bars: they rest on noise that was drawn in the round, and on no earlier one (`beta`). With that
much of every residual it is known beforehand which marginals have noise that can be drawn (`can_be_drawn`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.noise.law import MAX_VARIANCE
from understudy.query.residuals import parts_of

Values = NDArray[np.float64]

LEAST = 0.2
"""Of the precision that is wanted of a residual: bought in every round, however well it is known."""

HALVINGS = 60
"""Of the interval in which s lies: more change nothing."""


@dataclass(frozen=True, eq=False)
class TopUp:
    """What a round wants to know, and what is known.

    `shares` are those of the picked marginals in the round's price, of which the whole would measure one marginal
    with the precision `whole`, 1/σ². `known` tells the precision 1/τ of a residual.
    """

    shares: Mapping[Clique, float]
    whole: float
    known: Callable[[Clique], float]

    def precisions(self, residuals: Residuals) -> Values:
        """Of each residual's combinations, up to a common factor, which follows from the price.

        The price of a precision is taken for that of a row that is added. Where rows are replaced it is about as
        much more for all of them.
        """
        domain = residuals.domain
        size = {name: domain[name].size for name in domain.names}
        wanted = dict.fromkeys(residuals.cliques, 0.0)
        for clique, share in self.shares.items():
            for part in parts_of(tuple(name for name in clique if size[name] > 1)):
                if part in wanted:
                    others = prod(size[name] for name in clique if name not in part)
                    wanted[part] += self.whole * share / others
        # A combination has k times the difference of a cell from the mean, along each attribute.
        scale = np.array([prod(size[name] ** 2 for name in part) for part in residuals.cliques], np.float64)
        known = np.array([self.known(part) for part in residuals.cliques])
        return topped_up(np.array(list(wanted.values())), known, residuals.price / scale, self.whole) / scale


def can_be_drawn(cells: int, precision: float) -> bool:
    """Whether noise can be drawn for all residuals of a marginal of so many cells.

    `precision` is what its share of the round's price would measure the marginal with by itself. What is measured
    of the residual of A has Π_{i ∈ A} k_i times its length, so its noise has the precision
    `LEAST`·precision/(Π_{i ∈ A} k_i²·Π_{i ∈ C∖A} k_i) at least, but for a factor of 2 where rows are replaced, and
    for a step of the precisions: together less than 3.
    """
    return 3.0 * cells**2 <= LEAST * precision * MAX_VARIANCE


def topped_up(wanted: Values, known: Values, price: Values, whole: float) -> Values:
    """max(s·wanted - known, `LEAST`·s·wanted), with s such that Σ price·this is `whole`."""

    def bought(s: float) -> Values:
        return np.maximum(s * wanted - known, LEAST * s * wanted)

    low, high = 0.0, 1.0
    while bought(high) @ price < whole:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if bought(middle) @ price < whole else (low, middle)
    return bought(high)
