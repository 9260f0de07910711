"""A project: a declared table that questions can be put to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

from understudy.answer.answer import Answer, noise_together
from understudy.answer.around_question import AroundQuestion
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.forecast import ColumnForecast, forecast
from understudy.answer.limits import MAX_CELLS, check_cells
from understudy.answer.reader import Asked, QuestionReader, ReadQuestion
from understudy.answer.select_question import SelectQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.curator.calibration import PreparedMeasurement, check_counts, noise_name
from understudy.curator.curator import Curator, MeasurementOrder
from understudy.curator.pricing import SPARE, QuestionPrice, QuestionPricing, has_delta_for
from understudy.declaration.declaration import Declaration
from understudy.declaration.file import copy_place, located, read, record_place
from understudy.declaration.outline import MARK
from understudy.domain.domain import Domain, attribute_table
from understudy.errors import InsufficientBudgetError, ParameterError, RequestConflictError
from understudy.ledger.books import Due
from understudy.ledger.declared import open_ledger
from understudy.ledger.interface import SEPARATOR, Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.view import spent_of
from understudy.pages import notebook
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.privacy.noise_name import Noise
from understudy.query.column import Column
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.text_size import USUAL, TextSize
from understudy.rational import Number, exact, probability
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

MERGES = 8
"""How often the error of cells is made smaller until the groups that are made of them keep the error asked for."""


class PriceTerms(TypedDict, total=False):
    """What a question may cost, or how far off its answer may be; the keywords of `Project.prepare`."""

    epsilon: Number | None
    rho: Number | None
    error: Number | None
    beta: Number
    noise: Noise
    max_cells: int


@dataclass(frozen=True, repr=False)
class Quote:
    """What a question would cost, and how far off its answer could be.

    cost     what the ledger would charge, in its currency, if the question shared nothing with earlier ones
    error    the largest half-width, in people, of the counts that would be told: of a group of several cells its
             own, and of a sum or an average that of the sums that would be measured for it
    beta     the probability with which some part of the answer is outside its bounds: 0 with bounded noise
    share    the part of the whole budget that `cost` is, between 0 and 1 (above 1 where it cannot be paid)
    epsilon  the ε that the question alone amounts to, beside the δ of the budget if there is one
    noise    which noise would be added: `gaussian`, `laplace` or `bounded`; `exponential` where quantiles of
             measures alone are drawn, and the error is in ranks
    due      what the ledger would charge the analyst at this moment, jointly with all that was charged before;
             whether that could be paid, and which limit binds. `Project.quote` asks the ledger for it; it is None
             in the quote of a prepared question, whose method `due` asks
    """

    cost: Cost
    error: float
    beta: float
    share: float
    epsilon: float
    noise: str
    due: Due | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        price = f"{self.cost.currency} {self.cost.amount:.4g}"
        return f"Quote({price}, {notebook.half_width(self.error)} people, beta {self.beta:g})"

    def _repr_html_(self) -> str:
        known = {
            "price": f"{self.cost.currency} {self.cost.amount:.4g}",
            "part of the whole budget": f"{self.share:.2%}",
            **({} if self.due is None else {"charged now": _charged_now(self.due)}),
            "error of each count": f"{notebook.half_width(self.error)} people",
            "probability": notebook.certainty(self.beta),
        }
        note = "Nothing was charged and no data was read."
        return notebook.panel("What the question would cost", notebook.facts(known), note=note)


@dataclass(frozen=True, eq=False, repr=False)
class PreparedQuestion(Generic[Given]):
    """A question that was read, checked and priced without data; `quote` says at what cost, `run` asks it.

    Every mistake is found before there is one of these, except that the ledger may refuse to pay.
    """

    question: ReadQuestion[Given]
    quote: Quote
    _curator: Curator = field(repr=False)
    _measurement: PreparedMeasurement = field(repr=False)
    _asked: QuestionPrice = field(repr=False)
    _terms: tuple[QuestionPrice, ...] = field(repr=False)
    """The price as it is kept by the cells of groups, and as it was asked for; equal where groups are cells."""
    _pricing: QuestionPricing = field(repr=False)
    _former: Callable[[], PreparedQuestion[Any] | None] = field(repr=False)

    def __repr__(self) -> str:
        return f"PreparedQuestion({self.quote!r})"

    def _repr_html_(self) -> str:
        return self.quote._repr_html_()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the answer as a table: names, whether they are public or released, and types."""
        return self.question.columns

    @property
    def event(self) -> Event:
        """The noise that would be charged, wherever it is added."""
        return self._measurement.event

    @property
    def is_within_delta(self) -> bool:
        """Whether enough is left of the budget's δ for events for this noise; always, but for bounded noise."""
        times = SPARE if self._asked.noise == "auto" else 1
        return has_delta_for(self._curator.ledger, self._measurement.event, times=times)

    def run(self, *, request: str | None = None, analyst: str = "") -> Given:
        """Charge for the question, look, and answer.

        All questions together cost what their quotes add up to, or less: those about other people than were asked
        about before may cost nothing. One alone may cost up to twice its quote, where earlier ones cost less.

        The same `request` gets the same answer again and pays once; `analyst` is whose share of the budget pays.
        Raises an `InsufficientBudgetError` where the ledger cannot pay, and a `RequestConflictError` where the
        request was another question's; then nothing is charged and nothing is looked at.
        """
        _check_request(request)
        try:
            answers, measured = self._performed(request, analyst)
        except InsufficientBudgetError as error:
            raise _told_in_epsilon(error, self._asked, self._curator.ledger.budget) from None
        except RequestConflictError as conflict:
            before = self._former() if request else None
            if before is None:
                raise
            try:
                return before.run(request=request, analyst=analyst)
            except (
                RequestConflictError
            ):  # it was yet another question: what is refused is the one that was asked
                raise conflict from None
        return self._answered(answers, measured)

    def _answered(self, answers: list[Answer], measured: PreparedMeasurement) -> Given:
        """The question's own answer, made of what was measured for it."""
        cells = tuple(
            CellCounts(answer, answer.noisy, answer.error, noise=noise)
            for answer, noise in zip(answers, measured.noises, strict=True)
        )
        most = self._curator.rows_at_most
        least = most if self._curator.relation.rows_are_public and most is not None else 0
        rows = RowBounds(least, inf if most is None else most)
        beta = _failure(self._asked, measured)  # a request may stand for other noise than the quote's
        return self.question.answer(SourceCounts(cells, rows, beta, nothing=type(self.quote.cost)(0)))

    def _performed(self, request: str | None, analyst: str) -> tuple[list[Answer], PreparedMeasurement]:
        """The measurement; where the request stands for another one, perhaps that which version 0.1 would make."""
        words, measured = self.question.words, self._measurement
        try:
            return self._curator.perform(measured, request=request, analyst=analyst, words=words), measured
        except RequestConflictError:  # then nothing was charged, and nothing was looked at
            if not request:
                raise
            rounded = isinstance(self.question, SelectQuestion | AroundQuestion)
            tried = (self._pricing.repeated(measured, one, request, rounded=rounded) for one in self._terms)
            before = next((found for found in tried if found is not measured), None)
            if before is None:
                raise
        return self._curator.perform(before, request=request, analyst=analyst, words=words), before

    def order(self, request: str | None, analyst: str) -> MeasurementOrder:
        """The measurement of this question as the Curator takes many of them at once."""
        _check_request(request)
        return MeasurementOrder(self._measurement, request, analyst, self.question.words)

    def outcome(self, told: list[Answer] | Exception, request: str | None, analyst: str) -> Given | Exception:
        """The answer that an order of this question came to, or what `run` raises in its place."""
        try:
            if isinstance(told, RequestConflictError):  # perhaps the request was charged by version 0.1
                return self.run(request=request, analyst=analyst)
            if isinstance(told, InsufficientBudgetError):
                return _told_in_epsilon(told, self._asked, self._curator.ledger.budget)
            return told if isinstance(told, Exception) else self._answered(told, self._measurement)
        except Exception as error:
            return error

    def due(self, *, request: str | None = None, analyst: str = "") -> Due:
        """What `run` would be charged at this moment, with the same `request` and `analyst`. Writes nothing.

        Joint accounting is part of it, so that it may be less than the quote, or nothing; where earlier questions
        cost less it may be up to twice the quote. It is exactly what is charged, unless something else is charged
        first, or a day ends on which a limit goes by days.
        """
        return self._curator.due(self._measurement, request=request, analyst=analyst)

    def forecast(self) -> tuple[ColumnForecast, ...]:
        """How far the answer will be off in its own unit, from public numbers: nothing for plain counts.

        Where the number of rows is private it is worked out for the declared least one, or the declared most.
        Reads no data, and costs nothing.
        """
        curator, declared = self._curator, self._curator.declaration
        public = curator.relation.rows_are_public
        rows = curator.rows if public else declared.rows_at_least or declared.rows_at_most or 0
        nothing = type(self.quote.cost)(0)
        measured = self._measurement
        return forecast(
            self.question,
            measured.errors,
            rows=float(rows),
            beta=self.quote.beta,
            nothing=nothing,
            noises=measured.noises,
        )


@dataclass(frozen=True, slots=True)
class QuestionPurchase:
    """A prepared question, the request under which it is bought, and the analyst whose share pays."""

    question: PreparedQuestion[Answer | SqlAnswer]
    request: str | None = None
    analyst: str = ""


@dataclass(frozen=True, repr=False)
class Project:
    """A declared table that questions can be put to: its declaration, and the Curator that guards it.

    `open_project` (`us.open`) makes one of a declaration file, `declare` and `Project.frame` of a frame.
    `inferred` names the attributes whose cells `declare` read off the data: they tell what the table holds.
    `text_size` is how long a question may be; longer ones are refused before any parser sees them. `owns_ledger`
    says that the project opened its ledger itself, and closes it.

    A project is closed by `close`, or at the end of a `with` block.
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
        """A project over an open source, which it closes; without a ledger, its budget lasts as long as it lives.

        `copy` is where the codes of the rows may be kept. `noise` is for tests and simulations. `reading` is the
        custodian's record of what was read from the table.
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
        """A project over a pandas, polars or Arrow frame; without a ledger, its budget is kept in memory."""
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

        A count or a share, a marginal or a linear query gets an `Answer`; a SELECT statement a `SqlAnswer`.

        The price is given by `epsilon`, by `rho`, or by the `error`, in people, that every count must keep;
        without any it is a hundredth of the whole budget. It is for the whole question. Under a budget with a
        δ an `epsilon` is a part of that budget: the question alone is (epsilon, δ)-DP, and costs the ρ that
        this is (`curator.pricing`). `noise` is `auto`, the one with the smaller error at that price, or
        `laplace` (then an `epsilon` is one of pure privacy), `gaussian`, or `bounded`, with which every count is
        within its error for sure; that needs a budget with `filter: renyi` and a `key_delta`. The answer is within
        its bounds with probability 1 - `beta` (0.05). The same `request` gets the same answer again and pays once;
        `analyst` is whose share of the budget pays. A question with more than `max_cells` cells (a million)
        is refused before anything is charged.

        Raises a `QueryError` where the question is not understood or has too many cells, a `ParameterError` where
        the price makes no sense, an `UnreadableError` where the custodian's reading found an attribute of it to be
        unreadable, and an `InsufficientBudgetError` where the ledger cannot pay: nothing is charged then.
        """
        return self.prepare(question, **price).run(request=request, analyst=analyst)

    def quote(
        self, question: Asked, *, request: str | None = None, analyst: str = "", **price: Unpack[PriceTerms]
    ) -> Quote:
        """The cost and the error, in people, of a question. Asks nothing, costs nothing, reads no data.

        The price is given as to `ask`, which would raise what this raises, except that the ledger's refusal to pay
        is told by `due.payable`. `due.cost` is what it would charge now, for this `analyst` and `request`.
        """
        prepared = self.prepare(question, **price)
        return replace(prepared.quote, due=prepared.due(request=request, analyst=analyst))

    def forecast(self, question: Asked, **price: Unpack[PriceTerms]) -> tuple[ColumnForecast, ...]:
        """How far the answer to a question will be off, in the unit of its columns; see `answer.forecast`.

        A share, a rate, and each released column of a SELECT statement have one; plain counts have the error of
        their `quote`. The price is given as to `ask`. Asks nothing, costs nothing, reads no data.
        """
        return self.prepare(question, **price).forecast()

    def columns(self, question: Asked) -> tuple[Column, ...]:
        """The columns of a question's answer as a table: names, whether they are public or released, and types.

        They are known before anything is paid. Raises a `QueryError` where the question is not understood.
        """
        return self._reader.read(question).columns

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

    def run_all(
        self, purchases: Sequence[QuestionPurchase]
    ) -> Iterator[list[tuple[int, Answer | SqlAnswer | Exception]]]:
        """`run` for several prepared questions of this project, whose debits and answers share transactions.

        Each is charged, looked at and answered on its own, as if they were asked one after the other. Yields
        portions, each as soon as its answers are kept: for some of the purchases, the place among them and the
        answer, or what `run` would raise. Raises a `LedgerError` or a `SourceError` where the ledger or the table
        fails all that are left; what was charged by then is found under its request.
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
        rounded = isinstance(question, SelectQuestion | AroundQuestion)
        former = partial(self._as_it_was, question, price) if rounded else _nothing
        kept, measured = self._kept(question, asked, rounded=rounded)
        budget = self.ledger.budget
        cost, noise = budget.price(measured.event), _noise_of(measured)
        quote = Quote(
            cost,
            _error_of(question, measured),
            _failure(asked, measured),
            budget.share(cost),
            budget.spent_epsilon(cost) if noise == "bounded" else budget.epsilon_of(cost),
            noise,
        )
        each = tuple(dict.fromkeys((kept, asked)))
        return PreparedQuestion(question, quote, self.curator, measured, asked, each, self._pricing, former)

    def _kept(
        self, question: ReadQuestion[Any], asked: QuestionPrice, *, rounded: bool
    ) -> tuple[QuestionPrice, PreparedMeasurement]:
        """The measurement of a question, and the price of which its cells make that of its groups.

        Where an error is asked for and groups are made of several cells, these keep a smaller one.
        """
        kept, measured = asked, self._measured(question, asked, rounded=rounded)
        if asked.error is None:
            return kept, measured
        for _ in range(MERGES):
            told = _error_of(question, measured) / float(exact(asked.error))
            if told <= 1:
                break
            smaller = exact(kept.error or asked.error) * Fraction(1000, ceil(1000 * told) + 1)
            kept = replace(kept, error=smaller)
            measured = self._measured(question, kept, rounded=rounded)
        return kept, measured

    def _measured(
        self, question: ReadQuestion[Any], asked: QuestionPrice, *, rounded: bool
    ) -> PreparedMeasurement:
        """The marginals of a question with the noise that is best at a price, or for an error of every cell."""
        measured = self._pricing.prepare(question.marginals, asked, rounded=rounded)
        if not _has_bounds(question):
            return measured
        return self._pricing.certain(question.marginals, asked, measured, rounded=rounded) or measured

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


def _error_of(question: ReadQuestion[Any], measured: PreparedMeasurement) -> float:
    """How far a number of people in the answer can be off: more than a cell, where groups are made of several."""
    if isinstance(question, SelectQuestion):
        return question.error(measured.errors, measured.noises)
    return max(measured.errors, default=0.0)


def _nothing() -> None:
    """No other way in which a question was measured before."""


def _has_bounds(question: ReadQuestion[Any]) -> bool:
    """Whether an answer is told with bounds; if not, noise is the better the smaller it usually is."""
    return not isinstance(question, AroundQuestion)


def _failure(asked: QuestionPrice, measured: PreparedMeasurement) -> float:
    """The probability with which a measurement is outside its errors: what was asked for, 0 with bounded noise."""
    return float(probability(asked.beta)) if measured.beta else 0.0


def _noise_of(measured: PreparedMeasurement) -> str:
    """What is added to the counts; or that nothing is, where ends of quantiles alone are drawn."""
    return noise_together(noise_name(mechanism) for mechanism, _ in measured.mechanisms) or "gaussian"


def _check_request(request: str | None) -> None:
    if request is not None and SEPARATOR in request:
        raise ParameterError(
            f"a request's name must not hold {SEPARATOR!r}, which numbers the purchases of a session"
        )


def _charged_now(due: Due) -> str:
    """The charge of a moment in words, with what stands in its way."""
    price = f"{due.cost.currency} {due.cost.amount:.4g}"
    if due.payable:
        return price
    return f"{price}, and {due.available.amount:.4g} remains" + (f" for {due.limit}" if due.limit else "")


def _told_in_epsilon(
    error: InsufficientBudgetError, asked: QuestionPrice, budget: Budget
) -> InsufficientBudgetError:
    """The refusal; where the price was given in epsilon and is paid in rho, it says which epsilon would fit."""
    if asked.epsilon is None or error.currency != "rho":
        return error
    epsilon = float(exact(asked.epsilon, "epsilon"))
    pure = asked.noise == "laplace"  # then rho grows with the square of epsilon
    fits = (
        epsilon * sqrt(error.remaining / error.requested)
        if pure
        else zcdp_epsilon(error.remaining, float(budget.conversion_delta))
    )
    shown = Decimal(fits).normalize(Context(prec=3, rounding=ROUND_DOWN))
    kind = " of pure privacy" if pure else ""
    price = f"That is what epsilon {epsilon:g}{kind} costs under a budget of {budget}"
    remedy = f"{price}; at most epsilon {shown:g} fits: ask with that, or for a wider error"
    return InsufficientBudgetError(
        requested=error.requested,
        remaining=error.remaining,
        currency=error.currency,
        limit=error.limit,
        remedy=remedy if fits else price,
    )


def open_project(
    path: str | Path,
    *,
    ledger: Ledger | None = None,
    noise: NoiseSource | None = None,
    text_size: TextSize = USUAL,
) -> Project:
    """Open the project that a declaration file describes; relative paths are seen from the file's folder.

    Its ledger is the durable one that belongs to the table, unless another is passed. `text_size` allows longer
    questions than the usual 10,000 characters and 2,000 words.
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
