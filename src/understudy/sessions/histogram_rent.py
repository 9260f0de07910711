"""When to buy the histogram of an attribute: what questions about it have cost, and are expected to cost.

Rule        A histogram is bought once questions about its attribute have cost `RENT` times its price, and `COUNTS`
            single counts.
Why         Its bounds spare a part of the questions about its attribute beside others; small counts, which it
            would spare most of, are cheap by themselves (`looks`). A condition on this attribute alone it spares
            altogether, so that such a one counts `RENT` times; not where the attribute has ranges, which are a
            class of their own (`ski_rental`).
Earlier     Where conditions on the attribute alone are still expected, what they would cost at the present rate
            counts as well, as far as the part `EVIDENCE` of it was paid. What a session pays beside direct answers
            is bounded by its `allowance`.
Privacy     The rule reads prices and questions, which are public.
"""

from __future__ import annotations

from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.ski_rental import EVIDENCE

RENT, COUNTS = 6.0, 25.0


class HistogramRents:
    """Remembers what questions about each attribute have cost, breakdowns apart from conjunctions.

    Rule and reason are those of the module. `plain` is whether a histogram is of the cells alone, which breakdowns
    lead to; all amounts are in ε or ρ.
    """

    def __init__(self, calibrator: Calibrator) -> None:
        self._calibrator = calibrator
        self._paid: dict[tuple[str, bool], float] = {}
        self._alone: dict[str, float] = {}

    def pay(self, marginal: Marginal, price: float) -> None:
        """Remember a question's own counts: each of its attributes had an equal part of the price."""
        names = marginal.clique
        for name in names:
            kind = name, bool(marginal.by)
            self._paid[kind] = self._paid.get(kind, 0.0) + price / len(names)
        if len(names) == 1 and not marginal.by and not self._calibrator.is_ordered(names[0]):
            self._alone[names[0]] = self._alone.get(names[0], 0.0) + price

    def worth(self, name: str, *, plain: bool, asked: int, ahead: int) -> float:
        """What the questions about an attribute count for, if `asked` came so far and `ahead` are to come."""
        alone = 0.0 if plain else self._alone.get(name, 0.0)
        coming = min(alone / max(asked, 1) * ahead, alone / EVIDENCE)
        return max(self._paid.get((name, plain), 0.0) + (RENT - 1) * alone, RENT * coming)


def due_at(price: float, single: float) -> float:
    """What questions have to count for before a histogram of a price is bought; `single` is that of one count."""
    return RENT * price + COUNTS * single
