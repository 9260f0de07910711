"""From what a caller says a question may cost to a measurement: which noise, and how much of it. Reads no data.

A price is said as an epsilon, as a rho, as the error that every count must keep, or not at all. What an epsilon
means depends on the budget:

    pure ε     the question is ε-DP, and ε is what it costs.
    (ε, δ)     the question alone is (ε, δ)-DP with the budget's own δ. It costs the largest ρ for which ρ-zCDP
               implies that (`Budget.part`): a budget of (1, 10⁻⁹) is ρ = 0.0150, and an epsilon of 0.1 takes
               ρ = 0.00018 of it. A release's epsilon means the same.

Of Laplace and Gaussian noise the one is added that leaves the smaller error at the price, or costs less at the
error. Bounded noise, of which every error is certain, is compared with the better of the two at the same promise
where a budget pays for it: one that is kept at one Rényi order, from its ρ and from the δ that it sets aside. At
that order alone its price is known, which suits the whole budget and no small part of it: so it is bought by an
error or a rho, not by an epsilon. Under a pure ε, `zcdp` and `gdp` it has no price, and nothing is compared.
All of this depends on public values alone: the budget and what was spent of it, the declared domain, the question.

**Bounded noise is never dearer than what it replaces** (`QuestionPricing.best`), of one question and of all
questions together. Both noises are on the same counts, and so have the same region in the ledger's joint account.
What a located event adds there to each cell is in proportion to its own price, and the joint price is a maximum of
sums over cells (`privacy.joint`): where every event is replaced by one of the same region and a smaller price, no
sum grows, and neither does their maximum. So prices of events alone are compared. What a ledger would charge at
the moment is not: of two events that happen to be charged the same now, or nothing, the dearer one can make a
later question dearer.

**It is not taken wherever it costs less ρ.** It also takes a part of the δ that is set aside, and the larger of
its two parts, of ρ and of that δ, has to be smaller than the part of ρ that the other noise takes; besides, δ has
to be left for `SPARE` questions like it. Otherwise a few questions that save a little ρ would use up the δ. So
where its part of δ is the larger one, a question can cost more ρ than with bounded noise asked for by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any

from understudy.answer.around_question import AroundQuestion
from understudy.answer.reader import ReadQuestion
from understudy.curator.calibration import Calibration
from understudy.curator.prepared_measurement import PreparedMeasurement
from understudy.curator.question_price import QuestionPrice
from understudy.errors import ParameterError, RefusedError
from understudy.ledger.interface import Ledger
from understudy.mechanism.additive import CURRENCY_OF, usual_noise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import DELTA_UNITS, UNITS, delta_units
from understudy.privacy.event import Event, Pure, unversioned
from understudy.privacy.filter import RenyiFilter
from understudy.privacy.noise_name import Noise
from understudy.privacy.price import Price
from understudy.query.disjoint import disjoint_stacks
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd
from understudy.rational import probability

DEFAULT_SHARE = Fraction(1, 100)
"""Part of the whole budget that a question costs when nothing is said about its price or error."""

SPARE = 64
"""Bounded noise is chosen while δ is left for so many like it: several may be charged at the same time."""

BESIDE_MOMENTS = Fraction(4, 7)
"""What a count is paid beside a moment that is paid 1.

An average is 1/2 + C/N of the range, with C the sum of the centred places and N the number of rows. With
variances v and w of their noise its error has, to first order, the variance (v + m²w)/N², where m, between -1/2
and 1/2, is how far the average lies from the middle. Gaussian noise on C has v = 1/(8ρ) for its part ρ of the
price, and on N it has w = 1/(2ρ'). Where the average may be anywhere with equal probability, m² is 1/12 in the
mean, and 1/(8ρ) + 1/(24ρ') is least at ρ'/ρ = 1/√3, which is 0.577.
"""

_PURE = Pure(epsilon=Fraction(1))

_Stacking = Callable[[Sequence[Marginal]], tuple[tuple[int, ...], ...]]
"""Puts the places of marginals together that are measured as one vector."""


POINT = Fraction(1, 2)
"""What the draw of a quantile itself is paid beside each end of its interval, which is paid 1.

The ends are shifted by many times what a draw is off by, so that a part of the price is worth less to the draw.
"""


def _part_of(marginal: Marginal) -> Fraction:
    """What a marginal is paid beside moments, of which one is paid 1."""
    moment = marginal.moment
    if moment is None:
        return BESIDE_MOMENTS
    return POINT if isinstance(moment, QuantileEnd) and moment.side == "point" else Fraction(1)


def _apart(marginals: Sequence[Marginal], stacks: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The stacks, with ends of quantiles each alone."""
    found: list[tuple[int, ...]] = []
    for stack in stacks:
        alone = isinstance(marginals[stack[0]].moment, QuantileEnd)
        found += [(place,) for place in stack] if alone else [stack]
    return found


def _each_alone(marginals: Sequence[Marginal]) -> tuple[tuple[int, ...], ...]:
    return tuple((place,) for place in range(len(marginals)))


def has_delta_for(ledger: Ledger, event: Event, *, times: int = 1) -> bool:
    """Whether what is left of a ledger's δ for events pays for an event so many times."""
    units = times * delta_units(event)
    return not units or units <= ledger.budget.delta_cap - ledger.delta_spent * DELTA_UNITS


def pays_for_bounded(budget: Budget) -> bool:
    """Whether a budget has a price for bounded noise: kept at one Rényi order, with a part of δ set aside."""
    return isinstance(budget.filter, RenyiFilter) and budget.key_delta > 0


def check_noise(calibration: Calibration, noise: str) -> None:
    """Refuse noise by name that a budget has no price for, with a `RefusedError` that says what to do."""
    budget = calibration.budget
    if noise == "bounded":
        calibration.check_certain()
    elif noise == "gaussian" and budget.is_pure:
        raise no_pure_epsilon(noise)
    elif noise == "laplace" and not budget.is_pure:
        raise RefusedError(
            "a session adds Laplace noise under a budget of pure epsilon alone",
            remedy="leave `noise` out, or name `gaussian`",
        )


def no_pure_epsilon(noise: str) -> RefusedError:
    """The refusal of noise that a budget of pure ε does not pay for."""
    return RefusedError(
        f"{noise.capitalize()} noise gives no pure epsilon",
        remedy="declare a budget with a delta, or ask for Laplace noise",
    )


@dataclass(frozen=True, eq=False)
class _Divided:
    """A question at its price, divided among what it needs.

    marginals  what is counted for it
    asked      what it may cost as a whole, or how far off it may be
    noise      the noise that all of it gets
    paid       the places of marginals that are paid for, those of one vector together; the others are public
    share      of β for each marginal that is paid for
    """

    marginals: tuple[Marginal, ...]
    asked: QuestionPrice
    noise: str
    paid: tuple[tuple[int, ...], ...]
    share: Fraction


@dataclass(frozen=True)
class QuestionPricing:
    """Prices the questions of one table by its `calibration`, and for its `ledger`.

    A question that needs several marginals gives an equal part of its price to each stack of those that are about
    different rows (`query.disjoint`), and an equal part of β to each marginal; what is public needs neither. Where
    moments are measured, a count gets less (`BESIDE_MOMENTS`).
    `rounded`, the parts are so much smaller that rounding all of them up stays within the price.
    """

    calibration: Calibration
    ledger: Ledger

    def prepare(
        self, marginals: Sequence[Marginal], asked: QuestionPrice, *, rounded: bool = False
    ) -> PreparedMeasurement:
        """The measurement with the noise that is best for the question at its price."""
        found: list[PreparedMeasurement] = []
        refusal: ParameterError | None = None
        for noise in self.noises(asked):
            try:
                found.append(self._measured(marginals, asked, noise, rounded=rounded))
            except ParameterError as error:  # noise that cannot be drawn: the other one may be
                refusal = refusal or error
        if not found:
            assert refusal is not None
            raise refusal
        budget = self.ledger.budget
        if asked.error is not None:
            return min(found, key=lambda one: budget.price(one.event).units) if len(found) > 1 else found[0]
        return min(found, key=lambda one: max(one.errors, default=0.0))

    def best(
        self, question: ReadQuestion[Any], asked: QuestionPrice, *, rounded: bool
    ) -> PreparedMeasurement:
        """The question with the best noise there is for it: bounded noise where that is better than any other.

        At a given error it is better where the larger of the parts that it takes of ρ and of the δ for events is
        smaller than the part of ρ that the best other noise takes; at a given price, or the usual part of the
        budget, where its error is smaller. Its error is certain, and that of the other is not. It is not tried
        where the budget has no price for it or too little of δ left, where the question needs more than counts of
        people or its answer has no bounds, and where its noise or an epsilon was asked for by name.
        """
        usual = self.prepare(question.marginals, asked, rounded=rounded)
        if isinstance(question, AroundQuestion) or not self.may_be_certain(asked):
            return usual
        try:
            found = self._measured(question.marginals, asked, "bounded", rounded=rounded)
        except (ParameterError, RefusedError):
            return usual
        return found if self.is_certain_better(found, usual, asked) else usual

    def may_be_certain(self, asked: QuestionPrice) -> bool:
        """Whether a question that does not name its noise may get bounded noise at such a price."""
        return asked.noise == "auto" and asked.epsilon is None and pays_for_bounded(self.ledger.budget)

    def is_certain_better(
        self, found: PreparedMeasurement, usual: PreparedMeasurement, asked: QuestionPrice
    ) -> bool:
        """Whether bounded noise is better than other noise for the same question, as `best` says."""
        if not has_delta_for(self.ledger, found.event, times=SPARE):
            return False
        if asked.error is None:
            return max(found.errors, default=0.0) < max(usual.errors, default=0.0)
        return self._part_of_budget(found) < self._part_of_budget(usual)

    def _part_of_budget(self, measured: PreparedMeasurement) -> Fraction:
        """The larger of the parts that a measurement takes of the budget's ρ and of its δ for events."""
        budget, event = self.ledger.budget, measured.event
        of_rho = Fraction(budget.price(event).units, max(budget.cap.units, 1))
        return max(of_rho, Fraction(delta_units(event), max(budget.delta_cap, 1)))

    def repeated(
        self, prepared: PreparedMeasurement, asked: QuestionPrice, request: str, *, rounded: bool = False
    ) -> PreparedMeasurement:
        """The measurement that the request was charged for: with other noise, or by the rule of version 0.1.

        Whether bounded noise is better depends on how much of δ is left, so that the choice for the same words can
        be another one later: what was charged first is found again.

        In version 0.1 an epsilon was one of pure privacy, and bought Laplace noise, under every budget; anything
        else bought Gaussian noise where the budget has a δ. Every marginal had a price of its own, also those that
        are about different rows. Later counts of different rows shared a price, and sums of weights other than 0
        and 1 did not. What was charged in one of these ways is found again, and not priced anew.
        """
        known = self.ledger.find(request)
        if known is None or unversioned(known.event) == prepared.charged:
            return prepared
        pure = asked.epsilon is not None or self.ledger.budget.is_pure
        former: Noise = "laplace" if pure else "gaussian"
        terms = replace(asked, noise=former) if asked.noise == "auto" else asked
        noises = [(asked, noise) for noise in self.noises(asked)]
        sure = [(asked, "bounded")] if asked.noise == "auto" and asked.epsilon is None else []
        ways: list[tuple[QuestionPrice, str, _Stacking]] = [
            *((*one, disjoint_stacks) for one in (*noises, *sure)),
            *((*one, partial(disjoint_stacks, weighted=False)) for one in noises),
            *((*one, _each_alone) for one in ((terms, terms.noise), *noises)),
        ]
        for tried, noise, stacking in ways:
            try:
                before = self._measured(prepared.marginals, tried, noise, rounded=rounded, stacking=stacking)
            except (ParameterError, RefusedError):
                continue
            if unversioned(known.event) == before.charged:
                return before
        return prepared

    def noises(self, asked: QuestionPrice) -> tuple[Noise, ...]:
        """The noises to compare, the usual one first."""
        if asked.noise != "auto":
            return (asked.noise,)
        if self.ledger.budget.is_pure:  # it pays for no other, and says so where a rho is asked for
            return (usual_noise("epsilon" if asked.rho is None else "rho"),)
        return ("gaussian", "laplace")

    def _measured(
        self,
        marginals: Sequence[Marginal],
        asked: QuestionPrice,
        noise: str,
        *,
        rounded: bool,
        stacking: _Stacking = disjoint_stacks,
    ) -> PreparedMeasurement:
        """The measurement with a noise of this name; what `stacking` puts together is one vector."""
        places = [i for i, marginal in enumerate(marginals) if not self.calibration.is_public(marginal)]
        stacks = stacking([marginals[i] for i in places])
        paid = tuple(tuple(places[i] for i in stack) for stack in stacks)
        share = probability(asked.beta) / max(len(places), 1)
        divided = _Divided(tuple(marginals), asked, noise, paid, share)
        if any(isinstance(marginal.moment, QuantileEnd) for marginal in marginals):
            return self._with_quantiles(divided)
        if any(marginal.moment is not None for marginal in marginals):
            return self._with_moments(divided)
        if asked.error is not None:
            # A question that is public as a whole costs nothing at any price.
            priced = paid or tuple((place,) for place in range(len(marginals[:1])))
            prices = [self._price_of(stack, divided) for stack in priced]
            each = max(prices, key=lambda one: one.amount, default=Price(CURRENCY_OF[noise], Fraction(1)))
        else:
            each = self._part(self._whole(asked, noise), max(len(paid), 1), rounded=rounded)
        return self._prepared(divided, each)

    def _prepared(self, divided: _Divided, price: Price | Sequence[Price]) -> PreparedMeasurement:
        """The measurement at one price for all stacks, or one for each marginal; what is public stands alone."""
        covered = {place for stack in divided.paid for place in stack}
        free = [(i,) for i in range(len(divided.marginals)) if i not in covered]
        return self.calibration.prepare(
            divided.marginals,
            price,
            beta=divided.share,
            stacks=sorted([*divided.paid, *free]),
            certain=divided.noise == "bounded",
        )

    def _with_quantiles(self, divided: _Divided) -> PreparedMeasurement:
        """A measurement with quantiles in it: drawn each by itself, or found together from refined counts.

        That is taken whose ends are expected to be nearer on the whole or, at a given error, which costs less.
        """
        found: list[PreparedMeasurement] = []
        refusal: ParameterError | None = None
        apart = tuple(_apart(divided.marginals, divided.paid))
        for stacks in dict.fromkeys((divided.paid, apart)):
            try:
                found.append(self._with_moments(replace(divided, paid=stacks)))
            except ParameterError as error:  # noise that cannot be drawn, or too many levels
                refusal = refusal or error
        if not found:
            assert refusal is not None
            raise refusal
        if divided.asked.error is not None:
            return min(found, key=lambda one: self.ledger.budget.price(one.event).units)
        return min(found, key=lambda one: sum(self._ranks(one)))

    def _ranks(self, prepared: PreparedMeasurement) -> list[float]:
        """How many ranks the ends of quantiles, and not the estimates, are expected to lie beyond them."""
        return [
            error
            for marginal, error in zip(prepared.marginals, prepared.errors, strict=True)
            if isinstance(marginal.moment, QuantileEnd) and marginal.moment.side != "point"
        ]

    def _with_moments(self, divided: _Divided) -> PreparedMeasurement:
        """A measurement with moments in it: each stack has a price of its own."""
        marginals, paid = divided.marginals, divided.paid
        if divided.asked.error is not None:
            found = [self._price_of(stack, divided) for stack in paid]
        else:
            parts = [_part_of(marginals[stack[0]]) if len(stack) == 1 else Fraction(1) for stack in paid]
            whole = self._whole(divided.asked, divided.noise)
            found = [self._part(whole, sum(parts) / part, rounded=True) for part in parts]
        usual = found[0] if found else Price(CURRENCY_OF[divided.noise], Fraction(1))
        prices = [usual] * len(marginals)
        for stack, price in zip(paid, found, strict=True):
            for place in stack:
                prices[place] = price
        return self._prepared(divided, prices)

    def _price_of(self, places: Sequence[int], divided: _Divided) -> Price:
        """The smallest price at which all counts of a stack are within the error: that of its largest marginal."""
        stack, beta, error = [divided.marginals[i] for i in places], divided.share, divided.asked.error
        assert error is not None
        if isinstance(stack[0].moment, QuantileEnd):
            beta *= len(stack)
        largest = max(stack, key=lambda marginal: marginal.size)
        return self.calibration.price_of(
            largest,
            error=error,
            beta=beta,
            currency=CURRENCY_OF[divided.noise],
            beside=[marginal for marginal in stack if marginal is not largest],
            certain=divided.noise == "bounded",
        )

    def _whole(self, asked: QuestionPrice, noise: str) -> Price:
        """The price of the whole question, in the currency of its noise."""
        budget = self.ledger.budget
        pure = asked.noise == "laplace" or budget.is_pure
        if noise == "laplace" and pure and asked.epsilon is not None:
            return Price.of(epsilon=asked.epsilon)
        if asked.rho is not None:
            price = Price.of(rho=asked.rho)
        elif asked.epsilon is not None:
            price = budget.part(asked.epsilon)
        else:
            price = budget.whole * DEFAULT_SHARE
        if noise != "laplace" and price.currency == "epsilon":
            raise no_pure_epsilon(noise)
        if noise == "laplace" and price.currency == "rho":
            return Price("epsilon", budget.epsilon_within(price, _PURE))
        return price

    def _part(self, price: Price, parts: int | Fraction, *, rounded: bool) -> Price:
        slack = 4 * self.calibration.relation.max_rows**2
        units = floor(price.amount * UNITS / parts) - slack
        fits = rounded and parts > 1 and units > 1000 * slack
        return Price(price.currency, Fraction(units, UNITS)) if fits else price / parts
