"""A price: how much privacy something may cost, in one of two currencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from understudy.errors import ParameterError
from understudy.privacy.cost import UNITS, Cost, rounded_down
from understudy.rational import Number, exact, positive

Currency = Literal["epsilon", "rho"]
"""Pure epsilon, which Laplace noise is paid in, and rho, which Gaussian noise is paid in."""

CURRENCIES: tuple[Currency, ...] = ("epsilon", "rho")


@dataclass(frozen=True, slots=True)
class Price:
    """An exact `amount` of one `currency`, `epsilon` or `rho`, which something may cost at most.

    What it buys is decided where noise is made for it (`mechanism.additive`). An amount may be 0, as a share that
    was rounded down; no mechanism is made for that. Raises a `ParameterError` for a negative amount, and for any
    other currency.
    """

    currency: Currency
    amount: Fraction

    def __post_init__(self) -> None:
        if self.currency not in CURRENCIES:
            raise ParameterError(f"a price is in epsilon or in rho, not in {self.currency!r}")
        if self.amount < 0:
            raise ParameterError(f"{self.currency} must not be negative: {self.amount}")

    @classmethod
    def of(cls, *, epsilon: Number | None = None, rho: Number | None = None) -> Price:
        """The price that a caller names by `epsilon` or by `rho`; a `ParameterError` for none, both, or 0."""
        if epsilon is not None and rho is None:
            return cls("epsilon", positive(epsilon, "epsilon"))
        if rho is not None and epsilon is None:
            return cls("rho", positive(rho, "rho"))
        raise ParameterError("give one price: epsilon for Laplace noise, or rho for Gaussian noise")

    @classmethod
    def of_cost(cls, cost: Cost) -> Price:
        """The price at which something costs exactly `cost`, as the whole of a budget does."""
        return cls(cost.currency, Fraction(cost.units, UNITS))

    def __mul__(self, share: Number) -> Price:
        """A share of the price, or a multiple of it."""
        return Price(self.currency, self.amount * exact(share, "share"))

    def __truediv__(self, parts: int | Fraction) -> Price:
        """One of so many equal parts."""
        return Price(self.currency, self.amount / parts)

    @property
    def whole_units(self) -> Price:
        """Rounded down to the ledger's units, so that many such debits do not add up to more."""
        return Price(self.currency, rounded_down(self.amount))

    def __str__(self) -> str:
        """As texts in a ledger name it: the currency and an exact fraction."""
        return f"{self.currency} {self.amount}"

    def as_plain(self) -> dict[str, str]:
        """As plans in a ledger hold it: the amount as an exact fraction, under the name of its currency.

        >>> Price.of(rho=0.3).as_plain()
        {'rho': '3/10'}
        """
        return {self.currency: str(self.amount)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Price:
        """The price among the entries of a plan, `plain`, as `as_plain` writes it."""
        for currency in CURRENCIES:
            if currency in plain:
                return cls(currency, Fraction(plain[currency]))
        raise ParameterError("this plan holds no price")

    def as_numbers(self) -> dict[str, float]:
        """As certificates show it."""
        return {self.currency: float(self.amount)}
