"""Reading one view of a table: codes of its rows, or counts of its cells, made by the engine that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from understudy.declaration.declaration import Unit
from understudy.domain.attribute import Attribute
from understudy.domain.domain import Clique, Domain
from understudy.errors import SourceError
from understudy.table.dialect import Expression
from understudy.table.encode import cell_of, code_type, staged, taken_column
from understudy.table.engine import Columns, Engine, View
from understudy.table.fit import Fit, Misfits, misfit

COUNTED_ATTRIBUTES = 400
"""Attributes whose misfits one statement counts: some engines have no room for 2,000 results."""

Codes = dict[str, NDArray[np.unsignedinteger]]
"""For each attribute, one code for each row of a batch."""

WORD_BITS = 62
"""Bits of a packed integer: codes travel in as few numbers as hold them."""


@dataclass(frozen=True)
class ViewReader:
    """What can be read from one view of the table; it can be used only while the view is open."""

    _expression: Any
    _engine: Engine
    _view: View
    _text: bool
    """Whether the table is a file of text, of which every look reads all declared columns."""

    def batches(self, domain: Domain, clique: Clique, unit: Unit | None = None) -> Iterator[Codes]:
        """The codes of the clique's attributes, batch by batch."""
        coded = self.coded(domain, clique, unit)
        if not self._engine.habits.narrow:
            yield from self._packed(domain, clique, coded)
            return
        columns = {name: _column(domain, name) for name in clique}
        if not self._text:
            coded = coded.select(*columns.values())
        for batch in self._view.rows(coded):
            yield {name: batch[column] for name, column in columns.items()}

    def coded(self, domain: Domain, clique: Clique, unit: Unit | None) -> Expression:
        """The rows as codes, of the clique's attributes at least."""
        if unit is not None:
            return at_most(self._expression, domain, unit, self._engine)
        return coded_rows(self._expression, domain, domain.names if self._text else clique, self._engine)

    def _packed(self, domain: Domain, clique: Clique, coded: Expression) -> Iterator[Codes]:
        words = _words(domain.project(clique))
        packed = coded.select(**{f"w{i}": _sum_of(coded, domain, word) for i, word in enumerate(words)})
        for batch in self._view.rows(packed):
            codes: Codes = {}
            for i, word in enumerate(words):
                values = _whole(batch, f"w{i}")
                for attribute, shift in word:
                    code = (values >> shift) & ((1 << _bits(attribute)) - 1)
                    codes[attribute.name] = code.astype(code_type(attribute))
            yield {name: codes[name] for name in clique}

    def cells(self, domain: Domain, clique: Clique, unit: Unit | None = None) -> NDArray[np.int64]:
        """The number of rows in each cell of a clique, by one GROUP BY of the engine."""
        shape = domain.shape(clique)
        coded = self.coded(domain, clique or domain.names[:1], unit)
        cell = self.index(coded, domain, clique)
        return self.grouped(coded.select(cell=cell), prod(shape)).reshape(shape)

    @staticmethod
    def index(coded: Expression, domain: Domain, clique: Clique) -> Expression:
        """The flat index of a row's cell in C order, from the columns of `coded`."""
        index: Expression = None
        for name in clique:
            code = coded[_column(domain, name)].cast("int64")
            index = code if index is None else index * domain[name].size + code
        return ibis.literal(0, type="int64") if index is None else index

    def grouped(self, indexed: Expression, size: int) -> NDArray[np.int64]:
        """How often each number below `size` occurs in the column `cell`."""
        counted = indexed.group_by("cell").aggregate(n=indexed.count())
        total = np.zeros(size, np.int64)
        for batch in self._view.groups(counted):
            np.add.at(total, _whole(batch, "cell"), _whole(batch, "n"))
        return total

    def number_of_rows(self, domain: Domain, unit: Unit | None = None) -> int:
        first = domain.names[:1]
        if self._engine.remote:
            return int(self.cells(domain, (), unit))
        if self._text or unit is not None:
            return sum(len(batch[first[0]]) for batch in self.batches(domain, first, unit))
        counted = self._expression.aggregate(n=self._expression.count())
        return sum(int(_whole(batch, "n").sum()) for batch in self._view.groups(counted))

    def read_through(self, domain: Domain, unit: Unit | None = None) -> Fit:
        """Read every declared value of every row, and count those that do not fit; a unit's rows once more.

        One pass, in the engine; several where a remote table has more attributes than one statement may count.
        """
        step = len(domain) if not self._engine.remote else COUNTED_ATTRIBUTES
        rows, found = 0, list[Misfits]()
        for first in range(0, len(domain), step):
            part = domain.project(domain.names[first : first + step])
            (counted,) = [
                {name: int(values[0]) for name, values in batch.items()}
                for batch in self._view.groups(self._misfits(part))
            ]
            rows = counted["n"]
            for i, attribute in enumerate(part):
                found.append(Misfits(attribute, *(counted[f"{kind}{i}"] for kind in "muo")))
        if unit is not None:
            for _ in self._view.groups(self._largest(self.coded(domain, domain.names, unit), domain)):
                pass
        return Fit(rows, tuple(found))

    def _misfits(self, domain: Domain) -> Expression:
        """How many rows do not fit, and the largest codes: what cannot be encoded is found here."""
        dialect = self._engine.dialect
        rows = staged(self._expression, domain, dialect)
        results: dict[str, Expression] = {"n": rows.count()}
        for i, attribute in enumerate(domain):
            column = taken_column(rows, attribute)
            why = misfit(attribute, column, dialect)
            for kind, where in {"m": why.missing, "u": why.unreadable, "o": why.outside}.items():
                results[f"{kind}{i}"] = where.sum().fill_null(0)
            results[f"c{i}"] = cell_of(attribute, column, dialect).cast("int64").max().fill_null(0)
        return rows.aggregate(**results)

    @staticmethod
    def _largest(coded: Expression, domain: Domain) -> Expression:
        """The largest codes, which cannot be found without making them all."""
        sums = [_sum_of(coded, domain, word) for word in _words(domain)]
        return coded.aggregate(**{f"w{i}": total.max().fill_null(0) for i, total in enumerate(sums)})


def _column(domain: Domain, name: str) -> str:
    """A short column name, for engines that cut long ones."""
    return f"code_{domain.position(name)}"


def coded_rows(
    rows: Any, domain: Domain, clique: Clique, engine: Engine, **kept: Callable[[Any], Expression]
) -> Any:
    """The codes of the clique's attributes for each row, with the columns in `kept` beside them."""
    rows = staged(rows, [domain[name] for name in clique], engine.dialect)
    codes: dict[str, Any] = {}
    for name in clique:
        attribute = domain[name]
        width = code_type(attribute) if engine.habits.narrow else "int32"
        code = cell_of(attribute, taken_column(rows, attribute), engine.dialect)
        codes[_column(domain, name)] = code.cast(width)
    return rows.select(**codes, **{name: column(rows) for name, column in kept.items()})


@ibis.udf.scalar.builtin
def md5(text: str) -> str:
    """The one hash that all engines have: so all of them keep the same rows."""
    ...


def at_most(rows: Any, domain: Domain, unit: Unit, engine: Engine) -> Any:
    """At most `max_rows` coded rows of each unit, those with the smallest keyed hash; rows of nobody go.

    Which rows stay depends on the unit's own rows alone, so adding or removing a unit changes at most
    `max_rows` rows of the result. Texts that Unicode writes in two ways (NFC, NFD) are one unit.
    """
    known = rows.filter(rows[unit.column].notnull())

    def whose(rows: Any) -> Expression:
        unit_of = rows[unit.column]
        return engine.dialect.composed(unit_of) if unit_of.type().is_string() else unit_of

    coded = coded_rows(known, domain, domain.names, engine, unit=whose)
    codes = [coded[_column(domain, name)] for name in domain.names]
    key: Expression = ibis.literal(unit.key)
    digest = key.concat(*(part for code in codes for part in ("|", code.cast("string"))))
    rank = ibis.row_number().over(group_by=coded.unit, order_by=[md5(digest), *codes])
    ranked = coded.mutate(rank=rank)
    return ranked.filter(ranked.rank < unit.max_rows)


def check_compiles(rows: Any, engine: Engine, domain: Domain, unit: Unit | None) -> None:
    """Have the engine plan what every look will ask of it. Reads no row."""
    if unit is None:
        engine.prepare(coded_rows(rows, domain, domain.names, engine))
    else:
        engine.prepare(at_most(rows, domain, unit, engine))


Word = tuple[tuple[Attribute, int], ...]
"""Attributes whose codes share an integer, each with the bit where its code begins."""


def _bits(attribute: Attribute) -> int:
    return max((attribute.size - 1).bit_length(), 1)


def _words(domain: Domain) -> list[Word]:
    """The attributes in as few integers as hold their codes one after another."""
    words: list[list[tuple[Attribute, int]]] = [[]]
    used = 0
    for attribute in domain:
        if used + _bits(attribute) > WORD_BITS:
            words.append([])
            used = 0
        words[-1].append((attribute, used))
        used += _bits(attribute)
    return [tuple(word) for word in words]


def _sum_of(coded: Expression, domain: Domain, word: Word) -> Expression:
    total: Expression = None
    for attribute, shift in word:
        part = coded[_column(domain, attribute.name)].cast("int64")
        part = part * (1 << shift) if shift else part
        total = part if total is None else total + part
    return total


def _whole(batch: Columns, name: str) -> NDArray[np.int64]:
    """A column of whole numbers; an engine that gives anything else has not done what it was asked."""
    values = batch[name]
    if values.dtype.kind not in "iu":
        raise SourceError("the engine gave no whole numbers for codes")
    return values.astype(np.int64, copy=False)
