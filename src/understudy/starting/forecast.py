"""What a start would spend and how precise it would be, from public numbers: no row is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.curator.key_terms import key_terms
from understudy.mechanism.column_profile.profile import ColumnProfiling
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.privacy.relation import Relation
from understudy.starting.start import DELTA_SPENT, LEAST_PEOPLE, PART


@dataclass(frozen=True, slots=True)
class StartForecast:
    """What is known of a start before it.

    columns    the columns of the table
    price      what would be spent
    share      the part of the budget that it is
    deviation  of the noise on a count of a bin, if every column held numbers
    threshold  the rows from which a value of text would be told, if every column held text; None without a delta
    """

    columns: int
    price: Price
    share: float
    deviation: float
    threshold: int | None


def forecast(columns: int, budget: Budget, relation: Relation) -> StartForecast:
    """The forecast for so many columns. Raises a ParameterError for none."""
    price = (budget.whole * PART).whole_units
    profiling = ColumnProfiling(columns=columns, price=price, relation=relation)
    threshold = None
    if budget.key_delta:
        delta = budget.key_delta * DELTA_SPENT
        threshold = key_terms(
            columns, price, delta, LEAST_PEOPLE, relation, kept=budget.filter
        ).selection.threshold
    deviation = float(profiling.rounds[-1].variance) ** 0.5
    return StartForecast(columns, price, float(PART), deviation, threshold)
