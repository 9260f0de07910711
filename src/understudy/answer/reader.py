"""The one reader of questions: from text, a marginal or a linear query to what is counted and what is made of it.

A question is read once, without data. It then knows the marginals whose counts it needs, and turns `SourceCounts`
of them, whatever the source, into an `Answer` or, for a SELECT statement, a `SqlAnswer` (`select_question`,
`around_question`). Everything here is
post-processing of released numbers: it costs no privacy, and where all counts are within their half-widths, all
that is made of them is within its bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from understudy.answer.answer import Answer, noise_together, weakest
from understudy.answer.around_question import AroundQuestion
from understudy.answer.counts import RowBounds, SourceCounts
from understudy.answer.ratios import rate, share
from understudy.answer.select_question import SelectQuestion
from understudy.declaration.declaration import Declaration
from understudy.domain.attribute import as_asked
from understudy.domain.domain import Domain
from understudy.domain.refinement import refines
from understudy.errors import QueryError
from understudy.query.column import Column, cell_columns
from understudy.query.cutting import read_cutting
from understudy.query.expression import parse
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.measure_words import as_statement, begins_with_measure, parse_measure
from understudy.query.text_size import USUAL, TextSize

if TYPE_CHECKING:
    from understudy.answer.measure_question import MeasureQuestion
    from understudy.sql import SqlCompiler
    from understudy.sql.collect import Averages
    from understudy.sql.measured import Family

Asked = str | Marginal | LinearQuery
"""How a question may be put: in the small language or as a SELECT statement, as a marginal, as a linear query."""

REMEMBERED = 1 << 12
"""Texts that a reader need not read again."""

SHARE = "share of all rows"
RATE = "rate within"
"""The units of a share and, before the names of its groups, of a rate."""

_SQL = re.compile(
    r"(?>[\s(]+|--[^\n]*|/\*(?>.*?\*/))*+"
    r"(select|with|from|values|table|insert|update|delete|merge|create|alter|drop|truncate|copy|explain)\b",
    re.I | re.S,
)
"""The first word of SQL, after comments and parentheses; what was skipped once is not tried otherwise."""

Given_co = TypeVar("Given_co", covariant=True)
Question = TypeVar("Question")


def is_sql(text: str) -> bool:
    """Whether a question is read as SQL, be it a SELECT or a statement that is refused as SQL.

    >>> is_sql("/* a chart */ SELECT count(*) FROM town"), is_sql("count by sex")
    (True, False)
    """
    return _SQL.match(text) is not None


class ReadQuestion(Protocol[Given_co]):
    """A question that was read: the marginals that it needs, and the answer that their counts give."""

    @property
    def marginals(self) -> tuple[Marginal, ...]: ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the answer as a table, which are public: names, kinds and types."""
        ...

    @property
    def words(self) -> str:
        """The question as it was asked; empty where it was not asked in words."""
        ...

    def answer(self, counts: SourceCounts) -> Given_co:
        """What the user gets, from the counts of `marginals` in their order."""
        ...


@dataclass(frozen=True)
class CountQuestion:
    """How many rows there are in each cell of a marginal."""

    marginal: Marginal
    words: str = field(default="", compare=False)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return (self.marginal,)

    @property
    def columns(self) -> tuple[Column, ...]:
        return cell_columns(self.marginal.by)

    def answer(self, counts: SourceCounts) -> Answer:
        return counts.cells[0].knowing(self.marginal.excluded).answer


@dataclass(frozen=True)
class ShareQuestion:
    """What share of all rows is in each cell of a marginal.

    Where the source does not know the number of rows, `counts_everyone`: then it is counted as well, second.
    """

    marginal: Marginal
    counts_everyone: bool
    words: str = field(default="", compare=False)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return (
            (self.marginal, Marginal(self.marginal.domain, ())) if self.counts_everyone else (self.marginal,)
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        return cell_columns(self.marginal.by, "share")

    def answer(self, counts: SourceCounts) -> Answer:
        rows = RowBounds.measured(counts.cells[1]) if self.counts_everyone else counts.rows
        source = weakest(cells.answer.source for cells in counts.cells)
        told = share(counts.cells[0].knowing(self.marginal.excluded), rows)
        noise = noise_together(cells.answer.noise for cells in counts.cells)
        return replace(told, cost=counts.cost, beta=counts.beta, source=source, unit=SHARE, noise=noise)


@dataclass(frozen=True)
class RateQuestion:
    """What rate of a group's own rows meets a condition, for each group.

    `marginal` counts the rows of each group that meet it, `others` those that do not.
    """

    marginal: Marginal
    others: Marginal
    words: str = field(default="", compare=False)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return (self.marginal, self.others)

    @property
    def columns(self) -> tuple[Column, ...]:
        return cell_columns(self.marginal.by, "rate")

    def answer(self, counts: SourceCounts) -> Answer:
        source = weakest(cells.answer.source for cells in counts.cells)
        told = rate(*counts.cells)
        unit = f"{RATE} {', '.join(self.marginal.by)}"
        noise = noise_together(cells.answer.noise for cells in counts.cells)
        return replace(told, cost=counts.cost, beta=counts.beta, source=source, unit=unit, noise=noise)


AnyQuestion: TypeAlias = (
    "CountQuestion | ShareQuestion | RateQuestion | SelectQuestion | AroundQuestion | MeasureQuestion"
)


class QuestionReader:
    """Reads questions about one domain, and remembers those that it read. Safe for threads.

    `tables` are the names that may stand after FROM. `rows_public` says that everybody knows the number of rows,
    and `counts_everyone` that a share needs it counted. `measured` says which moments of measures the source of
    counts can tell; without, measures are summed by their bins. `averages` says what averages of bins are made
    of: two sums that share each row, where those are measured as one, or a sum and a number of rows. `refines`
    says that it can count parts of declared bins, so that a condition may cut them anywhere. `person` is the
    column that says whose row it is, and how many rows each person may have. `size` is what a text may have: a
    longer one is refused before any parser sees it.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        tables: Collection[str],
        rows_public: bool,
        counts_everyone: bool,
        measured: Family | None = None,
        averages: Averages = "sums",
        refines: bool = False,
        person: tuple[str, int] | None = None,
        size: TextSize = USUAL,
    ) -> None:
        self._domain = domain
        self._refines = refines
        self._measured: Family | None = measured
        self._averages: Averages = averages
        self._person = person
        self._counts_everyone = counts_everyone
        self._tables = tables
        self._rows_public = rows_public
        self._size = size
        self._read = lru_cache(maxsize=REMEMBERED)(self._read_text)

    @classmethod
    def of(
        cls,
        declared: Declaration,
        *,
        counts_everyone: bool,
        measured: Family | None = None,
        averages: Averages = "sums",
        refines: bool = False,
        size: TextSize = USUAL,
    ) -> QuestionReader:
        """A reader of questions about a declared table, under its name or that of its source."""
        names = {declared.name, declared.source.table} - {""}
        public = declared.relation.rows_are_public
        unit = declared.unit
        return cls(
            declared.domain,
            tables=names,
            rows_public=public,
            counts_everyone=counts_everyone,
            person=None if unit is None else (unit.column, unit.max_rows),
            measured=measured,
            averages=averages,
            refines=refines,
            size=size,
        )

    @cached_property
    def _compiler(self) -> SqlCompiler:
        """Imported and built for the first SELECT statement: no other question needs it."""
        from understudy.sql import SqlCompiler

        return SqlCompiler(
            self._domain,
            tables=self._tables,
            rows_public=self._rows_public,
            person=self._person,
            measured=self._measured,
            averages=self._averages,
            size=self._size,
        )

    def read(self, question: Asked) -> AnyQuestion:
        """What is asked; a marginal or a linear query asks for counts. Reads no data.

        Raises a `QueryError` that says what to write instead where the question cannot be understood, or is about
        another domain.
        """
        if isinstance(question, str):
            self._size.check(question)
            return self._read(question)
        marginal = Marginal.of(question) if isinstance(question, LinearQuery) else question
        if not isinstance(marginal, Marginal):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise QueryError("a question is text, a marginal or a linear query")
        if marginal.domain != self._domain and not (self._refines and refines(marginal.domain, self._domain)):
            raise QueryError("the question is about another domain")
        return CountQuestion(marginal)

    def select(self, text: str) -> SelectQuestion | AroundQuestion:
        """A SELECT statement; any other text is refused, as SQL, with a `QueryError`. Reads no data."""
        self._size.check(text)
        return self._cutting(lambda domain: self._select(text, domain))

    def _select(self, text: str, domain: Domain) -> SelectQuestion | AroundQuestion:
        from understudy.sql import CompiledAround, compile_sql

        if domain is self._domain:
            compiled = self._compiler.compile(text)
        else:
            compiled = compile_sql(
                text,
                domain,
                tables=self._tables,
                rows_public=self._rows_public,
                measured=self._measured,
                averages=self._averages,
                person=self._person,
                size=self._size,
            )
        if isinstance(compiled, CompiledAround):
            return AroundQuestion.read(text.strip(), compiled)
        return SelectQuestion(text.strip(), compiled)

    def _cutting(self, read: Callable[[Domain], Question]) -> Question:
        return read_cutting(read, self._domain) if self._refines else read(self._domain)

    def _about_measures(self, text: str, domain: Domain) -> MeasureQuestion:
        """An aggregate of measures. Imported for the first of them: no other question needs it."""
        from understudy.answer.measure_question import MeasureQuestion

        if self._measured is None:
            statement = as_statement(text, domain, as_asked(min(self._tables)), size=self._size)
            raise QueryError(
                "averages, sums, spreads and quantiles are asked in SQL here",
                remedy=f"write {statement}, with conditions after WHERE",
            )
        asked = parse_measure(text, domain, size=self._size)
        if asked.level is not None and self._measured == "positions":
            statement = as_statement(text, domain, "… (the name of the table)", size=self._size)
            raise QueryError(
                "a session answers quantiles from bins",
                remedy=f"ask in SQL: {statement}, with conditions after WHERE; or ask the project",
            )
        return MeasureQuestion(asked, self._measured, self._rows_public, asked.text)

    def _read_text(self, text: str) -> AnyQuestion:
        if is_sql(text):  # what is SQL but no SELECT is refused as SQL
            return self.select(text)
        return self._cutting(lambda domain: self._read_small(text, domain))

    def _read_small(self, text: str, domain: Domain) -> AnyQuestion:
        """A question in the small language."""
        if begins_with_measure(text):
            return self._about_measures(text, domain)
        asked = parse(text, domain, size=self._size)
        if asked.others is not None:
            return RateQuestion(asked.marginal, asked.others, asked.text)
        if asked.aggregate == "count":
            return CountQuestion(asked.marginal, asked.text)
        return ShareQuestion(asked.marginal, self._counts_everyone, asked.text)
