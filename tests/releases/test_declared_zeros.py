"""Cells that are declared to be empty: read, respected by every stand-in that can, and exact in the answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DeclarationError, RefusedError, TooLargeError
from understudy.noise.samplers import SeededNoise
from understudy.query.constraint import determines, impossible

TEXT = """
understudy: 1
name: shire
source: shire.csv
neighbours: {neighbours}
budget: {{epsilon: 20, delta: 1e-9}}
attributes:
  age: {{type: integer, edges: [0, 16, 65, 120]}}
  retired: {{type: boolean}}
  city: {{type: category, values: [Bree, Tharbad, Minas]}}
  country: {{type: category, values: [Eriador, Gondor]}}
constraints: {constraints}
"""
CONSTRAINTS = """
  - impossible: age < 16 and retired = true
  - {attribute: city, determines: country, as: {Bree: Eriador, Tharbad: Eriador, Minas: Gondor}}
"""


def declared(constraints: str = CONSTRAINTS, neighbours: str = "replace"):
    return parse(TEXT.format(constraints=constraints, neighbours=neighbours))


def people(rows: int = 3000) -> pd.DataFrame:
    draw = np.random.default_rng(4)
    age = draw.integers(0, 100, rows)
    city = draw.choice(["Bree", "Tharbad", "Minas"], rows, p=[0.6, 0.3, 0.1])
    return pd.DataFrame(
        {
            "age": age,
            "retired": (age >= 60) & (draw.random(rows) < 0.7),
            "city": city,
            "country": np.where(city == "Minas", "Gondor", "Eriador"),
        }
    )


def made(method: str, *, constraints: str = CONSTRAINTS, neighbours: str = "replace"):
    project = us.Project.frame(people(), declared(constraints, neighbours), noise=SeededNoise(3))
    return us.release(project, us.marginals(2), epsilon=0.5, method=method)


def broken(rows: pd.DataFrame) -> int:
    abroad = (rows["city"] == "Minas") != (rows["country"] == "Gondor")
    named = rows["city"].isin(["Bree", "Tharbad", "Minas"])
    return int(((rows["age"] < 16) & rows["retired"].astype(bool)).sum() + (abroad & named).sum())


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("method", ["mwem", "residual", "adaptive", "aim"])
def test_no_synthetic_row_is_in_a_cell_that_is_declared_to_be_empty(method: str, neighbours: str):
    found = made(method, neighbours=neighbours)
    assert broken(found.sample(5000, seed=2)) == 0
    told = found.answer("count age < 16 and retired = true")
    assert (told.value, told.error) == (0, 0)
    assert found.answer("count by city").value.sum() > 2500


def test_without_the_declaration_some_rows_are():
    """So the test above can fail."""
    assert broken(made("mwem", constraints="[]").sample(5000, seed=2)) > 0


@pytest.mark.parametrize("method", ["smalldb", "ic"])
def test_a_method_that_fills_every_cell_is_refused(method: str):
    with pytest.raises(RefusedError, match="declared to be empty"):
        made(method)


def test_auto_takes_a_method_that_keeps_them():
    assert broken(made("auto").sample(5000, seed=2)) == 0


def test_constraints_that_contradict_each_other_are_refused_before_the_first_debit():
    both = "[{impossible: age < 16}, {impossible: not age < 16}]"
    project = us.Project.frame(people(), declared(both))
    with pytest.raises(RefusedError, match="cannot be kept"):
        us.release(project, us.marginals(1), epsilon=0.5)
    assert project.ledger.spent.amount == 0


def test_a_constraint_is_a_condition_on_cells():
    domain = declared("[]").domain
    told = impossible(domain, "(age < 16 or age >= 65) and city = Bree")
    assert told.clique == ("age", "city")
    assert (~told.allowed).sum() == 2
    assert not told.allowed[0, 0]
    fixed = determines(domain, "country", "city", {1: 2})
    assert fixed.clique == ("city", "country")
    assert fixed.allowed[:, 1].tolist() == [False, False, True, False]
    assert fixed.allowed[:, 0].all()


@pytest.mark.parametrize(
    ("constraints", "complaint"),
    [
        ("[{impossible: age < 17}]", "not a bin edge"),
        ("[{impossible: count by age}]", "no attribute 'count'"),
        ("[{impossible: age < 16 by city}]", "not every row meets"),
        ("[{impossible: ''}]", "not every row meets"),
        ("[{impossible: age >= 0}]", "not every row meets"),
        ("[{attribute: city, determines: country}]", "a constraint has the key"),
        ("[{attribute: city, determines: land, as: {Bree: Eriador}}]", "land"),
        ("[{attribute: city, determines: city, as: {Bree: Bree}}]", "not itself"),
        ("[{attribute: city, determines: country, as: {Brea: Eriador}}]", "no declared cell of city"),
        ("[{attribute: city, determines: country, as: {Bree: Mordor}}]", "no declared cell of country"),
        ("[{attribute: age, determines: country, as: {17: Gondor, 18: Gondor}}]", "stands here twice"),
        ("[{attribute: city, determines: country, as: [Bree]}]", "expected `value: value` pairs"),
        ("[{impossibly: age < 16}]", "Did you mean 'impossible'"),
        ("{impossible: age < 16}", "expected a list"),
    ],
)
def test_a_slip_in_a_constraint_is_named_with_its_line(constraints: str, complaint: str):
    with pytest.raises(DeclarationError, match=complaint) as caught:
        declared(constraints)
    assert caught.value.line == 12


def test_a_constraint_that_no_memory_holds_is_refused_before_it_is_made():
    domain = Domain((Bins.integers("a", 0, 10**6), Bins.integers("b", 0, 10**6)))
    with pytest.raises(TooLargeError):
        determines(domain, "a", "b", {1: 2})
