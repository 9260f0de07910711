"""A last sweep over pairs for their bars alone, where noise is too large for a sweep that teaches much.

Example: at epsilon 0.1 a sweep over pairs takes more from the rounds than it tells a stand-in of the Adult table.
Without one, pairs that no round measured have bars that are made of others, up to 2.4 times as long as those of
direct questions, which have an equal part of the price each. Residuals serve all pairs at once, so that a sixth
to a half of the parts of all pairs is enough to have none longer: a tenth of the price on that table.
Cells of merged values are left out of this: no sweep over groups tells of them.

How much of the price that takes is found once rare values have been merged, which makes residuals fewer, and so
much is kept for it (`BarsReserve`). Pairs whose bars are short by what a round measures, by the last noisy gaps,
or since no cell of a column holds many people, need no sweep: what was kept for them goes to the rounds that
follow, or to the last one. All of this depends on public numbers, released counts and gaps, and plans, and is
fixed before the noise is drawn that a bar rests on. Where little but pairs is told, it may be nearly all of the
price: more than `MOST` is never kept, and then there is no such sweep. What can be said beforehand is in
`BarsForecast`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from statistics import NormalDist, median

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.privacy.cost import rounded_down
from understudy.query.workload import Workload
from understudy.releases.adaptive.beta import BetaShares, beta_of_cells
from understudy.releases.adaptive.sweep import PAIRS, Sweep, SweepPlan
from understudy.releases.adaptive.sweep_choice import can_be_drawn
from understudy.releases.evidence import Interval, ProvedIntervals

Values = NDArray[np.float64]

MOST, MOST_OF_LEFT = Fraction(1, 4), Fraction(1, 2)
"""Of the price, and of what 1-way marginals leave of it, at most."""

SURE = 0.8
"""Of the most: what is forecast to take no more does not take more than the most."""

USUAL_BETA = Fraction(1, 20)
"""For the forecast, which hardly depends on it: quantiles of the sweep and of direct questions grow together."""

AIM = 1.001
"""The price is so much more than what makes the longest bar just short enough: precisions are taken in steps."""

TURNS, CLOSE = 16, 0.99
"""Other prices that are tried, at most; how long the longest bar may be left. Bars grow as 1/√price but for
rounding, so that the second or third price fits.
"""


@dataclass(frozen=True, eq=False)
class BarsForecast:
    """What can be said of such a sweep before anything is measured.

    `told` marginals share the price of direct questions, which as a whole would buy the `precision`, 1/σ², on one.
    """

    domain: Domain
    pairs: Sequence[Clique]
    told: int
    precision: float
    rows: float

    @property
    def is_worth_a_look(self) -> bool:
        """Whether direct questions would tell something of a typical pair, with bars of less than half of all
        rows, and a sweep that is as precise has noise that can be drawn.
        """
        precisions, _ = self._sweep
        typical = median(self._direct) < sqrt(self.precision) * self.rows / 2
        return typical and can_be_drawn(precisions * self.needed * self.precision)

    def is_sure(self, first: Fraction) -> bool:
        """Whether it will be made, as far as a forecast can tell: merging makes it cheaper only. `first` is the
        part of the price for the 1-way marginals.
        """
        return self.is_worth_a_look and self.needed <= SURE * min(MOST, MOST_OF_LEFT * (1 - first))

    @cached_property
    def needed(self) -> float:
        """The part of the price for which all pairs have bars as short as direct questions would give them, if no
        values are merged and nothing else makes them short.
        """
        shares = BetaShares.of(USUAL_BETA, private_rows=False, pairs=True, sweep=True, sweeps_workload=False)
        betas = beta_of_cells(self.domain, self.pairs, shares.sweep, rows_public=True, alike=True)
        _, variances = self._sweep
        bars = [
            sqrt(v) * _quantile(betas[pair]) for v, pair in zip(variances.tolist(), self.pairs, strict=True)
        ]
        return max((bar / direct) ** 2 for bar, direct in zip(bars, self._direct, strict=True))

    @cached_property
    def _direct(self) -> list[float]:
        """Bars of direct questions, if the whole price would buy noise of variance 1 on one of them."""
        return [
            sqrt(self.told) * _quantile(USUAL_BETA / self.told / self.domain.size(pair))
            for pair in self.pairs
        ]

    @cached_property
    def _sweep(self) -> tuple[Values, Values]:
        """Precisions of residuals and variances of pairs, for the price that buys 1 on one marginal."""
        residuals = Residuals.of(Workload.of(self.domain, self.pairs), total=False)
        precisions = residuals.precisions()
        precisions /= float(precisions @ residuals.price)
        return precisions, residuals.variances(precisions, residuals.largest)


def _quantile(beta: Fraction) -> float:
    return -NormalDist().inv_cdf(float(beta) / 2)


@dataclass(eq=False)
class BarsReserve:
    """The price that is kept for a sweep over those pairs whose bars are longer than direct questions would have.

    `intervals` are those that were proved. `plan` is that of a sweep over some pairs for a price, and `widest` has
    the bars of direct questions. `beta` is that of all bars of the sweep. `missing` are the pairs without bars
    that are short enough, and `price` what a sweep over them takes, or nothing if that is more than `most`. The
    price that is given is where the search for it begins.
    """

    domain: Domain
    intervals: ProvedIntervals
    plan: Callable[[Sequence[Clique], Fraction], SweepPlan]
    widest: Mapping[Clique, float]
    beta: Fraction
    most: Fraction
    missing: tuple[Clique, ...]
    price: Fraction

    def __post_init__(self) -> None:
        told = self._told({})
        self.missing = tuple(pair for pair in self.missing if pair not in told)
        self.price = (self._least_price() if self.missing else None) or Fraction(0)

    def measured(self, plan: SweepPlan, beta: Fraction) -> None:
        """Leave out the pairs that have short bars by what a round will measure; `beta` is that of its bars."""
        betas = plan.beta_of_cells(beta, PAIRS)
        told = {pair: self.widest[pair] for pair in self.missing if pair in betas}
        self._leave_out({pair for pair, ratio in plan.bars_over(told, betas).items() if ratio <= 1})

    def bounded(self, bounds: Mapping[Clique, Interval]) -> None:
        """Leave out the pairs that have short bars by the last noisy gaps, or by what was proved of columns."""
        self._leave_out(self._told(bounds))

    def _told(self, bounds: Mapping[Clique, Interval]) -> set[Clique]:
        """The missing pairs with short bars by what was proved. All of that holds jointly: it may be looked at."""

        def length(pair: Clique) -> float:
            told = self.intervals.answer(pair, np.zeros(self.domain.shape(pair)), bounds.get(pair))
            return float((told.high - told.low).max())

        return {pair for pair in self.missing if length(pair) <= 2 * self.widest[pair]}

    def _leave_out(self, short: AbstractSet[Clique]) -> None:
        if short:
            self.missing = tuple(pair for pair in self.missing if pair not in short)
            found = self._least_price() if self.missing else Fraction(0)
            if found is not None:  # a little more where precisions, which are taken in steps, fall badly
                self.price = found

    def betas(self, swept: SweepPlan | Sweep) -> dict[Clique, Fraction]:
        """β of each cell of the pairs that a sweep is over, which all have the same part of it."""
        return swept.beta_of_cells(self.beta, PAIRS, alike=True)

    def _least_price(self) -> Fraction | None:
        """The least price that is enough, but for one hundredth, sought from the present one on; None where `most`
        is not. It is 0 where a sweep would tell nothing of what is missing: public rows, and one group in columns.
        """
        tried, found = min(self.price, self.most), None
        widest = {pair: self.widest[pair] for pair in self.missing}
        for _ in range(TURNS):
            plan = self.plan(self.missing, tried)
            ratio = max(plan.bars_over(widest, self.betas(plan)).values(), default=0.0)
            if ratio == 0:
                return Fraction(0)
            if ratio <= 1:
                found = tried if found is None else min(found, tried)
            if CLOSE <= ratio <= 1 or (ratio > 1 and tried == self.most):
                break
            tried = min(rounded_down(tried * Fraction(ratio * ratio * AIM)), self.most)
        return found
