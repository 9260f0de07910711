"""A project: a declared table that questions can be put to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from understudy.answer.answer import Answer
from understudy.answer.forecast import ColumnForecast
from understudy.answer.limits import MAX_CELLS, check_cells
from understudy.answer.reader import Asked, QuestionReader, ReadQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.answer.statement_question import StatementQuestion
from understudy.curator.batch import MeasurementOrder
from understudy.curator.calibration import check_counts
from understudy.curator.curator import Curator
from understudy.curator.group_price import GroupPricing
from understudy.curator.prepared_question import PreparedQuestion, QuestionPurchase
from understudy.curator.pricing import QuestionPricing
from understudy.curator.question_price import QuestionPrice
from understudy.curator.quote import Quote
from understudy.curator.unit_price import UnitPricing
from understudy.declaration.declaration import Declaration
from understudy.declaration.file import copy_place, located, read, record_place
from understudy.declaration.outline import MARK
from understudy.domain.domain import Domain, attribute_table
from understudy.errors import ParameterError
from understudy.ledger.declared import open_ledger
from understudy.ledger.interface import Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.view import spent_of
from understudy.pages import notebook
from understudy.privacy.noise_name import Noise
from understudy.query.column import Column
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.text_size import USUAL, TextSize
from understudy.rational import Number
from understudy.table.coded_copy import CodedCopy
from understudy.table.read_record import ReadRecord, read_record
from understudy.table.source import Source, in_memory, open_source
from understudy.table.truth import Truth

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from narwhals.typing import IntoDataFrame

    from understudy.noise.samplers import NoiseSource
    from understudy.sql.collect import Averages

    Frame = pd.DataFrame | pl.DataFrame | pa.Table | IntoDataFrame
    """A frame of pandas or polars, an Arrow table, or another that narwhals can read."""

Given = TypeVar("Given")


class PriceTerms(TypedDict, total=False):
    """What a question may cost, or how far off its answer may be: the keywords `price` of `Project.ask`.

    epsilon    the price as an ε. Under a budget with a δ the question alone is (epsilon, δ)-DP, and costs the ρ
               that this is
    rho        the price as a ρ, under a budget with a δ
    error      in place of a price: the half-width that the answer must keep, in people for counts, else in the
               unit of the released numbers. At most one of these three is given; without any the price is a
               hundredth of the whole budget
    beta       the probability with which some number of the answer is outside its bounds; 0.05 by default
    noise      `auto` (the default), `laplace`, `gaussian` or `bounded`
    max_cells  the most cells that the question may have; a million by default
    """

    epsilon: Number | None
    rho: Number | None
    error: Number | None
    beta: Number
    noise: Noise
    max_cells: int


@dataclass(frozen=True, repr=False)
class Project:
    """A declared table that questions can be put to: its declaration, and the Curator that guards it.

    `open_project` (`us.open`) makes one of a declaration file, `declare` and `Project.frame` of a frame.

    declaration  what the custodian said about the table: attributes, budget, neighbouring relation. It is public
    curator      the one object that looks at the table, after it has charged the ledger
    inferred     the names of the attributes whose cells `declare` read off the data: they tell what the table
                 holds
    text_size    how many characters and words a question may have; longer ones are refused, with a `TooLongError`,
                 before any parser sees them
    owns_ledger  whether the project opened its ledger itself, and closes it

    A project is closed by `close`, or at the end of a `with` block; it then refuses everything with a
    `ClosedError`.
    """

    declaration: Declaration
    curator: Curator
    inferred: tuple[str, ...] = ()
    text_size: TextSize = USUAL
    owns_ledger: bool = False

    def __repr__(self) -> str:
        declared = self.declaration
        return f"Project({declared.name!r}, {len(declared.domain)} attributes, budget {declared.budget})"

    def _repr_html_(self) -> str:
        """What was declared, and what the ledger says was spent. The table is not touched."""
        remarks = dict.fromkeys(self.inferred, MARK.lstrip("# "))
        declared = self.declaration
        known = {
            "protects": f"{declared.protect}, neighbours {declared.neighbours}",
            "budget": str(declared.budget),
            "spent": spent_of(self.ledger),
        }
        parts = [notebook.facts(known), attribute_table(self.domain, remarks or None)]
        return notebook.panel(f"Project {declared.name}", *parts)

    @classmethod
    def over(
        cls,
        source: Source,
        declaration: Declaration,
        *,
        ledger: Ledger | None = None,
        noise: NoiseSource | None = None,
        copy: CodedCopy | None = None,
        reading: ReadRecord | None = None,
        text_size: TextSize = USUAL,
    ) -> Project:
        """A project over a table that is open already, whatever engine holds it.

        source       the open table (`table.source`), which the project closes
        declaration  what is declared about it; its `source` is not opened again
        ledger       where the budget is kept. Without one it is kept in memory, and forgotten with the project
        noise        where random bits come from: the operating system, unless a test or a simulation passes
                     another source, with which nothing is private
        copy         where the codes of the rows may be kept between processes; None for nowhere
        reading      the custodian's record of which columns could not be read as they are declared; None for none
        text_size    how many characters and words a question may have

        Returns the `Project`. Nothing is charged. Raises a `SourceError` where the table lacks a declared column.
        """
        truth = Truth(source, declaration.domain, declaration.unit, copy=copy)
        own = ledger is None
        if ledger is None:
            ledger = MemoryLedger(declaration.budget, opening=declaration.opening, limits=declaration.limits)
        curator = Curator(truth, ledger, declaration, noise=noise, reading=reading)
        return cls(declaration, curator, text_size=text_size, owns_ledger=own)

    @classmethod
    def frame(
        cls,
        frame: Frame,
        declaration: Declaration,
        *,
        ledger: Ledger | None = None,
        noise: NoiseSource | None = None,
    ) -> Project:
        """A project over a frame in memory for which there is a declaration; without one, see `us.declare`.

        frame        a pandas or polars frame, an Arrow table, or another that narwhals can read. It is copied:
                     what is done to it later changes no answer
        declaration  what is declared about it, such as `understudy.declaration.file.parse` makes of a text; the
                     place that its `source` names is not read
        ledger       where the budget is kept. Without one it is kept in memory and forgotten with the process: a
                     restart spends it again
        noise        where random bits come from: the operating system, unless a test or a simulation passes
                     another source, with which nothing is private

        Returns the `Project`. Nothing is charged. Raises a `SourceError` where the frame is none or lacks a
        declared column.
        """
        return cls.over(in_memory(frame), declaration, ledger=ledger, noise=noise)

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the engine's connections, of what was read of the table, and of the ledger's connections.

        A look under way ends first. Whatever asks afterwards gets a `ClosedError`: questions, releases, and
        sessions that were opened on this project. A ledger that was passed to the project stays open, as its
        opener may use it elsewhere. Closing twice does nothing.
        """
        self.curator.close()
        if self.owns_ledger:
            self.ledger.close()

    @property
    def domain(self) -> Domain:
        """The declared domain of the table."""
        return self.declaration.domain

    @property
    def ledger(self) -> Ledger:
        """The ledger that everything released about the table is charged to."""
        return self.curator.ledger

    @overload
    def ask(
        self,
        question: Marginal | LinearQuery,
        *,
        request: str | None = None,
        analyst: str = "",
        **price: Unpack[PriceTerms],
    ) -> Answer: ...

    @overload
    def ask(
        self, question: str, *, request: str | None = None, analyst: str = "", **price: Unpack[PriceTerms]
    ) -> Answer | SqlAnswer: ...

    def ask(
        self, question: Asked, *, request: str | None = None, analyst: str = "", **price: Unpack[PriceTerms]
    ) -> Answer | SqlAnswer:
        """Answer a question such as ``count age < 30 and sex = F by district``, or a SELECT statement.

        `question` is a text, a `Marginal` or a `LinearQuery`. Returns an `Answer` for a count or a share, a
        marginal or a linear query, and a `SqlAnswer` for a SELECT statement. The ledger is charged before the
        table is read.

        The `price` is given by `epsilon`, by `rho`, or by the `error` that the answer must keep; without any it is
        a hundredth of the whole budget. It is for the whole question. An `error` is in people for counts, and for
        statements that tell counts beside other numbers; else in the unit of the released numbers: of a column for
        its sums and averages, a part of 1 for shares (`curator.unit_price`). Under a budget with a δ an `epsilon`
        is a part of that budget: the question alone is (epsilon, δ)-DP, and costs the ρ that this is
        (`curator.pricing`). `noise` is `auto`, the one with the smaller error at that price, or `laplace` (then an
        `epsilon` is one of pure privacy), `gaussian`, or `bounded`, with which every count is within its error for
        sure; that needs a budget with `filter: renyi` and a `key_delta`. The answer is within its bounds with
        probability 1 - `beta` (0.05). The same `request` gets the same answer again and pays once; `analyst` is
        whose share of the budget pays. A question with more than `max_cells` cells (a million) is refused before
        anything is charged.

        Raises a `QueryError` where the question is not understood or has too many cells, a `ParameterError` where
        the price makes no sense, a `RefusedError` where no price keeps the `error`, an `UnreadableError` where the
        custodian's reading found an attribute of it to be unreadable, and an `InsufficientBudgetError` where the
        ledger cannot pay: nothing is charged then.
        """
        return self.prepare(question, **price).run(request=request, analyst=analyst)

    def quote(
        self, question: Asked, *, request: str | None = None, analyst: str = "", **price: Unpack[PriceTerms]
    ) -> Quote:
        """The cost of a question, and its error with its unit. Asks nothing, costs nothing, reads no data.

        The `question` and its `price` are given as to `ask`. Returns a `Quote`, whose `due.cost` is what the
        ledger would charge now, for this `analyst` and `request`. Raises what `ask` would raise, except that the
        ledger's refusal to pay is told by `due.payable`.
        """
        prepared = self.prepare(question, **price)
        return replace(prepared.quote, due=prepared.due(request=request, analyst=analyst))

    def forecast(self, question: Asked, **price: Unpack[PriceTerms]) -> tuple[ColumnForecast, ...]:
        """How far the answer to a question will be off, in the unit of its columns; see `answer.forecast`.

        Returns a `ColumnForecast` for a share, a rate, and each released column of a SELECT statement; none for
        plain counts, which have the error of their `quote`. The `question` and its `price` are given as to `ask`,
        and what `ask` would refuse is refused here as well, except for want of budget. Asks nothing, costs
        nothing, reads no data.
        """
        return self.prepare(question, **price).forecast()

    def columns(self, question: Asked) -> tuple[Column, ...]:
        """The columns of a question's answer as a table: names, whether they are public or released, and types.

        They are known before anything is paid. Raises a `QueryError` where the `question` is not understood.
        """
        return self._reader.read(question).columns

    def sql(
        self, text: str, *, request: str | None = None, analyst: str = "", **price: Unpack[PriceTerms]
    ) -> SqlAnswer:
        """Answer a SELECT statement, `text`, with aggregates over the declared table.

        `price`, `request` and `analyst` are those of `ask`; the price is for the whole statement, and the `error`
        is that of the answer, as of `ask`. Returns a `SqlAnswer`. Raises as `ask` does; a text that is no SELECT
        statement is refused with a `QueryError`.
        """
        return self._priced(self._reader.select(text), **price).run(request=request, analyst=analyst)

    def prepare(self, question: Asked, **price: Unpack[PriceTerms]) -> PreparedQuestion[Answer | SqlAnswer]:
        """Read, check and price a question, to be asked later: nothing is charged and no data is read.

        The `question` and its `price` are given as to `ask`. What comes back has the `quote`, and
        `run(request=…, analyst=…)` asks it. Raises what `ask` raises before it charges: a `QueryError`, a
        `ParameterError`, a `RefusedError` where no price keeps the error, or an `UnreadableError`.
        """
        return self._priced(self._reader.read(question), **price)

    def run_all(
        self, purchases: Sequence[QuestionPurchase]
    ) -> Iterator[list[tuple[int, Answer | SqlAnswer | Exception]]]:
        """`run` for several prepared questions of this project, whose debits and answers share transactions.

        `purchases` are the questions, each with its request and its analyst. Each is charged, looked at and
        answered on its own, as if they were asked one after the other. Yields portions, each as soon as its
        answers are kept: for some of the purchases, the place among them, from 0, and the answer, or what `run`
        would raise. Raises a `LedgerError` or a `SourceError` where the ledger or the table fails all that are
        left; what was charged by then is found under its request.
        """
        told: list[tuple[int, Answer | SqlAnswer | Exception]] = []
        orders: list[tuple[int, MeasurementOrder]] = []
        for place, one in enumerate(purchases):
            try:
                orders.append((place, one.question.order(one.request, one.analyst)))
            except ParameterError as error:
                told.append((place, error))
        if told:
            yield told
        for portion in self.curator.perform_all([order for _, order in orders]):
            found = [(orders[i][0], answers) for i, answers in portion]
            yield [
                (place, one.question.outcome(answers, one.request, one.analyst))
                for place, answers in found
                for one in (purchases[place],)
            ]

    def _priced(self, question: ReadQuestion[Given], **price: Unpack[PriceTerms]) -> PreparedQuestion[Given]:
        """The question with the noise that is best for it at its price; refused where it has too many cells."""
        check_cells(question.marginals, price.get("max_cells", MAX_CELLS))
        self.curator.check_readable(question.marginals)
        terms: dict[str, Any] = {key: value for key, value in price.items() if key != "max_cells"}
        if price.get("noise") == "bounded":  # said first: no other price would help
            check_counts(question.marginals)
        asked = QuestionPrice(**terms)
        rounded = isinstance(question, StatementQuestion)
        former = partial(self._as_it_was, question, price) if rounded else _nothing
        each, promised = (asked,), None
        if asked.error is None:
            measured = self._pricing.best(question, asked, rounded=rounded)
        else:
            groups = GroupPricing(self._pricing, question, rounded)
            in_unit = UnitPricing.of(groups, self.curator, asked)
            each, measured = (in_unit or groups).prepare(asked)
            promised = None if in_unit is None else (in_unit.error(measured), in_unit.unit)
        quote = Quote.of(question, measured, asked, self.ledger.budget, promised)
        return PreparedQuestion(question, quote, self.curator, measured, asked, each, self._pricing, former)

    def _as_it_was(self, question: ReadQuestion[Any], price: PriceTerms) -> PreparedQuestion[Any] | None:
        """A SELECT with averages as a sum and a number of rows, as earlier versions measured them; None without.

        A request that was charged for these is found again, and answered with the same numbers.
        """
        before = self._reader_with("sums").select(question.words)
        if [m.key for m in before.marginals] == [m.key for m in question.marginals]:
            return None
        return self._priced(before, **price)

    @cached_property
    def _pricing(self) -> QuestionPricing:
        return QuestionPricing(self.curator.calibration, self.ledger)

    @cached_property
    def _reader(self) -> QuestionReader:
        return self._reader_with("shares")

    def _reader_with(self, averages: Averages) -> QuestionReader:
        private = not self.declaration.relation.rows_are_public
        return QuestionReader.of(
            self.declaration,
            counts_everyone=private,
            measured="shares" if self.ledger.budget.is_pure else "centred",
            averages=averages,
            refines=True,
            size=self.text_size,
        )


def _nothing() -> None:
    """No other way in which a question was measured before."""


def open_project(
    path: str | Path,
    *,
    ledger: Ledger | None = None,
    noise: NoiseSource | None = None,
    text_size: TextSize = USUAL,
) -> Project:
    """Open the project that a declaration file describes; relative paths are seen from the file's folder.

    path       the declaration file, or a folder with an ``understudy.yml`` in it
    ledger     where the budget is kept; without one it is the durable ledger that belongs to the table
    noise      where random bits come from: the operating system, unless a test or a simulation passes another
               source, with which nothing is private
    text_size  how many characters and words a question may have: 10,000 and 2,000 unless more are allowed here

    Returns the `Project`, which closes what it has opened. Nothing is charged, and no row is told to anybody.
    Raises a `DeclarationError` where the file is wrong or not there, a `SourceError` where the table cannot be
    opened or lacks a declared column, and a `LedgerError` where the ledger cannot be opened or trusted.
    """
    path = located(path)
    declaration = read(path)
    copied = declaration.coded_copy
    source = open_source(declaration.source, base=path.parent, columns=declaration.columns, late=copied)
    with ExitStack() as opened:
        opened.callback(source.close)
        books = open_ledger(declaration, base=path.parent, file=path) if ledger is None else ledger
        if ledger is None:
            opened.callback(books.close)
        copy = CodedCopy(copy_place(path)) if copied else None
        reading = read_record(record_place(path), declaration, source)
        project = Project.over(
            source, declaration, ledger=books, noise=noise, copy=copy, reading=reading, text_size=text_size
        )
        opened.pop_all()  # from here on the project closes them
    return replace(project, owns_ledger=ledger is None)
