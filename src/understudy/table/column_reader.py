"""Whole columns of a file before anything is declared about them: how text is written, numbers, and keys.

What comes back is exact: it is for the Curator alone. Only the embedded engine is asked, and the words of its
errors stay here. Of a large file a sample of the rows is read, each row with the same chance, whatever it
holds; so a row that is added, removed or replaced still changes the counts by one row, or by two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.instant import EPOCH, SECOND
from understudy.domain.instants import Instants
from understudy.domain.intake import Intake
from understudy.errors import SourceError
from understudy.table.file_view import identifier, quoted
from understudy.table.nameless_file import NamelessFile
from understudy.table.source import Source

SAMPLED_VALUES = 1 << 26
"""Values that are held of all columns of typed files together, one column at a time."""

SAMPLED_TEXTS = 1 << 24
"""The same of files of text, all columns at once."""

LEAST_SAMPLE = 1 << 18
"""Rows of a column that are always read, where there are so many."""

LONGEST_KEY = 100
"""Characters of a key; longer texts are no keys."""

BATCH = 1 << 17

TOGETHER = 16
"""Columns that are read in one pass: a pass has a price of its own, and what it reads is held."""

Held = list[NDArray[np.float64]]
"""The numbers of a column in sorted pieces."""


class ValueKind(StrEnum):
    """What the values of a column are."""

    WHOLE = "whole numbers"
    REAL = "numbers"
    DAY = "days"
    MOMENT = "times"
    FLAG = "yes or no"
    TEXT = "text"
    OTHER = "something else"


TYPES = {
    ValueKind.WHOLE: ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
                      "UBIGINT", "UHUGEINT"),
    ValueKind.REAL: ("DOUBLE", "FLOAT", "DECIMAL"),
    ValueKind.DAY: ("DATE",),
    ValueKind.MOMENT: ("TIMESTAMP",),
    ValueKind.FLAG: ("BOOLEAN",),
    ValueKind.TEXT: ("VARCHAR", "ENUM"),
}  # fmt: skip
"""The engine's types, by how their names begin."""

WRITINGS = (
    "missing", "whole", "flag", "real", "day", "day/month", "month/day", "day or month", "day.month", "moment",
    "thousands", "comma", "currency", "currency comma", "text", "per cent", "per cent point", "per cent comma",
    "code", "whole point",
)  # fmt: skip
"""How one text is written: each text is written in exactly one of these ways.

A `code` is made of digits, and is not what a number would be written as again: it begins with a 0 that a number
has not (01067, 007), or has more digits than whole numbers that are held exactly. A `whole point` is a whole
number with a point behind it, as programs write those of a column in which some are missing (17.0).

Privacy     The ways are a partition of the texts of a column, whatever they are: a row that is added or removed
            moves one count of each column by one, and one that is replaced moves two. So one way more costs
            nothing: all counts of all columns get the noise that one histogram of each column needs.

Answers in ledgers have one count for each, in this order: what is new stands at the end.
"""

MISSING_WORDS = ("N/A", "n/a", "NA", "-", "?", "null", "NULL", "Null", "none", "None", "NONE", "nan", "NaN")
"""Texts that stand for no value in columns of numbers, days, and yes or no, unless another list is given.

The list is public and the same for every file: no text of a table is looked at to make it.
"""

SIGNS = ("€", "$", "£", "¥")
"""The signs of currencies that are known."""

_SLASHES = r"regexp_full_match(t, '[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}')"
_FIRST, _SECOND = "TRY_CAST(split_part(t, '/', 1) AS INT)", "TRY_CAST(split_part(t, '/', 2) AS INT)"
_POINTED = r"'[+-]?[0-9]{1,3}(,[0-9]{3})+([.][0-9]*)?'"
_COMMA = r"'[+-]?([0-9]{1,3}([.][0-9]{3})+|[0-9]+)(,[0-9]*)?'"
_BARE = "trim(translate(t, '€$£¥', ''))"
_RULES = (
    ("missing", "t IS NULL OR t = ''"),
    ("code", r"regexp_full_match(t, '0[0-9]+|[0-9]{19,}')"),
    ("whole", r"regexp_full_match(t, '[+-]?[0-9]{1,18}')"),
    ("flag", "lower(t) IN ('true', 'false', 'yes', 'no', 't', 'f', 'y', 'n')"),
    ("whole point", r"regexp_full_match(t, '[+-]?[0-9]{1,18}[.]0*')"),
    ("real", r"regexp_full_match(t, '[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?')"),
    ("day", r"regexp_full_match(t, '[0-9]{4}-[0-9]{2}-[0-9]{2}') AND TRY_CAST(t AS DATE) IS NOT NULL"),
    ("day/month", f"{_SLASHES} AND {_FIRST} BETWEEN 13 AND 31 AND {_SECOND} BETWEEN 1 AND 12"),
    ("month/day", f"{_SLASHES} AND {_SECOND} BETWEEN 13 AND 31 AND {_FIRST} BETWEEN 1 AND 12"),
    ("day or month", f"{_SLASHES} AND {_FIRST} BETWEEN 1 AND 12 AND {_SECOND} BETWEEN 1 AND 12"),
    ("day.month", r"regexp_full_match(t, '[0-9]{1,2}[.][0-9]{1,2}[.][0-9]{4}')"),
    ("moment", r"regexp_matches(t, '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]') AND TRY_CAST(t AS TIMESTAMP) IS NOT NULL"),
    ("thousands", f"regexp_full_match(t, {_POINTED})"),
    ("comma", f"regexp_full_match(t, {_COMMA})"),
    ("currency", f"{_BARE} <> t AND (regexp_full_match({_BARE}, {_POINTED}) "
                 f"OR regexp_full_match({_BARE}, '[+-]?[0-9]+([.][0-9]*)?'))"),
    ("currency comma", f"{_BARE} <> t AND regexp_full_match({_BARE}, {_COMMA})"),
    ("per cent", r"regexp_full_match(t, '[+-]?[0-9]+ ?%')"),
    ("per cent point", r"regexp_full_match(t, '[+-]?([0-9]+[.][0-9]*|[.][0-9]+) ?%')"),
    ("per cent comma", r"regexp_full_match(t, '[+-]?[0-9]+,[0-9]+ ?%')"),
)  # fmt: skip
"""The first of these that holds says how a text is written; `t` is the text without blanks around it."""


@dataclass(frozen=True, slots=True)
class NumberReading:
    """How the numbers of a column are read: its kind, and, of text, how that is written."""

    kind: ValueKind
    intake: Intake = field(default_factory=Intake)

    @property
    def whole(self) -> bool:
        """Whether all that is read is a whole number; days are days, and times seconds, since 1970."""
        return self.kind is not ValueKind.REAL


class ColumnReader:
    """The columns of one file or frame, read by the embedded engine."""

    def __init__(self, source: Source, *, missing: Sequence[str] = ()) -> None:
        """`missing` are texts of a file of text that stand for no value, where a column is not read as text."""
        if source.engine.remote:
            raise SourceError("columns are found out privately in files: CSV, TSV, Parquet or DuckDB")
        self.source = source
        self._intake = Intake(missing=tuple(missing)) if source.text else Intake()
        self._sample: NamelessFile | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Texts that stand for no value; none in a file whose columns have types."""
        return self._intake.missing

    @property
    def _engine(self) -> Any:
        return self.source.expression.get_backend().con

    @property
    def _rows(self) -> str:
        """What stands after FROM."""
        return "understudy_sample" if self._sample else identifier(self.source.expression.op().name)

    @property
    def source_name(self) -> str:
        """What tells this table from another, and one version of it from the next where that can be told."""
        version = self.source.version
        return repr(version) if version is not None else repr((self.source.description, None))

    def kinds(self) -> dict[str, ValueKind]:
        """The kind of each column by its type in the file's schema. Reads no row; text has no other type."""
        described = self._engine.execute(f"DESCRIBE SELECT * FROM {self._rows}").fetchall()
        return {row[0]: _kind(row[1]) for row in described}

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A look at the rows that were stamped, or none; an engine's own words are not passed on."""
        with self.source.look():
            yield

    def rows(self) -> int:
        """The number of rows. Public where the neighbouring relation says so."""
        with self.looking():
            if self.source.text_rows is not None:
                return self.source.text_rows.number()
            return int(self._engine.execute(f"SELECT count(*) FROM {self._rows}").fetchone()[0])

    def share(self, rows: float, columns: int) -> float:
        """The share of so many rows that is read of each column, a function of these two numbers."""
        held = SAMPLED_TEXTS if self.source.text else SAMPLED_VALUES
        least = 0 if self.source.text else LEAST_SAMPLE
        return min(1.0, max(held // max(columns, 1), least) / max(rows, 1.0))

    def sample(self, share: float) -> None:
        """Read a file of text once, and hold that share of its rows: parsing takes longer than all the rest."""
        if self.source.text_rows is None or self._sample:
            return
        with self.looking():
            self._sample = self.source.text_rows.drawn(share)
            self._engine.execute(
                "CREATE OR REPLACE TEMPORARY VIEW understudy_sample AS "
                f"SELECT * FROM read_parquet({quoted(self._sample.place)}, hive_partitioning = false)"
            )

    def forget(self) -> None:
        """Let go of what `sample` holds."""
        if self._sample:
            self._engine.execute("DROP VIEW IF EXISTS understudy_sample")
            self._sample.close()
            self._sample = None

    def writings(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """How many texts of each column are written in each of the `WRITINGS`: a row for each column."""
        rules = (
            (name, f"{rule}{self._or_missing('t') if name == 'missing' else ''}") for name, rule in _RULES
        )
        cases = " ".join(f"WHEN {rule} THEN {WRITINGS.index(name)}" for name, rule in rules)
        found = np.zeros((len(columns), len(WRITINGS)), np.int64)
        for first in range(0, len(columns), TOGETHER):
            part = columns[first : first + TOGETHER]
            places = ", ".join(str(first + i) for i in range(len(part)))
            texts = ", ".join(map(identifier, part))
            statement = (
                f"SELECT c, CASE {cases} ELSE {WRITINGS.index('text')} END AS k, sum(n) FROM "  # of each text once
                f"(SELECT c, trim(v) AS t, count(*) AS n FROM (SELECT unnest([{places}]) AS c, "
                f"unnest([{texts}]) AS v FROM {self._rows}) GROUP BY c, t) GROUP BY c, k"
            )
            with self.looking():
                for place, kind, count in self._engine.execute(statement).fetchall():
                    found[place, kind] = count
        return found

    def _or_missing(self, text: str) -> str:
        """A further condition: that a text is one of those that stand for no value."""
        tokens = ", ".join(map(quoted, sorted(self._intake.tokens)))
        return f" OR {text} IN ({tokens})" if tokens else ""

    def numbers(self, readings: Mapping[str, NumberReading], share: float) -> Iterator[tuple[str, Held, int]]:
        """For each column its name, its numbers in sorted pieces, and how many of its values are none.

        A few columns are read at a time, each row of them with the same chance `share`, unless a sample is held.
        """
        names = list(readings)
        chosen = "" if share >= 1 or self._sample else f" USING SAMPLE {100 * share:.9f} PERCENT (bernoulli)"
        for first in range(0, len(names), TOGETHER):
            part = names[first : first + TOGETHER]
            with self.looking():
                found = self._read({name: readings[name] for name in part}, chosen)
            for name in part:
                yield (name, *found.pop(name))

    def _read(self, readings: Mapping[str, NumberReading], chosen: str) -> dict[str, tuple[Held, int]]:
        plain = {name: text for name, reading in readings.items() if (text := self._plain(name, reading))}
        statements: dict[tuple[str, ...], str] = {}
        if plain:
            listed = ", ".join(f"TRY_CAST({text} AS DOUBLE) AS x{i}" for i, text in enumerate(plain.values()))
            statements[tuple(plain)] = f"SELECT {listed} FROM {self._rows}{chosen}"
        for name, reading in readings.items():
            if name not in plain:
                statements[(name,)] = f"SELECT x FROM ({self._taken(name, reading)}){chosen}"
        found: dict[str, tuple[Held, int]] = {}
        for names, statement in statements.items():
            pieces: list[Held] = [[] for _ in names]
            missing = [0] * len(names)
            for batch in self._engine.execute(statement).fetch_record_batch(BATCH):
                for place in range(len(names)):
                    values = batch.column(place).to_numpy(zero_copy_only=False)
                    sound = values[np.isfinite(values)]
                    missing[place] += values.size - sound.size
                    pieces[place].append(sound)
            for place, name in enumerate(names):
                whole = np.concatenate(pieces[place]) if pieces[place] else np.empty(0)
                pieces[place] = []
                whole.sort()
                found[name] = ([whole], missing[place])
        return found

    def _plain(self, column: str, reading: NumberReading) -> str:
        """An expression for the number that each value stands for; empty where text is written by agreement."""
        name = identifier(column)
        if not self.source.text:
            return {
                ValueKind.DAY: f"date_diff('day', DATE '1970-01-01', {name})",
                ValueKind.MOMENT: f"floor(epoch({name}))",
            }.get(reading.kind, name)
        if reading.intake or reading.kind in (ValueKind.DAY, ValueKind.MOMENT):
            return ""
        text = f"trim({name})"
        return f"CASE WHEN false{self._or_missing(text)} THEN NULL ELSE {text} END" if self.missing else text

    def _taken(self, column: str, reading: NumberReading) -> str:
        """The same for text that is written by agreement: read as the declaration's own reader reads it."""
        import datetime as dt

        from understudy.table.encode import as_number
        from understudy.table.intake import taken_in

        day = dt.date(1970, 1, 1)
        is_day = reading.kind is ValueKind.DAY
        starts, upper = ((day,), day + dt.timedelta(days=1)) if is_day else ((0.0,), 1.0)
        intake = replace(reading.intake, missing=self.missing)
        attribute = Bins(name=column, column=column, starts=starts, upper=upper, intake=intake)
        if reading.kind is ValueKind.MOMENT:
            attribute = Instants(
                name=column, column=column, starts=(EPOCH,), upper=EPOCH + SECOND, intake=intake
            )
        rows, dialect = self.source.expression, self.source.engine.dialect
        number, _ = as_number(attribute, taken_in(attribute, rows[column], dialect), dialect)
        if number.type().is_date():
            number = number.epoch_seconds() / 86_400
        statement: str = rows.get_backend().compile(rows.select(x=number.cast("float64")))
        own = self.source.expression.op().name
        return statement.replace(identifier(own), self._rows) if self._sample else statement

    def keys(self, column: str, at_least: int) -> tuple[list[str], NDArray[np.int64], int]:
        """The texts of a column that at least so many rows hold, with their numbers; and how many rows hold any.

        Blank texts are none, and texts of more than `LONGEST_KEY` characters are no keys.
        """
        text = f"CAST({identifier(column)} AS VARCHAR)"
        statement = (
            f"SELECT k, sum(n) FROM (SELECT CASE WHEN n >= {int(at_least)} AND length(k) <= {LONGEST_KEY} "
            f"THEN k END AS k, n FROM (SELECT {text} AS k, count(*) AS n FROM {self._rows} "
            f"WHERE {text} IS NOT NULL AND trim({text}) <> '' GROUP BY 1)) GROUP BY k"
        )
        with self.looking():
            found = self._engine.execute(statement).fetchall()
        told = [(row[0], int(row[1])) for row in found if row[0] is not None]
        texts = sum(int(row[1]) for row in found)
        return [label for label, _ in told], np.array([count for _, count in told], np.int64), texts

    def keys_of_people(
        self, column: str, unit: str, keys_each: int, at_least: int, *, key: str
    ) -> tuple[list[str], NDArray[np.int64]]:
        """The texts of a column that at least so many people hold, with the number of people.

        Rows with the same value in `unit` are one person's (texts that Unicode writes in two ways are the same,
        and so are 0 and -0), and rows without one are nobody's. Each person counts for at most `keys_each` of
        their texts: those with the smallest hash of the person, the text and `key`. Which these are depends on
        the person's own rows alone, so that a person who is added or removed changes the number of people of at
        most so many texts, by one each.
        """
        text, person = f"CAST({identifier(column)} AS VARCHAR)", self._person(unit)
        order = f"md5({quoted(key)} || '|' || p || '|' || k), k"
        statement = (
            f"SELECT k, count(*) AS n FROM (SELECT p, k, row_number() OVER (PARTITION BY p ORDER BY {order}) AS r "
            f"FROM (SELECT DISTINCT {person} AS p, {text} AS k FROM {self._rows} WHERE {person} IS NOT NULL "
            f"AND {text} IS NOT NULL AND trim({text}) <> '' AND length({text}) <= {LONGEST_KEY})) "
            f"WHERE r <= {int(keys_each)} GROUP BY k HAVING count(*) >= {int(at_least)}"
        )
        with self.looking():
            found = self._engine.execute(statement).fetchall()
        return [row[0] for row in found], np.array([row[1] for row in found], np.int64)

    def _person(self, unit: str) -> str:
        """Text that is equal for the values of a unit that are one person's."""
        described = self._engine.execute(f"DESCRIBE SELECT {identifier(unit)} FROM {self._rows}").fetchall()
        name, written = identifier(unit), described[0][1]
        if written == "VARCHAR":
            return f"nfc_normalize({name})"
        return f"CAST({f'({name} + 0)' if written in ('DOUBLE', 'FLOAT') else name} AS VARCHAR)"


def _kind(written: str) -> ValueKind:
    for kind, names in TYPES.items():
        if written.startswith(names) and not written.endswith("]"):
            return kind
    return ValueKind.OTHER
