"""The price at which sums, averages and shares keep an error in their own unit, whatever the table holds.

`GroupPricing` finds the price at which counts keep an error in people. Here the error that is asked for is one
of the released numbers, in their unit: money for ``sum(income)``, years for ``avg(age)``, a part of 1 for a
share. How many people the sums behind them may be off for that is searched in the same way, by the error that
the answer would have on the worst tables (`answer.unit_error`).

Promise     What is priced here is within the error with probability 1 - β, whatever the table holds.
Refused     Where the number of rows behind an average or a rate is not public, no noise keeps an error on every
            table: the group may be empty. Such a question is refused, before anything is charged. A session can
            learn the size of the group first, and then promises the error (`sessions.closer_answers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isfinite

from understudy.answer.unit_error import is_made_of_ratios, unit_of, worst_error
from understudy.curator.curator import Curator
from understudy.curator.group_price import GroupPricing
from understudy.curator.prepared_measurement import PreparedMeasurement
from understudy.curator.question_price import QuestionPrice
from understudy.errors import ParameterError, RefusedError
from understudy.query.cell_noise import CellNoise
from understudy.rational import exact, positive

WIDER = 3
"""The search begins at so many times the error in people that boxes around the sums would allow: the law of the
noise is narrower than these boxes, and the error is made smaller until the answer keeps what was asked for."""


@dataclass(frozen=True)
class UnitPricing(GroupPricing):
    """Prices one question at an error in the unit of its numbers; promise and refusal are those of the module."""

    curator: Curator
    wanted: Fraction = Fraction(0)
    """The error asked for, in the unit of the released numbers."""

    @classmethod
    def of(cls, pricing: GroupPricing, curator: Curator, asked: QuestionPrice) -> UnitPricing | None:
        """The pricing of a question at the error asked for; None where that is in people, or no error is given."""
        if asked.error is None or unit_of(pricing.question) == "people":
            return None
        wanted = positive(asked.error, "error")
        return cls(pricing.pricing, pricing.question, pricing.rounded, curator, wanted)

    @property
    def unit(self) -> str:
        """What the error is in."""
        return unit_of(self.question)

    def prepare(self, asked: QuestionPrice) -> tuple[tuple[QuestionPrice, ...], PreparedMeasurement]:
        """The measurement with the noise that is cheapest for the error, and the terms of each noise for it.

        The terms as they were asked for, which meant people before version 0.2, are the last of them: a request
        that was charged for them is found again. Raises a `RefusedError` where the error cannot be promised
        beforehand, or is smaller than that of the bins, and where no price keeps it.
        """
        if asked.noise == "bounded":  # said first: no other error would help
            self.pricing.calibration.check_certain()
        floor, slope = self._off(0.0), self._off(1.0)
        if floor >= float(self.wanted) or slope <= floor or not is_made_of_ratios(self.question):
            raise self._unknown_beforehand(floor)
        most = self._off(max(float(self._rows), 1.0))
        if float(self.wanted) >= most:
            raise RefusedError(
                f"an error of {float(self.wanted):g} ({self.unit}) says nothing: without any look at the table "
                f"the answer is within {most:g}; an `error` is in the unit of the released numbers",
                remedy="ask for a smaller `error`, or give an `epsilon` or a `rho`",
            )
        people = exact((float(self.wanted) - floor) / (slope - floor))
        refusal: Exception | None = None
        for start in (people * WIDER, people):
            try:
                each, measured = super().prepare(replace(asked, error=start))
            except (ParameterError, RefusedError) as error:  # noise too large to be drawn, or no price found
                refusal = error
                continue
            return (*each, asked), measured
        raise RefusedError(
            f"no price was found at which the answer is within {float(self.wanted):g} ({self.unit}); nothing was "
            "charged",
            remedy="ask for another `error`, or give an `epsilon` or a `rho`",
        ) from refusal

    def error(self, measured: PreparedMeasurement) -> float:
        """How far the answer of a measurement can be off, in its own unit."""
        return self._worst(measured.errors, measured.noises)

    def _told(self, measured: PreparedMeasurement, asked: QuestionPrice) -> float:
        return self.error(measured) / float(self.wanted)

    def _off(self, people: float) -> float:
        """How far the answer can be off where every sum that is not public is off by so many people."""
        public = self.pricing.calibration.is_public
        return self._worst([0.0 if public(m) else people for m in self._marginals], ())

    def _unknown_beforehand(self, floor: float) -> RefusedError:
        """The refusal of an error that no noise keeps on every table."""
        if not is_made_of_ratios(self.question):
            return RefusedError(
                f"how far {self.unit} is off depends on the table: no error can be promised beforehand",
                remedy="ask for counts, sums and averages with an `error`; or give an `epsilon` or a `rho`",
            )
        if isfinite(floor) and floor < self._off(max(float(self._rows), 1.0)):
            return RefusedError(
                f"the bins alone can put the answer off by {floor:g} ({self.unit}), at any price",
                remedy="ask for a wider `error`, or have a `resolution` declared for the attribute",
            )
        return RefusedError(
            f"how far {self.unit} is off depends on how many rows it is about, which nobody knows before they are "
            "counted: no error can be promised beforehand",
            remedy="ask with `error` in a session, which counts these rows first; or give an `epsilon` or a `rho`",
        )

    @property
    def _rows(self) -> int:
        declared = self.curator.declaration
        return self.curator.rows if self.curator.relation.rows_are_public else declared.rows_at_least or 0

    def _worst(self, errors: Sequence[float], noises: Sequence[CellNoise | None]) -> float:
        most = self.curator.rows_at_most
        return worst_error(
            self.question,
            errors,
            rows=float(self._rows),
            most=inf if most is None else float(most),
            beta=float(QuestionPrice().beta),
            nothing=self.pricing.ledger.budget.total([]),
            noises=noises,
        )
