"""A last sweep over pairs for their bars alone, where noise is too large for a sweep that teaches much.

Example: at epsilon 0.1 a sweep over pairs takes more from the rounds than it tells a stand-in of the Adult table.
Without one, pairs that no round measured have bars that are made of others, up to 2.4 times as long as those of
direct questions, which have an equal part of the price each. Residuals serve all pairs at once, so that a sixth
to a half of the parts of all pairs is enough to have none longer: a tenth of the price on that table.

Bars of small workloads cost a larger part, up to nearly all of it where nothing but pairs is told. So this sweep
is made only where there is more in the workload, and for at most `MOST` of the price.

How much it takes is forecast before anything is measured (`forecast_share`), for the shares of other steps. Once
rare values have been merged, which makes residuals fewer, it is found exactly, and so much is kept for it
(`BarsReserve`). Pairs whose bars are short by what a round measures, by the last noisy gaps, or since no cell of a
column holds many people, need no sweep: what was kept for them goes to the rounds that follow, or to the last one.
All of this depends on public numbers, released counts and gaps, and plans, and is fixed before the noise is drawn
that a bar rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist, median

import numpy as np

from understudy.domain.domain import Clique, Domain
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.privacy.cost import rounded_down
from understudy.query.workload import Workload
from understudy.releases.adaptive.beta import BetaShares, beta_of_cells
from understudy.releases.adaptive.sweep import PAIRS, Sweep, SweepPlan
from understudy.releases.adaptive.sweep_choice import can_be_drawn
from understudy.releases.evidence import Interval, ProvedIntervals

MOST = Fraction(1, 4)
"""Of the price, at most."""

USUAL_BETA = Fraction(1, 20)
"""For the forecast, which hardly depends on it: quantiles of the sweep and of direct questions grow together."""

AIM = 1.001
"""The price is so much more than what makes the longest bar just short enough: precisions are taken in steps."""

TURNS, CLOSE = 16, 0.99
"""Other prices that are tried, at most; how long the longest bar may be left. Bars grow as 1/√price but for
rounding, so that the second or third price fits.
"""


def forecast_share(
    domain: Domain, workload: Workload, pairs: Sequence[Clique], told: int, *, precision: float, rows: float
) -> Fraction:
    """The part of the price for which all `pairs` have bars as short as direct questions would give them.

    `told` marginals share the price of direct questions, of which the whole would buy the `precision`, 1/σ², on
    one. It is 0 where there is nothing to gain: where that part is more than `MOST`, where the workload has pairs
    alone, where direct questions would tell nothing of a typical pair, with bars of half of all `rows`, and where
    the sweep's noise would be too large to be drawn.
    """
    if not pairs or all(len(clique) <= 2 for clique in workload):
        return Fraction(0)
    shares = BetaShares.of(USUAL_BETA, private_rows=False, pairs=True, sweep=True, sweeps_workload=False)
    betas = beta_of_cells(domain, pairs, shares.sweep, rows_public=True, alike=True)
    residuals = Residuals.of(Workload.of(domain, pairs), total=False)
    if not residuals.cliques:
        return Fraction(0)
    precisions = residuals.precisions()
    precisions /= float(precisions @ residuals.price)
    variances = residuals.variances(precisions, residuals.largest)
    direct = [sqrt(told) * _quantile(USUAL_BETA / told / domain.size(pair)) for pair in pairs]
    if median(direct) >= sqrt(precision) * rows / 2:
        return Fraction(0)
    swept = [sqrt(v) * _quantile(betas[pair]) for v, pair in zip(variances.tolist(), pairs, strict=True)]
    needed = max((own / limit) ** 2 for own, limit in zip(swept, direct, strict=True))
    if needed > MOST or not can_be_drawn(precisions * needed * precision):
        return Fraction(0)
    return Fraction(round(1000 * needed), 1000)


def _quantile(beta: Fraction) -> float:
    return -NormalDist().inv_cdf(float(beta) / 2)


@dataclass(eq=False)
class BarsReserve:
    """The price that is kept for a sweep over those pairs whose bars are longer than direct questions would have.

    `intervals` are those that were proved. `plan` is that of a sweep over some pairs for a price, and `widest` has
    the bars of direct questions. `beta` is that of all bars of the sweep. `missing` are the pairs without bars
    that are short enough, and `price` what a sweep over them takes, or `most` if that is more.
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
        self.leave_out_told()
        self._find_price()

    def measured(self, plan: SweepPlan, beta: Fraction) -> None:
        """Leave out the pairs that have short bars by what a round will measure; `beta` is that of its bars."""
        betas = plan.beta_of_cells(beta, PAIRS)
        told = {pair: self.widest[pair] for pair in self.missing if pair in betas}
        self._leave_out({pair for pair, ratio in plan.bars_over(told, betas).items() if ratio <= 1})

    def leave_out_told(self, bounds: Mapping[Clique, Interval] | None = None) -> None:
        """Leave out the pairs with short bars by what was proved of their columns, and of themselves by `bounds`.

        All that is proved holds jointly, so that it may be looked at first.
        """
        paid = bounds or {}

        def length(pair: Clique) -> float:
            told = self.intervals.answer(pair, np.zeros(self.domain.shape(pair)), paid.get(pair))
            return float((told.high - told.low).max())

        self._leave_out({pair for pair in self.missing if length(pair) <= 2 * self.widest[pair]})

    def _leave_out(self, short: AbstractSet[Clique]) -> None:
        if short:
            self.missing = tuple(pair for pair in self.missing if pair not in short)
            self._find_price()

    def betas(self, swept: SweepPlan | Sweep) -> dict[Clique, Fraction]:
        """β of each cell of the pairs that a sweep is over, which all have the same part of it."""
        return swept.beta_of_cells(self.beta, PAIRS, alike=True)

    def _find_price(self) -> None:
        """The least price that is enough, but for one hundredth, sought from the present one on."""
        if not self.missing:
            self.price = Fraction(0)
            return
        price, found = min(self.price, self.most), self.most
        widest = {pair: self.widest[pair] for pair in self.missing}
        for _ in range(TURNS):
            plan = self.plan(self.missing, price)
            ratio = max(plan.bars_over(widest, self.betas(plan)).values(), default=0.0)
            if ratio <= 1:
                found = min(found, price)
            if CLOSE <= ratio <= 1 or not ratio or (ratio > 1 and price == self.most):
                break
            price = min(rounded_down(price * Fraction(ratio * ratio * AIM)), self.most)
        self.price = found
