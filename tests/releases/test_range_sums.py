"""Ranges of ordered attributes: answered with errors of their own, jointly, from Python, disk and the command."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import understudy as us
from statistical import assert_at_most
from understudy.declaration.file import parse
from understudy.errors import ParameterError, SourceError
from understudy.mechanism.look import released
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.noise.samplers import SeededNoise
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.expression import parse as question_of
from understudy.query.workload import Workload
from understudy.releases.range_sums import RangeSums
from understudy.releases.release import Release
from understudy.releases.residual.tables import ResidualTables

TEXT = """
understudy: 1
name: shire
source: shire.csv
neighbours: {neighbours}
budget: {{epsilon: 400, delta: 1e-9}}
attributes:
  age: {{type: integer, bounds: [0, 15]}}
  height: {{type: integer, bounds: [0, 7]}}
  sex: {{type: category, values: [F, M]}}
"""
ROWS = 4000


def people() -> pd.DataFrame:
    draw = np.random.default_rng(8)
    age = draw.binomial(15, 0.4, ROWS)
    return pd.DataFrame(
        {
            "age": age,
            "height": np.clip(age // 2 + draw.integers(-1, 2, ROWS), 0, 7),
            "sex": draw.choice(["F", "M"], ROWS),
        }
    )


PEOPLE = people()


def project(neighbours: str = "replace", seed: int = 1) -> us.Project:
    return us.Project.frame(PEOPLE, parse(TEXT.format(neighbours=neighbours)), noise=SeededNoise(seed))


def made(neighbours: str = "replace", seed: int = 1, **options) -> Release:
    return us.release(
        project(neighbours, seed), us.marginals(2), epsilon=1, ranges=["age", "height"], **options
    )


def truth(low: int, high: int, sex: str | None = None) -> int:
    inside = PEOPLE["age"].between(low, high)
    return int((inside if sex is None else inside & (PEOPLE["sex"] == sex)).sum())


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_range_has_a_smaller_error_than_its_cells_together(neighbours):
    found = made(neighbours)
    assert found.certificate["method"] == "residual"  # what auto takes where ranges are asked
    told = found.answer("count age between 2 and 9")
    cells = found.answer("count by age")
    assert told.source == "measured"
    assert told.error < 0.5 * cells.error[2:10].sum()
    assert abs(float(told.value) - truth(2, 9)) <= told.error
    both = found.answer("count age between 2 and 9 and height between 1 and 4 by sex")
    assert both.source == "uncertified"  # three attributes, and pairs were asked for
    pairs = next(answer for answer in found.answers if answer.clique == ("age", "height"))
    assert (cells.error < pairs.error.sum(axis=1)).all()
    grouped = found.answer("count age between 2 and 9 by sex")
    exact = [truth(2, 9, "F"), truth(2, 9, "M"), 0]
    assert (np.abs(np.ravel(grouped.value) - exact) <= np.ravel(grouped.error)).all()


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_every_range_of_a_marginal_holds_at_once(neighbours):
    """Joint coverage of all ranges of both attributes, at a β that leaves room to fail."""
    table = np.zeros((16, 8), np.int64)
    np.add.at(table, (PEOPLE["age"], PEOPLE["height"]), 1)
    workload = Workload.of(project().domain, [("age", "height")])
    residuals = Residuals.of(workload, ["age", "height"], total=neighbours == "add-remove")
    look = residuals.strategies(residuals.precisions(), Relation(Neighbours(neighbours)), Fraction(1, 20))
    share = Fraction(1, 2) / RangeSums.questions(residuals)
    rows = float(ROWS) if neighbours == "replace" else None
    ages = np.array([_between(16, *ends) for ends in combinations(range(17), 2)])
    heights = np.array([_between(8, *ends) for ends in combinations(range(9), 2)])
    exact, noise = ages @ table @ heights.T, SeededNoise(9)
    worst = []
    for _ in range(150):
        told = np.array(released(look, [table], noise=noise))
        tables = ResidualTables(residuals, look, told, rows)
        value, error = tables.sums({"age": ages, "height": heights}, share)
        assert value.size == RangeSums.questions(residuals)
        # The sum over everybody, where it is public, has no error but that of floats.
        worst.append(float((np.abs(value - exact) / np.maximum(error, 1e-6)).max()))
    assert_at_most(int((np.array(worst) > 1).sum()), 150, 0.5)
    with pytest.raises(AssertionError):  # bars of single questions, not of all
        assert_at_most(int((np.array(worst) > 0.5).sum()), 150, 0.5)


def _between(size: int, start: int, end: int) -> np.ndarray:
    return ((np.arange(size) >= start) & (np.arange(size) < end)).astype(float)


def test_the_family_is_counted_by_listing_it():
    domain = project().domain
    residuals = Residuals.of(Workload.all_marginals(domain, 2), ["age"])
    ages, heights, sexes = 16 * 17 // 2, 8 + 1, 3 + 1
    assert RangeSums.questions(residuals) == ages * heights + ages * sexes + heights * sexes


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_what_was_measured_is_kept_on_disk(tmp_path, neighbours):
    found = made(neighbours)
    found.save(tmp_path / "out")
    loaded = Release.load(tmp_path / "out")
    for question in (
        "count age < 5",
        "count age between 2 and 9 by sex",
        "count height < 3 and age >= 4",
        "count by age",
    ):
        before, after = found.answer(question), loaded.answer(question)
        np.testing.assert_allclose(after.value, before.value, rtol=1e-12)
        np.testing.assert_allclose(after.error, before.error, rtol=1e-12)
    (tmp_path / "out" / "sums.npz").write_bytes(b"no archive")
    with pytest.raises(SourceError, match="cannot be read"):
        Release.load(tmp_path / "out")


def test_arrays_say_which_noise_was_added_and_those_of_0_1_had_discrete_noise():
    workload = Workload.of(project().domain, [("age", "height")])
    residuals = Residuals.of(workload, ["age"], total=True)
    relation = Relation(Neighbours.ADD_REMOVE)
    look = residuals.strategies(residuals.precisions(), relation, Fraction(1, 20), rounded=True)
    tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64))
    arrays = RangeSums(tables, Fraction(1, 1000)).as_arrays()
    assert RangeSums.from_arrays(workload.domain, workload.cliques, arrays).tables.look.rounded
    del arrays["rounded"]
    assert not RangeSums.from_arrays(workload.domain, workload.cliques, arrays).tables.look.rounded


def test_questions_outside_of_the_family_fall_back_to_cells():
    found = made()
    assert found.sums is not None
    domain = found.domain
    for question in ("count age in (2, 4)", "count sex in (F, M)", "count age < 3 or height < 2"):
        assert found.sums.answer(question_of(question, domain).marginal) is None


def test_an_attribute_without_order_has_no_ranges():
    opened = project()
    with pytest.raises(ParameterError, match="no order"):
        us.release(opened, us.marginals(2), epsilon=1, ranges=["sex"], method="residual")
    assert opened.ledger.spent.amount == 0
