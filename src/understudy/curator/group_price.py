"""The price at which the groups of a question keep the error that is asked for. Reads no data.

`QuestionPricing` finds the price at which every declared cell keeps an error. A group of several cells is off by
more than one of them, and how much more depends on the noise: for m cells about √m times with Laplace and Gaussian
noise, and m times with bounded noise, of which the certain error of a group is the sum of those of its cells. So a
price is settled for each noise by itself, and these prices are compared: the noise that is cheapest where cells
keep an error need not be the cheapest where groups do.

For one noise the error of the cells is made smaller until the groups keep what was asked for, and the least price
that keeps it is then looked for between that and the last one that did not. How far a group can be off falls with
the price, but for the rounding of quantiles, by a person or so. Every price that is returned was found to keep the
error, and if none is found the question is refused, before anything is charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

from understudy.answer.around_question import AroundQuestion
from understudy.answer.reader import ReadQuestion
from understudy.curator.prepared_measurement import PreparedMeasurement
from understudy.curator.pricing import QuestionPricing
from understudy.curator.question_price import QuestionPrice
from understudy.curator.quote import error_of
from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.additive import CURRENCY_OF
from understudy.mechanism.concentrated_noise import ConcentratedNoise
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.query.marginal import Marginal
from understudy.rational import exact

SHRINKINGS = 24
"""How often the error of cells is made smaller until the groups that are made of them keep the error asked for."""

NEAR = Fraction(98, 100)
"""The search ends where the error that is kept, or a price that does not keep it, is so large a part of the error
asked for, or of the price that keeps it."""

DIGITS = 4
"""Prices are rounded up to so many digits."""


@dataclass(frozen=True)
class _Settled:
    """The terms on which cells make the groups keep the error, and the measurement on these terms."""

    terms: QuestionPrice
    measured: PreparedMeasurement


@dataclass(frozen=True)
class GroupPricing:
    """Prices one question, whose groups may be made of several cells; `rounded` is that of `QuestionPricing`."""

    pricing: QuestionPricing
    question: ReadQuestion[Any]
    rounded: bool

    def prepare(self, asked: QuestionPrice) -> tuple[tuple[QuestionPrice, ...], PreparedMeasurement]:
        """The measurement with the noise that is best at the error asked for, and the terms of each noise for it.

        Raises what `QuestionPricing.prepare` raises, and a `RefusedError` where no price was found at which the
        groups keep the error.
        """
        assert asked.error is not None
        best = self.pricing.best(self.question, asked, rounded=self.rounded)
        if self._is_kept(best, asked):
            return (asked,), best
        settled: list[_Settled] = []
        least: _Settled | None = None
        for noise in self.pricing.noises(asked):
            found = self._settled(replace(asked, noise=noise), below=least)
            if found is not None:
                settled.append(found)
                least = min(least or found, found, key=lambda one: self._units(one.measured))
        if least is None:
            raise RefusedError(
                f"no price was found at which every group of several cells is within {float(exact(asked.error)):g}"
                " people; nothing was charged",
                remedy="ask for a wider `error`, give an `epsilon` or a `rho`, or group by fewer cells",
            )
        sure = self._certain(asked)
        if sure is not None:
            settled.append(sure)
            if self.pricing.is_certain_better(sure.measured, least.measured, asked):
                least = sure
        others = (one.terms for one in settled if one is not least)
        return tuple(dict.fromkeys((least.terms, *others, asked))), least.measured

    @property
    def _marginals(self) -> Sequence[Marginal]:
        return self.question.marginals

    def _at(self, terms: QuestionPrice) -> PreparedMeasurement:
        return self.pricing.prepare(self._marginals, terms, rounded=self.rounded)

    def _units(self, measured: PreparedMeasurement) -> int:
        return self.pricing.ledger.budget.price(measured.event).units

    def _told(self, measured: PreparedMeasurement, asked: QuestionPrice) -> float:
        """What the groups can be off by, as a part of the error asked for."""
        assert asked.error is not None
        return error_of(self.question, measured) / float(exact(asked.error))

    def _is_kept(self, measured: PreparedMeasurement, asked: QuestionPrice) -> bool:
        return self._told(measured, asked) <= 1

    def _certain(self, asked: QuestionPrice) -> _Settled | None:
        """The groups with bounded noise, where a question may get it without asking for it."""
        if isinstance(self.question, AroundQuestion) or not self.pricing.may_be_certain(asked):
            return None
        return self._settled(replace(asked, noise="bounded"))

    def _settled(self, asked: QuestionPrice, *, below: _Settled | None = None) -> _Settled | None:
        """The least price found at which the groups keep the error with the noise that `asked` names.

        None where there is none, and where a price that is not enough is already that of `below` or more.
        """
        assert asked.error is not None
        cells, failed = exact(asked.error), None
        for _ in range(SHRINKINGS):
            terms = replace(asked, error=cells)
            try:
                measured = self._at(terms)
            except (
                ParameterError,
                RefusedError,
            ):  # noise that cannot be drawn, or no price that is high enough
                return None
            told = self._told(measured, asked)
            if told <= 1:
                return self._nearer(_Settled(terms, measured), failed, asked)
            if below is not None and self._units(measured) >= self._units(below.measured):
                return None
            failed = _Settled(terms, measured)
            cells *= min(Fraction(1000, ceil(1000 * told) + 1), Fraction(19, 20))
        return None

    def _nearer(self, kept: _Settled, failed: _Settled | None, asked: QuestionPrice) -> _Settled:
        """The least price that keeps the error, between one that does and one that does not.

        The error of cells is a whole number of steps, so that a search over errors leaves out the prices between
        those of two such numbers; they are tried where one price buys all that is measured.
        """
        if failed is None or self._told(kept.measured, asked) >= NEAR:
            return kept
        high, low = _whole_price(kept.measured), _whole_price(failed.measured)
        if not (high and low) or any(marginal.moment is not None for marginal in self._marginals):
            return kept
        named = CURRENCY_OF[asked.noise]
        while low < high * NEAR:
            middle = _rounded_up((low + high) / 2)
            if not low < middle < high:
                break
            terms = QuestionPrice(**{named: middle}, beta=asked.beta, noise=asked.noise)
            measured = self._at(terms)
            if self._is_kept(measured, asked):
                high = middle
                if self._units(measured) < self._units(kept.measured):
                    kept = _Settled(terms, measured)
            else:
                low = middle
        return kept


def _whole_price(measured: PreparedMeasurement) -> Fraction:
    """What all vectors of a measurement cost together, in the parameter of their noise; 0 with bounded noise."""
    return sum(_parameters(measured), Fraction(0))


def _parameters(measured: PreparedMeasurement) -> Iterable[Fraction]:
    for stack in measured.stacks:
        match measured.mechanisms[stack[0]][0]:
            case LaplaceMechanism() as one if one.l1:
                yield exact(one.epsilon)
            case ConcentratedNoise() as one if one.l2_squared:
                yield exact(one.rho)
            case _:
                pass


def _rounded_up(amount: Fraction) -> Fraction:
    """A price rounded up to a few digits."""
    unit = Fraction(10) ** (len(str(int(amount))) - DIGITS) if amount >= 1 else Fraction(1, 10**DIGITS)
    while amount < 1 and unit * 10 ** (DIGITS - 1) > amount:
        unit /= 10
    return ceil(amount / unit) * unit
