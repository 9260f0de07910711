"""What a custodian declares about a table, before anybody asks: the contents of ``understudy.yml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

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


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """How to find the table.

    `location` is a path, a URL, or `spark`. Secrets are never part of it: they stay where `password_variable` or
    `password_file` say, or where the engine itself looks for them.

    `encoding`, `header` and `columns` are about files of text: how characters are written, whether the first
    line names the columns, and names for the columns in place of the header's, or where there is none.
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
            "header": not self.header,
            "columns": bool(self.columns),
        }
        return tuple(key for key, given in told.items() if given)


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose privacy is protected when a person has several rows: at most `max_rows` of each are kept.

    Which ones is decided by a hash of the row keyed with `key`.
    """

    column: str
    max_rows: int
    key: str = "understudy"

    def __post_init__(self) -> None:
        if not 1 <= self.max_rows <= 10**6:
            raise ParameterError(f"max_rows must be between 1 and 1,000,000, not {self.max_rows}")


@dataclass(frozen=True, kw_only=True, repr=False)
class Declaration:
    """A table's name, place, domain, budget and neighbours.

    `rows_at_least` and `rows_at_most` are public bounds on the number of rows, where the custodian gives them;
    they matter under `add-remove`, where the number itself is private.

    `ledger` and `witness` are places (empty: the default, and none); `opening` is the epsilon that was spent on
    the table before its ledger was opened; `limits` are shares of the budget. `constraints` say which cells are
    always empty, as everybody may know. `coded_copy` permits to keep the codes of a file's rows beside the
    declaration, for its owner's eyes alone, so that later questions are answered sooner. `unreadable` is the share
    of the rows that may be unreadable in an attribute that declares none of its own, and of the lines that may be
    lost, before the custodian's reading fails.
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

    @property
    def relation(self) -> Relation:
        """The neighbours, with the rows of one person that count."""
        return Relation(self.neighbours, 1 if self.unit is None else self.unit.max_rows)

    def tolerated(self, attribute: Attribute) -> Fraction:
        """The share of the rows that may be unreadable in an attribute."""
        return self.unreadable if attribute.unreadable is None else attribute.unreadable

    @property
    def columns(self) -> frozenset[str]:
        """The table's columns that are ever read."""
        unit = [] if self.unit is None else [self.unit.column]
        return frozenset([attribute.column for attribute in self.domain] + unit)
