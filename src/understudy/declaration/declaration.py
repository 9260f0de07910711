"""What a custodian declares about a table, before anybody asks: the contents of ``understudy.yml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from understudy.domain.attribute import Attribute
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.privacy.budget import Budget
from understudy.privacy.event import SpentBefore
from understudy.privacy.limits import Limits
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.constraint import Constraint

UNREADABLE = Fraction(1, 100)
"""The share of unreadable rows that is tolerated where nothing is declared."""


class Protect(StrEnum):
    """Whom the project protects: the people in the table, or the conclusion from the analyst's adaptivity."""

    PRIVACY = "privacy"
    VALIDITY = "validity"


class Counting(StrEnum):
    """Where an engine's rows are counted: by the engine, or here from a stream of codes."""

    AUTO = "auto"
    INSIDE = "inside"
    STREAM = "stream"


class Undecodable(StrEnum):
    """What becomes of a line of text with bytes that are not in the declared encoding.

    DROP     It is no row. (In other encodings than UTF-8 bytes are replaced all the same.)
    REPLACE  It is a row, in which each such byte, or broken sequence of them, is the character U+FFFD.
    """

    DROP = "drop"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """How to find the table.

    location           a path, a URL, or `spark`. Secrets are never part of it
    table              the table's name in a database, or in a file that holds several
    schema             the schema of that table in a database; empty for the usual one
    path               where Spark finds the Parquet files of the table, in place of `table`
    password_variable  the environment variable that holds the password of a database
    password_file      a file that holds it; without either, the engine looks where it usually does
    count              where rows are counted: by the engine, or here from a stream of codes
    time_limit         how many seconds one statement may take in a database: None for ten minutes of Postgres, and
                       an hour of Spark

    The others are about files of text.

    delimiter          what separates columns
    encoding           how characters are written
    undecodable        what becomes of bytes that are in another encoding
    header             whether the first line names the columns
    columns            names for the columns in place of the header's, or where there is none

    Raises a `ParameterError` where the time limit is out of range, where both places of a password are given, and
    where a file without a header has no `columns`.
    """

    location: str
    table: str = ""
    delimiter: str = ","
    schema: str = ""
    path: str = ""
    password_variable: str = ""
    password_file: str = ""
    count: Counting = Counting.AUTO
    time_limit: int | None = None
    encoding: str = "utf-8"
    header: bool = True
    columns: tuple[str, ...] = ()
    undecodable: Undecodable = field(default=Undecodable.DROP, repr=False)

    def __post_init__(self) -> None:
        if self.time_limit is not None and not 1 <= self.time_limit <= 7 * 86_400:
            raise ParameterError("a time limit is between 1 second and a week")
        if self.password_variable and self.password_file:
            raise ParameterError("the password is in a variable or in a file, not in both")
        if not self.header and not self.columns:
            raise ParameterError("a file without a header needs `columns`, the names of its columns in order")

    @property
    def speaks_of_text(self) -> tuple[str, ...]:
        """The keys that are declared and mean something for a file of text only."""
        told = {
            "encoding": self.encoding != "utf-8",
            "undecodable": self.undecodable is not Undecodable.DROP,
            "header": not self.header,
            "columns": bool(self.columns),
        }
        return tuple(key for key, given in told.items() if given)

    @property
    def reading(self) -> tuple[object, ...]:
        """All that is said here about how rows are read, which is a part of the name of a version of the table.

        What became possible to say later is named only where it was said, so that versions keep their names.
        """
        return (self,) if self.undecodable is Undecodable.DROP else (self, str(self.undecodable))


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose privacy is protected when a person has several rows: at most `max_rows` of each are kept.

    Rows with the same value in `column` are one person's. Which of them are kept is decided by a hash of the row
    keyed with `key`. Raises a `ParameterError` unless `max_rows` is between 1 and 1,000,000.

    The hash is of the cells that a row falls into: of those of `cells`, or, where that is None, of the domain that
    is counted. With the declared domain as `cells` the parts of a refined cell add up to the cell.
    """

    column: str
    max_rows: int
    key: str = "understudy"
    cells: Domain | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.max_rows <= 10**6:
            raise ParameterError(f"max_rows must be between 1 and 1,000,000, not {self.max_rows}")


def promise_to(protect: Protect, neighbours: Neighbours, unit: str = "") -> str:
    """What is promised, and to whom, in words that a ledger is bound to by its first charge.

    Charges under another promise cannot be added up with these: noise that hides a row that is added or removed
    hides one that is exchanged half as well, and one that hides a row does not hide a person of several.

    >>> promise_to(Protect.PRIVACY, Neighbours.ADD_REMOVE, "patient")
    "privacy of each 'patient', neighbours add-remove"
    """
    if protect is Protect.VALIDITY:
        return "validity"
    return f"privacy of each {repr(unit) if unit else 'row'}, neighbours {neighbours}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Declaration:
    """What a custodian says about a table before anybody asks. All of it is public.

    name           the name of the table, in SELECT statements and in the ledger
    source         where the table is, and how it is read
    domain         the attributes with their cells
    budget         the total that everything spent on the table stays under, for ever
    protect        the people in the table (`privacy`), or the conclusions drawn from it (`validity`)
    neighbours     which tables a promise of privacy compares: one row replaced, or one added or removed
    unit           who is protected where one person has several rows; None where every row is a person
    rows_at_least  public bounds on the number of rows, where the custodian gives them; they matter under
    rows_at_most   `add-remove`, where the number itself is private
    ledger         where the ledger is; empty for a file beside the declaration
    witness        a file by which a ledger is noticed that was put back from an old copy; empty for none
    opening        the epsilon that was spent on the table before its ledger was opened
    limits         what one analyst, one day or one month may take of the budget, in its currency
    constraints    which cells are always empty, as everybody may know
    coded_copy     whether the codes of a file's rows may be kept beside the declaration, for its owner alone to
                   read, so that later questions are answered sooner
    unreadable     the share of the rows that may be unreadable in an attribute that declares none of its own, and
                   of the lines that may be lost, before the custodian's reading fails

    Raises a `ParameterError` where these contradict each other. `declaration.file` reads one from a YAML file.
    """

    name: str
    source: SourceSpec
    domain: Domain
    budget: Budget
    protect: Protect = Protect.PRIVACY
    neighbours: Neighbours = Neighbours.REPLACE
    unit: Unit | None = None
    rows_at_least: int | None = None
    rows_at_most: int | None = None
    ledger: str = ""
    witness: str = ""
    opening: Fraction = Fraction(0)
    limits: Limits = field(default_factory=Limits)
    constraints: tuple[Constraint, ...] = ()
    coded_copy: bool = False
    unreadable: Fraction = UNREADABLE

    def __post_init__(self) -> None:
        if self.unit is not None and self.neighbours is not Neighbours.ADD_REMOVE:
            raise ParameterError(
                "a privacy unit needs `neighbours: add-remove`: replacing a person changes the number of rows"
            )
        low, high = self.rows_at_least, self.rows_at_most
        for bound in (low, high):
            if bound is not None and not 0 < bound <= 2**40:
                raise ParameterError("a bound on the number of rows must be between 1 and 2^40")
        if low is not None and high is not None and low > high:
            raise ParameterError("the lower bound on the number of rows is above the upper one")
        if not 0 <= self.unreadable <= 1:
            raise ParameterError(f"a share of the rows is between 0 and 1, not {self.unreadable}")
        if self.budget.price(SpentBefore(epsilon=self.opening)).units > self.budget.cap.units:
            raise ParameterError("what was spent before is more than the budget")

    def __repr__(self) -> str:
        return f"Declaration({self.name!r}, {len(self.domain)} attributes, budget {self.budget})"

    @cached_property
    def relation(self) -> Relation:
        """The neighbouring relation, with the most rows of one person that are kept."""
        return Relation(self.neighbours, 1 if self.unit is None else self.unit.max_rows)

    @property
    def promise(self) -> str:
        """What is promised, and to whom (`promise_to`): the first charge binds the ledger to it."""
        return promise_to(self.protect, self.neighbours, "" if self.unit is None else self.unit.column)

    def tolerated(self, attribute: Attribute) -> Fraction:
        """The share of the rows that may be unreadable in an `attribute`: its own, or that of the whole table."""
        return self.unreadable if attribute.unreadable is None else attribute.unreadable

    @property
    def columns(self) -> frozenset[str]:
        """The names of the table's columns that are ever read: those of the attributes and of the unit."""
        unit = [] if self.unit is None else [self.unit.column]
        return frozenset([attribute.column for attribute in self.domain] + unit)
