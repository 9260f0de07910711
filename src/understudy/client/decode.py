"""Answers out of JSON: the library's own `Answer` and `SqlAnswer`, with every number as the server has it.

A reply names its cells and not the condition that they were asked under: the question is read once more here,
on the domain that the server describes, which needs no data. A column says of which type its values are, so
that a day is a day again. What JSON cannot hold, an error without a bound, is null there and infinite here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer, flat_numbers
from understudy.answer.around_answer import AroundAnswer
from understudy.answer.cut_bins import CutBins
from understudy.answer.sql_answer import SqlAnswer
from understudy.domain.domain import Domain
from understudy.privacy.cost import UNITS, ZCDP, Cost, PureDP
from understudy.query.column import Column
from understudy.query.cutting import read_cutting
from understudy.query.expression import parse
from understudy.query.marginal import Marginal
from understudy.query.measure_words import begins_with_measure, cells_of_measure
from understudy.sql.estimate import Estimate

CURRENCIES: dict[str, type[PureDP] | type[ZCDP]] = {PureDP.currency: PureDP, ZCDP.currency: ZCDP}


class AnotherDomain(ValueError):
    """An answer is about other cells than the domain has: it was declared anew since it was read."""


def is_of_sql(plain: Mapping[str, Any]) -> bool:
    """Whether an answer is that of a SELECT statement."""
    return "columns" in plain


def cost_from_plain(plain: Mapping[str, float]) -> Cost:
    """What was charged, ``{"rho": 0.01}``, in whole units: those whose amount is this very number."""
    ((currency, amount),) = plain.items()
    return CURRENCIES[currency](round(Fraction(amount) * UNITS))


def answer_from_plain(plain: Mapping[str, Any], question: str, domain: Domain) -> Answer:
    """The answer to a question in the small language.

    Raises an `AnotherDomain` where its cells are not those of the question on this domain, a `QueryError` or
    `DomainError` where the question is not understood on it, and a `LookupError`, `TypeError` or `ValueError`
    where the document is none of an answer.
    """
    query = read_cutting(lambda cells: _asked(question, cells), domain)
    if list(query.by) != plain["by"]:
        raise AnotherDomain
    value, error = _cells(plain, query)
    released, expected, cut = plain.get("noisy"), plain["population_error"], plain.get("cut_bins")
    return Answer(
        query=query,
        value=value,
        error=error,
        noisy=value if released is None else _numbers(released, query),
        cost=cost_from_plain(plain["cost"]),
        beta=plain["beta"],
        source=plain["source"],
        population_error=None if expected is None else _numbers(flat_numbers(expected), query),
        population_beta=plain["population_beta"],
        population_theorem=plain.get("population_theorem"),
        noise=plain.get("noise"),
        unit=plain["unit"],
        cut_bins=None if cut is None else _cut_bins(cut, query),
        low=_numbers(flat_numbers(plain["low"]), query) if "low" in plain else None,
        high=_numbers(flat_numbers(plain["high"]), query) if "high" in plain else None,
    )


def _asked(question: str, domain: Domain) -> Marginal:
    if begins_with_measure(question):
        return cells_of_measure(question, domain)
    return parse(question, domain).marginal


def sql_answer_from_plain(plain: Mapping[str, Any], text: str) -> SqlAnswer:
    """The answer to a SELECT statement; raises a `LookupError`, `TypeError` or `ValueError` where it is none."""
    columns = tuple(Column(column["name"], column["kind"], column["type"]) for column in plain["columns"])
    expected = plain["population_error"]
    told: dict[str, Any] = {
        "text": text.strip(),
        "columns": columns,
        "cells": tuple(
            tuple(_cell(column, cell) for column, cell in zip(columns, row, strict=True))
            for row in plain["rows"]
        ),
        "cost": cost_from_plain(plain["cost"]),
        "beta": plain["beta"],
        "sources": tuple(plain["sources"]),
        "population_error": None if expected is None else tuple(map(tuple, expected)),
        "population_beta": plain["population_beta"],
        "population_theorem": plain.get("population_theorem"),
        "order": plain.get("order"),
        "noise": plain.get("noise"),
    }
    if plain.get("bounds") != "none":
        return SqlAnswer(**told)
    inner = tuple(sql_answer_from_plain(one, one["statement"]) for one in plain["inner"])
    return AroundAnswer(**told, inner=inner, outer=plain["outer"], problem=plain["problem"])


def _cells(plain: Mapping[str, Any], query: Marginal) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Value and error of each cell, whose labels must be those of the question."""
    if not query.by:
        return _numbers([plain["value"]], query), _numbers([plain["error"]], query)
    rows = plain["rows"]
    if len(rows) != query.size or any(
        tuple(row["cell"]) != labels for row, labels in zip(rows, query.cell_labels(), strict=True)
    ):
        raise AnotherDomain
    return _numbers([row["value"] for row in rows], query), _numbers([row["error"] for row in rows], query)


def _numbers(listed: Sequence[float | None], query: Marginal) -> NDArray[np.float64]:
    """Numbers in the shape of a question's cells; what JSON could not hold is infinite."""
    return np.array([inf if number is None else float(number) for number in listed]).reshape(query.shape)


def _cut_bins(plain: Mapping[str, Any], query: Marginal) -> CutBins:
    low, high, part = (
        _numbers(flat_numbers(plain[name]), query) for name in ("low", "high", "discretisation")
    )
    return CutBins(low, high, part)


def _cell(column: Column, plain: Any) -> Any:
    """The name of a group, or a released number with its bounds."""
    if column.kind != "value":
        return _typed(column, plain)
    return Estimate(
        value=_typed(column, plain["value"]),
        low=_typed(column, plain["low"]),
        high=_typed(column, plain["high"]),
        discretisation=inf if plain["discretisation"] is None else plain["discretisation"],
    )


def _typed(column: Column, plain: Any) -> Any:
    if column.type == "timestamp" and isinstance(plain, str):
        return dt.datetime.fromisoformat(plain)
    return dt.date.fromisoformat(plain) if column.type == "date" and isinstance(plain, str) else plain
