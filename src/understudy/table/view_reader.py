"""Reading one view of a table: codes of its rows, or counts of its cells, made by the engine that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from understudy.declaration.declaration import Unit
from understudy.domain.attribute import Attribute
from understudy.domain.bins import MEASURE_BITS, Bins
from understudy.domain.domain import Clique, Domain
from understudy.domain.refinement import coarse_cells
from understudy.errors import SourceError
from understudy.table.dialect import Expression
from understudy.table.encode import cell_of, code_type, staged, step_of, taken_column
from understudy.table.engine import Columns, Embedded, EmbeddedView, Engine, View
from understudy.table.fit import Fit, Misfits, misfit
from understudy.table.statements import Key, key_of, statement_of

COUNTED_ATTRIBUTES = 400
"""Attributes whose misfits one statement counts: some engines have no room for 2,000 results."""

Codes = dict[str, NDArray[np.unsignedinteger]]
"""For each attribute, one code for each row of a batch."""

Product = tuple[str, ...]
"""Measures whose steps are multiplied; one that stands twice is squared."""

Sums = dict[Product, list[int]]
"""Exact sums of products of steps over the rows of each cell."""

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
        if not self._engine.habits.narrow:
            yield from self._packed(domain, clique, self.coded(domain, clique, unit))
            return
        columns = {name: _column(domain, name) for name in clique}

        def expression() -> Expression:
            coded = self.coded(domain, clique, unit)
            return coded if self._text else coded.select(*columns.values())

        for batch in self._codes(expression, key_of(self._expression, domain, unit, clique, self._text)):
            yield {name: batch[column] for name, column in columns.items()}

    def _codes(self, expression: Callable[[], Expression], key: Key | None) -> Iterator[Columns]:
        """The rows of an expression, which need not be made where its statement is known."""
        view = self._view
        if key is None or not isinstance(view, EmbeddedView):
            return view.rows(expression())
        return view.rows_of(self._expression, statement_of(key, lambda: view.written(expression())))

    def coded(
        self, domain: Domain, clique: Clique, unit: Unit | None, measures: Sequence[str] = ()
    ) -> Expression:
        """The rows as codes, of the clique's attributes at least, and as steps of the measures."""
        steps = step_columns(domain, measures, self._engine)
        if unit is not None:
            return at_most(self._expression, domain, unit, self._engine, **steps)
        names = domain.names if self._text else domain.clique({*clique, *measures})
        return coded_rows(self._expression, domain, names, self._engine, **steps)

    def step_counts(
        self, domain: Domain, rows: Expression, cell: Expression, name: str
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """How many rows of each cell lie at each step of a measure, for those that any lies at: batch by batch."""
        flat = rows.select(cell=cell, step=rows[step_name(domain, name)])
        counted = flat.group_by("cell", "step").aggregate(n=flat.count())
        for batch in self._view.groups(counted):
            yield _whole(batch, "cell"), _whole(batch, "step"), _whole(batch, "n")

    def sums(
        self, domain: Domain, rows: Expression, cell: Expression, size: int, of: Sequence[Product]
    ) -> Sums:
        """Exact sums of products of steps, for each number below `size` that `cell` can be; one GROUP BY.

        A product of two steps has up to 52 bits, and is summed in two words of 26: each sum is a whole number of
        64 bits for up to 2^36 rows, whatever the values are. The empty product counts rows.
        """
        indexed = {"cell": cell}
        for i, product in enumerate(of):
            value: Expression = ibis.literal(1, type="int64")
            for name in product:
                value = value * rows[step_name(domain, name)]
            low = value % (1 << MEASURE_BITS) if len(product) > 1 else value
            indexed[f"low{i}"] = low
            if len(product) > 1:
                high = ((value - low).cast("float64") / float(1 << MEASURE_BITS)).floor().cast("int64")
                indexed[f"high{i}"] = high
        flat = rows.select(**indexed)
        words = [name for name in indexed if name != "cell"]
        # Engines sum in a wider type than Ibis believes; by way of a decimal it is cast in earnest.
        whole = {name: flat[name].sum().cast("decimal(38, 0)").cast("int64") for name in words}
        summed = flat.group_by("cell").aggregate(**whole)
        total = {name: np.zeros(size, np.int64) for name in words}
        for batch in self._view.groups(summed):
            place = _whole(batch, "cell")
            for name in words:
                np.add.at(total[name], place, _whole(batch, name))
        found: Sums = {}
        for i, product in enumerate(of):
            low = total[f"low{i}"].tolist()
            high = total[f"high{i}"].tolist() if len(product) > 1 else [0] * size
            found[product] = [(h << MEASURE_BITS) + w for h, w in zip(high, low, strict=True)]
        return found

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


def step_name(domain: Domain, name: str) -> str:
    """The column of a measure's steps, beside that of its codes."""
    return f"step_{domain.position(name)}"


def step_columns(
    domain: Domain, measures: Sequence[str], engine: Engine
) -> dict[str, Callable[[Any], Expression]]:
    """For each measure the column of its steps, of rows that were staged."""

    def column(attribute: Bins) -> Callable[[Any], Expression]:
        return lambda rows: step_of(attribute, taken_column(rows, attribute), engine.dialect)

    found = {step_name(domain, name): domain[name] for name in dict.fromkeys(measures)}
    return {name: column(attribute) for name, attribute in found.items() if isinstance(attribute, Bins)}


def at_most(
    rows: Any, domain: Domain, unit: Unit, engine: Engine, **kept: Callable[[Any], Expression]
) -> Any:
    """At most `max_rows` coded rows of each unit, those with the smallest keyed hash; rows of nobody go.

    Which rows stay depends on the unit's own rows alone, so adding or removing a unit changes at most
    `max_rows` rows of the result. Texts that Unicode writes in two ways (NFC, NFD) are one unit.
    Where `unit.cells` is a domain that `domain` refines, the hash is of its cells: as many rows of each of them
    stay as without the refinement, those first that lie lower in it.
    """
    known = rows.filter(rows[unit.column].notnull())

    def whose(rows: Any) -> Expression:
        unit_of = rows[unit.column]
        return engine.dialect.composed(unit_of) if unit_of.type().is_string() else unit_of

    coded = coded_rows(known, domain, domain.names, engine, unit=whose, **kept)
    codes = [coded[_column(domain, name)] for name in domain.names]
    hashed = codes if unit.cells is None else [_coarse(coded, domain, unit.cells, n) for n in domain.names]
    key: Expression = ibis.literal(unit.key)
    digest = key.concat(*(part for code in hashed for part in ("|", code.cast("string"))))
    values = [coded[name] for name in kept]  # rows of equal codes are told apart by what is summed of them
    rank = ibis.row_number().over(group_by=coded.unit, order_by=[md5(digest), *hashed, *codes, *values])
    ranked = coded.mutate(rank=rank)
    return ranked.filter(ranked.rank < unit.max_rows)


def _coarse(coded: Any, domain: Domain, declared: Domain, name: str) -> Expression:
    """The code of the declared cell that the cell of a refined attribute is a part of."""
    code = coded[_column(domain, name)]
    added = np.flatnonzero(np.diff(coarse_cells(domain, declared, name)) == 0)
    for last in added.tolist():
        code = code.cast("int64") - (coded[_column(domain, name)] > last).cast("int64")
    return code


def check_compiles(rows: Any, engine: Engine, domain: Domain, unit: Unit | None) -> None:
    """Have the engine plan what every look will ask of it. Reads no row."""
    key = key_of(rows, domain, unit, "compiles") if isinstance(engine, Embedded) else None
    statement_of(key, lambda: _compiles(rows, engine, domain, unit))


def _compiles(rows: Any, engine: Engine, domain: Domain, unit: Unit | None) -> str:
    """Nothing, where the engine plans it: what the embedded one can plan it can plan for every such table."""
    measures = [a.name for a in domain if isinstance(a, Bins) and a.resolution is not None]
    steps = step_columns(domain, measures, engine)
    if unit is None:
        engine.prepare(coded_rows(rows, domain, domain.names, engine, **steps))
    else:
        engine.prepare(at_most(rows, domain, unit, engine, **steps))
    return ""


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
