"""Questions in words, at the door of a session: the small language, and SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape

import numpy as np

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.errors import QueryError
from understudy.ledger.interface import Ledger
from understudy.privacy.cost import Cost
from understudy.project import is_sql
from understudy.query.expression import Question, parse
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import UNBOUNDED, Interval
from understudy.sql import CompiledSql, SqlCompiler
from understudy.sql_answer import SqlAnswer

REMEMBERED = 1 << 12
"""Questions whose words need not be read again."""


@dataclass(frozen=True, eq=False)
class QuestionReader:
    """Reads questions about one domain."""

    curator: Curator

    def __post_init__(self) -> None:
        declared = self.curator.declaration
        compiler = SqlCompiler(
            declared.domain,
            tables={declared.name, declared.source.table} - {""},
            rows_public=declared.relation.rows_are_public,
        )

        @lru_cache(maxsize=REMEMBERED)
        def read(text: str) -> Question | CompiledSql:
            return compiler.compile(text) if is_sql(text) else parse(text, declared.domain)

        object.__setattr__(self, "_read", read)

    def read(self, question: str | Marginal | LinearQuery) -> Question | CompiledSql:
        """What is asked; a marginal or a query asks for counts."""
        if isinstance(question, str):
            return self._read(question)  # type: ignore[attr-defined]
        if isinstance(question, LinearQuery):
            question = Marginal.of(question)
        if not isinstance(question, Marginal):
            raise QueryError("a question is text, a marginal or a linear query")
        return Question("", "count", question)


def parts(asked: Question | CompiledSql) -> tuple[Marginal, ...]:
    """The marginals that a question needs."""
    return asked.marginals if isinstance(asked, CompiledSql) else (asked.marginal,)


def share_of(answer: Answer, total: Interval, reach: float | None) -> Answer:
    """Counts as a share of all rows, of which there are between the two ends of `total`.

    `reach` is how far shares can be from the population's, where the counts have such an error.
    """
    least, most = max(total[0], 1.0), max(total[1], 1.0)
    certain = np.isfinite(answer.error)
    if answer.population_error is not None:
        told = None if reach is None else np.full(answer.value.shape, reach)
        beta = None if reach is None else answer.population_beta
        answer = replace(answer, population_error=told, population_beta=beta)
    if least == most:
        rates = {"value": answer.value / most, "error": answer.error / most, "noisy": answer.noisy / most}
        return replace(answer, **rates)
    low = np.clip((answer.value - answer.error) / most, 0, 1)
    high = np.clip((answer.value + answer.error) / least, 0, 1)
    value = np.where(certain, (low + high) / 2, answer.value / most)
    return replace(answer, value=value, error=np.where(certain, (high - low) / 2, np.inf), noisy=value)


def rows_of(
    text: str,
    compiled: CompiledSql,
    answers: Sequence[Answer],
    *,
    most: int | None,
    nothing: Cost,
    beta: float,
) -> SqlAnswer:
    """The rows of a statement, from the answers to its marginals."""
    widest = UNBOUNDED if most is None else float(most)
    errors = [np.minimum(answer.error, widest) for answer in answers]
    cells = compiled.evaluate([answer.value for answer in answers], errors, rows=most)
    cost = nothing
    for answer in answers:
        cost = cost + answer.cost  # type: ignore[operator]  # one currency
    sources = tuple(answer.source for answer in answers)
    return SqlAnswer(text.strip(), compiled.columns, tuple(cells), cost, beta, sources)


def described(name: str, width: int, beta: float, done: str, ledger: Ledger) -> str:
    """A session for people, as HTML."""
    left, cap = ledger.remaining, ledger.budget.cap
    promise = f"every answer within {width:,} people, all with probability {1 - beta:g}"
    money = f"{left.currency} left: {left.amount:.4g} of {cap.amount:.4g}"
    return f"<p><b>session {escape(name)}</b>: {promise}<br>{done}; {money}</p>"
