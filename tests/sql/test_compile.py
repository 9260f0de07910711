"""Canonical keys, memory, sizes, and what the public part of a statement does."""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from sqlglot import parse_one

from sql.generate import DOMAIN, OTHER, codes, exact_sums, table
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError, TooLargeError
from understudy.sql import Estimate, SqlCompiler, compile_sql
from understudy.sql.around import split
from understudy.sql.compiler import REMEMBERED


def key(text: str) -> str:
    return compile_sql(text, DOMAIN, tables=["t"]).key


@pytest.mark.parametrize(
    "spellings",
    [
        ("SELECT count(*) FROM t WHERE age < 10 AND sex = 'F'", "select COUNT(*) as n from T where sex='F' and age<10"),
        ("SELECT count(*) FROM t WHERE age BETWEEN 10 AND 19", "SELECT count(*) FROM t WHERE age >= 10 AND age < 20"),
        ("SELECT count(*) FROM t WHERE NOT (NOT smoker)", "SELECT count(*) FROM t AS p WHERE p.smoker = true"),
        ("SELECT count(*) FROM t WHERE kids IN (0, 1)", "SELECT count(*) FROM t WHERE kids = 1 OR 0 = kids"),
        ("SELECT count(*) FROM t WHERE kids IN (0, 1)", "SELECT count(CASE WHEN kids IN (1, 0) THEN 1 END) FROM t"),
        ("SELECT avg(kids) FROM t WHERE sex = 'F'", "SELECT avg(kids) FILTER (WHERE sex = 'F') FROM t"),
        ("SELECT count(*) / 2 + 1 FROM t", "SELECT 1 + (count(1) / (2)) FROM t"),
        ("SELECT 2 * count(*) FROM t", "SELECT count(*) * 2 FROM t"),
        ("SELECT sex, count(*) FROM t GROUP BY sex", "SELECT t.sex s, count(*) n FROM t GROUP BY 1"),
        ("SELECT sex, count(*) n FROM t GROUP BY sex HAVING n > 3 AND n < 9",
         "SELECT sex, count(*) FROM t GROUP BY sex HAVING count(*) < 9 AND count(*) > 3"),
        ("SELECT count(*) FROM t WHERE (age < 10 OR age >= 20) AND sex = 'F'",
         "SELECT count(*) FROM t WHERE (age < 10 AND sex = 'F') OR (age >= 20 AND sex = 'F')"),
        ("SELECT count(*) FROM t WHERE false", "SELECT count(*) FROM t WHERE age < 10 AND age >= 10"),
    ],
)  # fmt: skip
def test_two_spellings_of_a_question_have_one_key(spellings):
    one, other = map(key, spellings)
    assert one == other


def test_different_questions_have_different_keys():
    texts = [
        "SELECT count(*) FROM t", "SELECT count(*) FROM t WHERE smoker", "SELECT count(*), count(*) FROM t",
        "SELECT count(*) + 1 FROM t", "SELECT count(*) + 2 FROM t", "SELECT count(*) - 1 FROM t",
        "SELECT 1 - count(*) FROM t", "SELECT sex, count(*) FROM t GROUP BY sex", "SELECT count(*) FROM t GROUP BY sex",
        "SELECT count(*) FROM t GROUP BY sex ORDER BY sex", "SELECT count(*) FROM t GROUP BY sex ORDER BY sex DESC",
        "SELECT count(*) FROM t GROUP BY sex LIMIT 1", "SELECT count(*) FROM t GROUP BY sex OFFSET 1",
        "SELECT count(*) FROM t GROUP BY sex HAVING count(*) > 1", "SELECT avg(kids) FROM t", "SELECT sum(kids) FROM t",
        "SELECT sum(kids) + 0 * count(*) FROM t", "SELECT median(kids) FROM t", "SELECT quantile_disc(kids, 0.5) FROM t",
        "SELECT quantile_cont(kids, 0.4) FROM t", "SELECT avg(kids + 1) FROM t", "SELECT lower(sex), count(*) FROM t GROUP BY sex",
        "SELECT round(avg(kids), 1) FROM t", "SELECT round(avg(kids), 2) FROM t",
    ]  # fmt: skip
    assert len({key(text) for text in texts}) == len(texts)


def test_the_same_words_are_compiled_once():
    compiler = SqlCompiler(DOMAIN, tables=["t"], rows_public=True)
    first = compiler.compile("SELECT count(*) FROM t WHERE age < 10 AND smoker")
    assert compiler.compile("SELECT count(*) FROM t WHERE age < 10 AND smoker") is first
    assert compiler.compile("select  count( * )\nfrom t -- again\nwhere age < 10 and smoker") is first
    assert compiler.compile("SELECT count(*) FROM t WHERE smoker AND age <= 9") is first
    assert compiler.compile("SELECT count(*) AS n FROM t WHERE smoker AND age <= 9") is not first
    assert compiler.compile("SELECT count(*) FROM t WHERE \"home town\" = 'Bree'") is not compiler.compile(
        "SELECT count(*) FROM t WHERE \"home town\" = 'bree'"
    )


def test_the_memory_is_bounded_and_serves_threads():
    compiler = SqlCompiler(DOMAIN, tables=["t"], rows_public=True)
    texts = [f"SELECT count(*) + {i} FROM t" for i in range(REMEMBERED)]
    with ThreadPoolExecutor(4) as pool:
        keys = [found.key for found in pool.map(compiler.compile, texts)]
    assert len(set(keys)) == len(texts)
    assert len(compiler._seen) <= REMEMBERED


def test_refusals_are_not_remembered_as_answers():
    compiler = SqlCompiler(DOMAIN, tables=["t"], rows_public=True)
    for _ in range(2):
        with pytest.raises(QueryError):
            compiler.compile("SELECT count(*) FROM t WHERE age < 17")


WIDE = Domain(
    (
        *(Bins.integers(f"a{i}", 0, 99) for i in range(10)),
        Categories(name="word", values=tuple(f"w{i}" for i in range(1000))),
    )
)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM t GROUP BY a0, a1, a2, a3",
        "SELECT count(*) FROM t GROUP BY a0, a1, a2, a3, a4, a5, a6, a7, a8, a9",
        "SELECT count(*) FROM t WHERE " + " OR ".join(f"a{i} < 50" for i in range(10)),
        "SELECT count(*) FROM t WHERE " + " + ".join(f"a{i}" for i in range(10)) + " < 500",
        "SELECT sum(" + " * ".join(f"a{i}" for i in range(10)) + ") FROM t",
        "SELECT count(*) FROM t GROUP BY " + " + ".join(f"a{i}" for i in range(10)),
        "SELECT a0, median(a1), median(a2) FROM t GROUP BY a0, a3, a4, a5",
        "SELECT count(*) FROM t WHERE word || '-' || a0::varchar = 'x'",
    ],
)
def test_sizes_are_refused_before_anything_is_allocated(text):
    with pytest.raises(QueryError):
        compile_sql(text, WIDE, tables=["t"])


def test_a_conjunction_over_many_attributes_is_never_expanded():
    text = "SELECT count(*) FROM t WHERE " + " AND ".join(f"a{i} < 50" for i in range(10))
    (marginal,) = compile_sql(text, WIDE, tables=["t"]).marginals
    assert [factor.clique for factor in marginal.where.factors] == [(f"a{i}",) for i in range(10)]


def test_work_is_bounded():
    text = "SELECT count(*) FROM t WHERE " + " OR ".join(f"a{i % 3} = {i % 100}" for i in range(300))
    with pytest.raises(QueryError, match="too much work"):
        compile_sql(text, WIDE, tables=["t"])
    assert issubclass(TooLargeError, QueryError)


# ---- the public part

DATA = codes(300, seed=9)
duck = cache(lambda: table(DATA))


def rows(text: str, error: float = 0.0):
    compiled = compile_sql(text, DOMAIN, tables=["t"])
    sums = [exact_sums(marginal, DATA) for marginal in compiled.marginals]
    return compiled.evaluate(sums, [error] * len(sums))


ORDERED = [
    "SELECT sex, count(*) n FROM t GROUP BY sex HAVING n > 0 ORDER BY n, sex",
    "SELECT sex, count(*) n FROM t GROUP BY sex ORDER BY n DESC, sex LIMIT 2",
    "SELECT kids, sex, count(*) FROM t WHERE sex IN ('F', 'M') GROUP BY kids, sex HAVING count(*) > 0 ORDER BY 1 DESC, 2",
    "SELECT kids, count(*) FROM t GROUP BY kids ORDER BY kids LIMIT 3 OFFSET 2",
    "SELECT smoker, count(*) FROM t GROUP BY smoker ORDER BY smoker NULLS FIRST",
    "SELECT smoker, count(*) FROM t GROUP BY smoker ORDER BY smoker DESC NULLS LAST",
    'SELECT "home town", avg(kids) FROM t GROUP BY "home town" ORDER BY 1',
    'SELECT "home town", avg(kids) m FROM t GROUP BY "home town" ORDER BY m DESC NULLS LAST',
    "SELECT kids, avg(age) FROM t GROUP BY kids HAVING avg(age) > 14 AND kids <> 0 ORDER BY abs(kids), kids",
    "SELECT abs(kids) k, sum(kids) s FROM t GROUP BY k HAVING s >= 0 ORDER BY k DESC",
    "SELECT kids, count(*) FROM t GROUP BY kids HAVING count(*) BETWEEN 30 AND 60 OR kids IN (0, 1) ORDER BY kids",
    "SELECT count(*) FROM t HAVING count(*) > 1000",
    "SELECT kids, CASE WHEN kids > 0 THEN count(*) ELSE -1 END c FROM t GROUP BY kids ORDER BY c DESC, kids",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDERED)
def test_having_order_and_limit_are_those_of_duckdb(text):
    expected = duck().execute(text).fetchall()
    found = [
        tuple(c.value if isinstance(c, Estimate) else OTHER if c == "other" else c for c in row)
        for row in rows(text)
    ]
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs), (found, expected)


def test_every_group_is_listed_that_where_leaves_possible():
    found = rows("SELECT sex, kids, count(*) FROM t WHERE sex = 'F' GROUP BY sex, kids", error=5.0)
    assert len(found) == 6
    assert {row[0] for row in found} == {"F"}
    assert len(rows("SELECT sex, kids, count(*) FROM t WHERE age < 10 GROUP BY sex, kids")) == 3 * 6
    assert rows("SELECT sex, count(*) FROM t WHERE kids > 5 GROUP BY sex") == []
    assert len(rows("SELECT count(*) FROM t WHERE kids > 5")) == 1
    either = rows(
        "SELECT sex, kids, count(*) FROM t WHERE sex = 'F' OR kids = 1 GROUP BY sex, kids", error=5.0
    )
    assert {(row[0], row[1]) for row in either} == {("F", k) for k in range(-2, 4)} | {("M", 1), ("other", 1)}


def test_impossible_parts_of_a_listed_group_are_0():
    found = rows("SELECT sex, count(*) FILTER (WHERE sex = 'F') FROM t GROUP BY sex", error=5.0)
    assert [row[1] for row in found if row[0] != "F"] == [Estimate(0.0, 0.0, 0.0, 0.0)] * 2


def test_groups_are_named_by_the_declaration():
    assert [row[0] for row in rows("SELECT age, count(*) FROM t GROUP BY age")] == ["0-9", "10-19", "20-30"]
    assert [row[0] for row in rows("SELECT kids, count(*) FROM t GROUP BY kids")] == [-2, -1, 0, 1, 2, 3]
    assert [row[0] for row in rows("SELECT smoker, count(*) FROM t GROUP BY smoker")] == [False, True, None]
    assert [row[0] for row in rows("SELECT income, count(*) FROM t GROUP BY income")][-1] is None
    assert [row[0] for row in rows("SELECT score, count(*) FROM t GROUP BY score")][-1] == "other"


def test_the_error_of_bins_is_part_of_the_error_and_shown_apart():
    ((total, mean, middle),) = rows("SELECT sum(age), avg(age), median(age) FROM t")
    count = len(DATA["age"])
    assert total.discretisation == pytest.approx(5.0 * count)  # the widest half bin is 5, from 20 to 30
    assert total.high - total.value <= total.discretisation
    assert mean.discretisation == pytest.approx(5.0)
    assert middle.discretisation > 0
    ((kids,),) = rows("SELECT sum(kids) FROM t", error=1.0)
    assert kids.discretisation == 0
    assert (kids.low, kids.high) == (kids.value - 3 - 2, kids.value + 3 + 2)
    ((share,),) = rows("SELECT 100.0 * count(*) FILTER (WHERE smoker) / count(*) FROM t")
    assert share.discretisation == 0


def test_ratios_say_when_they_have_no_bound():
    ((ratio, mean, safe),) = rows("SELECT sum(kids) / count(*), avg(kids), count(*) / 4 FROM t WHERE kids > 0 AND smoker",
                                  error=1e6)  # fmt: skip
    assert (ratio.low, ratio.high) == (0.0, None)
    assert (mean.low, mean.high) == (1.0, 3.0)
    assert safe.low == 0.0
    ((nothing,),) = rows("SELECT avg(kids) FROM t WHERE kids = 99")
    assert nothing.value is None


def test_a_sum_over_nothing_is_0_and_an_average_is_missing():
    ((total, mean, ratio),) = rows("SELECT sum(kids), avg(kids), sum(kids) / count(*) FROM t WHERE false")
    assert (total.value, mean.value, ratio.value) == (0.0, None, None)


def test_grouping_expressions_are_measured_the_cheaper_way():
    few = compile_sql("SELECT a0 < 50, count(*) FROM t GROUP BY 1", WIDE, tables=["t"])
    many = compile_sql("SELECT a0 // 2, count(*) FROM t GROUP BY 1", WIDE, tables=["t"])
    assert [m.size for m in few.marginals] == [1, 1]
    assert [m.size for m in many.marginals] == [100]


def test_a_public_number_of_rows_makes_sums_cheaper():
    public = compile_sql("SELECT sum(kids) FROM t", DOMAIN, tables=["t"], rows_public=True)
    private = compile_sql("SELECT sum(kids) FROM t", DOMAIN, tables=["t"])
    assert [m.describe() for m in public.marginals] == ["everyone", "weights on kids"]
    assert len(private.marginals) == 2
    assert public.key != private.key


def test_compiled_statements_are_frozen():
    compiled = compile_sql("SELECT count(*) FROM t", DOMAIN, tables=["t"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        compiled.key = "x"  # type: ignore[misc]
    with pytest.raises(QueryError, match="1 marginals are needed"):
        compiled.evaluate([], [])


def test_a_released_number_that_is_not_one_is_missing():
    ((power, log, root),) = rows(
        "SELECT exp(count(*) * 100), ln(count(*) - 1000), sqrt(count(*) - 1000) FROM t", error=5.0
    )
    assert power.value is None
    assert log.value is None
    assert root.value is None
    for cell in (power, log, root):
        assert not any(isinstance(v, float) and not math.isfinite(v) for v in cell)


def test_statements_speak_of_their_marginals_only():
    compiled = compile_sql(
        "SELECT count(*) FROM t WHERE \"home town\" = 'Bree' -- secret remark", DOMAIN, tables=["t"]
    )
    assert "remark" not in repr(compiled.marginals)
    assert np.asarray(compiled.marginals[0].where.factors[0].weights).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("statement", ["SELECT avg(Alter) FROM t", "SELECT count(*) FROM t WHERE alter < 10"])
def test_an_attribute_that_is_a_word_of_sql_is_to_be_quoted(statement):
    domain = Domain((Bins.between("Alter", [0, 10, 20]),))
    with pytest.raises(QueryError, match='is a word of SQL: write "Alter" in double quotes'):
        compile_sql(statement, domain, tables=["t"])


@pytest.mark.parametrize("table", ["town-on-show", "my table", 'a"b', "values", "Order", "1st", "town"])
@pytest.mark.parametrize(
    "wrong",
    [
        "SELECT count(*)",
        "SELECT count(*) FROM nowhere",
        "SELECT count(*) FROM elsewhere.t",
        "SELECT count(*) FROM range(3)",
        "SELECT 1 UNION SELECT 2",
        "SELECT a FROM (SELECT count(*) AS a FROM nowhere) AS b UNION SELECT 1",
    ],
)
def test_the_name_that_is_proposed_after_from_can_be_written_there(table, wrong):
    with pytest.raises(QueryError) as found:
        compile_sql(wrong, DOMAIN, tables=[table])
    assert found.value.remedy.startswith("write FROM ")
    proposed = found.value.remedy.removeprefix("write ")
    assert compile_sql(f"SELECT count(*) {proposed}", DOMAIN, tables=[table]).marginals


@pytest.mark.parametrize(
    "wrong", ["SELECT 1 UNION SELECT 2", "SELECT a FROM nowhere UNION SELECT 1", "SELECT 1 FROM range(3)"]
)
def test_the_name_that_is_proposed_around_selects_is_quoted_where_it_must_be(wrong):
    query = parse_one(wrong, read="duckdb")
    with pytest.raises(QueryError, match='write FROM people or "town-on-show"'):
        split(query, ["town-on-show", "people"])  # type: ignore[arg-type]
