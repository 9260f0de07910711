"""A quote says what the ledger would charge now; what is charged then is exactly that."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import URL

import understudy as us
from understudy.declaration.file import parse
from understudy.errors import InsufficientBudgetError, QueryError
from understudy.ledger.store import DurableLedger
from understudy.noise.samplers import SeededNoise
from understudy.table.source import in_memory

TEXT = """\
understudy: 1
name: town
source: t.csv
neighbours: {neighbours}
budget: {budget}
{rows}limits: {{analysts: {{ada: {ada}, "*": {others}}}, day: {day}}}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
  area: {{type: category, values: [a, b, c]}}
"""
FRAME = pd.DataFrame(
    {"age": [10, 30, 70, 40] * 30, "sex": ["F", "M", "F", "F"] * 30, "area": ["a", "b", "c"] * 40}
)
SOURCE = in_memory(FRAME)
QUESTIONS = (
    "count sex=F",
    "count sex=M",
    "count age<18 and area=a",
    "count age>=18 and area=a",
    "count by area",
    "share sex=F by area",
    "rate sex=F within area",
    "count",
    "SELECT area, count(*), avg(age) FROM town GROUP BY area",
    "SELECT count(*) FROM town WHERE area = 'b'",
)


def project(budget: str, neighbours: str) -> us.Project:
    pure = "delta" not in budget
    shares = {"ada": 0.4, "others": 0.25, "day": 0.7} if pure else {"ada": 0.02, "others": 0.01, "day": 0.03}
    rows = "rows: {at_most: 1000}\n" if neighbours == "add-remove" else ""
    declared = parse(TEXT.format(budget=budget, neighbours=neighbours, rows=rows, **shares))
    return us.Project.over(SOURCE, declared, noise=SeededNoise(1))


asked = st.lists(
    st.tuples(
        st.sampled_from(QUESTIONS),
        st.sampled_from([0.01, 0.05, 0.1, 0.3]),
        st.sampled_from(["", "ada", "bob"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@given(
    asked,
    st.sampled_from(["{epsilon: 1}", "{epsilon: 1, delta: 1e-6}"]),
    st.sampled_from(["replace", "add-remove"]),
)
def test_a_quote_is_what_is_charged(questions, budget, neighbours):
    town = project(budget, neighbours)
    for question, epsilon, analyst in questions:
        before = town.ledger.spent
        quote = town.quote(question, epsilon=epsilon, analyst=analyst)
        due = quote.due
        assert due is not None
        assert town.ledger.spent == before
        assert due.available == town.ledger.available(analyst)
        if due.payable:
            answer = town.ask(question, epsilon=epsilon, analyst=analyst)
            assert town.ledger.spent.units - before.units == due.cost.units == answer.cost.units
        else:
            with pytest.raises(InsufficientBudgetError) as refused:
                town.ask(question, epsilon=epsilon, analyst=analyst)
            assert (refused.value.requested, refused.value.limit) == (due.cost.amount, due.limit)
            assert town.ledger.spent == before


def test_what_is_about_other_people_is_due_nothing():
    """Joint accounting: the price alone and the charge of the moment differ."""
    town = project("{epsilon: 1}", "add-remove")
    town.ask("count sex=F", epsilon=0.2, analyst="ada")
    quote = town.quote("count sex=M", epsilon=0.2, analyst="ada")
    assert quote.cost.amount == 0.2
    assert quote.due is not None
    assert (quote.due.cost.units, quote.due.payable) == (0, True)
    again = town.quote("count sex=F", epsilon=0.3, analyst="bob")
    assert again.due is not None
    assert (again.due.payable, again.due.limit, again.due.available.amount) == (False, "analyst 'bob'", 0.25)
    assert "0.25 remains for analyst" in again._repr_html_()


def test_a_request_that_was_charged_is_due_nothing(tmp_path):
    declared = parse(
        TEXT.format(budget="{epsilon: 1}", neighbours="replace", rows="", ada=1, others=1, day=1)
    )
    url = URL.create("sqlite", database=str(tmp_path / "t.ledger"))
    ledger = DurableLedger(url, "town", declared.budget, limits=declared.limits)
    town = us.Project.frame(FRAME, declared, ledger=ledger)
    fresh = town.quote("count sex=F", epsilon=0.9, request="monday")
    assert fresh.due is not None
    assert (fresh.due.cost.amount, town.ledger.is_begun) == (0.9, False)
    town.ask("count sex=F", epsilon=0.9, request="monday")
    for name, cost in (("monday", 0.0), ("tuesday", 0.9)):
        due = town.quote("count sex=F", epsilon=0.9, request=name).due
        assert due is not None
        assert (due.cost.amount, due.payable) == (cost, name == "monday")
    ledger.close()


def test_the_columns_of_an_answer_are_known_before_it_is_paid():
    town = project("{epsilon: 1}", "replace")
    sql = "SELECT area, count(*) AS n FROM town GROUP BY area"
    columns = town.columns(sql)
    assert [(column.name, column.kind, column.type) for column in columns] == [
        ("area", "key", "text"),
        ("n", "value", "float"),
    ]
    assert town.ledger.spent.units == 0
    assert town.sql(sql, epsilon=0.1, analyst="ada").columns == columns
    with pytest.raises(QueryError, match="there is no attribute"):
        town.columns("SELECT colour, count(*) FROM town GROUP BY colour")
