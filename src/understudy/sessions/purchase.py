"""What a session can buy. Each purchase says how it is written down, what it costs and what is learnt from it.

Everything that decides a purchase is public or was released; it is written into the ledger before it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import nextafter
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.domain.bins import Bins
from understudy.domain.domain import Clique
from understudy.ledger.interface import JournalStep
from understudy.mechanism.additive import amount_for, noise_for
from understudy.mechanism.look import Look
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.privacy.calibrate import cheapest
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Relation, Sensitivity
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import exact
from understudy.sessions.knowledge import Knowledge


@dataclass(frozen=True, eq=False)
class Calibrator:
    """The Curator, and the error that answers must keep, in people."""

    curator: Curator
    width: int
    _moved: dict[tuple[object, ...], Sensitivity] = field(default_factory=dict, repr=False)

    @property
    def is_pure(self) -> bool:
        return self.curator.ledger.budget.is_pure

    @property
    def currency(self) -> Currency:
        return self.curator.ledger.budget.currency

    @property
    def relation(self) -> Relation:
        return self.curator.relation

    def is_ordered(self, name: str) -> bool:
        attribute = self.curator.domain[name]
        return isinstance(attribute, Bins) and attribute.size > 2

    def marginal(self, by: Clique, where: LinearQuery | None = None) -> Marginal:
        everyone = LinearQuery.everyone(self.curator.domain)
        return Marginal(self.curator.domain, by, everyone if where is None else where)

    def strategy(self, marginal: Marginal, matrices: tuple[NDArray[np.int64], ...], price: Price) -> Strategy:
        return Strategy(marginal, matrices, self.relation, price)

    def price_of_spread(
        self, marginal: Marginal, matrices: tuple[NDArray[np.int64], ...], spread: float
    ) -> Price:
        """The price at which the noise on the combinations has deviation (for Laplace: scale) `spread`."""
        key = (bool(marginal.where.factors), *(matrix.tobytes() for matrix in matrices))
        moved = self._moved.get(key)
        if moved is None:
            some = Price(self.currency, Fraction(1))
            moved = self._moved[key] = self.strategy(marginal, matrices, some).sensitivity
        return Price(self.currency, digits(amount_for(self.currency, moved, spread)))

    def price_of_counts(self, marginal: Marginal, share: float, cells: int) -> Price:
        """The smallest price at which `cells` of a marginal's counts are within the width, except with `share`."""
        if not marginal.where.is_counting:
            return self.curator.price_of(marginal, error=self.width, beta=share)
        moved = self.curator.sensitivity(marginal)
        return _price_within(self.currency, moved, self.width, share, cells)

    @cached_property
    def one(self) -> Marginal:
        """Some single count."""
        first = self.curator.domain.names[0]
        cells = np.arange(self.curator.domain[first].size) == 0
        return Marginal.of(LinearQuery.conjunction(self.curator.domain, {first: cells}))

    def charged(self, event: Event) -> Event:
        """An event as the Curator charges it: with the version of the table in it."""
        return self.curator.versioned(event)

    def measure(self, marginal: Marginal, price: Price, request: PurchaseRequest) -> Answer:
        """Noisy counts of a marginal's cells, and what they were charged."""
        prepared = self.curator.prepare([marginal], price)
        return self.curator.perform(
            prepared, request=request.name, analyst=request.analyst, step=request.step
        )[0]

    def run(self, look: Look, request: PurchaseRequest) -> tuple[Any, Cost]:
        """What a look releases, and what it was charged."""
        paid = self.curator.buy(look, request=request.name, analyst=request.analyst, step=request.step)
        return paid.released, paid.debit.cost


@dataclass(frozen=True)
class PurchaseRequest:
    """Under which name a purchase is charged, to whose share, and the step that writes it down with its debit.

    Without a `step` the purchase is written down already: it is made, or found made.
    """

    name: str
    analyst: str
    step: JournalStep | None = None


@dataclass(frozen=True, eq=False)
class PurchaseResult:
    """What a purchase was charged, and the answer, where it was made for one question alone."""

    cost: Cost
    marginal: Marginal | None = None
    answer: Answer | None = None


class Purchase(Protocol):
    """One purchase: `plain` writes it down; `share` is the part of β that its band may fail with."""

    kind: ClassVar[str]

    @property
    def share(self) -> float: ...

    def plain(self) -> dict[str, Any]: ...

    def event(self, calibrator: Calibrator) -> Event:
        """What will be charged."""
        ...

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Pay, look, and learn; under a `request` that was made before, the same again for nothing.

        Raises an `InsufficientBudgetError` or, where the request's step is no longer the next, an
        `OvertakenError`: then nothing was written or paid.
        """
        ...


def rounded(share: float) -> float:
    """Rounded down to three digits, so that the same price is found again and again."""
    return float(f"{nextafter(share, 0.0) * 0.9995:.3g}")


def coarse(share: float) -> float:
    """Rounded down to a power of √2: few different bands have to be simulated."""
    return float(2.0 ** (np.floor(2 * np.log2(share)) / 2))


def digits(price: float) -> Fraction:
    """Rounded up to four digits."""
    return exact(float(f"{price * 1.0005:.4g}"))


@lru_cache(maxsize=1 << 14)
def _price_within(currency: Currency, moved: Sensitivity, width: int, share: float, cells: int) -> Price:
    """The smallest price at which so many noises are all within the width, except with probability `share`."""

    def suffices(amount: Fraction) -> bool:
        return noise_for(Price(currency, amount), moved).error(exact(share), cells=cells) <= width

    return Price(currency, cheapest(suffices))
