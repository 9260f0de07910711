"""What one question, of one part or of several, may buy: planned before its first purchase, and kept to.

Promise     All that a question is charged is at most what its planned purchases cost together, which is its price
            (`Session.price`), as long as nobody else buys in the session meanwhile.
Why         A purchase that is made is a planned one, in its turn, or takes the place of planned ones. All that
            is planned was quoted in this order, and each is charged what it adds: so what was charged, and the
            quote of what is still planned, stay within the price as long as the plan is followed. Whatever is
            left out, or put in another's place, is so only where that stays true (`Buyer.keep_to`, `Forecast`).
Left out    Fewer purchases need not cost less. Where located events are priced jointly the ledger's quote is a
            bound that gets better by sweeps, made whenever it has grown by a twentieth [privacy.joint]: without a
            planned look they come at another moment, and what comes after it can cost up to twice as much. So a
            look that is not needed is made all the same where the rest would else pass the price, and costs less
            with it.
β           The shares of a plan were taken one after the other from what was left of β (`PurchasePolicy.after`).
            A purchase takes the place of a planned one only where all others that are planned can still be made
            and leave as much of β as the plan did. So every planned share is there when it is needed.
Beyond it   Released numbers that contradict each other are not used. Where that takes from a question what its
            plan relied on, more than was planned is bought; a band has failed then, for which there is β.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from understudy.privacy.cost import Cost
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import Identity, identity
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.histogram import HistogramPurchase
from understudy.sessions.marginals_class import MarginalsPurchase
from understudy.sessions.number_of_rows import RowCountPurchase
from understudy.sessions.own_counts import OwnCounts
from understudy.sessions.product_class import ProductPurchase
from understudy.sessions.purchase import Purchase
from understudy.sessions.small_groups import GroupCountPurchase


@dataclass(slots=True, eq=False)
class QuestionPlan:
    """What the parts of a question may still buy; promise and reason are those of the module.

    parts   the purchases of each part that nothing answered, by its marginal's identity: in their order, the one
            that answers it last, of several looks all. What is planned for several parts is one object
    step    how many purchases the session had made when it was planned, or when one of the plan was made last: the
            plan holds only as long as there are no others
    left    what is left of β, as a probability, if all of the plan is made
    before  what quantiles buy, which comes first (`quantile_buyer`); of several questions also what later ones buy
            that are planned by themselves (`several`)
    moved   whether something was bought since it was planned
    most    what may still be charged for it, in units; None where that was told to nobody
    """

    parts: dict[Identity, list[Purchase]]
    step: int
    left: float = 0.0
    before: list[Purchase] = field(default_factory=list)
    moved: bool = False
    most: int | None = None
    _made: dict[int, Purchase] = field(default_factory=dict)

    def anew(self) -> QuestionPlan:
        """The same plan, before anything of it was made, for one who keeps to it: what they note is their own."""
        return replace(self, parts=dict(self.parts), before=list(self.before), moved=False, _made={})

    @property
    def purchases(self) -> list[Purchase]:
        """All that is still planned, each purchase once."""
        return self._unmade(self.before, *self.parts.values())

    def of(self, marginal: Marginal) -> list[Purchase] | None:
        """What a part may still buy; None where nothing was planned for it."""
        part = self.parts.get(identity(marginal))
        return None if part is None else self._unmade(part)

    def of_parts(self, marginals: Iterable[Marginal]) -> list[Purchase]:
        """All that some parts may still buy, each purchase once."""
        return self._unmade(*(self.parts.get(identity(marginal), []) for marginal in marginals))

    def beside(self, marginal: Marginal) -> list[Purchase]:
        """All that is still planned for other parts."""
        own = identity(marginal)
        return self._unmade(self.before, *(part for other, part in self.parts.items() if other != own))

    def change(self, marginal: Marginal, counts: list[Purchase]) -> None:
        """Plan counts for a part in the place of what was planned for it."""
        self.parts[identity(marginal)] = counts

    def answered(self, marginal: Marginal) -> None:
        """Forget what was planned for a part that is answered."""
        self.parts.pop(identity(marginal), None)

    def made(self, purchase: Purchase, step: int, charged: Cost) -> None:
        """Note that a planned purchase was made, the session's last so far, of `step`, and what it was charged."""
        self._made[id(purchase)] = purchase
        if self.most is not None:
            self.most -= charged.units
        self.step, self.moved = step, True

    def _unmade(self, *parts: list[Purchase]) -> list[Purchase]:
        found = without_repeats(purchase for part in parts for purchase in part)
        return [purchase for purchase in found if id(purchase) not in self._made]


def without_repeats(purchases: Iterable[Purchase]) -> list[Purchase]:
    """The same purchases in their order, each object once."""
    return list({id(purchase): purchase for purchase in purchases}.values())


def is_own(purchases: Sequence[Purchase]) -> bool:
    """Whether purchases are the counts of one question, and nothing ahead."""
    return all(isinstance(purchase, OwnCounts) for purchase in purchases)


def are_same(counts: Sequence[Purchase], planned: Sequence[Purchase]) -> bool:
    """Whether a question's own counts are charged just as those that were planned for it."""
    return len(counts) == len(planned) and are_no_dearer(counts, planned) and are_no_dearer(planned, counts)


def are_no_dearer(counts: Sequence[Purchase], planned: Sequence[Purchase]) -> bool:
    """Whether a question's own counts cost surely no more than those that were planned for it.

    Of two looks at the same cells the one of the smaller price is never dearer, now or later; and fewer looks
    never cost more. Of looks at different cells nothing is said here.
    """
    new, old = ([one for one in side if isinstance(one, OwnCounts)] for side in (counts, planned))
    return len(new) <= len(old) and all(
        _looked_at(one) == _looked_at(other)
        and one.price.currency == other.price.currency
        and one.price.amount <= other.price.amount
        for one, other in zip(new, old, strict=False)
    )


def _looked_at(counts: OwnCounts) -> Identity:
    if isinstance(counts, RowCountPurchase):
        return (counts.kind,)
    return identity(counts.marginal if isinstance(counts, CompletingPurchase) else counts.measured)


def scope(purchase: Purchase) -> tuple[object, ...] | None:
    """What makes two purchases ahead, of whatever prices, tell the same; None for the counts of one question."""
    match purchase:
        case HistogramPurchase():
            return purchase.kind, purchase.name, purchase.plain_cells
        case ProductPurchase():
            return purchase.kind, purchase.by, purchase.kinds, purchase.where.key
        case GroupCountPurchase():
            return purchase.kind, purchase.where.key
        case MarginalsPurchase():
            return purchase.kind, purchase.order
        case _:
            return None
