"""What is left of a run's price, spent in whole units of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.privacy.cost import rounded_down


@dataclass
class UnspentPrice:
    """The part of a price that is not spent yet, in epsilon or rho."""

    left: Fraction

    def spend(self, price: Fraction) -> Fraction:
        """Take a price, rounded down to whole units, or all that is left where that is less; what was taken."""
        taken = min(rounded_down(price), self.left)
        self.left -= taken
        return taken
