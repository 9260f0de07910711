"""What a question would cost and how far off its answer could be, told before anything is charged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from understudy.answer.answer import noise_together
from understudy.answer.reader import ReadQuestion
from understudy.answer.select_question import SelectQuestion
from understudy.curator.prepared_measurement import PreparedMeasurement, noise_name
from understudy.curator.question_price import QuestionPrice
from understudy.ledger.books import Due
from understudy.pages import notebook
from understudy.percent import percent_of
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import is_immovable
from understudy.rational import probability


@dataclass(frozen=True, repr=False)
class Quote:
    """What a question would cost, and how far off its answer could be.

    cost     what the ledger would charge, in its currency, if the question shared nothing with earlier ones
    error    the largest half-width, in `unit`, of the numbers that would be told. In people it is that of counts:
             of a group of several cells its own, and of a sum or an average that of the sums measured for it
    unit     `people`, or, where an `error` was asked of sums, averages or shares, the released column's name
    beta     the probability with which some part of the answer is outside its bounds: 0 with bounded noise
    share    the part of the whole budget that `cost` is, between 0 and 1 (above 1 where it cannot be paid)
    epsilon  the ε that the question alone amounts to, beside the δ of the budget if there is one
    noise    which noise would be added: `gaussian`, `laplace` or `bounded`; `exponential` where quantiles of
             measures alone are drawn, and the error is in ranks; None where all that is asked for is public
    due      what the ledger would charge the analyst at this moment, jointly with all that was charged before;
             whether that could be paid, and which limit binds. `Project.quote` asks the ledger for it; it is None
             in the quote of a prepared question, whose method `due` asks
    """

    cost: Cost
    error: float
    beta: float
    share: float
    epsilon: float
    noise: str | None
    unit: str = "people"
    due: Due | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        question: ReadQuestion[Any],
        measured: PreparedMeasurement,
        asked: QuestionPrice,
        budget: Budget,
        in_unit: tuple[float, str] | None = None,
    ) -> Quote:
        """The quote of a measurement, `measured`, that was prepared for a `question` at the price `asked` for.

        `budget` says what its noise costs. `in_unit` is how far off the answer can be in a unit other than people,
        and that unit; None where it is in people. Raises a `RefusedError` where the budget has no price for the
        noise.
        """
        cost, noise = budget.price(measured.event), _noise_of(measured)
        error, unit = (error_of(question, measured), "people") if in_unit is None else in_unit
        return cls(
            cost,
            error,
            failure(asked, measured),
            budget.share(cost),
            budget.spent_epsilon(cost) if noise == "bounded" else budget.epsilon_of(cost),
            noise,
            unit,
        )

    def __repr__(self) -> str:
        price = f"{self.cost.currency} {self.cost.amount:.4g}"
        return f"Quote({price}, {notebook.half_width_in(self.error, self.unit)}, beta {self.beta:g})"

    def _repr_html_(self) -> str:
        known = {
            "price": f"{self.cost.currency} {self.cost.amount:.4g}",
            "part of the whole budget": percent_of(self.share),
            **({} if self.due is None else {"charged now": _charged_now(self.due)}),
            "error of each count"
            if self.unit == "people"
            else "error of each number": notebook.half_width_in(self.error, self.unit),
            "probability": notebook.certainty(self.beta),
        }
        note = "Nothing was charged and no data was read."
        return notebook.panel("What the question would cost", notebook.facts(known), note=note)


def failure(asked: QuestionPrice, measured: PreparedMeasurement) -> float:
    """The probability with which a measurement is outside its errors: what was asked for, 0 with bounded noise."""
    return float(probability(asked.beta)) if measured.beta else 0.0


def error_of(question: ReadQuestion[Any], measured: PreparedMeasurement) -> float:
    """How far a number of people in the answer can be off: more than a cell, where groups are made of several."""
    if isinstance(question, SelectQuestion):
        return question.error(measured.errors, measured.noises)
    return max(measured.errors, default=0.0)


def _noise_of(measured: PreparedMeasurement) -> str | None:
    """What the answer will name (`Answer.noise`): the noise of all counts that somebody can change."""
    return noise_together(
        None if marginal.where.is_counting and is_immovable(mechanism.event) else noise_name(mechanism)
        for marginal, (mechanism, _) in zip(measured.marginals, measured.mechanisms, strict=True)
    )


def _charged_now(due: Due) -> str:
    """The charge of a moment in words, with what stands in its way."""
    price = f"{due.cost.currency} {due.cost.amount:.4g}"
    if due.payable:
        return price
    return f"{price}, and {due.available.amount:.4g} remains" + (f" for {due.limit}" if due.limit else "")
