"""The smallest price at which a session's counts keep their error."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import nextafter

import numpy as np
from numpy.typing import NDArray

from understudy.curator.curator import Curator
from understudy.curator.pricing import has_delta_for, pays_for_bounded
from understudy.domain.bins import Bins
from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.additive import amount_for, noise_for, usual_noise, usual_spreads
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.privacy.calibrate import cheapest
from understudy.privacy.event import Event
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Relation, Sensitivity
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import MIN_PARAMETER, exact

MOST_EVENTS = 64
"""Events of purchases that are kept: those of the few questions that are being planned and bought."""


@dataclass(frozen=True, eq=False)
class Calibrator:
    """Finds prices for one session: the Curator's table and ledger, and `width`, the error of answers in people.

    Promise     A price that is found here keeps the stated error with the stated probability, and is the smallest
                that does, up to rounding upwards in its fourth digit.
    Why         Noise at a price has a known law (`mechanism.additive`), whose error falls as the price rises.
    Cost        No privacy: prices are computed from the declaration, the budget and the question alone.
    """

    curator: Curator
    width: int
    relation: Relation = field(init=False)
    """The declared neighbouring relation, with its unit."""
    currency: Currency = field(init=False)
    """What prices are in: `epsilon` for a pure budget, else `rho`."""
    is_pure: bool = field(init=False)
    """Whether the budget is an ε without a δ, so that noise is Laplace and prices are in ε."""
    _sensitivities: dict[tuple[object, ...], Sensitivity] = field(default_factory=dict, repr=False)
    _events: dict[tuple[object, ...], Event] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", self.curator.relation)
        object.__setattr__(self, "currency", self.curator.calibration.currency)
        object.__setattr__(self, "is_pure", usual_noise(self.currency) == "laplace")

    def is_ordered(self, name: str) -> bool:
        """Whether an attribute has ranges: bins of numbers or dates, more than two of them."""
        attribute = self.curator.domain[name]
        return isinstance(attribute, Bins) and attribute.size > 2

    def price_of_spread(
        self, marginal: Marginal, matrices: tuple[NDArray[np.int64], ...], spread: float
    ) -> Price:
        """The price at which the noise on the combinations has deviation (for Laplace: scale) `spread`."""
        key = (bool(marginal.where.factors), *((matrix.shape, matrix.tobytes()) for matrix in matrices))
        sensitivity = self._sensitivities.get(key)
        if sensitivity is None:
            some = Price(self.currency, Fraction(1))  # the sensitivity is the same at every price
            sensitivity = Strategy(marginal, matrices, self.relation, some).sensitivity
            self._sensitivities[key] = sensitivity
        return Price(self.currency, digits(amount_for(self.currency, sensitivity, spread)))

    def is_drawable(self, marginal: Marginal, matrices: tuple[NDArray[np.int64], ...], price: Price) -> bool:
        """Whether noise on the combinations can be drawn at a price; not where it is larger than any sampler's."""
        try:
            Strategy(marginal, matrices, self.relation, price)
        except ParameterError:
            return False
        return True

    def price_of_counts(self, marginal: Marginal, share: float, cells: int) -> Price:
        """The smallest price at which `cells` counts of a marginal are all within the width, except with
        probability `share`.
        """
        if marginal.moment is not None or not marginal.where.is_counting:
            return self.curator.calibration.price_of(marginal, error=self.width, beta=share)
        sensitivity = self.curator.calibration.sensitivity(marginal)
        return _price_within(self.currency, sensitivity, self.width, share, cells)

    def price_of_certain(self, marginal: Marginal, *, spare: int = 1) -> Price | None:
        """The smallest price in ρ at which all counts of a marginal are surely within the width (bounded noise).

        It is the larger of the parts that the noise takes of the ledger's ρ and of its δ for events, as ρ. None
        where there is no price for it, and where the δ that is left does not pay for it `spare` times.
        """
        curator, budget = self.curator, self.curator.ledger.budget
        if not pays_for_bounded(budget):
            return None
        try:
            price = curator.calibration.price_of(marginal, error=self.width, certain=True)
            mechanism, _ = curator.calibration.mechanism(marginal, price, certain=True)
        except (ParameterError, RefusedError):
            return None
        return price if has_delta_for(curator.ledger, mechanism.event, times=spare) else None

    @cached_property
    def single_count(self) -> Marginal:
        """A count of one cell of the first attribute: what prices of single counts are found for."""
        first = self.curator.domain.names[0]
        cells = np.arange(self.curator.domain[first].size) == 0
        return Marginal.of(LinearQuery.conjunction(self.curator.domain, {first: cells}))

    def event_of_counts(self, marginal: Marginal, price: Price, *, certain: bool = False) -> Event:
        """The noise on a marginal's counts at a price, located at its cells; `certain` takes bounded noise.

        A purchase is asked for its event by whoever plans, permits, pays or remembers it: the last few are kept.
        They follow from the declaration, the question and the price; those of sums of weights, whose lattice
        depends on how many rows there can be, are found each time.
        """
        if marginal.moment is not None or not marginal.where.is_counting:
            return self._located(marginal, price, certain=certain)
        key = marginal.identity, price, certain
        event = self._events.get(key)
        if event is None:
            event = self._located(marginal, price, certain=certain)
            if len(self._events) >= MOST_EVENTS:
                self._events.clear()
            self._events[key] = event
        return event

    def _located(self, marginal: Marginal, price: Price, *, certain: bool) -> Event:
        mechanism, _ = self.curator.calibration.mechanism(marginal, price, certain=certain)
        return self.curator.located([marginal], mechanism)

    def charged(self, event: Event) -> Event:
        """An event as the Curator charges it: with the version of the table in it."""
        return self.curator.versioned(event)


def rounded(share: float) -> float:
    """A share of β rounded to three digits, so that equal questions find equal prices in the cache.

    It can be half a percent larger; what is taken of β is what this returns, so that all of them add up to β.
    """
    return float(f"{nextafter(share, 0.0) * 0.9995:.3g}")


def coarse(share: float) -> float:
    """A share of β rounded down to a power of the fourth root of 2, so that few different bands are looked for."""
    return float(2.0 ** (np.floor(4 * np.log2(share)) / 4))


def digits(price: float) -> Fraction:
    """A price rounded up to four digits, so that plans are short and the noise is no larger than was asked for.

    It is at least the smallest price that a mechanism takes: on very large tables noise could be larger still.
    """
    return max(exact(float(f"{price * 1.0005:.4g}")), MIN_PARAMETER)


@lru_cache(maxsize=1 << 14)
def _price_within(currency: Currency, moved: Sensitivity, width: int, share: float, cells: int) -> Price:
    """The smallest price at which the noises on `cells` counts are all within `width` people, except with
    probability `share`.
    """

    def suffices(amount: Fraction) -> bool:
        try:
            return noise_for(Price(currency, amount), moved).error(exact(share), cells=cells) <= width
        except ParameterError:  # noise too large to draw
            return False

    spread = width / usual_spreads(currency, share / max(cells, 1))
    return Price(currency, cheapest(suffices, near=amount_for(currency, moved, spread)))
