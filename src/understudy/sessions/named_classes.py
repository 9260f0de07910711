"""Classes of questions that somebody names: an order is bought at once, an expectation when the allowance permits.

Who orders a class (`Session.buy`, or the argument `classes` of `session`) asks for the class itself, which direct
answers do not serve: its price is told before, and it stands outside of the ratio of the `allowance`. Who expects
one (the argument `expected`) asks for its questions alone. It is bought in the place of the counts of such a
question without the evidence that `ski_rental` asks for, and like any other purchase ahead only while the session,
with it, costs no more than 3/2 of direct answers and three single counts. Until then nothing else is bought ahead
for questions of the class: what may be spent ahead is kept for it.
"""

from __future__ import annotations

from understudy.domain.domain import Clique
from understudy.errors import QueryError
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.families import CellFamily
from understudy.sessions.knowledge import Knowledge, boxes_of
from understudy.sessions.marginals_class import why_not
from understudy.sessions.marginals_rental import cell_of
from understudy.sessions.product_class import ProductPurchase, ReleasedProduct, is_feasible, usual_kinds
from understudy.sessions.terms import Announced, Conjunctions


def check_class(calibrator: Calibrator, named: Announced) -> None:
    """Raise a `QueryError` where a class is too large to be bought at once, or is none of this table's."""
    if isinstance(named, Conjunctions):
        clique = _clique(calibrator, named)
        reason = None if clique and is_feasible(calibrator, clique) else "it is too large"
        reason = reason if clique else "it names no attribute"
        words, remedy = f"the class {named}", "name a smaller class, or none"
    else:
        reason, words = why_not(calibrator, named.order), f"marginals of {named.order} attributes"
        remedy = "name conjunctions of a few attributes, or no class"
    if reason is not None:
        raise QueryError(f"{words} cannot be bought at once: {reason}", remedy=remedy)


def product_class(
    calibrator: Calibrator, knowledge: Knowledge, named: Conjunctions, share: float
) -> ProductPurchase | None:
    """The class of all conjunctions on some attributes, of all rows; None where it is known already.

    Promise     Once it is bought, every conjunction of the class is within the session's width, except with
                probability `share`; where it returns None that is so already, for nothing.
    Why         The promise of a class is that of `ProductPurchase`. It is known where a class was bought, on these
                attributes or on more, of which every such conjunction is a member.
    Privacy     It reads which classes were bought, and sizes of the domain.
    Cost        Nothing here. The purchase that it returns has a price, which is told before it is charged.

    Raises a `QueryError` where it is too large, or no price keeps its promise.
    """
    by, everyone = _clique(calibrator, named), Box(calibrator.curator.domain, {})
    bought, kinds = knowledge.classes_on(by, everyone.key), usual_kinds(calibrator, by)
    if any(isinstance(each, ReleasedProduct) and each.holds(by, kinds) for each in bought):
        return None
    check_class(calibrator, named)
    purchase = ProductPurchase.of(calibrator, by, everyone.query, share)
    if purchase is None:
        raise QueryError(
            f"the class {named} cannot be bought at once: no price keeps the error of the session",
            remedy="name a smaller class, or none",
        )
    return purchase


def covers(calibrator: Calibrator, named: Announced, marginal: Marginal) -> bool:
    """Whether a class, once it is bought, answers a question.

    Promise     Where it says yes, the question costs nothing once the class is bought.
    Why         The question is a box, or a breakdown of one, on attributes of the class, and each side of it is
                one of the sets of cells that the class has of that attribute.
    Privacy     It reads the question and the class.
    Cost        Nothing; O(cells of the question's attributes).
    """
    box = boxes_of(marginal)
    if box is None:
        return False
    if not isinstance(named, Conjunctions):
        cell = Marginal(box.domain, marginal.by) if marginal.by and not box.sides else cell_of(box)
        return cell is not None and len(cell.by) <= named.order and not (marginal.by and box.sides)
    by = _clique(calibrator, named)
    kinds = dict(zip(by, usual_kinds(calibrator, by), strict=True))
    return {*box.sides, *marginal.by} <= set(by) and all(
        CellFamily(cells.size, kinds[name]).holds(cells) for name, cells in box.sides.items()
    )


def _clique(calibrator: Calibrator, named: Conjunctions) -> Clique:
    return calibrator.curator.domain.clique(named.names)
