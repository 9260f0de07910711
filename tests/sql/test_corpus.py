"""Statements whose linear queries are written down, and refusals whose words are."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sql.generate import DOMAIN
from understudy.errors import QueryError
from understudy.query.expression import parse
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.sql import compile_sql

TEXT = (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8")


def cases() -> list[tuple[str, list[str], str]]:
    """(statement, marginals, piece of the refusal)."""
    found: list[tuple[str, list[str], str]] = []
    for line in TEXT.splitlines():
        if line.startswith("? "):
            found.append((line[2:], [], ""))
        elif line.startswith("="):
            found[-1][1].append(line[1:].strip())
        elif line.startswith("! "):
            found[-1] = (found[-1][0], [], line[2:])
        else:
            assert not line or line.startswith("#"), line
    return found


ACCEPTED = [(text, lines) for text, lines, refusal in cases() if not refusal]
REFUSED = [(text, refusal) for text, _, refusal in cases() if refusal]


def marginal(line: str) -> Marginal:
    """A marginal from a line of the corpus, read by the other language."""
    question, _, weights = line.partition("*")
    found = parse(f"count {question}", DOMAIN).marginal
    if not weights:
        return found
    name, *numbers = weights.split()
    factor = Factor((name,), np.array([float(Fraction(number)) for number in numbers]))
    return Marginal(DOMAIN, found.by, found.where & LinearQuery(DOMAIN, (factor,)))


def test_the_corpus_is_large():
    assert len(ACCEPTED) + len(REFUSED) >= 300
    assert min(len(ACCEPTED), len(REFUSED)) >= 140


@pytest.mark.parametrize(("text", "lines"), ACCEPTED, ids=[text for text, _ in ACCEPTED])
def test_accepted_statements_measure_what_is_written_down(text, lines):
    compiled = compile_sql(text, DOMAIN, tables=["t"])
    expected = [marginal(line) for line in lines]
    assert len(compiled.marginals) == len(expected), [m.describe() for m in compiled.marginals]
    for one in expected:
        close = [m for m in compiled.marginals if m.by == one.by and same(m.where, one.where)]
        assert len(close) == 1, ([m.describe() for m in compiled.marginals], one.describe())


def same(one: LinearQuery, other: LinearQuery) -> bool:
    """Equal weights: exactly, but for the rounding of fractions."""
    if one.clique != other.clique:
        return False
    if other.is_counting:
        return one.key == other.key or np.array_equal(one.weights(), other.weights())
    return np.allclose(one.weights(), other.weights(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("text", "refusal"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused_statements_are_told_what_to_write(text, refusal):
    with pytest.raises(QueryError) as refused:
        compile_sql(text, DOMAIN, tables=["t"])
    assert refusal in str(refused.value)
