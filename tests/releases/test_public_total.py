"""Answers of a table whose number of rows is public: possible values, and intervals that hold what they held."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.releases.public_total import within_rows
from understudy.releases.run import MarginalAnswer


def project(sizes: list[int], rows: int) -> us.Project:
    attributes = "".join(f"  a{i}: {{type: integer, bounds: [0, {n - 1}]}}\n" for i, n in enumerate(sizes))
    head = "understudy: 1\nname: t\nsource: t.csv\nneighbours: replace\nbudget: {epsilon: 0.1, delta: 1e-9}\n"
    rng = np.random.default_rng(rows)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, n, rows) for i, n in enumerate(sizes)})
    return us.Project.frame(frame, parse(f"{head}attributes:\n{attributes}"), noise=SeededNoise(1))


def test_an_interval_keeps_every_possible_count_that_it_held_and_no_value_is_impossible():
    rows = 10
    numbers, errors = (
        np.array([-3.0, 0.0, 2.5, 10.0, 11.0, 14.0]),
        np.array([0.0, 0.5, 3.0, 4.5, 20.0, np.inf]),
    )
    counts, error = (np.array(both) for both in zip(*product(numbers, errors), strict=True))
    (told,) = within_rows([MarginalAnswer.around(("a",), counts, error, "measured")], rows)
    assert ((told.counts >= 0) & (told.counts <= rows)).all()
    assert (told.error <= error).all()
    assert (np.isinf(told.error) == np.isinf(error)).all()
    for truth in range(rows + 1):
        held = np.abs(counts - truth) <= error
        assert (np.abs(told.counts - truth)[held] <= told.error[held]).all()


def test_what_is_possible_stays_as_it_is_to_the_last_bit():
    counts, error = np.array([3.1, 5.9]), np.array([1.7, 2.3])
    (told,) = within_rows([MarginalAnswer.around(("a",), counts, error, "measured")], 10)
    assert np.array_equal(told.counts, counts)
    assert np.array_equal(told.error, error)


@pytest.mark.parametrize("method", ["adaptive", "residual", "mwem"])
@pytest.mark.parametrize("rows", [0, 1, 30])
def test_no_answer_is_about_more_people_than_there_are(method, rows):
    p = project([3, 2, 5], rows)
    made = us.release(p, us.marginals(2), epsilon=0.05, method=method)
    for answer in (*made.answers, *made.also):
        assert ((answer.counts >= 0) & (answer.counts <= rows)).all()
        assert (answer.error <= rows).all()


def test_the_number_of_rows_is_certain_where_it_is_public():
    p = project([3, 2], 40)
    made = us.release(p, us.marginals(0), epsilon=0.1, method="adaptive")
    (told,) = made.answers
    assert (told.counts.item(), told.error.item(), told.basis) == (40, 0, "certified")
    assert made.answer("count").source == "checked"
