"""A project: a declared table that questions can be put to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration
from understudy.declaration.file import located, read
from understudy.domain.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError
from understudy.ledger.declared import open_ledger
from understudy.ledger.interface import SEPARATOR, Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.cost import Cost
from understudy.privacy.event import Together
from understudy.privacy.price import Price
from understudy.query.expression import Question, parse
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact, probability
from understudy.sql import CompiledSql, SqlCompiler
from understudy.sql_answer import SqlAnswer, quote, run, share
from understudy.table.source import Source, in_memory, open_source
from understudy.table.truth import Truth

_SQL = re.compile(
    r"[\s(]*(select|with|from|values|table|insert|update|delete|merge|create|alter|drop|truncate|copy|explain)\b",
    re.I,
)

DEFAULT_SHARE = Fraction(1, 100)
"""Part of the whole budget that a question costs when nothing is said about its price or error."""


@dataclass(frozen=True)
class Quote:
    """What a question would cost, and how far off its answer could be."""

    cost: Cost
    error: float
    beta: float


@dataclass(frozen=True)
class Project:
    """A declaration and the Curator that guards its table."""

    declaration: Declaration
    curator: Curator

    @classmethod
    def over(
        cls, source: Source, declaration: Declaration, *, ledger: Ledger | None = None, noise: Any = None
    ) -> Project:
        """A project over an open source; without a ledger, its budget lasts as long as the project lives.

        `noise` is for tests and simulations.
        """
        truth = Truth(source, declaration.domain, declaration.unit)
        if ledger is None:
            ledger = MemoryLedger(declaration.budget, opening=declaration.opening, limits=declaration.limits)
        return cls(declaration, Curator(truth, ledger, declaration, noise=noise))

    @classmethod
    def frame(
        cls, frame: Any, declaration: Declaration, *, ledger: Ledger | None = None, noise: Any = None
    ) -> Project:
        """A project over a pandas, polars or Arrow frame; without a ledger, its budget is kept in memory."""
        return cls.over(in_memory(frame), declaration, ledger=ledger, noise=noise)

    @property
    def domain(self) -> Domain:
        return self.declaration.domain

    @property
    def ledger(self) -> Ledger:
        return self.curator.ledger

    def ask(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        error: Number | None = None,
        beta: Number = 0.05,
        request: str | None = None,
        analyst: str = "",
    ) -> Any:
        """Answer a question such as ``count age < 30 and sex = F by district``, or a SELECT statement.

        The first gets an `Answer`, the second what `sql` gives.

        The price is given by `epsilon` (Laplace noise), `rho` (Gaussian noise), or by the `error`, in people,
        that the answer must keep with probability 1 - `beta`; else it is a hundredth of the whole budget.
        The same `request` gets the same answer again and pays once; `analyst` is whose share pays.
        """
        if is_sql(question):
            return self.sql(
                question, epsilon=epsilon, rho=rho, error=error, beta=beta, request=request, analyst=analyst
            )
        _check_request(request)
        asked = parse(question, self.domain)
        price = self._price(asked, epsilon, rho, error, beta)
        parts = self._parts(asked)
        with _told_in(epsilon):
            answers = self.curator.measure_all(
                parts,
                price / len(parts),
                beta=exact(beta) / len(parts),
                request=request,
                analyst=analyst,
            )
        if asked.aggregate == "count":
            return answers[0]
        if len(answers) == 1:
            return _share_of_public(answers[0], self.curator.rows)
        return _share_of_measured(answers[0], answers[1], beta=float(exact(beta)))

    def quote(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        error: Number | None = None,
        beta: Number = 0.05,
    ) -> Quote:
        """The price and the error, in people, of a question. Asks nothing, costs nothing, reads no data."""
        if is_sql(question):
            return self._quote_sql(question, epsilon, rho, error, beta)
        asked = parse(question, self.domain)
        parts = self._parts(asked)
        price = self._price(asked, epsilon, rho, error, beta) / len(parts)
        built = [self.curator.mechanism(part, price) for part in parts]
        cost = self.ledger.budget.price(Together(tuple(mechanism.event for mechanism, _ in built)))
        off = self.curator.error(parts[0], *built[0], exact(beta) / len(parts))
        return Quote(cost, off, float(exact(beta)))

    # ---- SQL

    def sql(
        self,
        text: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        error: Number | None = None,
        beta: Number = 0.05,
        request: str | None = None,
        analyst: str = "",
    ) -> SqlAnswer:
        """Answer a SELECT statement with aggregates over the declared table.

        Price, `request` and `analyst` are those of `ask`; the price is for the whole statement, and the `error`
        is that of every count that it measures.
        """
        _check_request(request)
        compiled = self._sql.compile(text)
        each, each_beta = self._sql_price(compiled, epsilon, rho, error, beta)
        with _told_in(epsilon):
            return run(
                self.curator,
                text,
                compiled,
                each=each,
                each_beta=each_beta,
                beta=beta,
                request=request,
                analyst=analyst,
            )

    def _quote_sql(
        self, text: str, epsilon: Number | None, rho: Number | None, error: Number | None, beta: Number
    ) -> Quote:
        compiled = self._sql.compile(text)
        each, each_beta = self._sql_price(compiled, epsilon, rho, error, beta)
        return Quote(*quote(self.curator, compiled, each=each, beta=each_beta), float(exact(beta)))

    def _sql_price(
        self,
        compiled: CompiledSql,
        epsilon: Number | None,
        rho: Number | None,
        error: Number | None,
        beta: Number,
    ) -> tuple[Price, Fraction]:
        price = self._named(epsilon, rho, error)
        wanted = None if error is None else exact(error, "error")
        return share(self.curator, compiled, price=price, error=wanted, beta=probability(beta))

    @cached_property
    def _sql(self) -> SqlCompiler:
        names = {self.declaration.name, self.declaration.source.table} - {""}
        return SqlCompiler(self.domain, tables=names, rows_public=self.declaration.relation.rows_are_public)

    # ---- prices

    def _parts(self, asked: Question) -> list[Marginal]:
        """What has to be measured: a share of a private number of rows needs that number as well."""
        if asked.aggregate == "count" or self.declaration.relation.rows_are_public:
            return [asked.marginal]
        return [asked.marginal, Marginal(self.domain, ())]

    def _price(
        self, asked: Question, epsilon: Number | None, rho: Number | None, error: Number | None, beta: Number
    ) -> Price:
        named = self._named(epsilon, rho, error)
        if error is None:
            return named
        parts = self._parts(asked)
        return self.curator.price_of(parts[0], error=error, beta=exact(beta) / len(parts)) * len(parts)

    def _named(self, epsilon: Number | None, rho: Number | None, error: Number | None) -> Price:
        """The price that was given, or the usual one; an `error` takes the place of a price."""
        given = {"epsilon": epsilon, "rho": rho, "error": error}
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise ParameterError(f"give one of epsilon, rho and error, not {' and '.join(named)}")
        if epsilon is None and rho is None:
            return self.ledger.budget.whole * DEFAULT_SHARE
        return Price.of(epsilon=epsilon, rho=rho)


def _check_request(request: str | None) -> None:
    """Names with a separator are those of a session's purchases, which nobody else may take."""
    if request is not None and SEPARATOR in request:
        raise ParameterError(
            f"a request's name must not hold {SEPARATOR!r}, which numbers the purchases of a session"
        )


@contextmanager
def _told_in(epsilon: Number | None) -> Iterator[None]:
    """A refusal of a price that was given in epsilon says in epsilon what would fit."""
    try:
        yield
    except InsufficientBudgetError as error:
        if epsilon is None or error.currency == "epsilon":
            raise
        asked = float(exact(epsilon))
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


def is_sql(question: str) -> bool:
    """Whether a question is SQL, not one of the small language; what is not SELECT is refused as SQL."""
    return _SQL.match(question) is not None


def _share_of_public(answer: Answer, rows: int) -> Answer:
    n = max(rows, 1)
    return replace(answer, value=answer.value / n, error=answer.error / n, noisy=answer.noisy / n)


def _share_of_measured(answer: Answer, rows: Answer, *, beta: float) -> Answer:
    """A ratio of two noisy counts: the interval is that of every ratio the two intervals allow."""
    n, off = float(rows.noisy), float(rows.error)
    cost = answer.cost + rows.cost  # type: ignore[operator]  # one currency
    if n - off <= 0:  # the number of rows may be 0: nothing is known about a share
        half = np.full(answer.value.shape, 0.5)
        return replace(answer, value=half, error=half.copy(), noisy=half.copy(), cost=cost, beta=beta)
    low = np.clip((answer.noisy - answer.error) / (n + off), 0, 1)
    high: NDArray[np.float64] = np.clip((answer.noisy + answer.error) / (n - off), 0, 1)
    value = np.clip(answer.noisy / n, low, high)
    error = np.maximum(high - value, value - low)
    return replace(answer, value=value, error=error, noisy=answer.noisy / n, cost=cost, beta=beta)


def open_project(path: str | Path, *, ledger: Ledger | None = None, noise: Any = None) -> Project:
    """Open the project that a declaration file describes; relative paths are seen from the file's folder.

    Its ledger is the durable one that belongs to the table, unless another is passed.
    """
    path = located(path)
    declaration = read(path)
    source = open_source(declaration.source, base=path.parent)
    books = open_ledger(declaration, base=path.parent) if ledger is None else ledger
    return Project.over(source, declaration, ledger=books, noise=noise)
