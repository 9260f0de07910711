"""Any text is a statement or a clear refusal, soon."""

# ruff: noqa: E501, SIM905 (a statement stands on one line; so many words are no list)
from __future__ import annotations

import logging
import math
import os
import random
import re
from contextlib import suppress

import numpy as np
import pytest

from sql.generate import DOMAIN, Writer
from understudy.errors import QueryError
from understudy.sql import CompiledAround, Estimate, compile_sql

TEXTS = 100_000 if os.environ.get("UNDERSTUDY_AUDIT") else 3_000

WORDS = (
    "SELECT FROM t WHERE GROUP BY HAVING ORDER LIMIT OFFSET AND OR NOT IN BETWEEN LIKE ILIKE IS NULL CASE WHEN THEN "
    "ELSE END count ( ) * sum avg median quantile_cont , . ; ' \" age kids income sex smoker born 1 2 0.5 'F' '2000-01-01' "
    "date interval cast as integer double :: || + - / // % ^ ** = <> < <= > >= != == ? $1 :a @ # ~ & | [ ] { } -> => "
    "distinct all any exists union with over partition filter within asc desc nulls first last values insert update "
    "delete drop create table read_csv('x') pragma explain copy attach join on using sample qualify window lateral "
    "unnest struct map list lambda x: year month extract substr coalesce nullif greatest least floor round abs -- /* */ "
    "é ☃ \x00 \\ 1e400 99999999999999999999 0x1F 1_000 true false rollup cube grouping sets fetch first rows only "
    "percent tablesample pivot unpivot summarize describe show set begin if try_cast row recursive interval '1' year "
    "columns(*) t.age t.* exclude replace escape similar to glob collate at time zone current_date now() random() "
    "min max stddev string_agg array_agg first last mode count_if bool_and"
).split(" ")


def mutated(rng: random.Random, text: str) -> str:
    """A statement with a few random changes: of characters, of words, of nesting."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.randint(1, 12))
        change = rng.randrange(12)
        if change == 0:
            text = text[:at] + text[to:]
        elif change == 1:
            text = text[:at] + " " + rng.choice(WORDS) + " " + text[at:]
        elif change == 2:
            text = text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0xD7FF)))) + text[at:]
        elif change == 3:
            text = text[:at] + text[at:to] * rng.randint(2, 4) + text[to:]
        elif change >= 7:
            parts = text.split(" ")
            parts[rng.randrange(len(parts))] = rng.choice((*WORDS, "", *parts))
            text = " ".join(parts)
        elif change == 4:
            parts = text.split(" ")
            i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
            parts[i], parts[j] = parts[j], parts[i]
            text = " ".join(parts)
        elif change == 5:
            depth = rng.choice((1, 3, 15, 40))
            text = text[:at] + "(" * depth + text[at:to] + ")" * depth + text[to:]
        else:
            text = (
                text[:at]
                + rng.choice(("NOT ", "- ", "+", "CASE WHEN ", "SELECT ", "abs(")) * rng.choice((2, 30))
                + text[at:]
            )
    return text


ALIKE = (
    ("age", "kids", "income", "hours", "score", "sex", '"home town"', "smoker", "born", "missing", "t.age", "*"),
    ("abs", "floor", "ceil", "round", "sqrt", "length", "lower", "upper", "sign", "year", "quarter", "trim", "ln", "exp",
     "reverse", "count", "sum", "avg", "median", "min", "coalesce", "greatest", "least", "concat", "substr", "if",
     "quantile_cont", "quantile_disc", "nullif", "left", "right", "contains", "log", "trunc", "frobnicate", "mod"),
    ("+", "-", "*", "/", "//", "%", "**", "||", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "LIKE", "IN", "IS"),
    ("0", "1", "2", "10", "0.5", "-1", "1e308", "9007199254740993", "'F'", "NULL", "true", "date '2000-01-01'", "''",
     "'0001-01-01'", "(1)", "(1, 2)", "count(*)"),
)  # fmt: skip


def swapped(rng: random.Random, text: str) -> str:
    """A statement in which some names, functions, operators and constants are others: still a statement, often."""
    words = re.split(r"(\"[^\"]*\"|'[^']*'|\w+|[<>=!*/|+-]+)", text)
    for i, word in enumerate(words):
        for family in ALIKE:
            if word in family and rng.random() < 0.15:
                words[i] = rng.choice(family)
    return "".join(words)


def made_up(rng: random.Random) -> str:
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, 30))]
    return ("SELECT " if rng.random() < 0.8 else "") + rng.choice((" ", "")).join(words)


def texts(seed: int, count: int):
    rng = random.Random(seed)
    for _ in range(count):
        form = rng.random()
        if form < 0.2:
            yield made_up(rng)
        else:
            yield (mutated if form < 0.5 else swapped)(rng, Writer(rng).statement()[0])


def evaluate(compiled, rng: np.random.Generator) -> None:
    """Any released counts give rows without a number that is none."""
    if isinstance(compiled, CompiledAround):
        for part in compiled.inner:
            evaluate(part, rng)
        return
    values = [rng.integers(-50, 200, marginal.shape) for marginal in compiled.marginals]
    for row in compiled.evaluate(values, [7.0] * len(values), rows=100):
        for cell in row:
            numbers = cell if isinstance(cell, Estimate) else (cell,)
            assert all(math.isfinite(number) for number in numbers if isinstance(number, float))


def test_any_text_is_a_statement_or_a_clear_refusal(caplog):
    rng = np.random.default_rng(2)
    answered = 0
    with caplog.at_level(logging.WARNING):
        for text in texts(11, TEXTS):
            with suppress(QueryError):
                evaluate(compile_sql(text, DOMAIN, tables=["t"]), rng)
                answered += 1
    assert not caplog.records  # the parser does not talk past us
    assert answered >= TEXTS / 30


def nested(rng: random.Random) -> str:
    """Statements inside statements, with names that may hide others."""
    inner, name = Writer(rng).statement()[0], rng.choice(["x", "t", "age", "released_0", "groups"])
    return rng.choice([
        f"SELECT * FROM ({inner}) {name}", f"WITH {name} AS ({inner}) SELECT * FROM {name} WHERE kids > 0",
        f"SELECT count(*), max(kids) FROM ({inner}) AS {name}", f"{inner} UNION ALL {inner}", f"SELECT ({inner}) + 1",
        f"SELECT * FROM ({inner}) a JOIN ({inner}) b USING (sex)",
        f"SELECT sex, ({inner}), rank() OVER (ORDER BY count(*)) FROM t GROUP BY sex",
        inner.replace("SELECT ", "SELECT DISTINCT ", 1), inner.replace("count(*)", "sum(count(*)) OVER (PARTITION BY sex)"),
        f"SELECT sum(kids), sex FROM ({inner}) {name} GROUP BY 2 HAVING count(*) > 1 ORDER BY 1",
        f"WITH a AS ({inner}), b AS (SELECT * FROM a), c AS (SELECT * FROM b UNION SELECT * FROM a) SELECT * FROM c, b",
    ])  # fmt: skip


def test_any_nested_text_is_a_statement_or_a_clear_refusal():
    rng, numbers = random.Random(5), np.random.default_rng(2)
    answered = 0
    for _ in range(TEXTS // 20):
        text = nested(rng)
        with suppress(QueryError):
            evaluate(
                compile_sql(mutated(rng, text) if rng.random() < 0.5 else text, DOMAIN, tables=["t"]), numbers
            )
            answered += 1
    assert answered >= TEXTS / 200


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 4000,
        "SELECT " + "- " * 4000 + "1 FROM t",
        "SELECT " + "NOT " * 2000 + "smoker FROM t",
        "SELECT count(*) FROM t WHERE " + "age < 10 AND " * 700 + "age < 10",
        "SELECT count(*) FROM t WHERE " + "kids = 1 OR " * 600 + "kids = 2",
        "SELECT count(*) FROM t WHERE kids " + "+ 1 " * 900 + "> 0",
        "SELECT count(*) FROM t WHERE kids IN (" + "1," * 900 + "2)",
        "SELECT " + "CASE WHEN smoker THEN " * 400 + "1" + " END" * 400 + " FROM t",
        "SELECT " + "abs(" * 500 + "1" + ")" * 500 + " FROM t",
        "SELECT " + "count(*)," * 900 + "1 FROM t",
        "SELECT count(*) AS a, " + "a + " * 200 + "a FROM t ORDER BY " + "a + " * 300 + "a",
        "SELECT " + "[" * 19 + "1" + "]" * 19 + " FROM t",
        "SELECT " + "{'a':" * 19 + "1" + "}" * 19 + " FROM t",
        "SELECT " + "CASE " * 19 + "1",
        "SELECT " + "x -> " * 300 + "1 FROM t",
        "SELECT " + "1::int" + "::int" * 500 + " FROM t",
        "SELECT " + "a." * 900 + "b FROM t",
        "SELECT 'x' " + "|| 'x' " * 600 + "FROM t",
        "SELECT count(*) FROM t WHERE '" + "a" * 9000 + "' LIKE '" + "%a" * 20 + "b'",
        "SELECT count(*) FROM " + "(" * 19 + "SELECT 1" + ")" * 19,
        "SELECT count(*) FROM t WHERE " + "kids IN (SELECT " * 15 + "1" + ")" * 15,
        "SELECT count(*) FROM t " + "UNION SELECT 1 " * 300,
        "SELECT /*" * 100,
        "x" * 1_000_000,
        "",
        ";" * 5000,
        "SELECT\x00count(*) FROM t",
        "SELECT count(*) FROM t\ud800",
    ],
    ids=range(28),
)  # fmt: skip
def test_large_and_deep_texts_are_refused_or_answered(text):
    with suppress(QueryError):
        compile_sql(text, DOMAIN, tables=["t"])


def test_no_recursion_error_comes_out_of_a_deep_call():
    nested = "SELECT count(*) FROM t WHERE " + "(" * 19 + "kids > 0" + ")" * 19

    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            compile_sql(nested, DOMAIN, tables=["t"])

    for levels in (0, 400, 600, 700):
        with suppress(QueryError):
            deeper(levels)
