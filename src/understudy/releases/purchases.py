"""What a ledger holds under the name of a run: every step's request begins with it.

A run keeps no journal (`ledger.journal`) beside its debits. What a session buys follows from questions that nobody
knows beforehand, so that each purchase is written down for whoever goes on. The steps of a run follow from its
terms and from the answers before them: who goes on finds each of them by its name. A journal would hold every
purchase a second time, and could not be read alone, since runs of version 0.1 have none.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.ledger.interface import Ledger
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.cost import UNITS, Cost
from understudy.rational import Number


@dataclass(frozen=True)
class Purchases:
    """What a run bought so far from a ledger of that budget: its requests, and what they cost together."""

    name: str
    requests: frozenset[str]
    units: int
    budget: Budget
    analysts: tuple[str, ...] = ()

    @property
    def amount(self) -> float:
        return self.units / UNITS

    @property
    def currency(self) -> str:
        return self.budget.cap.currency

    @property
    def price(self) -> str:
        """The price in words; a rho also as the epsilon of a release that costs as much."""
        told = f"{self.currency} {self.amount:.6g}"
        if self.budget.is_pure or not self.units:
            return told
        return f"{told}, about epsilon {zcdp_epsilon(self.amount, float(self.budget.conversion_delta)):.3g},"

    def conflict(self, analyst: str = "") -> str:
        """Why an analyst can buy nothing else under the name. Who bought otherwise, and for what, is not told."""
        if any(name != analyst for name in self.analysts):
            return f"the name {self.name} belongs to another analyst's release. Choose another `name`"
        steps = "one request" if len(self.requests) == 1 else f"{len(self.requests):,} requests"
        return (
            f"the name {self.name} belongs to a release with other terms, or of another version of the table or "
            f"of Understudy ({self.price} in {steps}). Choose another `name`, or give its terms"
        )


def most_charged(ledger: Budget, epsilon: Number, delta: Number | None = None) -> Cost:
    """The most that a release at this price takes from a ledger of that budget, in its currency.

    `delta` is that of the budget where none is given. Raises ParameterError where the price makes no sense.
    """
    own = ledger.alone(epsilon, delta)
    return own.cap if own.is_pure == ledger.is_pure else ledger.most(own.whole)


def purchases(ledger: Ledger, name: str) -> Purchases:
    """What the ledger holds for the steps of the run of that name."""
    found = ledger.debits(f"{name} ")
    return Purchases(
        name,
        frozenset(debit.request for debit in found),
        sum(debit.cost.units for debit in found),
        ledger.budget,
        tuple(sorted({debit.analyst for debit in found if debit.analyst})),
    )


def paid_before(ledger: Ledger, name: str) -> int:
    """Units that the ledger holds for the steps of the run of that name."""
    return purchases(ledger, name).units
