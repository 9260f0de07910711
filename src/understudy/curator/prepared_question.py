"""A question that was read and priced: it can be quoted, forecast, bought alone, or bought with others.

Everything up to here depends on public values alone. `run` is the step behind which money is spent: it has the
Curator perform the question's measurement, and makes the question's own answer of the counts that come back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Context, Decimal
from math import inf, sqrt
from typing import Any, Generic, TypeVar

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.forecast import ColumnForecast, forecast
from understudy.answer.reader import CountQuestion, ReadQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.answer.statement_question import StatementQuestion
from understudy.curator.batch import MeasurementOrder
from understudy.curator.curator import Curator
from understudy.curator.prepared_measurement import PreparedMeasurement
from understudy.curator.pricing import SPARE, QuestionPricing, has_delta_for
from understudy.curator.question_price import QuestionPrice
from understudy.curator.quote import Quote, failure
from understudy.errors import InsufficientBudgetError, ParameterError, RequestConflictError, UnderstudyError
from understudy.ledger.books import Due
from understudy.ledger.interface import SEPARATOR
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.event import Event
from understudy.query.column import Column
from understudy.rational import exact

Given = TypeVar("Given")


@dataclass(frozen=True, eq=False, repr=False)
class PreparedQuestion(Generic[Given]):
    """A question that was read, checked and priced without data; `quote` says at what cost, `run` asks it.

    `Project.prepare` makes one. `question` is what was read. Every mistake is found before there is one of these,
    except that the ledger may refuse to pay.
    """

    question: ReadQuestion[Given]
    quote: Quote
    _curator: Curator = field(repr=False)
    _measurement: PreparedMeasurement = field(repr=False)
    _asked: QuestionPrice = field(repr=False)
    _terms: tuple[QuestionPrice, ...] = field(repr=False)
    """The prices, by noise, at which cells make the groups keep what was asked for, and the one asked for."""
    _pricing: QuestionPricing = field(repr=False)
    _former: Callable[[], PreparedQuestion[Any] | None] = field(repr=False)
    """The same question as earlier versions measured it, where that is another measurement."""

    def __repr__(self) -> str:
        return f"PreparedQuestion({self.quote!r})"

    def _repr_html_(self) -> str:
        return self.quote._repr_html_()  # pyright: ignore[reportPrivateUsage] (a notebook's own name)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the answer as a table: names, whether they are public or released, and types."""
        return self.question.columns

    @property
    def event(self) -> Event:
        """What the ledger would be charged for: the noise of the whole measurement, whatever cells it is about."""
        return self._measurement.event

    @property
    def is_within_delta(self) -> bool:
        """Whether enough is left of the budget's `key_delta` to pay for this noise.

        That is always so unless the noise is bounded, which is charged a part of δ beside its ρ.
        """
        times = SPARE if self._asked.noise == "auto" else 1
        return has_delta_for(self._curator.ledger, self._measurement.event, times=times)

    def run(self, *, request: str | None = None, analyst: str = "") -> Given:
        """Charge for the question, look, and answer.

        All questions together cost what their quotes add up to, or less: those about other people than were asked
        about before may cost nothing. One alone may cost up to twice its quote, where earlier ones cost less.

        The same `request` gets the same answer again and pays once; `analyst` is whose share of the budget pays.
        Raises an `InsufficientBudgetError` where the ledger cannot pay, a `RequestConflictError` where the request
        was another question's, and a `ParameterError` for a request with a `#` in it, which numbers the purchases
        of sessions; then nothing is charged and nothing is looked at.
        """
        _check_request(request)
        try:
            answers, measured = self._performed(request, analyst)
        except InsufficientBudgetError as error:
            raise self.refused(error) or error from None
        except RequestConflictError as conflict:
            before = self._former() if request else None
            if before is None:
                raise
            try:
                return before.run(request=request, analyst=analyst)
            except RequestConflictError:  # yet another question: what is refused is the one that was asked
                raise conflict from None
        return self._answered(answers, measured)

    def _answered(self, answers: list[Answer], measured: PreparedMeasurement) -> Given:
        """The question's own answer, made of what was measured for it."""
        # Counts are told as they are; what is made of several of them is bounded by the law of their noise.
        is_count = isinstance(self.question, CountQuestion)
        noises = (None,) if is_count else measured.noises
        cells = tuple(
            CellCounts(answer, answer.noisy, answer.error, noise=noise)
            for answer, noise in zip(answers, noises, strict=True)
        )
        most = self._curator.rows_at_most
        least = most if self._curator.relation.rows_are_public and most is not None else 0
        rows = RowBounds(least, inf if most is None else most)
        beta = failure(self._asked, measured)  # a request may stand for other noise than the quote's
        return self.question.answer(
            SourceCounts(cells, rows, beta, type(self.quote.cost)(0), is_measured=True)
        )

    def _performed(self, request: str | None, analyst: str) -> tuple[list[Answer], PreparedMeasurement]:
        """The measurement; where the request stands for another one, perhaps that which version 0.1 would make."""
        words, measured = self.question.words, self._measurement
        try:
            return self._curator.perform(measured, request=request, analyst=analyst, words=words), measured
        except RequestConflictError:  # then nothing was charged, and nothing was looked at
            if not request:
                raise
            rounded = isinstance(self.question, StatementQuestion)
            tried = (self._pricing.repeated(measured, one, request, rounded=rounded) for one in self._terms)
            before = next((found for found in tried if found is not measured), None)
            if before is None:
                raise
        return self._curator.perform(before, request=request, analyst=analyst, words=words), before

    def order(self, request: str | None, analyst: str) -> MeasurementOrder:
        """The measurement of this question, for `Curator.perform_all`, which takes many of them at once.

        `request` and `analyst` are those of `run`. Nothing is charged yet. Raises a `ParameterError` for a request
        that `run` would refuse.
        """
        _check_request(request)
        return MeasurementOrder(self._measurement, request, analyst, self.question.words)

    def outcome(self, told: list[Answer] | Exception, request: str | None, analyst: str) -> Given | Exception:
        """The answer that an `order` of this question came to, or what `run` would raise, which is returned here.

        `told` is what `Curator.perform_all` said of the order, which had this `request` and `analyst`.
        """
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
        first, or a day ends on which a limit goes by days. Returns a `Due`: the cost, what could be spent, and
        whether that pays for it.
        """
        return self._curator.due(self._measurement, request=request, analyst=analyst)

    def refused(self, refusal: UnderstudyError | None) -> UnderstudyError | None:
        """A `refusal` of the ledger to pay for this question, as `run` would raise it; None for None."""
        if isinstance(refusal, InsufficientBudgetError):
            return _told_in_epsilon(refusal, self._asked, self._curator.ledger.budget)
        return refusal

    def forecast(self) -> tuple[ColumnForecast, ...]:
        """How far the answer will be off in its own unit, from public numbers: an empty tuple for plain counts.

        Where the number of rows is private it is worked out for the declared least one, or the declared most.
        Reads no data, and costs nothing.
        """
        nothing = type(self.quote.cost)(0)
        measured = self._measurement
        return forecast(
            self.question,
            measured.errors,
            rows=float(self._curator.forecast_rows),
            beta=self.quote.beta,
            nothing=nothing,
            noises=measured.noises,
        )


@dataclass(frozen=True, slots=True)
class QuestionPurchase:
    """A prepared `question`, the `request` under which it is bought, and the `analyst` whose share pays."""

    question: PreparedQuestion[Answer | SqlAnswer]
    request: str | None = None
    analyst: str = ""


def _check_request(request: str | None) -> None:
    if request is None:
        return
    if not isinstance(request, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ParameterError(f"a request's name is text, not {request!r}")
    if SEPARATOR in request:
        raise ParameterError(
            f"a request's name must not hold {SEPARATOR!r}, which numbers the purchases of a session"
        )


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
