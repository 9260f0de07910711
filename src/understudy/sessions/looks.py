"""Counts that are bought in several looks: a later one is made only where those before it do not tell enough.

Many counts that are asked for are small, and an answer need only be within α. Where a count is known to lie
between 0 and U, noise of a third of the precision tells it well enough if the count turns out to be near one of
these ends, which cut its interval. If not, a further look is added to the first, and so on, with weights that were
fixed before any was drawn; all planned looks together are as precise as one look at the full price.

Promise     Except with probability `share` the estimates after all looks that are made are within their bands of
            the true counts, however many are made, and whoever decides that.
Why         A martingale band. Let ρᵢ be the price of the i-th planned look, εᵢ its noise, which is normal with
            variance D/ρᵢ, and Mₖ = Σᵢ≤ₖ ρᵢεᵢ / Σᵢ≤ₖ ρᵢ the error of the estimate after k of them: a normal number
            of variance D / Σᵢ≤ₖ ρᵢ. All prices, and so the weights, stand in the plan that is written into the
            ledger before the first draw, and each εᵢ is independent of everything before it: think of all of them
            as drawn beforehand and shown only if they are asked for. The band after k looks fails with probability
            at most its part of `share`, by the law of Mₖ, and these parts add up to 1. Weights that are chosen
            after a draw have no such law: whoever weighs one look more once both are seen breaks the band.
At once     Looks may be left out: then the next one is drawn at the price of several, Σ ρᵢ over them. Its noise
            has the law of their weighted mean, so that Mₖ has the same law, and the bands hold of the same sums.
            Which ones are left out may depend on everything that was released: bands of looks that nobody sees
            take their part of `share` all the same.
The law     Discrete Gaussian noise is within one step of normal noise of the same parameter (`simulation`,
            coupling), so that |Mₖ| is at most that of normal numbers and Σ ρᵢ / Σ ρᵢ = 1 person.
Cost        The price of the looks that are made: a third of a count's where it turns out to be at an end; where
            all are made a fiftieth more than a count's. Prices in ρ add up as precisions do; those in ε do not, so
            that under a pure ε counts are bought in one look.
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
    normal_variance,
    of_sum_in,
    plain_part,
    plain_sum,
    whole_counts,
)
from understudy.sessions.knowledge import TOUCHING, Knowledge, Values, nearest
from understudy.sessions.predicted_counts import predicted
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult
from understudy.sessions.unknown_cells import part_of
from understudy.theory.normal_law import ndtri

FIRST = 0.15
"""The part of a purchase's share of β that goes to the bands of all looks but the last, alike."""

LOOKS = 4
"""So many are planned, at most: each further one would save less, and takes a scan of the table."""

GROWTH = 1.4
"""By this factor the precision grows from one of the early looks to the next."""

FAR = 3.0
"""In widths: a guess is taken to be off by so much, so that few first looks are left out that would do."""

MOST_EARLY = 0.75
"""An early look that would bring the price to more than this part of a count's is not worth its scan."""


@dataclass(frozen=True, eq=False)
class LookPurchase:
    """One of the looks at the counts of a question; promise, reason and cost are those of the module.

    marginal   the question
    paid       the cells that the bands are for: those that were not known well enough when it was planned
    of_beta    the share of β of all bands together, taken with the first look
    prices     of all planned looks, in their order
    made       how many of them were made before this one
    upto       how many are made with this one, which is drawn at the price of all between
    of_sum     the share of β, taken with the first look too, of the sum that is planned with all together
    in_part    whether the paid cells alone are looked at (`unknown_cells`)
    """

    kind: ClassVar[str] = "look"
    marginal: Marginal
    paid: Cells
    of_beta: float
    prices: tuple[Price, ...]
    made: int = 0
    upto: int = 1
    of_sum: float = 0.0
    in_part: bool = False

    @classmethod
    def of(cls, calibrator: Calibrator, knowledge: Knowledge, direct: DirectPurchase) -> LookPurchase | None:
        """The first look, in place of counts bought by themselves; None where no early look may be enough."""
        marginal, width = direct.marginal, calibrator.width
        if calibrator.is_pure or width < LEAST_WIDTH or marginal.moment is not None:
            return None
        if not marginal.where.is_counting or isinstance(marginal.domain, RefinedDomain):
            return None
        near = _expected_distance(knowledge, direct, width)
        if near >= 2 * width:
            return None
        tails = _tails(direct.share - direct.of_sum, int(direct.paid.sum()), LOOKS)
        first = (
            tails[0] / tails[-1]
        ) ** 2 / 4  # the band is as wide as what may be told: it is cut at an end
        parts = [part for i in range(LOOKS - 1) if (part := first * GROWTH**i) <= MOST_EARLY]
        if not parts:
            return None  # the share is so large that an early band is much wider than the last
        looks = cls.split(calibrator, direct, *parts)
        upto = looks._due(calibrator, near)
        return None if upto == len(looks.prices) else replace(looks, upto=upto)

    @classmethod
    def split(cls, calibrator: Calibrator, direct: DirectPurchase, *parts: float) -> LookPurchase:
        """The first of several looks, after each of which so large a part of the whole price is paid; all together
        keep the session's width.
        """
        own = direct.share - direct.of_sum
        tail = _tails(own, int(direct.paid.sum()), len(parts) + 1)[-1]
        moved = calibrator.curator.calibration.sensitivity(direct.measured)
        whole = float(moved.l2_squared) / 2 * (tail / (calibrator.width - 1)) ** 2
        prices, paid = list[Price](), 0.0
        for part in (*parts, 1.0):
            prices.append(Price(direct.price.currency, digits(part * whole - paid)))
            paid += float(prices[-1].amount)
        in_part, of_sum = direct.in_part, direct.of_sum
        return cls(direct.marginal, direct.paid, own, tuple(prices), of_sum=of_sum, in_part=in_part)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> LookPurchase:
        """The purchase of a plan in the ledger; older ones have two looks, of which none was left out."""
        marginal = from_plain(calibrator.curator.domain, plan["question"])
        prices = tuple(Price("rho", Fraction(text)) for text in plan["looks"])
        paid, in_part = from_text(plan["paid"], marginal.shape), is_in_part(plan)
        made = plan["made"] if "made" in plan else int(plan["second"])
        upto = plan.get("upto", made + 1)
        return cls(marginal, paid, plan["of beta"], prices, made, upto, of_sum_in(plan), in_part)

    @property
    def measured(self) -> Marginal:
        """The marginal that is looked at: the question's own, or its part that is not known."""
        return measured_of(self.marginal, self.paid, in_part=self.in_part)

    @property
    def is_first(self) -> bool:
        """Whether no look was made before this one."""
        return not self.made

    @property
    def is_last(self) -> bool:
        """Whether all planned looks are made with this one."""
        return self.upto == len(self.prices)

    @property
    def share(self) -> float:
        """The part of β that is taken with this look: all of it with the first."""
        return self.of_beta + self.of_sum if self.is_first else 0.0

    @property
    def price(self) -> Price:
        """The price of this look."""
        return self._price(self.made, self.upto)

    def _price(self, made: int, upto: int) -> Price:
        amounts = [price.amount for price in self.prices[made:upto]]
        return Price(self.prices[0].currency, sum(amounts, Fraction(0)))

    @property
    def later(self) -> list[LookPurchase]:
        """The looks that are planned after this one, none left out."""
        return [replace(self, made=made, upto=made + 1) for made in range(self.upto, len(self.prices))]

    def following(self, calibrator: Calibrator, knowledge: Knowledge, noisy: Values) -> LookPurchase:
        """The look after this one, which told `noisy`: the next that may be enough for counts like these."""
        near = _distance(knowledge, self.marginal, self.paid, noisy) - self._deviation(calibrator, self.upto)
        following = replace(self, made=self.upto, upto=self.upto + 1)
        return replace(following, upto=following._due(calibrator, near))

    def _due(self, calibrator: Calibrator, near: float) -> int:
        """How many looks have to be made until counts that are so many people from an end may be told."""
        for upto in range(self.made + 1, len(self.prices)):
            if near + self._half_width(calibrator, upto) <= 2 * calibrator.width:
                return upto
        return len(self.prices)

    def plain(self) -> dict[str, Any]:
        """The plan: the question, the paid cells, the share of β, the prices of all looks, and which this is."""
        return {
            "question": plain(self.marginal),
            "paid": as_text(self.paid),
            "of beta": self.of_beta,
            "looks": [str(price.amount) for price in self.prices],
            "made": self.made,
            "upto": self.upto,
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

    def _deviation(self, calibrator: Calibrator, upto: int) -> float:
        """That of the normal error after so many looks, in people."""
        return normal_variance(calibrator, self.measured, self._price(0, upto)) ** 0.5

    def _half_width(self, calibrator: Calibrator, upto: int) -> float:
        """Half the width of the band after so many looks, in people."""
        tail = _tails(self.of_beta, int(self.paid.sum()), len(self.prices))[upto - 1]
        return tail * self._deviation(calibrator, upto) * (1 + 1e-12) + 1

    def _width(self, calibrator: Calibrator) -> float:
        """Half the width of this look's band, in people: of one draw by its own law."""
        if self.made or self.is_last:
            return self._half_width(calibrator, self.upto)
        mechanism, _ = calibrator.curator.calibration.mechanism(self.measured, self.price)
        part = exact(FIRST / (len(self.prices) - 1) * self.of_beta)
        return float(mechanism.error(part, cells=int(self.paid.sum())))

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and answer the question if what is known of it is now narrow enough.

        A later look is put together with those before it, whose counts the knowledge keeps until then. By itself
        it has no band: where these are not known, or others than were planned, nothing is learnt from it.
        """
        looked_at, asked = self.measured, identity(self.marginal)
        if self.is_first:
            begin_sum(calibrator, knowledge, looked_at, self.of_sum)
        measured = request.measure(calibrator.curator, looked_at, self.price)
        noisy = whole_counts(knowledge, self.marginal, self.paid, measured.noisy, in_part=self.in_part)
        if not self.is_first:
            before = knowledge.first_looks.get(asked)
            if before is None or before.plan.upto != self.made:
                return PurchaseResult(measured.cost)
            noisy = self._together(before.noisy, noisy)
        table = narrowed(knowledge, self.marginal, self.paid, noisy, self._width(calibrator))
        variance = self._deviation(calibrator, self.upto) ** 2
        if self.is_last:
            counts = part_of(noisy, self.paid) if self.in_part else noisy
            finish_sum(knowledge, looked_at, counts, variance)
        learn(knowledge, self.marginal, table, noisy, variance, only=self.paid if self.in_part else None)
        knowledge.first_looks.pop(asked, None)
        if bool((table.high - table.low > 2 * calibrator.width + TOUCHING).any()):
            if not self.is_last:
                knowledge.first_looks[asked] = FirstLook(self, noisy)
            return PurchaseResult(measured.cost)
        value, error = nearest(table, noisy, calibrator.width)
        answer = Answer(self.marginal, value, error, noisy, measured.cost, 1.0)
        return PurchaseResult(measured.cost, self.marginal, answer)

    def _together(self, before: Values, noisy: Values) -> Values:
        """The looks before this one and this one, weighed by the prices that the plan gives them."""
        old, new = (float(price.amount) for price in (self._price(0, self.made), self.price))
        return (old * before + new * noisy) / (old + new)


@dataclass(frozen=True, eq=False)
class FirstLook:
    """A look that was made and did not tell enough, and what it and those before it tell together."""

    plan: LookPurchase
    noisy: Values


def dearer(calibrator: Calibrator) -> Fraction:
    """How much dearer all looks can be than counts in one look with the share of the last; 1 where all are."""
    if calibrator.is_pure or calibrator.width < LEAST_WIDTH:
        return Fraction(1)
    return Fraction(calibrator.width, calibrator.width - 1) ** 2 * Fraction(1002, 1000)


def was_begun(knowledge: Knowledge, marginal: Marginal) -> bool:
    """Whether a look was made at a question that was not enough."""
    return identity(marginal) in knowledge.first_looks


def next_look(calibrator: Calibrator, knowledge: Knowledge, marginal: Marginal) -> LookPurchase | None:
    """The next look at a question, where one was made and was not enough."""
    made = knowledge.first_looks.get(identity(marginal))
    return None if made is None else made.plan.following(calibrator, knowledge, made.noisy)


def _tails(share: float, cells: int, looks: int) -> list[float]:
    """How many deviations the bands are wide after each of so many looks."""
    parts = [FIRST / (looks - 1)] * (looks - 1) + [1 - FIRST]
    return [-float(ndtri(part * share / cells / 2)) for part in parts]


def _distance(knowledge: Knowledge, marginal: Marginal, paid: Cells, counts: Values) -> float:
    """How far counts are from the nearer end of what is known of them, in people: the farthest of those paid."""
    known = intervals(knowledge, marginal)
    if known is None:
        return np.inf
    counts = np.clip(counts, known.low, known.high)
    return float(np.minimum(counts - known.low, known.high - counts)[paid].max(initial=0.0))


def _expected_distance(knowledge: Knowledge, direct: DirectPurchase, width: int) -> float:
    """How far the counts are expected to be from the nearer end of what is known of them, in people."""
    expected = predicted(knowledge, direct.marginal)
    if expected is None:
        return np.inf
    far = _distance(knowledge, direct.marginal, direct.paid, expected)
    return far if direct.measured.by else max(far - FAR * width, 0.0)
