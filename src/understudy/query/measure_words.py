"""Questions about measures in the small language: ``avg income where age < 30 by sex``.

They begin with the name of an aggregate and one measure, or two, in parentheses or not; conditions and groups
follow as in a count, which reads them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from understudy.domain.attribute import Attribute, Boolean, Categories, as_asked
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, QueryError
from understudy.query.expression import parse
from understudy.query.marginal import Marginal
from understudy.query.moment import measure
from understudy.query.text_size import USUAL, TextSize

AGGREGATES = {
    "sum": "sum",
    "avg": "avg",
    "average": "avg",
    "mean": "avg",
    "variance": "variance",
    "stddev": "stddev",
    "covariance": "covariance",
    "median": "median",
    "quantile": "quantile",
}
"""The words that begin a question about measures, and what each asks for."""

_LEVELS = re.compile(r"\s*quantile\b\s*(?:\[|\(?\s*[0-9.]+\s*,)", re.IGNORECASE)

_NAME = r"""(?:"(?:[^"]|"")*"|[^\s'"=<>!(),]+)"""
_HEAD = re.compile(
    rf"\s*(?P<word>{'|'.join(AGGREGATES)})\b\s*(?P<level>[01]?\.[0-9]+\s)?\s*(?P<open>\()?\s*(?P<first>{_NAME})"
    rf"(?:\s*,\s*(?P<second>{_NAME}))?\s*(?P<close>\))?(?P<rest>(?:[\s(].*)?)$",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class MeasureWords:
    """A parsed question about measures: `aggregate` of the measures over the rows of each cell of `marginal`.

    `level` is that of a quantile; a median's is 1/2.
    """

    text: str
    aggregate: str
    measures: tuple[Bins, ...]
    marginal: Marginal
    level: Fraction | None = None


def begins_with_measure(text: str) -> bool:
    """Whether a question begins with the name of an aggregate of measures.

    >>> begins_with_measure("avg income by sex"), begins_with_measure("count by sex")
    (True, False)
    """
    word = re.match(r"\s*([a-z]+)", text, re.IGNORECASE)
    return word is not None and word[1].lower() in AGGREGATES


def parse_measure(text: str, domain: Domain, *, size: TextSize = USUAL) -> MeasureWords:
    """A question about measures, or a `QueryError` that says what to write instead. Reads no data.

    >>> town = Domain((Bins.measure("income", 0, 200_000), Bins.integers("rooms", 1, 4)))
    >>> parse_measure("avg income where rooms < 3", town).aggregate
    'avg'
    """
    size.check(text)
    found, aggregate, level, names = _asked(text)
    measures = tuple(_measure(domain, name, in_sql(aggregate, level, names)) for name in names)
    if len(set(measures)) < len(measures):
        raise QueryError(
            "a measure has a variance, and no covariance with itself", remedy=f"write variance {names[0]}"
        )
    return MeasureWords(text.strip(), aggregate, measures, _cells(found, domain, size), level)


def as_statement(text: str, domain: Domain, table: str, *, size: TextSize = USUAL) -> str:
    """The SELECT statement that asks from bins what a question about measures does, but for its conditions.

    Raises a `QueryError` where the question is not understood, or is about an attribute that holds no numbers.

    >>> town = Domain((Bins.between("income", [0, 10, 20]), Bins.integers("rooms", 1, 4)))
    >>> as_statement("quantile 0.9 income by rooms", town, "town")
    'SELECT rooms, quantile_cont(income, 0.9) FROM town GROUP BY rooms'
    """
    size.check(text)
    found, aggregate, level, names = _asked(text)
    asked = [as_asked(_ordered(domain, name).name) for name in names]
    by = ", ".join(map(as_asked, _cells(found, domain, size).by))
    listed, grouped = (f"{by}, ", f" GROUP BY {by}") if by else ("", "")
    return f"SELECT {listed}{in_sql(aggregate, level, asked)} FROM {table}{grouped}"


def _asked(text: str) -> tuple[re.Match[str], str, Fraction | None, list[str]]:
    """The parts of a question about measures: its aggregate, level and measures, as these are written."""
    found = _head(text)
    aggregate = AGGREGATES[found["word"].lower()]
    if (aggregate == "quantile") != (found["level"] is not None):
        raise QueryError(
            "a quantile has a level between 0 and 1, and nothing else has",
            remedy="write quantile 0.9 income by sex",
        )
    level = Fraction(1, 2) if aggregate == "median" else None
    if found["level"] is not None:
        level = Fraction(found["level"].strip())
    names = [found["first"], *([found["second"]] if found["second"] else [])]
    wanted = 2 if aggregate == "covariance" else 1
    if len(names) != wanted:
        raise QueryError(
            f"{aggregate} is of {'two measures' if wanted == 2 else 'one measure'}, not of {len(names)}",
            remedy="write avg income, or covariance age, income",
        )
    return found, aggregate, level, names


def cells_of_measure(text: str, domain: Domain, *, size: TextSize = USUAL) -> Marginal:
    """The cells that a question about measures asks for, whether or not the domain says what is a measure.

    They are those of `parse_measure`, and all that somebody needs who reads an answer. Raises a `QueryError` where
    the question is not understood.

    >>> town = Domain((Bins.between("income", [0, 10, 20]), Bins.integers("rooms", 1, 4)))
    >>> cells_of_measure("avg income where rooms < 3 by rooms", town).by
    ('rooms',)
    """
    size.check(text)
    return _cells(_head(text), domain, size)


def _head(text: str) -> re.Match[str]:
    """The parts of a question about measures: the aggregate, its level, the measures, and the rest."""
    if _LEVELS.match(text):
        raise QueryError(
            "a quantile in the small language has one level",
            remedy="write quantile 0.9 income; several are asked for in SQL: quantile_cont(income, [0.1, 0.9])",
        )
    found = _HEAD.fullmatch(text)
    if found is None or bool(found["open"]) != bool(found["close"]):
        raise QueryError(
            "a question about a measure names it after the aggregate",
            remedy="write avg income where age < 30 by sex, or covariance age, income",
        )
    return found


def _cells(found: re.Match[str], domain: Domain, size: TextSize) -> Marginal:
    return parse(f"count{found['rest'] or ''}", domain, size=size).marginal


_IN_SQL = {
    "variance": "avg({0} * {0}) - avg({0}) * avg({0})",
    "stddev": "sqrt(avg({0} * {0}) - avg({0}) * avg({0}))",
    "covariance": "avg({0} * {1}) - avg({0}) * avg({1})",
    "quantile": "quantile_cont({0}, {level})",
}
"""What SQL answers from bins in place of an aggregate of measures, where its name is not enough."""


def in_sql(aggregate: str, level: Fraction | None, names: Sequence[str]) -> str:
    """An aggregate of attributes as SQL has it, answered from bins. Names are as they are written in a question.

    >>> in_sql("quantile", Fraction(9, 10), ["income"]), in_sql("sum", None, ["income"])
    ('quantile_cont(income, 0.9)', 'sum(income)')
    """
    form = _IN_SQL.get(aggregate, f"{aggregate}({{0}})")
    return form.format(*names, level="" if level is None else f"{float(level):g}")


def _ordered(domain: Domain, written: str) -> Attribute:
    """The attribute of numbers that a question names; a `QueryError` says what is asked of another one."""
    name = written[1:-1].replace('""', '"') if written.startswith('"') else written
    try:
        attribute = domain[name]
    except DomainError as error:
        raise QueryError(error.problem, remedy=error.remedy, suggestions=error.suggestions) from None
    if isinstance(attribute, Categories):
        raise QueryError(f"{name} holds no numbers", remedy=f"count its values: count by {written}")
    if isinstance(attribute, Boolean):
        raise QueryError(f"{name} holds no numbers", remedy=f"write share {written} = true")
    if isinstance(attribute, Bins) and isinstance(attribute.upper, dt.date):
        raise QueryError(
            f"{name} holds days, which are no measure",
            remedy=f"in SQL quantiles are answered: SELECT median({written}) FROM … (the name of the table)",
        )
    return attribute


def _measure(domain: Domain, written: str, usual: str) -> Bins:
    """The measure that a question names; a `QueryError` says what is asked in its place, `usual` in SQL."""
    attribute = _ordered(domain, written)
    try:
        return measure(domain, attribute.name)
    except QueryError as error:
        asked = f"in SQL it is answered from bins: SELECT {usual} FROM … (the name of the table)"
        raise QueryError(error.problem, remedy=f"{error.remedy}; {asked}") from None
