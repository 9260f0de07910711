"""Questions that are too long, too deep or too much work end in a clear refusal, soon and before a parser."""

from __future__ import annotations

import sys
import time
from functools import cache
from unittest.mock import patch

import pytest

from people import write_project
from understudy.answer.reader import QuestionReader
from understudy.domain.attribute import Boolean, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError, TooLongError
from understudy.project import open_project
from understudy.query.text_size import MAX_CHARACTERS, MAX_WORDS, TextSize
from understudy.sessions.opening import session

SECONDS = 3
"""Of the processor, for any refusal; most take a few milliseconds."""


@cache
def domain() -> Domain:
    """Made by the tests that read: millions of bins, which no worker needs that only collects this file."""
    return Domain(
        (
            *(Bins.integers(f"a{i}", 0, 99) for i in range(3)),
            Bins.integers("large", 0, 2**22 - 2),
            Categories(name="word", values=tuple(f"w{i}" for i in range(1000))),
            Boolean(name="smoker"),
        )
    )


def reader(**size: int) -> QuestionReader:
    return QuestionReader(
        domain(), tables=["town"], rows_public=True, counts_everyone=False, size=TextSize(**size)
    )


def sql(condition: str) -> str:
    return f"SELECT count(*) FROM town WHERE {condition}"


HOSTILE = {
    "parentheses": "count " + "(" * 1500,
    "closed parentheses": "count " + "(" * 900 + "smoker = true" + ")" * 900,
    "nots": "count " + "not " * 1900 + "smoker = true",
    "ors over large cells": "count " + " or ".join("large = 1 and a0 = 1" for _ in range(200)),
    "ors over many cells": "count " + " or ".join(f"a0 = {i % 99} and a1 = 1 and a2 = 2" for i in range(120)),
    "a long list over large cells": "count large in (" + ", ".join("1" for _ in range(990)) + ")",
    "sql parentheses": sql("(" * 1500),
    "sql closed parentheses": sql("(" * 900 + "smoker" + ")" * 900),
    "sql nots": sql("NOT " * 1900 + "smoker"),
    "sql minus": sql("- " * 1900 + "a0 < 5"),
    "sql cases": sql("CASE WHEN " * 900 + "smoker"),
    "sql sums": sql(" + ".join("a0" for _ in range(990)) + " < 5"),
    "sql concatenation": sql(" || ".join("word" for _ in range(990)) + " = 'x'"),
    "sql comparisons": sql(" = ".join("smoker" for _ in range(990))),
    "sql ors over large cells": sql(" OR ".join("(large = 1 AND a0 = 1)" for _ in range(150))),
    "sql functions": sql("abs(" * 900 + "a0" + ")" * 900 + " < 5"),
    "sql brackets": sql("[" * 1900),
    "sql dots": sql(".".join("a0" for _ in range(990))),
    "sql casts": sql("a0" + "::int" * 900 + " < 5"),
    "sql between": sql("a0 " + "between a0 and " * 600),
    "sql unions": "SELECT count(*) FROM town " + "UNION SELECT count(*) FROM town " * 200,
    "sql open text": sql("word = '" + "x" * 9000),
    "sql comments": sql("/*" * 2000),
    "sql sub-queries": "SELECT * FROM (" * 400,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_in_a_clear_refusal_soon(name):
    text = HOSTILE[name]
    assert len(text) <= MAX_CHARACTERS, len(text)
    asked = reader()
    begun = time.process_time()
    with pytest.raises(QueryError) as refused:
        asked.read(text)
    assert time.process_time() - begun < SECONDS
    assert refused.value.problem
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("name", ["parentheses", "nots", "sql parentheses", "sql sums", "sql casts"])
def test_depth_is_refused_with_little_room_left_on_the_stack(name):
    """Whoever calls from deep inside a program gets the same refusal, and no RecursionError."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit // 2)
    try:
        with pytest.raises(QueryError):
            reader().read(HOSTILE[name])
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("begin", ["count smoker = true or ", "SELECT count(*) FROM town WHERE "])
def test_no_parser_sees_a_text_that_is_too_long(begin):
    text = begin + "x" * MAX_CHARACTERS
    with (
        patch("understudy.answer.reader.parse", side_effect=AssertionError),
        patch("understudy.sql.compiler.tokens_of", side_effect=AssertionError),
        pytest.raises(TooLongError, match=f"10,000 characters, not {len(text):,}") as refused,
    ):
        reader().read(text)
    assert (refused.value.code, refused.value.limit) == ("too-long", MAX_CHARACTERS)


@pytest.mark.parametrize("begin", ["count word in ('a'", "SELECT count(*) FROM town WHERE word in ('a'"])
def test_no_parser_sees_too_many_words(begin):
    text = begin + ",1" * MAX_WORDS + ")"
    assert len(text) < MAX_CHARACTERS
    with (
        patch("understudy.query.expression._Parser.question", side_effect=AssertionError),
        patch("understudy.sql.compiler.read", side_effect=AssertionError),
        pytest.raises(TooLongError, match="2,000 words"),
    ):
        reader().read(text)


def test_a_megabyte_is_refused_at_once():
    for text in ("(" * 10**6, "count " + "not " * 10**5, "SELECT " + "(" * 10**6):
        begun = time.process_time()
        with pytest.raises(TooLongError):
            reader().read(text)
        with pytest.raises(TooLongError):
            reader().select(text)
        assert time.process_time() - begun < 0.5


def test_a_program_may_allow_more():
    values = ", ".join(f"'w{i}'" for i in range(1000)) + ", 'w1'" * 400
    for text in (f"count word in ({values})", f"SELECT count(*) FROM town WHERE word IN ({values})"):
        with pytest.raises(TooLongError):
            reader().read(text)
        assert reader(characters=20_000, words=5_000).read(text).marginals
    with pytest.raises(ParameterError):
        TextSize(words=0)


def test_a_session_takes_questions_as_long_as_its_project_does(tmp_path):
    """Over a Curator, which says nothing about texts, the usual size holds."""
    write_project(tmp_path)
    long = "count " + " or ".join("age < 18" for _ in range(600))
    with open_project(tmp_path, text_size=TextSize(characters=100_000, words=10_000)) as project:
        for table, fits in ((project, True), (project.curator, False)):
            entered = session(table, alpha=0.2, lazily=True)
            if fits:
                assert entered.price(long).units > 0
            else:
                with pytest.raises(TooLongError):
                    entered.price(long)
