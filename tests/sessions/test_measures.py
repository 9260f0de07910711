"""Sessions promise for measures: errors as a part of the range, repeats for nothing, and what histograms imply."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment
from understudy.sessions.knowledge import IntervalTable
from understudy.sessions.moment_bounds import moment_intervals

ROWS, ALPHA = 20_000, 0.03
ATTRIBUTES = {
    "sex": ["F", "M"],
    "age": {"edges": list(range(17, 91)), "resolution": 1},
    "pay": {"type": "real", "bounds": [0, 1000], "resolution": 0.5},
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    pay = np.floor(draw.lognormal(5, 1, ROWS).clip(0, 1000) * 2) / 2
    return pd.DataFrame(
        {"sex": draw.choice(["F", "M"], ROWS), "age": draw.integers(17, 91, ROWS), "pay": pay}
    )


def opened(frame, **more):
    return us.declare(frame, attributes=ATTRIBUTES, name="t", epsilon=2, **more)


@pytest.mark.parametrize("delta", [{}, {"delta": 1e-9}])
def test_sums_are_within_alpha_of_the_range_and_repeats_cost_nothing(frame, delta):
    with opened(frame, **delta) as project:
        session = us.session(project, alpha=ALPHA, beta=1e-9, queries=50)
        price = session.price("SELECT sum(pay) FROM t")
        told = session.ask("SELECT sum(pay) FROM t")
        assert told.cost.units <= price.units
        (row,) = told.cells
        assert row[0].low <= frame["pay"].sum() <= row[0].high
        assert row[0].high - row[0].low <= 2 * ALPHA * ROWS * 1000 * 1.0001
        again = session.ask("sum pay")
        assert again.cost.units == 0
        assert again.source == "repeat"
        assert float(again.value) == pytest.approx(row[0].value)
        average = session.ask("avg pay")
        assert average.cost.units == 0  # made of what the sum bought, and of a public number of rows
        assert float(average.error) <= ALPHA * 1000 * 1.0001
        assert average.population_error is None or average.population_error >= average.error


def test_groups_and_conditions_hold(frame):
    with opened(frame, delta=1e-9) as project:
        session = us.session(project, alpha=ALPHA, beta=1e-9, queries=50)
        told = session.ask("avg age where pay < 500 by sex")
        true = frame[frame["pay"] < 500].groupby("sex")["age"].mean()
        for (sex,), value, error in told.rows():
            if sex in true:
                assert abs(value - true[sex]) <= error
        spread = session.ask("SELECT stddev_pop(age) FROM t")
        assert spread.cells[0][0].low <= frame["age"].std(ddof=0) <= spread.cells[0][0].high


def test_another_process_goes_on_with_the_same_numbers(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 2}\nattributes:\n"
        "  sex: {type: category, values: [F, M]}\n  age: {type: integer, bounds: [17, 90], resolution: 1}\n"
    )
    told = []
    for _ in range(2):
        with us.open(tmp_path / "understudy.yml") as project:
            session = us.session(project, alpha=ALPHA, name="s")
            told.append(session.ask("avg age by sex"))
    assert (told[0].value == told[1].value).all()
    assert told[1].cost.units == 0


def test_a_histogram_that_tells_enough_makes_an_average_free(frame):
    """With a bin for each year nothing is lost to bins: the band of all ranges of ages is a band of their sum."""
    with opened(frame, delta=1e-9) as project:
        session = us.session(project, alpha=ALPHA, beta=1e-9, queries=50, classes=[us.ranges("age")])
        spent = project.ledger.spent
        told = session.ask("avg age")
        assert told.cost.units == 0
        assert told.source == "implied"
        assert project.ledger.spent == spent
        assert abs(float(told.value) - frame["age"].mean()) <= float(told.error)


def test_bounds_from_counts_contain_the_sum_and_are_narrow(frame):
    domain = us.declare(frame, attributes=ATTRIBUTES, name="t", epsilon=1).domain
    codes = {name: [domain[name].code(v) for v in frame[name].head(500)] for name in ("sex", "age", "pay")}

    def exact(marginal: Marginal) -> IntervalTable:
        held = np.broadcast_to(marginal.where.row_weights({n: np.array(c) for n, c in codes.items()}), 500)
        return IntervalTable(np.array(held.sum() - 2.0), np.array(held.sum() + 2.0))

    for name, width in (("age", 0.0), ("pay", 1 / 20)):
        measure = domain[name]
        for kind, power in (("position", 1), ("square", 2)):
            table = moment_intervals(Marginal(domain, (), moment=Moment(kind, (name,))), exact)
            places = np.array([measure.step_of(v) for v in frame[name].head(500)]) / measure.steps
            assert table is not None
            assert table.low <= (places**power).sum() <= table.high
            assert table.high - table.low <= 2 * 2.0 + power * 500 * (width + 1 / measure.steps) + 4
    where = LinearQuery.table(domain, ("sex",), [0, 0, 1])
    table = moment_intervals(Marginal(domain, (), where, Moment("product", ("age", "pay"))), exact)
    assert table is not None
    assert table.low == 0
    assert moment_intervals(Marginal(domain, (), moment=Moment("centred", ("age",))), exact) is None


def test_after_the_budget_a_stand_in_answers(frame):
    attributes = {"sex": ["F", "M"], "age": {"bounds": [17, 90], "resolution": 1}}
    with us.declare(frame[["sex", "age"]], attributes=attributes, name="t", epsilon=0.05) as project:
        session = us.session(project, alpha=0.002, queries=1000)
        told = session.ask("avg age by sex")
        assert told.source == "uncertified"
        assert np.isinf(told.error).all()
        assert 17 <= told.value.min() <= told.value.max() <= 90
