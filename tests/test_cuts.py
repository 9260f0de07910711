"""Conditions that cut bins where no declared edge is: counted in parts, priced by the cells around them."""

from __future__ import annotations

import datetime as dt
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.curator import curator as curator_module
from understudy.declaration.declaration import Unit
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.refinement import coarse_cells, refined, refines
from understudy.errors import DomainError, QueryError
from understudy.privacy.price import Price
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

ROWS = 2_000
ATTRIBUTES = {
    "sex": ["F", "M"],
    "age": {"edges": [0, 30, 60, 100]},
    "pay": {"type": "real", "bounds": [0, 1000], "bins": 4, "null": True},
    "born": {"edges": [dt.date(1950, 1, 1), dt.date(1980, 1, 1), dt.date(2010, 1, 1)]},
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(8)
    days = [dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in draw.integers(0, 20_000, ROWS)]
    pay = np.where(draw.random(ROWS) < 0.1, np.nan, np.round(draw.random(ROWS) * 1000, 1))
    return pd.DataFrame(
        {"sex": draw.choice(["F", "M"], ROWS), "age": draw.integers(0, 101, ROWS), "pay": pay, "born": days}
    )


def project(frame, **more):
    return us.declare(frame, attributes=ATTRIBUTES, name="t", **({"epsilon": 1000} | more))


QUESTIONS = [
    ("count age < 28", lambda f: f["age"] < 28),
    ("count age <= 28", lambda f: f["age"] <= 28),
    ("count age > 28 and age != 70", lambda f: (f["age"] > 28) & (f["age"] != 70)),
    ("count age = 33", lambda f: f["age"] == 33),
    ("count age in (5, 99, 100)", lambda f: f["age"].isin([5, 99, 100])),
    ("count not age between 10 and 44", lambda f: ~f["age"].between(10, 44)),
    ("count pay < 123.4", lambda f: f["pay"] < 123.4),
    ("count pay <= 123.4 or pay > 999.9", lambda f: (f["pay"] <= 123.4) | (f["pay"] > 999.9)),
    ("count born >= 1977-03-09", lambda f: f["born"] >= dt.date(1977, 3, 9)),
    ("SELECT count(*) FROM t WHERE age BETWEEN 28 AND 33", lambda f: f["age"].between(28, 33)),
    (
        "SELECT count(*) FILTER (WHERE born < date '1977-03-09') FROM t",
        lambda f: f["born"] < dt.date(1977, 3, 9),
    ),
]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_condition_may_cut_anywhere(frame, neighbours):
    with project(frame, neighbours=neighbours) as opened:
        for question, held in QUESTIONS:
            told = opened.ask(question, epsilon=60)
            value = told.cells[0][0].value if isinstance(told, us.SqlAnswer) else float(told.value)
            assert value == int(held(frame).sum()), question


def test_the_same_in_a_file_of_text_and_with_a_coded_copy(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 900}\ncoded_copy: true\nattributes:\n"
        "  age: {type: integer, edges: [0, 30, 60, 100]}\n"
    )
    for _ in range(2):
        with us.open(tmp_path / "understudy.yml") as opened:
            assert int(opened.ask("count age < 30", epsilon=200).value) == (frame["age"] < 30).sum()
            assert int(opened.ask("count age < 28", epsilon=200).value) == (frame["age"] < 28).sum()


def test_a_group_keeps_its_declared_cells(frame):
    with project(frame) as opened:
        for question in ("count age < 28 by age", "SELECT age, count(*) FROM t WHERE age < 28 GROUP BY age"):
            with pytest.raises(QueryError, match="28 is not a bin edge of age"):
                opened.ask(question, epsilon=1)
        cases = "SELECT CASE WHEN age < 28 THEN 'young' ELSE 'old' END AS k, count(*) FROM t GROUP BY k"
        told = opened.ask(cases, epsilon=300)
        assert {row[0]: row[1].value for row in told.cells} == {
            "young": (frame["age"] < 28).sum(),
            "old": (frame["age"] >= 28).sum(),
        }
        assert opened.ledger.spent.amount == pytest.approx(300)


def test_what_cuts_by_an_expression_or_too_often_is_refused(frame):
    with project(frame) as opened:
        with pytest.raises(QueryError, match="cuts the bin"):
            opened.ask("SELECT count(*) FROM t WHERE age * 2 < 55", epsilon=1)
        many = " or ".join(f"age = {i}" for i in range(1, 99, 2))
        with pytest.raises(QueryError, match="64 places"):
            opened.ask("count " + many + " or " + " or ".join(f"pay < {i}.5" for i in range(40)), epsilon=1)
        with pytest.raises(QueryError, match="is an integer"):
            opened.ask("count age < 28.5", epsilon=1)
        assert opened.ledger.spent.units == 0


def spent(frame, *questions: str) -> float:
    with project(frame, neighbours="add-remove") as opened:
        for question in questions:
            opened.ask(question, epsilon=1)
        return float(opened.ledger.spent.amount)


def test_parts_of_different_cells_cost_as_one_and_parts_of_one_cell_do_not(frame):
    assert spent(frame, "count age < 28", "count age > 70") == pytest.approx(1)
    assert spent(frame, "count age < 28", "count age >= 28") == pytest.approx(2)  # both in the cell 0-29
    assert spent(frame, "count age < 30", "count age >= 70") == pytest.approx(1)  # declared and cut together


def test_a_region_without_the_cells_that_are_cut_is_caught(frame):
    """A mutant: only declared cells that lie in a condition as a whole. Then a row in a cut cell is not charged.

    A row of age 29 counts in both questions: its loss is 2 where each costs 1.
    """
    both = ("count age < 30 and age >= 29", "count age < 35 and age >= 28")
    assert spent(frame, *both) == pytest.approx(2)

    def elsewhere(fine, coarse, name):
        cells = coarse_cells(fine, coarse, name)
        return np.where(
            np.bincount(cells, minlength=coarse[name].size)[cells] > 1, coarse[name].size - 1, cells
        )

    with patch.object(curator_module, "coarse_cells", elsewhere):
        assert spent(frame, both[0], "count age < 30") < 2


def test_with_several_rows_to_a_person_a_cut_has_no_region(frame):
    """Which rows of a person are kept depends on the cells, so that a region would be about other rows."""
    people = frame.assign(person=np.arange(ROWS) // 3)
    with project(people, neighbours="add-remove", unit=Unit("person", 2, key="k")) as opened:
        opened.ask("count age < 28", epsilon=1)
        opened.ask("count age > 70", epsilon=1)
        assert float(opened.ledger.spent.amount) == pytest.approx(2)


def test_refined_domains():
    base = Domain((Bins.between("age", [0, 30, 60]), Categories(name="sex", values=("F",), null=True)))
    fine = refined(base, "age", [10, 45])
    assert fine["age"].labels == ("0-9", "10-29", "30-44", "45-60")
    assert refines(fine, base)
    assert refines(base, base)
    assert not refines(base, fine)
    assert not refines(Domain((Bins.between("age", [0, 20, 60]), base["sex"])), base)
    assert not refines(Domain((Bins.between("age", [0, 30, 70]), base["sex"])), base)
    assert coarse_cells(fine, base, "age").tolist() == [0, 0, 1, 1]
    assert coarse_cells(fine, base, "sex").tolist() == [0, 1, 2]
    with pytest.raises(DomainError, match="has no bins"):
        refined(base, "sex", ["x"])


def test_marginals_of_other_cells_are_still_refused(frame):
    other = Domain((Bins.between("age", [0, 20, 100]), Categories(name="sex", values=("F", "M"))))
    with project(frame) as opened:
        with pytest.raises(QueryError, match="another domain"):
            opened.curator.measure(Marginal(other, ("age",)), epsilon=1)
        fine = refined(opened.domain, "age", [28])
        mixed = [Marginal(opened.domain, ("sex",)), Marginal(fine, (), LinearQuery.everyone(fine))]
        with pytest.raises(QueryError, match="different cells"):
            opened.curator.measure_all(mixed, Price.of(epsilon=1))
        assert opened.ledger.spent.units == 0


def test_sessions_and_releases_keep_the_declared_cells(frame):
    with project(frame) as opened:
        session = us.session(opened, alpha=0.05, queries=10)
        with pytest.raises(QueryError, match="28 is not a bin edge"):
            session.ask("count age < 28")
