"""A project: a declared table that questions can be put to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from math import floor, inf, sqrt
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar, Unpack, overload

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.reader import Asked, QuestionReader, ReadQuestion, SelectQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.curator.curator import Curator, PreparedMeasurement
from understudy.declaration.declaration import Declaration
from understudy.declaration.file import located, read, record_place
from understudy.domain.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError
from understudy.ledger.declared import open_ledger
from understudy.ledger.interface import SEPARATOR, Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.cost import UNITS, Cost
from understudy.privacy.price import Price
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact, probability
from understudy.table.read_record import ReadRecord, read_record
from understudy.table.source import Source, in_memory, open_source
from understudy.table.truth import Truth

DEFAULT_SHARE = Fraction(1, 100)
"""Part of the whole budget that a question costs when nothing is said about its price or error."""

Given = TypeVar("Given")


class PriceTerms(TypedDict, total=False):
    """What a question may cost, or how far off its answer may be; the keywords of `Project.prepare`."""

    epsilon: Number | None
    rho: Number | None
    error: Number | None
    beta: Number


@dataclass(frozen=True)
class Quote:
    """What a question would cost, and how far off its answer could be.

    cost   what the ledger would charge, in its currency, if the question shared nothing with earlier ones
    error  the largest half-width, in people, of the counts that would be measured for it
    beta   the probability with which some part of the answer is outside its bounds
    """

    cost: Cost
    error: float
    beta: float


@dataclass(frozen=True, eq=False)
class PreparedQuestion(Generic[Given]):
    """A question that was read, checked and priced without data; `quote` says at what cost, `run` asks it.

    Every mistake is found before there is one of these, except that the ledger may refuse to pay.
    """

    question: ReadQuestion[Given]
    quote: Quote
    _curator: Curator = field(repr=False)
    _measurement: PreparedMeasurement = field(repr=False)
    _epsilon: Fraction | None = field(repr=False)

    def run(self, *, request: str | None = None, analyst: str = "") -> Given:
        """Charge what `quote` says, or less, look, and answer.

        The same `request` gets the same answer again and pays once; `analyst` is whose share of the budget pays.
        Raises an `InsufficientBudgetError` where the ledger cannot pay, and a `RequestConflictError` where the
        request was another question's; then nothing is charged and nothing is looked at.
        """
        if request is not None and SEPARATOR in request:
            raise ParameterError(
                f"a request's name must not hold {SEPARATOR!r}, which numbers the purchases of a session"
            )
        with _told_in(self._epsilon):
            answers = self._curator.perform(self._measurement, request=request, analyst=analyst)
        cells = tuple(CellCounts(answer, answer.noisy, answer.error) for answer in answers)
        public = self._curator.relation.rows_are_public
        most = self._curator.rows_at_most
        rows = RowBounds(self._curator.rows if public else 0, inf if most is None else most)
        return self.question.answer(
            SourceCounts(cells, rows, self.quote.beta, nothing=type(self.quote.cost)(0))
        )


@dataclass(frozen=True)
class Project:
    """A declared table that questions can be put to: its declaration, and the Curator that guards it.

    `open_project` (`us.open`) makes one of a declaration file, `Project.frame` of a frame.
    """

    declaration: Declaration
    curator: Curator

    @classmethod
    def over(
        cls,
        source: Source,
        declaration: Declaration,
        *,
        ledger: Ledger | None = None,
        noise: Any = None,
        reading: ReadRecord | None = None,
    ) -> Project:
        """A project over an open source; without a ledger, its budget lasts as long as the project lives.

        `noise` is for tests and simulations. `reading` is the custodian's record of what was read from the table.
        """
        truth = Truth(source, declaration.domain, declaration.unit)
        if ledger is None:
            ledger = MemoryLedger(declaration.budget, opening=declaration.opening, limits=declaration.limits)
        return cls(declaration, Curator(truth, ledger, declaration, noise=noise, reading=reading))

    @classmethod
    def frame(
        cls, frame: Any, declaration: Declaration, *, ledger: Ledger | None = None, noise: Any = None
    ) -> Project:
        """A project over a pandas, polars or Arrow frame; without a ledger, its budget is kept in memory."""
        return cls.over(in_memory(frame), declaration, ledger=ledger, noise=noise)

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

        A count or a share, a marginal or a linear query gets an `Answer`; a SELECT statement a `SqlAnswer`.

        The price is given by `epsilon` (Laplace noise), `rho` (Gaussian noise), or by the `error`, in people, that
        every count must keep; without any it is a hundredth of the whole budget. It is for the whole question. The
        answer is within its bounds with probability 1 - `beta` (0.05). The same `request` gets the same answer
        again and pays once; `analyst` is whose share of the budget pays.

        Raises a `QueryError` where the question is not understood, a `ParameterError` where the price makes no
        sense, an `UnreadableError` where the custodian's reading found an attribute of it to be unreadable, and an
        `InsufficientBudgetError` where the ledger cannot pay: nothing is charged then.
        """
        return self.prepare(question, **price).run(request=request, analyst=analyst)

    def quote(self, question: Asked, **price: Unpack[PriceTerms]) -> Quote:
        """The cost and the error, in people, of a question. Asks nothing, costs nothing, reads no data.

        The price is given as to `ask`, which would raise what this raises.
        """
        return self.prepare(question, **price).quote

    def sql(
        self, text: str, *, request: str | None = None, analyst: str = "", **price: Unpack[PriceTerms]
    ) -> SqlAnswer:
        """Answer a SELECT statement with aggregates over the declared table.

        Price, `request` and `analyst` are those of `ask`; the price is for the whole statement, and the `error`
        is that of every count that it measures. Any other text is refused with a `QueryError`.
        """
        return self._priced(self._reader.select(text), **price).run(request=request, analyst=analyst)

    def prepare(self, question: Asked, **price: Unpack[PriceTerms]) -> PreparedQuestion[Answer | SqlAnswer]:
        """Read, check and price a question, to be asked later: nothing is charged and no data is read.

        The price is given as to `ask`. What comes back has the `quote`, and `run(request=…, analyst=…)` asks it.
        """
        return self._priced(self._reader.read(question), **price)

    def _priced(
        self,
        question: ReadQuestion[Given],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        error: Number | None = None,
        beta: Number = 0.05,
    ) -> PreparedQuestion[Given]:
        """The question with equal parts of its price, and of β, for each marginal that is not public."""
        given = {"epsilon": epsilon, "rho": rho, "error": error}
        named = [key for key, value in given.items() if value is not None]
        if len(named) > 1:
            raise ParameterError(f"give one of epsilon, rho and error, not {' and '.join(named)}")
        failure = probability(beta)
        self.curator.check_readable(question.marginals)
        paid = [marginal for marginal in question.marginals if not self.curator.is_public(marginal)]
        parts = max(len(paid), 1)
        if error is not None:
            # A question that is public as a whole costs nothing at any price.
            prices = [
                self.curator.price_of(marginal, error=error, beta=failure / parts)
                for marginal in paid or question.marginals[:1]
            ]
            each = max(prices, key=lambda one: one.amount, default=Price("epsilon", Fraction(1)))
        else:
            usual = self.ledger.budget.whole * DEFAULT_SHARE
            whole = Price.of(epsilon=epsilon, rho=rho) if named else usual
            each = self._part(whole, parts, rounded=isinstance(question, SelectQuestion))
        measured = self.curator.prepare(question.marginals, each, beta=failure / parts)
        quote = Quote(
            self.ledger.budget.price(measured.event), max(measured.errors, default=0.0), float(failure)
        )
        told_in = None if epsilon is None else exact(epsilon, "epsilon")
        return PreparedQuestion(question, quote, self.curator, measured, told_in)

    def _part(self, price: Price, parts: int, *, rounded: bool) -> Price:
        """One of several equal parts; `rounded`, so much smaller that rounding all of them up stays within."""
        slack = 4 * self.declaration.relation.max_rows**2
        units = floor(price.amount * UNITS / parts) - slack
        fits = rounded and parts > 1 and units > 1000 * slack
        return Price(price.currency, Fraction(units, UNITS)) if fits else price / parts

    @cached_property
    def _reader(self) -> QuestionReader:
        private = not self.declaration.relation.rows_are_public
        return QuestionReader.of(self.declaration, counts_everyone=private)


@contextmanager
def _told_in(epsilon: Fraction | None) -> Iterator[None]:
    """A refusal of a price that was given in epsilon says in epsilon what would fit."""
    try:
        yield
    except InsufficientBudgetError as error:
        if epsilon is None or error.currency == "epsilon":
            raise
        asked = float(epsilon)
        fits = asked * sqrt(error.remaining / error.requested)  # rho grows with the square of epsilon
        shown = Decimal(fits).normalize(Context(prec=3, rounding=ROUND_DOWN))
        price = f"That is what epsilon {asked:g} costs under a budget with a delta"
        remedy = f"{price}; at most epsilon {shown:g} fits: ask with that, or for a wider error"
        raise InsufficientBudgetError(
            requested=error.requested,
            remaining=error.remaining,
            currency=error.currency,
            limit=error.limit,
            remedy=remedy if fits else price,
        ) from None


def open_project(path: str | Path, *, ledger: Ledger | None = None, noise: Any = None) -> Project:
    """Open the project that a declaration file describes; relative paths are seen from the file's folder.

    Its ledger is the durable one that belongs to the table, unless another is passed.
    """
    path = located(path)
    declaration = read(path)
    source = open_source(declaration.source, base=path.parent, columns=declaration.columns)
    books = open_ledger(declaration, base=path.parent) if ledger is None else ledger
    reading = read_record(record_place(path), declaration, source)
    return Project.over(source, declaration, ledger=books, noise=noise, reading=reading)
