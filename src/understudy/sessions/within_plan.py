"""What a question within an error of its own may buy, and how much of it is spent on looks.

How precise the sums of a standard deviation have to be depends on how large it is. So where that is not known, it
is looked at with the precision that the middle of what is known needs, which may be enough. If it is not, it is
known better then, and the next look is closer. What is sure to be enough is bought as soon as a look costs about
as much.

Cost    All looks together cost at most a quarter of what is sure to be enough: that is part of the price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from understudy.privacy.cost import Cost
from understudy.query.marginal import Marginal
from understudy.sessions.interval_widths import Widths, cost
from understudy.sessions.knowledge import IntervalTable
from understudy.sessions.purchase import Purchase
from understudy.sessions.within_error import WithinPurchase

NARROWER = 0.7
"""A look is closer than what is known by this factor at least, so that few looks are enough."""

AHEAD = 2.0
"""How many times dearer than a look what is sure to be enough has to be for the look to come first."""

FOR_LOOKS = 0.25
"""What all looks may cost, as a part of what is sure to be enough."""


@dataclass(frozen=True, eq=False)
class WithinPlan:
    """What a question within an error may buy.

    first    the counts that are asked for before, within the session's width, so that the rows are known
    counts   what these buy
    look     marginals and widths that may be enough, where they cost much less than what is sure to be
    wanted   marginals and widths that are sure to be enough
    widths   these widths, one for each marginal of the question
    looks    what all looks may cost, as purchases
    within   what is sure to be enough; by what is expected where `first` is not empty
    price    the most that all of it costs
    fewest   of how few rows of a group that goes by what is expected; None where it goes by none
    """

    first: list[Marginal]
    counts: list[Purchase]
    look: list[tuple[Marginal, float]]
    wanted: list[tuple[Marginal, float]]
    widths: Widths
    looks: list[WithinPurchase]
    within: list[WithinPurchase]
    price: Cost
    fewest: float | None = None

    @property
    def purchases(self) -> list[Purchase]:
        """All that may be bought, at most."""
        return [*self.counts, *self.looks, *self.within]


def wider(wanted: Sequence[tuple[Marginal, float]]) -> list[tuple[Marginal, float]]:
    """The widths that cost the part of what is wanted that is for looks; under a pure ε they cost a bit more."""
    return [(marginal, width / sqrt(FOR_LOOKS)) for marginal, width in wanted]


def is_ahead(tables: Sequence[IntervalTable], look: Widths, sure: Widths) -> bool:
    """Whether a look at known intervals comes before what is sure to be enough."""
    return 0 < AHEAD * cost(tables, look) < cost(tables, sure)
