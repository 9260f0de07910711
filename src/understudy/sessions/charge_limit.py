"""The most that may still be charged for questions whose price somebody has agreed to.

Promise     What is charged under a limit adds up to at most the limit.
Why         Before each purchase the ledger's quote for it is compared with what is left of the limit
            (`Buyer.make`), and what was charged is taken from it. The ledger charges what it quoted a moment
            before, unless another process was charged in between for a question outside the session, with joint
            accounting.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import ParameterError, PriceRoseError
from understudy.privacy.cost import ZCDP, Cost, PureDP


@dataclass(eq=False)
class ChargeLimit:
    """What is left of an amount that was agreed to, and how many purchases were made under it.

    left  in the ledger's currency; it never falls below 0
    made  purchases under the limit so far
    """

    left: Cost
    made: int = 0

    @classmethod
    def of(cls, most: Cost, currency: str) -> ChargeLimit:
        """A limit of `most`; raises a `ParameterError` where that is no cost in the ledger's `currency`."""
        if not isinstance(most, PureDP | ZCDP) or most.currency != currency:
            raise ParameterError(
                f"most is a cost in {currency}, as `price` returns it, not {most!r}",
                remedy="Pass the price that was told, or leave it out",
            )
        return cls(most)

    def pays(self, cost: Cost) -> bool:
        """Whether a cost is within what is left."""
        return cost.units <= self.left.units

    def check(self, cost: Cost) -> None:
        """Raise a `PriceRoseError` where a cost is beyond what is left."""
        if not self.pays(cost):
            raise PriceRoseError(requested=cost.amount, agreed=self.left.amount, currency=cost.currency)

    def charged(self, cost: Cost) -> None:
        """Take from the limit what a purchase was charged."""
        self.left = type(self.left)(max(self.left.units - cost.units, 0))
        self.made += 1
