"""Counts that are bought in two looks: the second is made only where the first does not tell enough.

Many counts that are asked for are small, and an answer need only be within α. Where a count is known to lie
between 0 and U, noise of half the precision tells it well enough if the count turns out to be near one of these
ends, which cut its interval. If not, a second look is added to the first, with weights that were fixed before
either was drawn, and the two together are as precise as one look at the full price.

Promise     Except with probability `share` the estimates after the first and after the second look are both
            within their bands of the true counts, whether or not the second look is made, and whoever decides
            that.
Why         A martingale band. Let εᵢ be the noise of look i, σᵢ² its variance, and wᵢ = σᵢ⁻²/(σ₁⁻² + σ₂⁻²).
            The prices of both looks, hence σᵢ and wᵢ, stand in the plan that is written into the ledger
            before the first draw, and ε₂ is drawn independently of everything before it. So M₁ = w₁ε₁, M₂ =
            w₁ε₁ + w₂ε₂ is a martingale whose weights are fixed before each draw, and the law of M₂ is that of
            a sum of two independent noises: think of ε₂ as drawn beforehand and shown only if it is asked
            for. The first band fails with probability at most FIRST·share, by the law of ε₁; the second with
            at most (1 - FIRST)·share, by that of M₂: together at most `share`. Weights that are chosen after
            a draw have no such law: whoever weighs one look more once both are seen breaks the band.
The law     Discrete Gaussian noise is within one step of normal noise of the same parameter (`simulation`,
            coupling), so that |M₂| is at most |N(0, w₁²σ₁² + w₂²σ₂²)| and w₁ + w₂ = 1 person.
Cost        The price of the first look where it is enough, about half of a count's; else that of both, a
            fiftieth more than a count's. Prices in ρ add up as precisions do; those in ε do not, so that
            under a pure ε counts are bought in one look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from understudy.answer.answer import Answer
from understudy.domain.refinement import RefinedDomain
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.box import Cells, as_text, from_plain, from_text, plain
from understudy.query.marginal import Marginal
from understudy.rational import exact
from understudy.sessions.answer_memory import identity
from understudy.sessions.calibrator import Calibrator, digits
from understudy.sessions.direct import (
    LEAST_WIDTH,
    DirectPurchase,
    begin_sum,
    finish_sum,
    intervals,
    is_in_part,
    learn,
    measured_of,
    narrowed,
    of_sum_in,
    plain_part,
    plain_sum,
    whole_counts,
)
from understudy.sessions.knowledge import TOUCHING, Knowledge, Values, nearest
from understudy.sessions.predicted_counts import predicted
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult
from understudy.theory.normal_law import ndtri

FIRST = 0.15
"""The part of a purchase's share of β that goes to the band of the first look."""

MARGIN = 1.3
"""The first look is made so precise that noise of so many deviations is still enough for a count as predicted."""

FAR = 3.0
"""In widths: a guess is taken to be off by so much, so that few first looks are left out that would do."""

MOST_FIRST = 0.75
"""A first look that would cost more than this part of a count's price is not worth its scan of the table."""


@dataclass(frozen=True, eq=False)
class LookPurchase:
    """One of the two looks at the counts of a question; promise, reason and cost are those of the module.

    marginal   the question
    paid       the cells that the bands are for: those that were not known well enough when it was planned
    of_beta    the share of β of both bands together, taken with the first look
    prices     of the first and of the second look
    second     whether this is the second one
    of_sum     the share of β, taken with the first look too, of the sum that is planned with both together
    in_part    whether the one paid cell alone is looked at (`unknown_cells`)
    """

    kind: ClassVar[str] = "look"
    marginal: Marginal
    paid: Cells
    of_beta: float
    prices: tuple[Price, Price]
    second: bool = False
    of_sum: float = 0.0
    in_part: bool = False

    @classmethod
    def of(cls, calibrator: Calibrator, knowledge: Knowledge, direct: DirectPurchase) -> LookPurchase | None:
        """The first look, in place of counts bought by themselves; None where it is not expected to be enough."""
        marginal, width = direct.marginal, calibrator.width
        if calibrator.is_pure or width < LEAST_WIDTH or marginal.moment is not None:
            return None
        if not marginal.where.is_counting or isinstance(marginal.domain, RefinedDomain):
            return None
        tails = _tails(direct.share - direct.of_sum, int(direct.paid.sum()))
        room = (2 - _distance(knowledge, direct, width)) / (1 + MARGIN / tails[0])
        # A first band of `room` times the width takes this part of what both looks cost.
        part = (tails[0] / tails[1] / room) ** 2 if room > 0 else np.inf
        return cls.split(calibrator, direct, part) if part <= MOST_FIRST else None

    @classmethod
    def split(cls, calibrator: Calibrator, direct: DirectPurchase, part: float) -> LookPurchase:
        """Counts in two looks, of which the first costs this part of both; these keep the session's width."""
        own = direct.share - direct.of_sum
        tails = _tails(own, int(direct.paid.sum()))
        moved = calibrator.curator.calibration.sensitivity(direct.measured)
        both = float(moved.l2_squared) / 2 * (tails[1] / (calibrator.width - 1)) ** 2
        first = Price(direct.price.currency, digits(part * both))
        second = Price(first.currency, digits(both - float(first.amount)))
        prices, part = (first, second), direct.in_part
        return cls(direct.marginal, direct.paid, own, prices, of_sum=direct.of_sum, in_part=part)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> LookPurchase:
        """The purchase of a plan in the ledger."""
        marginal = from_plain(calibrator.curator.domain, plan["question"])
        first, second = (Price("rho", Fraction(text)) for text in plan["looks"])
        paid = from_text(plan["paid"], marginal.shape)
        prices, part = (first, second), is_in_part(plan)
        return cls(marginal, paid, plan["of beta"], prices, plan["second"], of_sum_in(plan), part)

    @property
    def measured(self) -> Marginal:
        """The marginal that is looked at: the question's own, or its part that is not known."""
        return measured_of(self.marginal, self.paid, in_part=self.in_part)

    @property
    def share(self) -> float:
        """The part of β that is taken with this look: all of it with the first."""
        return 0.0 if self.second else self.of_beta + self.of_sum

    @property
    def price(self) -> Price:
        """The price of this look."""
        return self.prices[self.second]

    @property
    def next(self) -> LookPurchase:
        """The second look."""
        return replace(self, second=True)

    def plain(self) -> dict[str, Any]:
        """The plan: the question, the paid cells, the share of β, the prices of both looks, and which this is."""
        return {
            "question": plain(self.marginal),
            "paid": as_text(self.paid),
            "of beta": self.of_beta,
            "looks": [str(price.amount) for price in self.prices],
            "second": self.second,
            **plain_sum(self.of_sum),
            **self.price.as_plain(),
            **plain_part(in_part=self.in_part),
        }

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """Nothing: the bands follow from the plan."""
        return {}

    def event(self, calibrator: Calibrator) -> Event:
        """The noise of this look on the counts, located at the cells that are looked at."""
        return calibrator.event_of_counts(self.measured, self.price)

    def _variances(self, calibrator: Calibrator) -> tuple[float, float]:
        first, second = (
            float(calibrator.curator.calibration.mechanism(self.measured, price)[0].variance)
            for price in self.prices
        )
        return first, second

    def _width(self, calibrator: Calibrator) -> float:
        """Half the width of this look's band, in people."""
        cells = int(self.paid.sum())
        if not self.second:
            mechanism, _ = calibrator.curator.calibration.mechanism(self.measured, self.prices[0])
            return float(mechanism.error(exact(FIRST * self.of_beta), cells=cells))
        first, second = self._variances(calibrator)
        return _tails(self.of_beta, cells)[1] * (1 / (1 / first + 1 / second)) ** 0.5 * (1 + 1e-12) + 1

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and answer the question if what is known of it is now narrow enough.

        The second look is put together with the first, whose counts the knowledge keeps until then. By itself it
        has no band: where the first is not known, nothing is learnt from it.
        """
        looked_at, asked = self.measured, identity(self.marginal)
        if not self.second:
            begin_sum(calibrator, knowledge, looked_at, self.of_sum)
        measured = request.measure(calibrator.curator, looked_at, self.price)
        noisy = whole_counts(knowledge, self.marginal, self.paid, measured.noisy, in_part=self.in_part)
        if self.second:
            first = knowledge.first_looks.get(asked)
            if first is None:
                return PurchaseResult(measured.cost)
            noisy = self._together(calibrator, first.noisy, noisy)
        table = narrowed(knowledge, self.marginal, self.paid, noisy, self._width(calibrator))
        variances = self._variances(calibrator)
        variance = 1 / (1 / variances[0] + 1 / variances[1]) if self.second else variances[0]
        if self.second:
            counts = np.array(noisy[self.paid][0]) if self.in_part else noisy
            finish_sum(knowledge, looked_at, counts, variance)
        learn(knowledge, self.marginal, table, noisy, variance, only=self.paid if self.in_part else None)
        knowledge.first_looks.pop(asked, None)
        if bool((table.high - table.low > 2 * calibrator.width + TOUCHING).any()):
            if not self.second:
                knowledge.first_looks[asked] = FirstLook(self, noisy)
            return PurchaseResult(measured.cost)
        value, error = nearest(table, noisy, calibrator.width)
        answer = Answer(self.marginal, value, error, noisy, measured.cost, 1.0)
        return PurchaseResult(measured.cost, self.marginal, answer)

    def _together(self, calibrator: Calibrator, first: Values, second: Values) -> Values:
        """The two looks, weighed by the precisions that the plan gives them."""
        precisions = [1 / variance for variance in self._variances(calibrator)]
        return (precisions[0] * first + precisions[1] * second) / sum(precisions)


@dataclass(frozen=True, eq=False)
class FirstLook:
    """A first look that was made and did not tell enough, and the noisy counts that it released."""

    plan: LookPurchase
    noisy: Values


def dearer(calibrator: Calibrator) -> Fraction:
    """How much dearer two looks can be than counts in one look with the share of the second; 1 where all are."""
    if calibrator.is_pure or calibrator.width < LEAST_WIDTH:
        return Fraction(1)
    return Fraction(calibrator.width, calibrator.width - 1) ** 2 * Fraction(1002, 1000)


def next_look(knowledge: Knowledge, marginal: Marginal) -> LookPurchase | None:
    """The second look at a question, where the first was made and was not enough."""
    made = knowledge.first_looks.get(identity(marginal))
    return None if made is None else made.plan.next


def _tails(share: float, cells: int) -> tuple[float, float]:
    """How many deviations the bands of the first and of the second look are wide."""
    first, second = FIRST * share / cells, (1 - FIRST) * share / cells
    return -float(ndtri(first / 2)), -float(ndtri(second / 2))


def _distance(knowledge: Knowledge, direct: DirectPurchase, width: int) -> float:
    """How far the counts are expected to be from the nearer end of what is known of them, in widths: the
    farthest of the cells that are paid for.
    """
    known = intervals(knowledge, direct.marginal)
    expected = predicted(knowledge, direct.marginal)
    if known is None or expected is None:
        return np.inf
    expected = np.clip(expected, known.low, known.high)
    far = float(np.minimum(expected - known.low, known.high - expected)[direct.paid].max(initial=0.0)) / width
    return far if direct.measured.by else max(far - FAR, 0.0)
