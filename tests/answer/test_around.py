"""A SELECT around SELECTs over the table: priced like these, answered without bounds, in projects, sessions, releases."""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import json

import pytest

import tiny_release
import understudy as us
from understudy.answer.around_answer import AroundAnswer
from understudy.answer.around_question import shared_desk
from understudy.answer.reader import QuestionReader
from understudy.answer.sql_answer import SqlAnswer
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError, StatementError, TooLargeError
from understudy.sql import CompiledAround, Estimate

DOMAIN_OF_MANY = Domain((Bins.integers("a", 0, 299), Bins.integers("b", 0, 299)))
SHARES = "SELECT sex, count(*) AS n, count(*) / sum(count(*)) OVER () AS share FROM people WHERE sex IS NOT NULL GROUP BY sex ORDER BY n DESC"
JOINED = (
    "WITH young AS (SELECT sex, count(*) AS n FROM people WHERE age < 18 GROUP BY sex), every AS (SELECT sex, count(*) AS n FROM people GROUP BY sex) "
    "SELECT every.sex, young.n AS young, every.n AS n, young.n / nullif(every.n, 0) AS rate FROM young JOIN every ON young.sex = every.sex"
)
SCALARS = "SELECT (SELECT count(*) FROM people WHERE smoker) / (SELECT count(*) FROM people WHERE age >= 18) AS ratio"


def project(budget: str = "{epsilon: 60, delta: 1e-6}") -> us.Project:
    return tiny_release.project(tiny_release.DECLARATION.replace("{epsilon: 2}", budget))


def check(answer: object, text: str) -> AroundAnswer:
    """The rows are what the outer statement says of the inner ones' values, and nothing has bounds but these."""
    assert isinstance(answer, AroundAnswer)
    assert answer.text == text
    assert answer.problem == ""
    assert all(column.kind == "derived" for column in answer.columns)
    assert not any(isinstance(cell, Estimate) for row in answer.cells for cell in row)
    assert sum(one.cost.units for one in answer.inner) == answer.cost.units
    return answer


def test_a_window_over_groups_is_made_of_released_rows():
    answer = check(project().sql(SHARES, rho=0.01), SHARES)
    (inner,) = answer.inner
    values = {row[0]: row[1] for row in inner.rows}
    assert [(c.name, c.type) for c in answer.columns] == [("sex", "text"), ("n", "float"), ("share", "float")]
    assert [row[1] for row in answer.rows] == sorted(values.values(), reverse=True)
    for sex, number, share in answer.rows:
        assert number == values[sex]
        assert share == pytest.approx(number / sum(values.values()))
    assert all(isinstance(cell, Estimate) and cell.low is not None for row in inner.cells for cell in row[1:])


def test_joins_and_scalars_of_released_results():
    table = project()
    joined = check(table.sql(JOINED, rho=0.01), JOINED)
    young, every = ({row[0]: row[1] for row in one.rows} for one in joined.inner)
    assert joined.rows
    for sex, few, many, rate in joined.rows:
        assert (few, many) == (young[sex], every[sex])
        assert rate == pytest.approx(few / many) if many else rate is None
    ratio = check(table.sql(SCALARS, rho=0.01), SCALARS)
    ((one,),), ((other,),) = (
        inner.rows for inner in sorted(ratio.inner, key=lambda a: "smoker" not in a.text)
    )
    assert ratio.rows == [(pytest.approx(one / other),)]


def test_the_price_is_that_of_the_selects_and_each_count_is_measured_once():
    table = project()
    alone = [
        "SELECT sex, count(*) AS n FROM people WHERE age < 18 GROUP BY sex",
        "SELECT sex, count(*) AS n FROM people GROUP BY sex",
    ]
    parts = [table.quote(text, error=30, beta=0.025).cost.units for text in alone]  # they share the beta
    assert table.quote(JOINED, error=30, beta=0.05).cost.units == pytest.approx(sum(parts), rel=1e-6)
    twice = f"SELECT a.n - b.n FROM ({alone[1]}) a JOIN ({alone[1]}) b USING (sex)"
    assert table.quote(twice, error=30, beta=0.025).cost.units == parts[1]
    quoted = table.quote(JOINED, rho=0.01)
    answer = check(table.ask(JOINED, rho=0.01), JOINED)
    assert answer.cost.amount == pytest.approx(quoted.due.cost.amount) == pytest.approx(0.01)


def test_a_repeated_request_gets_the_same_rows_for_nothing_more():
    table = project()
    first = table.sql(SHARES, rho=0.01, request="r")
    left = table.ledger.remaining
    again = table.sql(SHARES, rho=0.01, request="r")
    assert again.rows == first.rows
    assert table.ledger.remaining == left


def test_a_session_answers_it_and_repeats_it_for_nothing():
    session = us.session(project(), alpha=0.1, beta=0.05, queries=100)
    assert session.known(JOINED) is None
    price = session.price(JOINED)
    answer = check(session.ask(JOINED), JOINED)
    assert 0 < answer.cost.units <= price.units
    again = check(session.ask(JOINED), JOINED)
    assert (again.rows, again.cost.units) == (answer.rows, 0)
    known = session.known(JOINED)
    assert isinstance(known, AroundAnswer)
    assert known.rows == answer.rows
    assert session.ask("SELECT sex, count(*) AS n FROM people GROUP BY sex").cost.units == 0


def test_a_release_answers_it():
    released = us.release(tiny_release.project(), "1-way", epsilon=1, method=tiny_release.tiny)
    answer = check(released.answer(JOINED), JOINED)
    assert answer.rows == check(released.sql(JOINED), JOINED).rows
    assert answer.cost.units == 0
    assert len(answer.inner) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT nothing, rank() OVER () FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t", "there is no column 'nothing'"),
        ("SELECT getenv('HOME') FROM (SELECT count(*) AS n FROM people) t", "getenv"),
        ("SELECT sum(sex) FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t", "arguments like these"),
        ("SELECT * FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t JOIN duckdb_settings() s ON true", "tables are not made by functions"),
        ("SELECT * FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t JOIN people p USING (sex)", "rows are not joined"),
        ("SELECT * FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t JOIN pg_class USING (sex)", "there is no table 'pg_class'"),
        ("SELECT * FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t, (SELECT age FROM people) u", "rows are private"),
        ("SELECT a.n FROM (SELECT count(*) AS n FROM people) a WHERE a.n > (SELECT count(*) FROM people b WHERE b.age = a.n)", "there is no table 'a'"),
    ],
)  # fmt: skip
def test_refusals_come_before_anything_is_paid(text, words):
    table = project()
    table.curator._truth.sums_of = None  # any look would fail otherwise than by a refusal
    for call in (table.sql, table.ask, table.quote, table.prepare):
        with pytest.raises(QueryError) as refused:
            call(text)
        assert words in str(refused.value)
        assert refused.value.remedy
    assert table.ledger.remaining == table.ledger.budget.cap


def test_columns_are_known_before_anything_is_paid():
    table = project()
    text = "SELECT sex, count(*) > 10 AS many, rank() OVER (ORDER BY count(*)) AS r, bin_start(born) AS since, avg(age) AS a FROM people GROUP BY sex, born"
    columns = table.prepare(text).columns
    assert [(c.name, c.type) for c in columns] == [
        ("sex", "text"),
        ("many", "bool"),
        ("r", "int"),
        ("since", "date"),
        ("a", "float"),
    ]
    assert table.prepare(text).forecast() == ()
    assert table.ledger.remaining == table.ledger.budget.cap
    answer = table.sql(text, rho=0.01)
    assert answer.columns == columns


def test_an_outer_statement_that_fails_on_what_was_released_keeps_what_was_paid_for():
    text = "SELECT sex::int FROM (SELECT sex, count(*) AS n FROM people WHERE sex IS NOT NULL GROUP BY sex) t WHERE n > -1 ORDER BY rank() OVER ()"
    answer = project().sql(text, rho=0.01)
    assert isinstance(answer, AroundAnswer)
    assert answer.cells == ()
    assert "a value cannot be converted" in answer.problem
    assert [row[0] for row in answer.inner[0].rows] == ["F", "M", "other"]


def test_an_answer_says_that_it_has_no_bounds():
    answer = check(project().sql(SHARES, rho=0.01), SHARES)
    plain = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
    assert plain["bounds"] == "none"
    assert plain["inner"][0]["rows"][0][1].keys() == {"value", "low", "high", "discretisation"}
    assert plain["inner"][0]["statement"].startswith("SELECT")
    assert "without bounds" in repr(answer)
    assert "no bounds" in answer._repr_html_()
    frame = answer.to_pandas()
    assert list(frame.columns) == ["sex", "n", "share"]
    assert "bounds" not in project().sql("SELECT count(*) FROM people WHERE age < 18", rho=0.01).as_dict()


def test_what_is_not_a_finite_number_is_missing():
    answer = project().sql(
        "SELECT n / 0 AS a, 'nan'::double AS b FROM (SELECT count(*) AS n FROM people) t ORDER BY row_number() OVER ()"
    )
    assert answer.rows == [(None, None)]


def test_the_outer_statement_sees_released_rows_only():
    compiled = project()._reader.select(JOINED).compiled
    assert isinstance(compiled, CompiledAround)
    assert "people" not in compiled.outer
    assert [part.text.split(" FROM ")[1].split()[0] for part in compiled.inner] == ["people", "people"]
    with pytest.raises(StatementError):
        shared_desk().run("SELECT * FROM people")


def test_inner_rows_are_bounded_before_anything_is_paid():
    wide = DOMAIN_OF_MANY
    text = "SELECT count(*) FROM (SELECT a, b, count(*) AS n FROM t GROUP BY a, b) x WHERE n > 3"
    reader = QuestionReader(wide, tables=["t"], rows_public=True, counts_everyone=False)
    with pytest.raises(TooLargeError, match="at most 50,000 are handed on"):
        reader.read(text)
    assert reader.read(text.replace("GROUP BY a, b", "GROUP BY a, b LIMIT 10"))


def test_a_plain_statement_keeps_its_bounds():
    texts = [
        "SELECT sex, sum(n) AS n FROM (SELECT sex, smoker, count(*) AS n FROM people GROUP BY sex, smoker) t GROUP BY sex ORDER BY n DESC",
        "SELECT * FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t WHERE n > 3",
        "SELECT sex, sum(n) FROM (SELECT sex, smoker, count(*) AS n FROM people GROUP BY sex, smoker) t GROUP BY sex",
    ]
    for text in texts:
        answer = project().sql(text, rho=0.01)
        assert type(answer) is SqlAnswer
        assert isinstance(answer.cells[0][1], Estimate)
