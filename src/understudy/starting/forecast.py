"""What a start would spend and how precise it would be, from public numbers: no row is looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from understudy.curator.key_terms import key_terms
from understudy.mechanism.column_profile.profile import ColumnProfiling
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.privacy.relation import Relation
from understudy.starting.means import DELTA_SPENT, check_means, keys_delta
from understudy.starting.opening import ledger_of, reading_for, spec_of
from understudy.starting.start import LEAST_PEOPLE, PART, check_there


@dataclass(frozen=True, slots=True)
class StartForecast:
    """What is known of a start before it.

    columns    the columns of the table
    price      what would be spent
    share      the part of the budget that it is
    deviation  of the noise on a count of a bin, if every column held numbers
    threshold  the rows from which a value of text would be told, if every column held text; None without a delta
    repeated   whether something of it was bought before, in the same ledger, and is not paid for again
    """

    columns: int
    price: Price
    share: float
    deviation: float
    threshold: int | None
    repeated: bool = False


def forecast(
    columns: int, budget: Budget, relation: Relation, *, delta: Fraction | None = None, repeated: bool = False
) -> StartForecast:
    """The forecast for so many columns, with keys for `delta`, or for that of a first start where it is None.

    Raises a ParameterError for no columns.
    """
    price = (budget.whole * PART).whole_units
    profiling = ColumnProfiling(columns=columns, price=price, relation=relation)
    threshold = None
    if budget.key_delta:
        own = budget.key_delta * DELTA_SPENT if delta is None else delta
        threshold = key_terms(
            columns, price, own, LEAST_PEOPLE, relation, kept=budget.filter
        ).selection.threshold
    deviation = float(profiling.rounds[-1].variance) ** 0.5
    return StartForecast(columns, price, float(PART), deviation, threshold, repeated)


def forecast_file(
    data: Path,
    target: Path,
    budget: Budget,
    relation: Relation,
    *,
    table: str = "",
    encoding: str = "utf-8",
    delimiter: str | None = None,
    missing: Sequence[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> StartForecast:
    """The forecast for a file, in the ledger that a start would charge. Reads no row, and writes nothing.

    Raises as `start` does where the file cannot be read or the ledger cannot pay for all of the start.
    """
    check_there(data)
    spec = spec_of(data, table=table, encoding=encoding, delimiter=delimiter)
    with (
        ledger_of(data, target, budget, relation.kind, environ) as ledger,
        reading_for(spec, ledger, missing) as reading,
    ):
        check_means(ledger, reading, (budget.whole * PART).whole_units)
        own = keys_delta(ledger, reading.request("keys"))
        columns = len(reading.reader.kinds())
        return forecast(columns, budget, relation, delta=own or None, repeated=reading.is_paid(ledger))
