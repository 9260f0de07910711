"""When to buy the class of all marginals up to an order: the rule of `ski_rental`, for questions about all rows.

GROUP BYs of all rows, and counts of single cells of them, are rent for one class for each order. Its price takes
long to find, and is found only when what is at stake has grown. It is not bought where most of its questions were
asked before. Decisions read prices and questions, which are
public; they cost nothing.
"""

from __future__ import annotations

from math import comb

from understudy.domain.domain import Domain
from understudy.privacy.price import Price
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.rational import Number
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.marginals_class import MOST_ORDER, can_buy
from understudy.sessions.ski_rental import SEEN

LEAST = 10
"""A class of marginals is priced only when at least so many marginals' worth is at stake: it never costs less."""

FORECAST_GROUP_BYS, EVIDENCE_GROUP_BYS = 1.5, 0.06
"""The class is bought early when it is expected to save so many times its price, and so large a part of its price
was paid as rent (`ski_rental.FORECAST`)."""

EVIDENCE_CELLS = 0.25
"""And the part where counts of single cells lead to it: most of these are followed by other conjunctions."""


class MarginalsSkiRental:
    """The rule for marginals of all rows, or for their cells one by one, with one class for each order.

    The price of such a class takes long to find: it is found only when what is at stake has grown by a tenth
    since the last time. `of_cells` is whether single cells are asked for, each a question: a marginal stands
    for one then.

    Promise     None of accuracy, and none of what a session costs: the `allowance` bounds that, and has to permit
                the class as well.
    Why         A class is due when the rent paid for such questions has reached its price, or a part of it while
                as many questions are expected to come as would repay it; never where all that were not asked would
                cost no more one by one (`is_worth`). Where the allowance does not permit it yet, it is saved for
                if what comes after that will repay it (`is_worth_saving_for`).
    Privacy     Rent, prices and numbers of questions are public. No answer is read.
    Cost        O(1) for a question, O(attributes · order) where cells are counted; finding a price, which takes
                long, a number of times that grows with the logarithm of what is at stake.
    """

    def __init__(self, *, of_cells: bool = False) -> None:
        self.of_cells = of_cells
        self.rent = 0.0
        """What was paid so far for questions like these, in ε or ρ."""
        self._seen = 0
        self._order = 0
        self._worth = 0.0
        self._unasked = 0.0
        self._rate = 0.0
        self._tried = 0.0

    def pay(self, marginal: Marginal, price: Number, *, again: bool = False) -> None:
        """Remember a marginal of all rows that was bought by itself at a price; `again` adds to it."""
        if not marginal.where.factors:
            self.rent += float(price)
            self._seen += not again
            self._order = max(self._order, len(marginal.by))

    def due(
        self, calibrator: Calibrator, marginal: Marginal, price: Number, *, asked: int, ahead: int
    ) -> int:
        """The order of the class whose price is worth finding now; 0 for none.

        `asked` questions came so far, and about `ahead` are still to come.
        """
        order = max(self._order, len(marginal.by))
        if marginal.where.factors or self._seen + 1 < SEEN or not can_buy(calibrator, order):
            return 0
        amount = float(price)
        rent, seen = self.rent + amount, self._seen + 1
        others = max(self._questions(marginal.domain, order) - seen, 0)
        self._unasked = (others + 1) * rent / seen
        self._rate = rent / max(asked, 1)
        coming = min(ahead * seen / max(asked, 1), others) * rent / seen
        evidence = EVIDENCE_CELLS if self.of_cells else EVIDENCE_GROUP_BYS
        self._worth = max(rent, min(coming / FORECAST_GROUP_BYS, rent / evidence))
        if self._worth < 1.1 * self._tried or self._worth < LEAST * amount:
            return 0
        return order

    def _questions(self, domain: Domain, order: int) -> int:
        """How many marginals, or cells of them, there are up to an order."""
        if not self.of_cells:
            return sum(comb(len(domain), size) for size in range(1, order + 1))
        sums = [1, *[0] * order]  # elementary symmetric polynomials of the sizes
        for attribute in domain:
            for place in range(order, 0, -1):
                sums[place] += sums[place - 1] * attribute.size
        return sum(sums[1:])

    def is_worth(self, price: Price) -> bool:
        """Whether the class is due at this price; if not, `due` names none until more is at stake.

        It is not where the question in hand, and all that were not asked so far, would cost no more by themselves.
        """
        if min(self._worth, self._unasked) <= float(price.amount):
            self._tried = self._worth
            return False
        return True

    def is_worth_saving_for(self, price: Price, wait: float, *, ahead: int) -> bool:
        """Whether the class would still be repaid if it were bought after `wait` more questions, with `ahead` to
        come now: then nothing else is bought ahead for questions that it answers, which would put it off further.
        """
        after = min(self._rate * max(ahead - wait, 0.0), self._unasked)
        return after >= FORECAST_GROUP_BYS * float(price.amount)


def cell_of(box: Box) -> Marginal | None:
    """The marginal that a box is one cell of; None where it is none, or of more attributes than can be bought."""
    if not 1 <= len(box.sides) <= MOST_ORDER or any(int(cells.sum()) != 1 for cells in box.sides.values()):
        return None
    return Marginal(box.domain, box.domain.clique(box.sides))
