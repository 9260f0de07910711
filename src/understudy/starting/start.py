"""`understudy start`: from a file and a budget to a declared project, everything in between bought privately.

Taken as public: the file's name, the header, the types of a Parquet file's or a database's columns, how a file
of text is told to be encoded and delimited, and, under `neighbours: replace`, the number of rows. Everything
else is bought with a tenth of the budget: how columns of text are written, bounds and bins of numbers and days,
keys of text. What is found decides nothing before it was released.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.curator.column_curator import ColumnCurator
from understudy.declaration.declaration import SourceSpec, Undecodable
from understudy.declaration.file import STARTED, was_started
from understudy.declaration.outline import Outline, OutlineEntry, scalar
from understudy.errors import InsufficientBudgetError, RefusedError, SourceError
from understudy.mechanism.additive import noise_for
from understudy.mechanism.column_profile.profile import SHARES, ColumnProfiling
from understudy.output import check_no_database, write_file
from understudy.percent import percent_of
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.filter import ZCDP_FILTER
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.rational import Number, exact
from understudy.starting.described import StartedColumn, flag, left_out, of_keys, of_numbers, without_name
from understudy.starting.means import check_means, keys_delta
from understudy.starting.opening import StartReading, ledger_of, own_files, reading_for, spec_of, table_name
from understudy.starting.written import reading_of
from understudy.table.column_reader import NumberReading, ValueKind

if TYPE_CHECKING:
    from understudy.noise.samplers import NoiseSource

PART = Fraction(1, 10)
"""What is spent of the budget."""

WRITINGS_PART = Fraction(1, 10)
ROWS_PART = Fraction(1, 50)
"""What of that tells how columns are written, and how many rows there are, where that has to be bought."""

KEYS_DELTA = Fraction(1, 2)
"""The part of delta that is set aside for keys; a start spends four fifths of what is left of it."""

LEAST_PEOPLE = 10
"""No key of fewer rows is ever told, whatever the noise."""

FORMER = (
    "An earlier version bought this: it read no words for missing values, and no rows with undecodable bytes."
)
"""What is said where the purchases of an older start are told again."""

_OPEN_QUOTE = "If the file has more lines, a quotation mark that is never closed may have made them one. "


@dataclass(frozen=True)
class Started:
    """What a start left: the declaration's text, what became of each column, and what it cost.

    `cost` is what all purchases are charged in the ledger, `now` what of it was charged now, `again` whether
    all had been made before, and `share` the part of the rows that was read of each column. `former` tells that an
    earlier version of the program made them, and that the file is read as it was then (`FORMER`).
    """

    name: str
    text: str
    columns: tuple[StartedColumn, ...]
    budget: Budget
    cost: Cost
    delta: Fraction
    rows: float
    share: float
    again: bool
    now: Cost
    former: bool = False

    @property
    def kept(self) -> tuple[StartedColumn, ...]:
        """The columns that the declaration has an attribute for."""
        return tuple(column for column in self.columns if column.kind)


def start(
    data: Path,
    target: Path,
    *,
    epsilon: Number,
    delta: Number = 0,
    kept: str = "zcdp",
    neighbours: Neighbours = Neighbours.REPLACE,
    table: str = "",
    encoding: str = "utf-8",
    delimiter: str | None = None,
    missing: Sequence[str] | None = None,
    overwrite: bool = False,
    noise: NoiseSource | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Started:
    """Buy what a declaration of the file needs, write it into `target`, and return what was found.

    `kept` is the privacy filter of the budget: `zcdp`, `renyi` or `gdp`. `missing` are texts that stand for no
    value in a file of text, in columns of numbers, days, and yes or no; None stands for a public list of usual
    ones. Bytes of such a file that are not in its encoding become the character U+FFFD; no row is lost by them.
    Where `missing` is None and an earlier version of the program, which knew neither, has started the file in the
    same ledger, the file is read as it was then, and what was paid for is told again.

    The ledger stands where the declaration will look for it. The same file under the same budget is never paid
    for twice: where `target` was written by an earlier start of it, that is read from the ledger, and the file
    is left as it is. Raises a SourceError or a RefusedError, before anything is spent, where the file cannot be
    read, has no rows, or has too few for the budget, where the ledger cannot pay for all of the start, and where
    `target` is there and may not be replaced.
    """
    known = _is_started(target, data, own_files(data, target, environ), overwrite=overwrite)
    budget = budget_of(epsilon, delta, kept)
    spec = spec_of(data, table=table, encoding=encoding, delimiter=delimiter)
    with (
        ledger_of(data, target, budget, neighbours, environ) as ledger,
        reading_for(spec, ledger, missing) as reading,
    ):
        curator = ColumnCurator(reading.reader, ledger, Relation(neighbours), noise=noise)
        purchase = _StartPurchases(reading, curator, budget, only_known=target if known else None)
        try:
            columns = (*purchase.made(), *without_name(reading.unnamed))
        except InsufficientBudgetError as problem:
            raise purchase.overtaken(problem) from problem
        cost, spent = type(budget.cap)(purchase.units), purchase.delta
        now = type(budget.cap)(purchase.units_now)
        reading.reader.forget()
    heading = _heading(budget, cost, spent, purchase)
    name = table_name(data)
    outline = Outline(
        heading,
        _settings(name, data, target, reading.spec, neighbours, budget),
        tuple(c.entry for c in columns),
    )
    if not any(column.kind for column in columns):
        raise RefusedError(
            "no column could be declared: none has enough people for bounds or keys that noise would not hide",
            remedy="Raise epsilon, take fewer columns, or declare the columns by hand; what was paid for is kept",
        )
    if not known:
        write_file(target, outline.text(), overwrite=overwrite)
    return Started(
        name,
        outline.text(),
        columns,
        budget,
        cost,
        spent,
        purchase.rows,
        purchase.share,
        bool(purchase.before) and not now.units,
        now,
        reading.former,
    )


def budget_of(epsilon: Number, delta: Number, kept: str = "zcdp") -> Budget:
    """The budget of a table that is started: half of its delta is for keys, in a number that YAML can say.

    `kept` is the name of the privacy filter.
    """
    keys = exact(float(exact(delta, "delta") * KEYS_DELTA))
    return Budget.of(epsilon, delta, key_delta=keys, filter=kept)


class _StartPurchases:
    """The purchases of one start, in their order; each is a debit under a name of its own."""

    def __init__(
        self, reading: StartReading, curator: ColumnCurator, budget: Budget, *, only_known: Path | None
    ) -> None:
        self.only_known = only_known
        self.reading = reading
        self.reader = reading.reader
        self.curator = curator
        self.budget = budget
        self.price = (budget.whole * PART).whole_units
        self.rows = self.share = 0.0
        self.requests: list[str] = []
        self.before = set[str]()

    @property
    def units(self) -> int:
        """What the ledger charged for all of it, now or before."""
        debits = (self.curator.ledger.find(request) for request in self.requests)
        return sum(debit.cost.units for debit in debits if debit is not None)

    @property
    def units_now(self) -> int:
        """What the ledger charged for those purchases that had not been made before."""
        debits = (self.curator.ledger.find(name) for name in self.requests if name not in self.before)
        return sum(debit.cost.units for debit in debits if debit is not None)

    @property
    def delta(self) -> Fraction:
        """What the purchases carry of delta."""
        debits = (self.curator.ledger.find(request) for request in self.requests)
        return sum((debit.event.delta_cost() for debit in debits if debit is not None), Fraction(0))

    def overtaken(self, problem: InsufficientBudgetError) -> RefusedError:
        """A refusal of the ledger, which says "nothing was spent" of one purchase, in words of the whole start."""
        if not self.units_now:
            return problem
        paid = type(self.budget.cap)(self.units_now)
        return RefusedError(
            f"the next purchase of this start costs {problem.currency} {problem.requested:.6g} and "
            f"{problem.remaining:.6g} remains, since something else was charged meanwhile",
            remedy=f"{paid.currency} {paid.amount:.6g} was paid for the purchases before it, which the ledger "
            "keeps: they are not paid for again. Declare the columns by hand (`understudy init`)",
        )

    def made(self) -> tuple[StartedColumn, ...]:
        kinds = self.reader.kinds()
        if not kinds:
            raise SourceError("the table has no columns")
        if self.only_known is None:
            check_means(self.curator.ledger, self.reading, self.price)
        self.rows = self._number_of_rows(len(kinds))
        self.share = self.reader.share(self.rows, len(kinds))
        why = {name: str(kind) for name, kind in kinds.items()}
        readings = {
            name: NumberReading(kind)
            for name, kind in kinds.items()
            if kind in (ValueKind.WHOLE, ValueKind.REAL, ValueKind.DAY, ValueKind.MOMENT)
        }
        left = self.price
        if self.reader.source.text:
            price = self.price * WRITINGS_PART
            left = self.price * (1 - WRITINGS_PART)
            told = self.curator.writings(list(kinds), price, self.share, request=self._request("writings"))
            for name, counts in told.items():
                reading, why[name] = reading_of(counts)
                if reading is not None:
                    readings[name] = reading
                elif why[name] == "nothing":
                    kinds[name] = ValueKind.OTHER
                elif why[name] == "yes or no":
                    kinds[name] = ValueKind.FLAG
        texts = [n for n, kind in kinds.items() if kind is ValueKind.TEXT and n not in readings]
        return self._bought(kinds, readings, texts, why, left)

    def _bought(
        self,
        kinds: Mapping[str, ValueKind],
        readings: Mapping[str, NumberReading],
        texts: Sequence[str],
        why: Mapping[str, str],
        price: Price,
    ) -> tuple[StartedColumn, ...]:
        with_keys = texts if self.budget.key_delta else []
        shared = price / max(len(readings) + len(with_keys), 1)
        profiles = keys = None
        deviation = 0.0
        if readings:
            # Moments are bought in seconds: what was bought of them in days is another purchase.
            timed = any(reading.kind is ValueKind.MOMENT for reading in readings.values())
            request = self._request("numbers and seconds" if timed else "numbers")
            units = (shared * len(readings)).whole_units
            profiles = self.curator.profiles(readings, units, self.share, request=request)
            terms = ColumnProfiling(columns=len(readings), price=units, relation=self.curator.relation)
            deviation = float(terms.different.variance) ** 0.5
        if with_keys:
            request = self._request("keys")
            keys = self.curator.keys(
                with_keys,
                (shared * len(with_keys)).whole_units,
                self.share,
                delta=keys_delta(self.curator.ledger, request),
                at_least=LEAST_PEOPLE,
                request=request,
            )
        found: list[StartedColumn] = []
        for name, kind in kinds.items():
            if profiles is not None and name in profiles:
                found.append(
                    of_numbers(
                        name,
                        readings[name],
                        profiles[name],
                        why[name],
                        self.reader.missing,
                        rows=self.rows * self.share,
                        distinct_deviation=deviation,
                    )
                )
            elif keys is not None and name in keys:
                found.append(of_keys(name, keys[name], why[name]))
            elif kind is ValueKind.FLAG:
                found.append(flag(name, why[name], self.reader.missing))
            elif kind is ValueKind.TEXT:
                found.append(left_out(name, f"{why[name]}, whose keys need a budget with a delta"))
            else:
                found.append(left_out(name, f"it holds {why[name]}"))
        return tuple(found)

    def _request(self, what: str) -> str:
        request = self.reading.request(what)
        known = self.curator.ledger.find(request) is not None
        if self.only_known is not None and not known:
            raise _there(self.only_known)
        if known:
            self.before.add(request)
        self.requests.append(request)
        return request

    def _number_of_rows(self, columns: int) -> float:
        """The number of rows, public or bought; refused, before anything is spent, where there are too few."""
        if not self.curator.relation.rows_are_public:
            price, self.price = self.price * ROWS_PART, self.price * (1 - ROWS_PART)
            return self.curator.about_rows(price, request=self._request("rows"))
        rows = self.curator.rows
        if rows == 0:
            raise SourceError("the table has no rows: there is nothing to start from. Nothing was spent")
        least = self._least_rows(columns)
        if rows < least:
            raise RefusedError(
                f"the table has {rows:,} row{'' if rows == 1 else 's'}, and {columns:,} columns for this price "
                f"need about {least:,}: with fewer, noise hides every column",
                remedy="Raise epsilon, keep fewer columns, or declare the columns by hand (`understudy init`). "
                f"{_OPEN_QUOTE if self.reader.source.text else ''}Nothing was spent",
            )
        return float(rows)

    def _least_rows(self, columns: int) -> int:
        """Rows below which not even a column of one octave would be found."""
        profiling = ColumnProfiling(columns=columns, price=self.price, relation=self.curator.relation)
        first = noise_for(self.price * SHARES[0], profiling.moved)
        return max(2, int(8 * float(first.variance) ** 0.5))


def _is_started(target: Path, data: Path, own: Sequence[Path], *, overwrite: bool) -> bool:
    """Whether the declaration is there by an earlier start: then nothing is written, and nothing new bought.

    `own` are the files that the start lives on. Raises a SourceError where there is no such table, where one of
    them is in the place of the declaration, and where another file is that may not be replaced.
    """
    check_there(data)
    if target.exists() and target.samefile(data):
        raise SourceError(f"{target} is the table itself: write elsewhere with --output")
    if target.resolve() in [file.resolve() for file in own]:
        raise SourceError(
            f"{target} is where the ledger or its witness is kept: write elsewhere with --output"
        )
    if not target.exists():
        return False
    if overwrite:
        check_no_database(target)
        return False
    if not was_started(target):
        raise _there(target)
    return True


def check_there(data: Path) -> None:
    """Raises a SourceError where no file is."""
    if not data.exists():
        raise SourceError(f"there is no file {data}; name a CSV, TSV, Parquet or DuckDB file")


def _there(target: Path) -> SourceError:
    return SourceError(
        f"{target} exists already, and nothing was spent; replace it with --overwrite, or write elsewhere with "
        "--output. What was paid for this table under the same budget is not paid again"
    )


def _settings(
    name: str, data: Path, target: Path, spec: SourceSpec, neighbours: Neighbours, budget: Budget
) -> tuple[OutlineEntry, ...]:
    try:
        location = str(data.resolve().relative_to(target.resolve().parent))
    except ValueError:
        location = str(data.resolve())
    written = {"epsilon": budget.epsilon, "delta": budget.delta, "key_delta": budget.key_delta}
    amounts = ", ".join(f"{key}: {float(amount)!r}" for key, amount in written.items() if amount)
    if budget.filter != ZCDP_FILTER:
        amounts += f", filter: {budget.filter.name}"
    entries = [OutlineEntry.of("name", name), OutlineEntry.of("source", scalar(location))]
    if spec.table:
        entries.append(OutlineEntry.of("table", scalar(spec.table)))
    if spec.delimiter != ",":
        entries.append(OutlineEntry.of("delimiter", scalar(spec.delimiter)))
    if spec.encoding != "utf-8":
        entries.append(OutlineEntry.of("encoding", spec.encoding))
    if spec.undecodable is not Undecodable.DROP:
        entries.append(OutlineEntry.of("undecodable", str(spec.undecodable)))
    return (
        *entries,
        OutlineEntry.of("neighbours", str(neighbours)),
        OutlineEntry.of("budget", f"{{{amounts}}}", "the total for this table, for ever"),
    )


def _heading(budget: Budget, cost: Cost, delta: Fraction, purchase: _StartPurchases) -> tuple[str, ...]:
    own = f", delta {float(delta):.3g}" if delta else ""
    part = percent_of(cost.units, budget.cap.units)
    return (
        f"{STARTED}: bounds, bins and keys were bought privately, and may be published.",
        f"They cost {cost.currency} {cost.amount:.6g}{own}, {part} of the budget. In the ledger",
        f"that is {', '.join(repr(request) for request in purchase.requests)}; to start again costs nothing.",
        *((FORMER,) if purchase.reading.former else ()),
    )
