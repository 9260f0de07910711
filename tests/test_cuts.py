"""Conditions that cut bins where no declared edge is: counted in parts, priced by the cells around them."""

from __future__ import annotations

import datetime as dt
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.curator import stack_events
from understudy.declaration.declaration import Unit
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.refinement import RefinedDomain, coarse_cells, refined, refines
from understudy.errors import DomainError, QueryError
from understudy.privacy.price import Price
from understudy.query import cutting as cutting_module
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


def test_groups_of_a_cut_attribute_are_parts_of_its_cells(frame):
    """The groups are the declared cells, cut where the conditions cut them; those that none can be in are 0."""
    with project(frame) as opened:
        told = opened.ask("count age < 28 by age", epsilon=30)
        assert told.rows() == [
            (("0-27",), (frame["age"] < 28).sum(), 0.0),
            (("28-29",), 0.0, 0.0),
            (("30-59",), 0.0, 0.0),
            (("60-100",), 0.0, 0.0),
        ]
        listed = opened.ask("SELECT age, count(*) FROM t WHERE age < 28 GROUP BY age", epsilon=30)
        assert listed.rows == [("0-27", (frame["age"] < 28).sum())]
        parts = "SELECT age, count(*), count(*) FILTER (WHERE age < 28) FROM t GROUP BY age"
        every = [len(frame[frame["age"].between(*ends)]) for ends in ((0, 27), (28, 29), (30, 59), (60, 100))]
        assert [row[1] for row in opened.ask(parts, epsilon=60).rows] == every
        cases = "SELECT CASE WHEN age < 28 THEN 'young' ELSE 'old' END AS k, count(*) FROM t GROUP BY k"
        told = opened.ask(cases, epsilon=300)
        assert {row[0]: row[1].value for row in told.cells} == {
            "young": (frame["age"] < 28).sum(),
            "old": (frame["age"] >= 28).sum(),
        }


EXPRESSIONS = [
    ("age * 2 < 55", lambda f: f["age"] * 2 < 55),
    ("55 > age * 2", lambda f: f["age"] * 2 < 55),
    ("age + 1 BETWEEN 29 AND 40", lambda f: (f["age"] + 1).between(29, 40)),
    ("age % 7 = 3", lambda f: f["age"] % 7 == 3),
    ("abs(age - 50) > 13", lambda f: (f["age"] - 50).abs() > 13),
    ("age - 20 IN (5, 50)", lambda f: (f["age"] - 20).isin([5, 50])),
    ("greatest(age, 25) < 28", lambda f: f["age"] < 28),
    ("CASE WHEN age < 28 THEN 1 WHEN age * 2 > 150 THEN 2 ELSE 3 END = 2", lambda f: f["age"] * 2 > 150),
    (
        "CASE WHEN sex = 'F' THEN age ELSE age * 2 END < 35",
        lambda f: f["age"].where(f["sex"] == "F", f["age"] * 2) < 35,
    ),
    ("pay / 3 < 41.1", lambda f: f["pay"] / 3 < 41.1),
    ("pay * pay < 50000", lambda f: f["pay"] ** 2 < 50_000),
    ("pay + 0.1 <= 300.3", lambda f: f["pay"] + 0.1 <= 300.3),
    ("pay = 500.3 OR pay IN (1000, 0)", lambda f: f["pay"].isin([500.3, 1000, 0])),
    ("pay >= 1000 OR NOT pay < 1000", lambda f: f["pay"] >= 1000),
    ("pay BETWEEN 123.4 AND 123.9", lambda f: f["pay"].between(123.4, 123.9)),
    ("year(born) = 1977", lambda f: f["born"].map(lambda day: day.year == 1977)),
    ("born + 10 < date '1977-03-09'", lambda f: f["born"] < dt.date(1977, 2, 27)),
    ("born < timestamp '1977-03-09 12:00:00'", lambda f: f["born"] <= dt.date(1977, 3, 9)),
    (
        "born IN (date '1977-03-09', date '1999-12-31')",
        lambda f: f["born"].isin([dt.date(1977, 3, 9), dt.date(1999, 12, 31)]),
    ),
]


@pytest.mark.parametrize(("condition", "held"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_a_condition_on_an_expression_cuts_where_it_changes(frame, condition, held):
    with project(frame) as opened:
        told = opened.ask(f"SELECT count(*) FROM t WHERE {condition}", epsilon=60)
        assert told.rows == [(int(held(frame).sum()),)]


def test_what_cuts_two_attributes_at_once_or_too_often_is_refused(frame):
    with project(frame) as opened:
        with pytest.raises(QueryError, match="age and pay together"):
            opened.ask("SELECT count(*) FROM t WHERE age * 2 < pay", epsilon=1)
        with pytest.raises(QueryError, match="cuts the bin"):
            opened.ask("SELECT count(*) FROM t WHERE floor(pay) % 2 = 0", epsilon=1)
        many = " or ".join(f"age = {i}" for i in range(1, 99, 2))
        with pytest.raises(QueryError, match="64 places"):
            opened.ask("count " + many + " or " + " or ".join(f"pay < {i}.5" for i in range(40)), epsilon=1)
        with pytest.raises(QueryError, match="is an integer"):
            opened.ask("count age < 28.5", epsilon=1)
        assert opened.ledger.spent.units == 0


HOSTILE = ["'28; DROP TABLE t'", "'28'' OR ''1''=''1'", "'28)) --'", "'0x1c'", "' 28 UNION SELECT 1'"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_question_reaches_the_engine(frame, text):
    """Only numbers and days become edges, and those are bound as values of the attribute's own type."""
    seen: list[tuple[object, ...]] = []

    def watched(domain, name, edges):
        edges = tuple(edges)
        seen.append((name, *edges))
        return refined(domain, name, edges)

    with project(frame) as opened, patch.object(cutting_module, "refined", watched):
        for column in ("age", "pay", "born"):
            with pytest.raises(QueryError):
                opened.ask(f"SELECT count(*) FROM t WHERE {column} < {text}", epsilon=1)
        assert opened.ledger.spent.units == 0
        opened.ask(
            "SELECT count(*) FROM t WHERE age < '28' AND pay < '99.5' AND born < '1977-03-09'", epsilon=1
        )
    kinds = {"age": int, "pay": float, "born": dt.date}
    assert len(seen) == 3
    assert all(type(edge) is kinds[name] for name, *edges in seen for edge in edges)


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

    with patch.object(stack_events, "coarse_cells", elsewhere):
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
    claimed = RefinedDomain((Bins.between("age", [0, 20, 60]), base["sex"]), declared=base)
    assert not refines(claimed, base)  # whatever it says of itself
    assert coarse_cells(fine, base, "age").tolist() == [0, 0, 1, 1]
    assert coarse_cells(fine, base, "sex").tolist() == [0, 1, 2]
    with pytest.raises(DomainError, match="has no bins"):
        refined(base, "sex", ["x"])


def test_parts_of_a_real_bin_have_labels_of_their_own(frame):
    with project(frame) as opened:
        told = opened.ask("count pay <= 123.4 by pay", epsilon=30)
        labels = [row[0][0] for row in told.rows()]
        after = "123.40000000000002"  # the next number after 123.4, which is in the first part
        assert labels[:3] == [f"[0, {after})", f"[{after}, 250)", "[250, 500)"]
        assert opened.domain["pay"].labels[0] == "[0, 250)"


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


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_parts_add_up_to_their_cells_where_rows_of_a_person_are_left_out(frame, kept):
    """Which rows are kept goes by declared cells, so that a refinement keeps as many in each of them."""
    people = frame.assign(person=np.arange(ROWS) // 7)
    with project(people, unit=Unit("person", kept, key="k"), neighbours="add-remove") as opened:
        truth, whole = opened.curator._truth, Marginal(opened.domain, ("age", "sex"))
        exact = truth.sums(whole)
        assert exact.sum() < ROWS
        for edges in ([28], [3, 28, 29, 77]):
            fine = refined(opened.domain, "age", edges)
            parts = truth.refined(fine).sums(Marginal(fine, ("age", "sex")))
            cells = coarse_cells(fine, opened.domain, "age")
            added = [parts[:, cells == cell].sum(axis=1) for cell in range(3)]
            assert (np.stack(added, axis=1) == exact).all()
        young, old = (
            int(truth.refined(fine).sums(Marginal(fine, (), LinearQuery.conjunction(fine, {"age": cells}))))
            for fine in (refined(opened.domain, "age", [28]), refined(opened.domain, "age", [28, 40]))
            for cells in ([start < 28 for start in fine["age"].starts],)
        )
        assert young == old  # another refinement of the same attribute keeps the same rows
