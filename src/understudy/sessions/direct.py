"""The counts of one question, bought by themselves; and what is known of a question before anything is bought.

Bounded noise takes the place of Gaussian noise where it costs less (`DirectPurchase.certain`): its error is
certain, so that it takes no share of β.

The noise of a question is drawn once and never drawn again, so that nobody learns more from asking twice, and
the band that was fixed when it was bought stays valid. Counts that are bought in several looks are planned so
from the start (`looks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from understudy.answer.answer import Answer
from understudy.domain.domain import Clique
from understudy.domain.refinement import RefinedDomain
from understudy.mechanism.additive import Additive
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.box import Box, Cells, as_text, from_plain, from_text, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.cut_knowledge import cut_intervals, enclosed
from understudy.sessions.knowledge import (
    TOUCHING,
    IntervalTable,
    Knowledge,
    ReleasedTable,
    Values,
    boxes_of,
    nearest,
)
from understudy.sessions.moment_bounds import moment_intervals
from understudy.sessions.planned_sums import WEIGHT
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult
from understudy.sessions.unknown_cells import part_of, released_part, spread, unknown_part
from understudy.sessions.weighted_sums import weighted_intervals

BOUNDED = "bounded"
"""The word in a plan for bounded noise; a plan without one is of the usual noise."""

LEAST_WIDTH = 64
"""In people: below this width the steps that a coupling adds to a band of several draws would cost too much."""

MOST_RUNNING = 1 << 12
"""Cells of a table whose running sums are looked for."""


def intervals(knowledge: Knowledge, marginal: Marginal) -> IntervalTable | None:
    """Intervals for the counts of a marginal's cells, in people, from what was released.

    None where its condition is no box and nothing can be deduced. Sums of a moment are bounded by the counts of
    the bins of its measure, and weighted sums by those of the sets that their weights are the levels of. The
    marginal may be over a refined domain, and what was learnt of such ones tells of declared cells too
    (`cut_knowledge`).
    """
    is_cut = isinstance(marginal.domain, RefinedDomain)
    if marginal.moment is not None:
        return moment_intervals(marginal, lambda counted: _of_bins(knowledge, marginal, counted))
    if not is_cut and not knowledge.cuts:
        return _declared(knowledge, marginal)
    found = cut_intervals(knowledge, marginal, lambda asked: _declared(knowledge, asked))
    return found if found is not None or is_cut else _declared(knowledge, marginal)


def _of_bins(knowledge: Knowledge, marginal: Marginal, counted: Marginal) -> IntervalTable | None:
    """What is known of the rows of a moment, and of those of them in some bins of its measure.

    Of the latter, of which there are many, what was learnt of cuts is not looked at.
    """
    if counted.where is marginal.where or not isinstance(counted.domain, RefinedDomain):
        return intervals(knowledge, counted)
    found = enclosed(counted, knowledge.grid.domain, lambda asked: _declared(knowledge, asked))
    return None if found is None else IntervalTable(*found)


def _declared(knowledge: Knowledge, marginal: Marginal) -> IntervalTable | None:
    """Intervals for the counts of declared cells, from what was released of declared cells."""
    where = marginal.where
    if not where.is_counting and where.largest > where.smallest:
        return weighted_intervals(marginal, lambda counted: _declared(knowledge, counted))
    if where.largest == 0:
        return IntervalTable(np.zeros(marginal.shape), np.zeros(marginal.shape))
    if not marginal.by and where.largest == where.smallest:
        low, high = (where.largest * end for end in knowledge.total)
        return IntervalTable(np.array(low), np.array(high))
    box = Box.of(where)
    if box is None:
        return None
    if marginal.by:
        return _within(knowledge, marginal.by, box)
    low, high = knowledge.interval(box)
    return IntervalTable(np.array(low), np.array(high))


def _within(knowledge: Knowledge, by: Clique, box: Box) -> IntervalTable:
    """The cells of a marginal of the rows in a box; those that the box itself rules out are empty."""
    own = {name: cells for name, cells in box.sides.items() if name in by}
    if not own:
        return knowledge.table(by, box)
    others = Box(box.domain, {name: cells for name, cells in box.sides.items() if name not in by})
    table, held = knowledge.table(by, others), np.ones((1,) * len(by), bool)
    for axis, name in enumerate(by):
        if name in own:
            held = held & own[name].reshape([-1 if i == axis else 1 for i in range(len(by))])
    return IntervalTable(np.where(held, table.low, 0.0), np.where(held, table.high, 0.0))


def has_running_sums(marginal: Marginal, name: str) -> bool:
    """Whether `running_sums` looks for the running sums of a marginal: of declared cells in a box, and of few."""
    is_declared = not isinstance(marginal.domain, RefinedDomain) and name in marginal.by
    return is_declared and marginal.size <= MOST_RUNNING and boxes_of(marginal) is not None


def running_sums(knowledge: Knowledge, marginal: Marginal, name: str) -> tuple[Values, Values] | None:
    """The lower and upper ends of the counts of each cell of an attribute and all before it, in a marginal by
    it.

    A band for ranges tells these as well as it tells single cells, where the errors of cells would add up. None
    where there are too many of them, or the marginal is of no box.
    """
    if not has_running_sums(marginal, name):
        return None
    axis, size = marginal.by.index(name), marginal.domain[name].size
    others = marginal.by[:axis] + marginal.by[axis + 1 :]
    ends = []
    for last in range(size):
        upto = LinearQuery.conjunction(marginal.domain, {name: np.arange(size) <= last})
        known = intervals(knowledge, Marginal(marginal.domain, others, marginal.where & upto))
        if known is None:
            return None
        ends.append(known)
    low, high = (np.stack([getattr(end, side) for end in ends], axis=axis) for side in ("low", "high"))
    return low, high


@dataclass(frozen=True, eq=False)
class DirectPurchase:
    """Noise on the counts of one question, at a price that keeps its `paid` cells within the session's width.

    Promise     Except with probability `share` every paid cell is within the width of its true count, and the sum
                that is planned with the counts is within its band. The part `of_sum` of the share is the sum's
                (`planned_sums`). Where the purchase `is_certain`, all cells are within the width, always; the
                share is 0, and the counts are no term of a sum, which needs normal noise.
    Why         Bounded noise is never larger than its reach, which is the width at most. Of other noise, the paid
                cells are those that were not known well enough when the price was found: fixed by what
                was released before, and written into the ledger with the plan. Their noise is independent of that,
                so that the union bound over them holds. All other cells keep what is known of them; the band says
                nothing of their noise.
    Part        With `in_part` the paid cells alone are looked at (`unknown_cells`).
    Cost        `price`, in the ledger's currency, for a row that moves one count by one.
    """

    kind: ClassVar[str] = "fresh"
    marginal: Marginal
    paid: Cells
    share: float
    price: Price
    of_sum: float = 0.0
    is_certain: bool = False
    in_part: bool = False

    @property
    def measured(self) -> Marginal:
        """The marginal that is looked at: the question's own, or its part that is not known (`unknown_cells`)."""
        return measured_of(self.marginal, self.paid, in_part=self.in_part)

    @classmethod
    def of(
        cls,
        calibrator: Calibrator,
        knowledge: Knowledge,
        marginal: Marginal,
        share: float,
        *,
        of_sum: float = 0.0,
    ) -> DirectPurchase:
        """The purchase at the smallest price that keeps its promise.

        Where every cell is known well enough already, all cells are paid for all the same. `of_sum` is the part of
        the share that goes to the sum that is planned with the counts.
        """
        table = intervals(knowledge, marginal)
        wide = None if table is None else np.asarray(table.high - table.low > 2 * calibrator.width)
        paid = np.ones(marginal.shape, bool) if wide is None or not wide.any() else wide
        price = calibrator.price_of_counts(marginal, share - of_sum, int(paid.sum()))
        return cls(marginal, paid, share, price, of_sum)

    def of_unknown(self, calibrator: Calibrator) -> DirectPurchase | None:
        """The same with a look at the cells that are paid for; None where they are no part of a breakdown."""
        part = unknown_part(self.marginal, self.paid)
        if part is None or self.is_certain:
            return None
        of_sum = self.of_sum if can_plan_sum(calibrator, part) else 0.0
        price = calibrator.price_of_counts(part, self.share - of_sum, int(self.paid.sum()))
        return replace(self, price=price, of_sum=of_sum, in_part=True)

    def of_all(self, calibrator: Calibrator) -> DirectPurchase:
        """The same with all cells paid for: what the question costs where nothing of it is known."""
        price = calibrator.price_of_counts(self.marginal, self.share - self.of_sum, self.marginal.size)
        return replace(self, paid=np.ones(self.marginal.shape, bool), price=price)

    @classmethod
    def certain(cls, calibrator: Calibrator, marginal: Marginal, *, spare: int = 1) -> DirectPurchase | None:
        """All counts of a question with bounded noise, surely within the width, at the smallest price for that.

        None where the ledger has no price for such noise, or less of δ left than `spare` of them take, and where
        the question needs more than counts of people.
        """
        price = calibrator.price_of_certain(marginal, spare=spare)
        return (
            None
            if price is None
            else cls(marginal, np.ones(marginal.shape, bool), 0.0, price, is_certain=True)
        )

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> DirectPurchase:
        """The purchase of a plan in the ledger."""
        marginal = from_plain(calibrator.curator.domain, plan["question"])
        paid, certain = from_text(plan["paid"], marginal.shape), plan.get("noise") == BOUNDED
        price = Price.from_plain(plan)
        return cls(marginal, paid, plan["share"], price, of_sum_in(plan), certain, is_in_part(plan))

    def plain(self) -> dict[str, Any]:
        """The plan: question, paid cells, share of β and price; the part of a planned sum, and bounded noise."""
        cells = {"question": plain(self.marginal), "paid": as_text(self.paid)}
        noise = {"noise": BOUNDED} if self.is_certain else {}
        summed, part = plain_sum(self.of_sum), plain_part(in_part=self.in_part)
        return {**cells, "share": self.share, **summed, **self.price.as_plain(), **noise, **part}

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """Nothing: the band is the session's width."""
        return {}

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on the counts, located at the cells that are looked at."""
        return calibrator.event_of_counts(self.measured, self.price, certain=self.is_certain)

    def _mechanism(self, calibrator: Calibrator) -> Additive:
        made = calibrator.curator.calibration.mechanism(self.measured, self.price, certain=self.is_certain)
        return made[0]

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, add the band to the knowledge, and answer the question.

        There is no answer where cells that were known at the time of the plan are not known here.
        """
        looked_at = self.measured
        if not self.is_certain:
            begin_sum(calibrator, knowledge, looked_at, self.of_sum)
        measured = request.measure(calibrator.curator, looked_at, self.price, certain=self.is_certain)
        noisy = whole_counts(knowledge, self.marginal, self.paid, measured.noisy, in_part=self.in_part)
        table = narrowed(knowledge, self.marginal, self.paid, noisy, calibrator.width)
        variance = float(self._mechanism(calibrator).variance)
        if not self.is_certain and can_plan_sum(calibrator, looked_at):
            counts = part_of(noisy, self.paid) if self.in_part else noisy
            finish_sum(knowledge, looked_at, counts, normal_variance(calibrator, looked_at, self.price))
        learn(knowledge, self.marginal, table, noisy, variance, only=self.paid if self.in_part else None)
        knowledge.first_looks.pop(identity(self.marginal), None)
        if bool((table.high - table.low > 2 * calibrator.width + TOUCHING).any()):
            return PurchaseResult(measured.cost)
        value, error = nearest(table, noisy, calibrator.width)
        answer = Answer(self.marginal, value, error, noisy, measured.cost, 1.0)
        return PurchaseResult(measured.cost, self.marginal, answer)


def measured_of(marginal: Marginal, paid: Cells, *, in_part: bool) -> Marginal:
    """The marginal that a purchase looks at: that of its question, or `in_part` the part with its paid cells."""
    part = unknown_part(marginal, paid) if in_part else None
    return marginal if part is None else part


def whole_counts(
    knowledge: Knowledge, marginal: Marginal, paid: Cells, noisy: Values, *, in_part: bool
) -> Values:
    """Noisy counts of all cells of a question; where a part of them was looked at, the others are predicted."""
    known = intervals(knowledge, marginal) if in_part else None
    return noisy if known is None else spread(knowledge, marginal, known, paid, noisy)


def narrowed(
    knowledge: Knowledge, marginal: Marginal, paid: Cells, noisy: Values, width: float
) -> IntervalTable:
    """What is known of a question's cells, narrowed by a band of `width` people around noisy counts in those
    that were paid for, and in no others.
    """
    known = intervals(knowledge, marginal)
    if known is None:
        known = IntervalTable(np.zeros(marginal.shape), np.full(marginal.shape, knowledge.total[1]))
    low, high = np.array(known.low), np.array(known.high)
    met = knowledge.met(IntervalTable(low[paid], high[paid]), noisy[paid], width)
    low[paid], high[paid] = met.low, met.high
    return IntervalTable(low, high)


def learn(
    knowledge: Knowledge,
    marginal: Marginal,
    table: IntervalTable,
    noisy: Values,
    variance: float,
    *,
    only: Cells | None = None,
) -> None:
    """Add the intervals of a question's cells to the knowledge, and keep its noisy counts for stand-ins.

    `only` are the cells that were looked at, where that is a part of them.
    """
    box = boxes_of(marginal)
    if isinstance(marginal.domain, RefinedDomain):
        knowledge.cuts.learn(marginal, table)
        return
    if box is None:
        return
    if marginal.by:
        knowledge.learn_table(marginal.by, box, table)
    else:
        knowledge.learn(box, (float(table.low), float(table.high)))
    if only is None:
        knowledge.keep(ReleasedTable(marginal.by, box, noisy, variance))
    else:
        knowledge.keep(released_part(marginal, only, noisy, variance))


# ---- the sum that is planned with counts


def can_plan_sum(calibrator: Calibrator, marginal: Marginal) -> bool:
    """Whether counts of a question can be terms of planned sums: normal noise, on counts of the rows in a box, and
    bands so wide that the steps of the lattice matter little.
    """
    return not calibrator.is_pure and calibrator.width >= LEAST_WIDTH and boxes_of(marginal) is not None


def normal_variance(calibrator: Calibrator, marginal: Marginal, price: Price) -> float:
    """σ² of the normal noise that noise on counts at a price in ρ is within a step of, in people squared. What is
    rounded has a twelfth more itself (`rounded_normal`).
    """
    moved = calibrator.curator.calibration.sensitivity(marginal)
    return float(moved.l2_squared) / 2 / float(price.amount)


def begin_sum(calibrator: Calibrator, knowledge: Knowledge, marginal: Marginal, share: float) -> None:
    """Note, before they are drawn, that counts become terms of planned sums; `share` is for one of their own."""
    box = boxes_of(marginal)
    if box is not None and can_plan_sum(calibrator, marginal):
        knowledge.sums.begin(marginal.by, box, share=share, weight=WEIGHT)


def finish_sum(knowledge: Knowledge, marginal: Marginal, noisy: Values, variance: float) -> None:
    """Note counts that were drawn in full, for the sums that they are terms of."""
    box = boxes_of(marginal)
    if box is not None:
        knowledge.sums.finish(marginal.by, box, noisy, variance)


def plain_sum(share: float) -> dict[str, Any]:
    """What a plan says of the sum that a purchase plans: nothing where it plans none."""
    return {"sum": share} if share else {}


def of_sum_in(plan: Mapping[str, Any]) -> float:
    """The share of β of the sum that the purchase of a plan plans; none did before version 0.2."""
    return float(plan.get("sum", 0.0))


# ---- what a plan says of a breakdown of which a part is looked at


def plain_part(*, in_part: bool) -> dict[str, Any]:
    """What a plan says of a purchase that looks at its paid cells alone: nothing where it looks at all."""
    return {"part": True} if in_part else {}


def is_in_part(plan: Mapping[str, Any]) -> bool:
    """Whether the purchase of a plan looks at its paid cells alone; none did before version 0.2."""
    return bool(plan.get("part", False))
