"""Whether the last sweep of an adaptive release is over the workload, over pairs, or left out: by forecast error.

Everything is worked out from public numbers: the number of rows, the sizes of the marginals, the price, and how
many numbers may be measured in the time and memory that are allowed.

Noise   A marginal of c cells whose noise has the standard deviation σ, as a rate, is off by (half the L1 distance)

            N(c, σ) = Σ_{i ≤ c} min(0.4·σ, p_i),   p_i = i^(-3/2)/ζ(3/2):

        half of E|x| = 0.8·σ in a cell, but no more than the cell holds once counts are kept positive. What cells
        hold is private; sorted counts of many tables fall about as fast as i^(-3/2). On adult, nltcs and three
        generated tables the forecast was 0.74 to 1.04 times the error of noisy marginals, at epsilon 1 and 10.
Rounds  For a share q of the price they measure about two marginals for each attribute, nearly all of them pairs,
        with an error N_r(q). The stand-in then misses a triple by

            E = 0.7·N_r(q) + S,

        where S is what its tree does not hold: much where every attribute depends on every other, little where
        few do. Nobody knows that beforehand. So S takes each of the values 0.002, 0.004, …, 0.064, and the
        logarithms of the forecasts are averaged. Marginals of other orders follow (order - 1)/2 of that noise.
        Pairs that are asked for themselves and not measured have no larger table to be averaged over: 1.5·S.
Sweep   The variance of each marginal is that of the planned residuals for the share s of the price, and the error
        of what was swept is N_s. A pair is averaged with the stand-in, E/√(1 + (E/N_s)²); a larger marginal, most
        of whose cells hold less than the noise, has less of a weight, E/√(1 + 0.4·(E/N_s)²). A sweep over
        pairs leaves seven tenths of what is wrong with a larger marginal: E·(0.7 + 0.3/√(1 + (E/N_s)²)). It
        measures once more what the rounds did, for s·2d/P of the price, with d attributes and P pairs: in E, q
        grows by half of that, since rounds pick fewer pairs where noise is large. For a workload of pairs it
        is left out.

The mean is not all. A stand-in that is right on average is usually off by half a percent of the rows in some cell
of a triple, and by more in some cell of a pair. Where plain noise on every marginal, or on every pair, would leave
no cell that wrong, these are swept whatever the forecast of the mean says: then the largest error is usually not
above that of plain noise, and pairs have bars of their own. Nor is the mean all where bars are short: a sweep of
nothing but pairs is made where its forecast is close to that without (`SHORT_BARS`).

The constants were fixed on adult, nltcs, classes-12, copula-16 and network-20 of the benchmark, at epsilon 0.1, 1
and 10, but for two: 0.4 was 0.6 before nltcs at 0.3 and network-16 had been seen, and 1.5·S is for survey-40. That
pairs are measured once more is counted since the last sweep measures all of them, by nltcs at 0.1.
What the choice costs there and on other tables is told in docs/release.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, log, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.mechanism.matrix.one_marginal import MAX_WEIGHT
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.noise.law import MAX_VARIANCE
from understudy.query.workload import Workload
from understudy.releases.adaptive.sweep import MOST_SMALL
from understudy.releases.residual.small_bars import MOST

Values = NDArray[np.float64]

ZETA = 2.612375
"""ζ(3/2), the sum of i^(-3/2)."""

MISSED = tuple(0.002 * 2**i for i in range(6))
"""What the tree of a stand-in may miss of a triple, S."""

MARGINALS, AGAIN = 2, 0.5
"""How many marginals rounds measure for each attribute; the part that counts of what a sweep buys of these."""

FOLLOWED, WEIGHED, UNMENDED = 0.7, 0.4, 0.7
"""How much of its measurements' noise a stand-in follows; how much a larger marginal that was swept weighs in the
average with it; the part of a larger marginal's error that a sweep over pairs leaves."""

MOSTLY_NOISE = 0.5
"""Half the L1 error of a sweep's marginals from which on a sweep would take from the rounds and tell nothing."""

LARGEST_NOISE, WORST_CELL = 5.0, {0: 0.005, 2: 0.015}
"""The largest noise of all cells, in standard deviations; the rate by which the worst cell of a stand-in is
usually off, in the workload and in pairs."""

SHORT_BARS = 1.04
"""What the forecast of a sweep of nothing but pairs may be, of the forecast without: it gives all pairs bars that
are no longer than those of direct questions, and about halves the largest error. The pairs of adult at 0.3, town
at 0.1 and mixed-110 at 0.3 are so close; their mean distances are 7, 12 and 27% larger with it, survey-40's at 3
is 8% smaller."""


def noise_error(cells: Values, std: Values) -> Values:
    """N(c, σ): half the L1 error, as a rate, of marginals of so many cells under noise of these deviations."""
    each = np.maximum(0.4 * std, 1e-12)
    above = np.minimum((ZETA * each) ** (-2 / 3), cells)
    known = np.maximum(above, 1.0)
    below = 2 / ZETA * (known**-0.5 - cells**-0.5)
    return np.minimum(above * each + np.maximum(below, 0.0), 1.0)


@dataclass(frozen=True)
class SweepChoice:
    """The last sweep: its share of the price, its order (0: the workload, 2: pairs), and the forecast error.

    A share of 0 is no sweep. `error` is the mean over the workload of half the L1 distance, as a rate.
    """

    share: Fraction
    order: int
    error: float


@dataclass(frozen=True, eq=False)
class SweepForecast:
    """Forecast errors of releases of a workload.

    `precision` is what the whole price buys on one marginal, 1/σ²; `rows` is public or was bought.
    """

    domain: Domain
    workload: Workload
    precision: float
    rows: float
    _plans: dict[int, tuple[Residuals, Values]] = field(default_factory=dict, repr=False)

    def choose(self, options: Sequence[tuple[Fraction, int]], swept: int) -> SweepChoice:
        """The best of several shares and orders, or no sweep.

        None is considered that measures more than `swept` numbers, or that would be mostly noise.
        """
        found = [self.without()]
        for share, order in options:
            cliques = self.swept(order)
            possible = bool(cliques) and can_sweep(self.domain, cliques, swept)
            if possible and self.can_be_drawn(share, order) and self.sweep_error(share, order) < MOSTLY_NOISE:
                found.append(SweepChoice(share, order, self.error(share, order)))
        whole = [one for one in found if one.share and one.order == 0 and self.noise_is_quiet(0)]
        some = [one for one in found if one.share and self.noise_is_quiet(2)]
        larger = any(len(clique) > 2 for clique in self.workload)
        bars = 1.0 if larger else SHORT_BARS
        return min(whole or some or found, key=lambda one: one.error / (bars if one.share else 1.0))

    def noise_is_quiet(self, order: int) -> bool:
        """Whether plain noise on every marginal that a sweep of this order measures would leave no cell as wrong
        as a stand-in usually leaves some.
        """
        return LARGEST_NOISE * self._plain_std(order) <= WORST_CELL[order]

    @property
    def plain_error(self) -> float:
        """Half the L1 error, as a rate, of plain noise on every marginal, where all cells are far above it."""
        return 0.4 * float(np.mean(self._sizes(list(self.workload)))) * self._plain_std(0)

    def _plain_std(self, order: int) -> float:
        return sqrt(len(self.swept(order)) / self.precision) / max(self.rows, 1.0)

    def without(self) -> SweepChoice:
        """The release without a sweep."""
        return SweepChoice(Fraction(0), 0, _middle(self._missed(1.0)))

    def error(self, share: Fraction, order: int) -> float:
        """The mean error if a sweep of that order has that share of the price."""
        larger = float(np.average([len(c) > 2 for c in self.workload], weights=self._weights))
        again = AGAIN * larger * self._picked if order else 0.0
        noise, missed = self.sweep_error(share, order), self._missed(1 - float(share) * (1 - again))
        weight = 1 - (1 - WEIGHED) * larger if order == 0 else 1.0
        unmended = 0.0 if order == 0 else UNMENDED * larger
        return _middle(missed * (unmended + (1 - unmended) / np.sqrt(1 + weight * (missed / noise) ** 2)))

    @property
    def _picked(self) -> float:
        """The part of all pairs that rounds measure."""
        return min(MARGINALS * len(self.domain) / max(len(self.swept(2)), 1), 1.0)

    def sweep_error(self, share: Fraction, order: int) -> float:
        """The mean error of what a sweep measures, by its noise alone."""
        residuals, precisions = self._plan(order)
        swept = residuals.workload
        variance = residuals.variances(precisions, residuals.mean)
        std = np.sqrt(variance / (float(share) * self.precision)) / max(self.rows, 1.0)
        error = np.average(noise_error(self._sizes(swept.cliques), std), weights=_floats(swept.weights))
        return max(float(error), 1e-12)

    def can_be_drawn(self, share: Fraction, order: int) -> bool:
        """Whether noise can be drawn for all residuals: that of a small price on a huge table may be too large.

        Of a sweep over the workload, a part of the price may go to shorter bars of small marginals (`small_bars`).
        """
        _, precisions = self._plan(order)
        larger = any(len(clique) > 2 for clique in self.workload)
        left = 1.0 if order else 1 - (MOST_SMALL if larger else MOST)
        return can_be_drawn(precisions * float(share) * self.precision * left)

    def _plan(self, order: int) -> tuple[Residuals, Values]:
        """What a sweep of this order measures, and how precisely if the whole price buys 1 on one marginal."""
        if order not in self._plans:
            cliques = self.swept(order)
            weights = self.workload.weights if order == 0 else (Fraction(1),) * len(cliques)
            residuals = Residuals.of(Workload.of(self.domain, cliques, weights))
            precisions = residuals.precisions()
            self._plans[order] = residuals, precisions / float(residuals.price @ precisions)
        return self._plans[order]

    def swept(self, order: int) -> list[Clique]:
        """The cliques of a sweep: the workload's, or all pairs below them."""
        return list(self.workload) if order == 0 else pairs_below(self.domain, self.workload)

    @property
    def _weights(self) -> Values:
        return _floats(self.workload.weights)

    def _sizes(self, cliques: Sequence[Clique]) -> Values:
        return np.array([float(self.domain.size(clique)) for clique in cliques])

    def _missed(self, share: float) -> Values:
        """E for each S, if the rounds have that share of the price."""
        pairs = pairs_below(self.domain, self.workload)
        if not pairs:
            return np.array(MISSED)
        std = sqrt(MARGINALS * len(self.domain) / (share * self.precision)) / max(self.rows, 1.0)
        noise = float(np.mean(noise_error(self._sizes(pairs), np.full(len(pairs), std))))
        order = float(np.average([max(len(c) - 1, 1) / 2 for c in self.workload], weights=self._weights))
        small = float(np.average([len(c) <= 2 for c in self.workload], weights=self._weights))
        return order * FOLLOWED * noise + (1 + small / 2) * np.array(MISSED)


def can_be_drawn(precisions: Values) -> bool:
    """Whether noise of these precisions can be drawn, and of a third of them: where rows are replaced, half as
    much is bought as where one is added, and precisions are taken in steps.
    """
    return bool(precisions.size) and float(precisions.min()) * MAX_VARIANCE >= 3.0


def _middle(errors: Values) -> float:
    return exp(float(np.mean([log(error) for error in errors])))


def _floats(weights: Sequence[Fraction]) -> Values:
    return np.array([float(weight) for weight in weights])


def pairs_below(domain: Domain, workload: Workload) -> list[Clique]:
    """All pairs of attributes that a marginal of the workload holds."""
    pairs = {frozenset((a, b)) for clique in workload for i, a in enumerate(clique) for b in clique[:i]}
    return sorted((domain.clique(pair) for pair in pairs), key=lambda c: [domain.position(n) for n in c])


def can_sweep(domain: Domain, cliques: Sequence[Clique], swept: int) -> bool:
    """Whether the residuals below these cliques are at most `swept` numbers, with weights that can be held."""
    sizes = [[domain[name].size for name in clique] for clique in cliques]
    return numbers_swept(domain, cliques) <= swept and max(map(prod, sizes)) <= MAX_WEIGHT


def numbers_swept(domain: Domain, cliques: Sequence[Clique]) -> int:
    """How many numbers a sweep over these cliques measures, at most: their residuals, and those below them."""
    return 2 * sum(map(domain.size, cliques))
