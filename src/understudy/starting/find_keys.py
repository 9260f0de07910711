"""Keys of one column of a declared table, for a price and a delta: values that nobody listed, of enough people."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.curator.column_curator import ColumnCurator, FoundKeys
from understudy.declaration.declaration import Declaration, Protect
from understudy.declaration.file import located, read
from understudy.errors import ProtectionError, RefusedError, SourceError
from understudy.ledger.declared import open_ledger
from understudy.ledger.interface import fresh_request
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.relation import Relation
from understudy.rational import Number, probability
from understudy.table.column_reader import ColumnReader, ValueKind
from understudy.table.source import open_source

if TYPE_CHECKING:
    from understudy.noise.samplers import NoiseSource

USUAL_PART = Fraction(1, 10)
"""What a selection takes of the budget's delta for keys, where nothing is said."""


@dataclass(frozen=True)
class BoughtKeys:
    """The keys of a column, what was charged for them now, and the delta that their debit carries.

    `who` are those whom counts are of: rows, or people, who may have several.
    """

    column: str
    found: FoundKeys
    cost: Cost
    delta: Fraction
    budget: Budget
    who: str


def find_keys(
    project: Path,
    column: str,
    *,
    epsilon: Number,
    delta: Number | None = None,
    at_least: int = 1,
    request: str | None = None,
    analyst: str = "",
    noise: NoiseSource | None = None,
    environ: Mapping[str, str] = os.environ,
) -> BoughtKeys:
    """Buy the keys of a column that enough people hold; a column of the file, declared or not.

    Where the declaration has a `unit`, people are counted, each for at most `max_rows` of their keys; else rows.
    `epsilon` is a part of the whole budget, as that of a question. The same `request` is charged once. Raises a
    RefusedError where the budget has no delta for keys or cannot pay, a SourceError where there is no such column:
    nothing is charged then.
    """
    path = located(project)
    declared = read(path)
    if declared.protect is not Protect.PRIVACY:
        raise ProtectionError("keys are found for projects that protect privacy; this one protects validity")
    budget = declared.budget
    if not budget.key_delta:
        raise no_delta_for_keys()
    own = budget.key_delta * USUAL_PART if delta is None else probability(delta, "delta")
    source = open_source(declared.source, base=path.resolve().parent)
    try:
        reader = ColumnReader(source)
        _check_column(reader, column)
        ledger = open_ledger(declared, base=path.resolve().parent, file=path, environ=environ)
        try:
            name = request or fresh_request()
            before = ledger.find(name)
            curator = ColumnCurator(reader, ledger, Relation(declared.neighbours), noise=noise)
            found = _found(curator, declared, column, epsilon, own, at_least, name, analyst)
            debit = ledger.find(name)
        finally:
            ledger.close()
    finally:
        source.close()
    cost = type(budget.cap)(0) if debit is None or before is not None else debit.cost
    carried = Fraction(0) if debit is None else debit.event.delta_cost()
    return BoughtKeys(column, found, cost, carried, budget, "rows" if declared.unit is None else "people")


def _found(
    curator: ColumnCurator,
    declared: Declaration,
    column: str,
    epsilon: Number,
    delta: Fraction,
    at_least: int,
    request: str,
    analyst: str,
) -> FoundKeys:
    price = declared.budget.part(epsilon)
    if declared.unit is None:
        return curator.keys(
            [column], price, 1.0, delta=delta, at_least=at_least, request=request, analyst=analyst
        )[column]
    return curator.keys_of_people(
        column,
        price,
        unit=declared.unit.column,
        keys_each=declared.unit.max_rows,
        delta=delta,
        at_least=at_least,
        request=request,
        analyst=analyst,
    )


def no_delta_for_keys() -> RefusedError:
    """Why keys cannot be bought for a budget without a part of delta for them."""
    return RefusedError(
        "the budget has no delta for keys",
        remedy="Declare `budget: {epsilon: …, delta: …, key_delta: …}` before the first question is paid for",
    )


def _check_column(reader: ColumnReader, column: str) -> None:
    kinds = reader.kinds()
    if column not in kinds:
        raise SourceError(f"the table has no column {column!r}")
    if kinds[column] not in (ValueKind.TEXT, ValueKind.WHOLE, ValueKind.FLAG):
        raise SourceError(
            f"the column {column!r} holds {kinds[column]}, which are no keys: buy bounds of them"
        )
