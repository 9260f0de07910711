"""What questions may buy if they are asked now, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from understudy.query.marginal import Marginal
from understudy.sessions.choice import Chooser
from understudy.sessions.fresh import Fresh
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.purchase import Purchase
from understudy.sessions.till import Till


@dataclass(frozen=True, eq=False)
class Basket:
    """Asks the chooser what it wants, and leaves out what cannot be paid; `asked` counts the question itself."""

    chooser: Chooser
    till: Till
    knowledge: Knowledge

    def last(self, marginal: Marginal, *, asked: int) -> Purchase:
        """What answers a question: a class, if there is one to buy and it can be paid, or fresh noise."""
        wanted = self.chooser.purchase(self.knowledge, marginal, asked=asked)
        if isinstance(wanted, Fresh) or self.till.is_payable([wanted]):
            return wanted
        return self.chooser.fresh(self.knowledge, marginal, asked=asked)

    def of(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        """All that a question may buy; what comes before the answer, where that would not leave too little for it.

        That is the number of rows, where it is private and not known yet, and histograms.
        """
        last = self.last(marginal, asked=asked)
        opening = None if self.till.shop.replaces else self.chooser.opening(self.knowledge)
        before = [] if opening is None or not self.till.is_payable([opening, last]) else [opening]
        prepared = self.chooser.preparations(self.knowledge, marginal)
        if prepared and self.till.is_payable([*before, *prepared, last]):
            before += prepared
        return [*before, last]

    def of_all(self, marginals: Iterable[Marginal], *, asked: int) -> list[Purchase]:
        """All that several questions may buy, one after the other."""
        found: list[Purchase] = []
        left = self.chooser.left
        try:
            for i, marginal in enumerate(marginals):
                for purchase in self.of(marginal, asked=asked + i):
                    if isinstance(purchase, Fresh):
                        self.chooser.left -= purchase.share  # later ones get less of β, and cost more
                    if isinstance(purchase, Fresh) or not _holds(found, purchase):
                        found.append(purchase)
        finally:
            self.chooser.left = left
        return found


def _holds(found: Sequence[Purchase], purchase: Purchase) -> bool:
    """Whether the number of rows, a histogram or a class is in the basket already."""
    plan = purchase.plain()
    return any(other.kind == purchase.kind and other.plain() == plan for other in found)
