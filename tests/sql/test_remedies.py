"""What a refusal says to write instead is what was meant, and is answered."""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import logging

import pytest

from sql.generate import DOMAIN
from understudy.errors import QueryError
from understudy.sql import CompiledAround, CompiledSql, compile_sql
from understudy.sql.remedies import AGGREGATES, INSTEAD, SCALARS


def refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as found:
        compile_sql(text, DOMAIN, tables=["t"])
    return found.value


@pytest.mark.parametrize(
    ("written", "meant", "answered"),
    [
        ("SELECT mean(kids) FROM t", "write avg(x)", "SELECT avg(kids) FROM t"),
        ("SELECT average(kids) FROM t", "write avg(x)", "SELECT avg(kids) FROM t"),
        ("SELECT percentile(age, 0.5) FROM t", "write quantile_cont(x, 0.5)", "SELECT quantile_cont(age, 0.5) FROM t"),
        ("SELECT quantile(age) FROM t", "write quantile_cont(x, 0.5)", "SELECT quantile_cont(age, 0.5) FROM t"),
        ("SELECT max(age) FROM t", "quantile_disc(x, 0.99) comes close", "SELECT quantile_disc(age, 0.99) FROM t"),
        ("SELECT min(age) FROM t", "quantile_disc(x, 0.01) comes close", "SELECT quantile_disc(age, 0.01) FROM t"),
        ("SELECT covar_pop(age, kids) FROM t", "avg(x * y) - avg(x) * avg(y) is the covariance", "SELECT avg(age * kids) - avg(age) * avg(kids) FROM t"),
        ("SELECT stddev(age) FROM t", "sqrt(avg(x * x) - avg(x) * avg(x)) is the standard deviation", "SELECT sqrt(avg(age * age) - avg(age) * avg(age)) FROM t"),
        ("SELECT variance(age) FROM t", "avg(x * x) - avg(x) * avg(x) is the variance", "SELECT avg(age * age) - avg(age) * avg(age) FROM t"),
        ("SELECT mode(sex) FROM t", "GROUP BY x ORDER BY count(*) DESC LIMIT 1", "SELECT sex, count(*) FROM t GROUP BY sex ORDER BY count(*) DESC LIMIT 1"),
        ("SELECT any_value(sex) FROM t", "GROUP BY counts the people", "SELECT sex, count(*) FROM t GROUP BY sex"),
        ("SELECT string_agg(sex, ',') FROM t", "GROUP BY counts the people", "SELECT sex, count(*) FROM t GROUP BY sex"),
        ("SELECT bool_and(smoker) FROM t", "count(*) FILTER (WHERE …)", "SELECT count(*) FILTER (WHERE smoker) FROM t"),
        ("SELECT approx_count_distinct(age) FROM t", "not a count of people", "SELECT age, count(*) FROM t GROUP BY age"),
        ("SELECT avg(born) FROM t", "median(born) is the middle", "SELECT median(born) FROM t"),
        ("SELECT count(*) FROM t WHERE born > now()", "date '2024-12-31'", "SELECT count(*) FROM t WHERE born >= date '2000-01-01'"),
        ("SELECT count(*) FROM t WHERE date_add(born, interval '1 day') > date '2000-01-01'", "d + interval '1 day'", "SELECT count(*) FROM t WHERE born + interval '1 day' > date '2000-01-01'"),
        ("SELECT count(*) FROM t WHERE dateadd(day, 1, born) > date '2000-01-01'", "d + interval '1 day'", "SELECT count(*) FROM t WHERE born + interval '1 day' > date '2000-01-01'"),
        ("SELECT count(*) FROM t WHERE datediff('day', born, date '2000-01-01') > 5", "date '2024-12-31' - d", "SELECT count(*) FROM t WHERE date '2000-01-01' - born > 0"),
        ("SELECT count(*) FROM t WHERE age(born) > 5", "date '2024-12-31' - d", "SELECT count(*) FROM t WHERE date '2000-01-01' - born > 0"),
        ("SELECT count(*) FROM t WHERE to_char(born, 'YYYY') = '2000'", "extract(year FROM d)", "SELECT count(*) FROM t WHERE extract(year FROM born) < 2000"),
        ("SELECT count(*) FROM t WHERE strftime(born, '%Y') = '2000'", "extract(year FROM d)", "SELECT count(*) FROM t WHERE extract(year FROM born) < 2000"),
        ("SELECT count(*) FROM t WHERE decade(born) = 200", "extract(decade FROM d)", "SELECT count(*) FROM t WHERE extract(decade FROM born) < 200"),
        ("SELECT count(*) FROM t WHERE strpos(sex, 'F') = 1", "contains(x, 'a')", "SELECT count(*) FROM t WHERE contains(sex, 'F')"),
        ("SELECT replace(sex, 'F', 'x'), count(*) FROM t GROUP BY 1", "CASE WHEN x = 'a' THEN 'b' ELSE x END", "SELECT CASE WHEN sex = 'F' THEN 'x' ELSE sex END, count(*) FROM t GROUP BY 1"),
        ("SELECT count(*) FROM t WHERE isnull(income, 0) > 1", "coalesce(x, 0)", "SELECT count(*) FROM t WHERE coalesce(income, 0) >= 1"),
        ("SELECT count(*) FROM t WHERE avg(kids) > 1", "stands after HAVING", "SELECT count(*) FROM t HAVING avg(kids) > 1"),
        ("SELECT sex, count(*) AS n FROM t WHERE n > 3 GROUP BY sex", "write COUNT(*) in its place; a condition on it stands after HAVING", "SELECT sex, count(*) AS n FROM t GROUP BY sex HAVING count(*) > 3"),
        ("SELECT count(*) AS n, n * 2 FROM t", "write COUNT(*) in its place", "SELECT count(*) AS n, count(*) * 2 FROM t"),
        ("SELECT count(*) FROM t WHERE sex = F", "if it is a value, write 'F'", "SELECT count(*) FROM t WHERE sex = 'F'"),
        ("SELECT coutn(*) FROM t", "did you mean count?", "SELECT count(*) FROM t"),
        ("SELECT averge(income) FROM t", "did you mean avg?", "SELECT avg(income) FROM t"),
        ("SELECT avrage(income) FROM t", "did you mean avg?", "SELECT avg(income) FROM t"),
    ],
)  # fmt: skip
def test_what_to_write_instead_is_what_was_meant(written: str, meant: str, answered: str) -> None:
    error = refused(written)
    assert meant in error.remedy
    assert isinstance(compile_sql(answered, DOMAIN, tables=["t"]), CompiledSql)


@pytest.mark.parametrize("written", ["sin(age)", "random()", "pi()", "tan(age)"])
def test_no_function_of_a_like_name_is_offered_for_one_that_there_is_elsewhere(written: str) -> None:
    error = refused(f"SELECT count(*) FROM t WHERE {written} > 0")
    assert "did you mean" not in error.remedy
    assert not error.suggestions


def test_what_is_suggested_is_in_the_language() -> None:
    known = {*AGGREGATES.split(", "), *SCALARS.split(", ")}
    assert all(set(suggested) <= known for _, suggested in INSTEAD.values())
    assert not known & set(INSTEAD)  # nothing that is answered is said to be none


def test_a_refusal_writes_nothing_into_a_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        refused("SELECT count(*) FROM t WHERE to_char(born, 'YYYY') = '2000'")
    assert not caplog.records


@pytest.mark.parametrize(
    ("text", "has_bounds"),
    [
        ("SELECT sex, n * 2 FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex) AS g WHERE n > 3", True),
        ("SELECT sex, round(a) FROM (SELECT sex, avg(kids) AS a FROM t GROUP BY sex) AS g ORDER BY a LIMIT 1", True),
        ("SELECT sex, sum(n) FROM (SELECT sex, age, count(*) AS n FROM t GROUP BY sex, age) AS g GROUP BY sex", True),
        ("SELECT sum(n) FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex) AS g", True),
        ("SELECT avg(n) FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex) AS g", False),
        ("SELECT max(n) FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex) AS g", False),
        ("SELECT (SELECT count(*) FROM t WHERE smoker) / (SELECT count(*) FROM t)", False),
        ("SELECT sex, n FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex ORDER BY n LIMIT 2) AS g ORDER BY n DESC", False),
        ("SELECT sex, upper(sex), n FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex) AS g", False),
        ("SELECT sex, count(*) > 100 FROM t GROUP BY sex", False),
        ("SELECT sex, count(*) FROM t GROUP BY sex UNION ALL SELECT 'x', count(*) FROM t", False),
    ],
)  # fmt: skip
def test_which_statements_around_others_keep_their_bounds(text: str, has_bounds: bool) -> None:  # noqa: FBT001
    """As docs/known-gaps.md lists them: where both are one SELECT."""
    compiled = compile_sql(text, DOMAIN, tables=["t"])
    assert isinstance(compiled, CompiledSql if has_bounds else CompiledAround)
