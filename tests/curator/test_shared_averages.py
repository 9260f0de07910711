"""Averages of bins are two sums that share each row: one vector at one price, which a person moves by one unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import understudy as us
from measured_rows import MeasuredRows
from statistical import assert_at_most
from understudy.curator.curator import Curator
from understudy.curator.pricing import QuestionPricing
from understudy.curator.question_price import QuestionPrice
from understudy.declaration.declaration import Unit
from understudy.declaration.file import parse
from understudy.errors import QueryError, RequestConflictError
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.columns import WeightColumns
from understudy.privacy.price import Price
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.sql import compile_sql
from understudy.sql.aggregate import Bounds, Folded
from understudy.sql.estimate import estimate
from understudy.sql.grid import Numbers

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {budget}
rows: {{at_most: 4000}}
attributes:
  kids: {{type: integer, edges: [0, 1, 2, 3, 7, 8]}}
  sex: {{type: category, values: [F, M]}}
  age: {{type: integer, edges: [0, 20, 40, 60, 80]}}
"""
PURE, ZCDP = "{epsilon: 4}", "{epsilon: 4, delta: 1e-6}"
FILTERS = (PURE, ZCDP, "{epsilon: 4, delta: 1e-6, filter: renyi}", "{epsilon: 4, delta: 1e-6, filter: gdp}")
BY_SEX = "SELECT sex, avg(age) AS a FROM t GROUP BY sex"
CASE = "SELECT sex, avg(CASE WHEN kids < 2 THEN 1 ELSE 0 END) AS a FROM t GROUP BY sex"


def declared(neighbours: str = "replace", budget: str = PURE):
    text = TEXT.format(neighbours=neighbours, budget=budget)
    return parse(text if neighbours == "add-remove" else text.replace("rows: {at_most: 4000}\n", ""))


def frame(rows: int = 2000) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "kids": draw.integers(0, 8, rows),
            "sex": draw.choice(["F", "M"], rows),
            "age": draw.integers(0, 80, rows),
        }
    )


FRAME = frame()


def project(neighbours: str = "replace", budget: str = PURE, **given: Any) -> us.Project:
    return us.Project.frame(FRAME, declared(neighbours, budget), noise=SeededNoise(5), **given)


# ---- the price


@pytest.mark.parametrize("budget", FILTERS)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("text", [BY_SEX, CASE, "SELECT avg(age) FROM t WHERE sex = 'F'"])
def test_an_average_is_one_vector_at_the_whole_price_and_is_charged_its_quote(text, neighbours, budget):
    p = project(neighbours, budget)
    prepared = p.prepare(text, epsilon=0.5)
    assert prepared._measurement.stacks == ((0, 1),)
    mechanism, resolution = prepared._measurement.mechanisms[0]
    most = 1 if neighbours == "add-remove" else 2
    unit = most * resolution
    if isinstance(mechanism, LaplaceMechanism):
        assert mechanism.l1 <= unit + most  # one step of rounding for each row
    else:
        assert isinstance(mechanism, GaussianMechanism | RoundedNormalMechanism)
        assert mechanism.l2_squared <= most * resolution * (resolution + 1)
    answer = prepared.run()
    assert answer.cost == prepared.quote.cost == p.ledger.spent
    assert float(p.ledger.budget.epsilon_of(answer.cost)) == pytest.approx(0.5, rel=2e-3)


@pytest.mark.parametrize("budget", [PURE, ZCDP])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("text", [BY_SEX, CASE])
def test_its_error_is_about_half_of_that_of_a_sum_and_a_number_of_rows(text, neighbours, budget):
    """The half-width at one price, without the part that comes from bins."""
    p = project(neighbours, budget)

    def half_width(prepared) -> float:
        cell = prepared.run().cells[0][1]
        return (cell.high - cell.low) / 2 - cell.discretisation

    now = half_width(p.prepare(text, epsilon=0.3))
    before = p._as_it_was(p._reader.select(text), {"epsilon": 0.3})
    assert before is not None
    assert len(before._measurement.stacks) == 2
    assert now < 0.55 * half_width(before)


def test_what_is_told_beside_an_average_follows_from_its_shares():
    p = project("add-remove")
    text = "SELECT sex, count(*), sum(age), avg(age) FROM t GROUP BY sex"
    prepared = p.prepare(text, epsilon=1)
    assert prepared._measurement.stacks == ((0, 1),)
    for name, count, total, mean in prepared.run().cells:
        if name != "other":
            true = FRAME[FRAME.sex == name]
            for cell, value in ((count, len(true)), (total, true.age.sum()), (mean, true.age.mean())):
                assert cell.low <= value <= cell.high
            assert mean.value == pytest.approx(total.value / count.value, rel=1e-2)


def test_groups_of_several_cells_and_conditions_that_exclude_each_other_are_one_vector_too():
    p = project()
    text = "SELECT CASE WHEN kids < 2 THEN 'few' ELSE 'many' END AS k, avg(age) AS a FROM t GROUP BY 1"
    assert p.prepare(text, epsilon=1)._measurement.stacks == ((0, 1, 2, 3),)
    p = project("add-remove")
    apart = "SELECT avg(age) FILTER (WHERE sex = 'F'), avg(age) FILTER (WHERE sex = 'M') FROM t"
    assert p.prepare(apart, epsilon=1)._measurement.stacks == ((0, 1, 2, 3),)
    shared = "SELECT sex, avg(age), avg(kids) FROM t GROUP BY sex"
    assert {(0, 1), (2, 3)} <= set(p.prepare(shared, epsilon=1)._measurement.stacks)


def test_one_group_of_a_public_number_of_rows_is_divided_by_that_number():
    p = project("replace")
    prepared = p.prepare("SELECT avg(age) FROM t", epsilon=1)
    assert prepared._measurement.mechanisms[0][0].event.moves_nobody
    assert p.prepare("SELECT avg(age) FROM t WHERE sex = 'F'", epsilon=1)._measurement.stacks == ((0, 1),)
    for beside in ("count(*)", "sum(age)", "avg(kids)", "median(age)"):  # a replaced row moves shares by 2
        text = f"SELECT {beside}, avg(age) FROM t WHERE sex = 'F'"
        assert all(len(stack) == 1 for stack in p.prepare(text, epsilon=1)._measurement.stacks)


# ---- the sensitivity, by brute force on every small table


UNIVERSE = list(product([0, 2, 7], ["F", "M"], [5, 30, 79]))
"""Rows in different cells; the ends of every attribute are among them."""

UNEVEN = "SELECT avg(age * kids) FROM t WHERE kids < 7"
WITH_UNIT = Unit("person", 2, key="k")


def sums(statement: str, rows: list[Any], declaration, asked: QuestionPrice):
    """What meets noise for a statement, and the mechanism that adds it: for each stack its sums side by side."""
    truth: Any = MeasuredRows(declaration.domain, rows)
    curator = Curator(truth, MemoryLedger(declaration.budget), declaration, noise=SeededNoise(1))
    compiled = compile_sql(
        statement,
        declaration.domain,
        tables=["t"],
        rows_public=declaration.relation.rows_are_public,
        measured="shares",
        averages="shares",
    )
    prepared = QuestionPricing(curator.calibration, curator.ledger).prepare(compiled.marginals, asked)
    found = []
    for stack in prepared.stacks:
        mechanism, resolution = prepared.mechanisms[stack[0]]
        tables = truth.sums_of([prepared.marginals[i] for i in stack], resolution=resolution)
        found.append((mechanism, np.concatenate([table.ravel() for table in tables]).astype(object)))
    return found


def loss(mechanism: Any, moved: Any) -> Fraction:
    """The privacy loss at its worst, exactly: Laplace noise's ε, or Gaussian noise's ρ, for sums so far apart.

    Discrete Laplace noise of scale b has P[x]/P[x - d] ≤ exp(|d|/b), in each place independently, and attains it;
    discrete Gaussian noise of variance v is Δ²/(2v)-zCDP.
    """
    if isinstance(mechanism, LaplaceMechanism):
        return sum(map(abs, moved)) / mechanism.scale
    return sum(step**2 for step in moved) / (2 * mechanism.variance)


@pytest.mark.parametrize("asked", [QuestionPrice(epsilon=1), QuestionPrice(rho=Fraction(1, 50))])
@pytest.mark.parametrize("text", [BY_SEX, CASE, "SELECT avg(age) FROM t WHERE kids < 7", UNEVEN])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove", "unit"])
def test_no_neighbour_loses_more_than_the_price_and_some_lose_nearly_all(text, asked, neighbours):
    budget = PURE if asked.rho is None else ZCDP
    declaration = declared("replace" if neighbours == "replace" else "add-remove", budget)
    most = 2 if neighbours == "unit" else 1
    if most > 1:
        declaration = replace(declaration, unit=WITH_UNIT)
    told = {row: sums(text, [row], declaration, asked) for row in UNIVERSE}
    none = sums(text, [], declaration, asked)
    worst = Fraction(0)
    # A table's sums add up over its rows, so that two neighbours differ by the columns of what they differ in.
    for one, other in combinations_with_replacement(UNIVERSE, 2):
        total = Fraction(0)
        for (mechanism, base), (_, first), (_, second) in zip(none, told[one], told[other], strict=True):
            if neighbours == "replace":
                moved = first - second
            else:
                moved = (first - base) + (second - base if most > 1 else 0)
            total += loss(mechanism, moved)
        worst = max(worst, total)
    price = Fraction(1) if asked.rho is None else Fraction(1, 50)
    assert worst <= price
    if text != UNEVEN:  # where the half widths of bins are measured besides, no row is the worst for both
        assert worst >= price * Fraction(999, 1000)


def test_the_price_is_that_of_all_rows_of_a_person():
    """A person of two rows in one cell moves the vector twice as far, and gets noise for that."""
    alone = declared("add-remove")
    pair = replace(alone, unit=WITH_UNIT)
    scales = []
    for declaration in (alone, pair):
        ((mechanism, _),) = sums(BY_SEX, [], declaration, QuestionPrice(epsilon=1))
        assert isinstance(mechanism, LaplaceMechanism)
        scales.append(mechanism.scale)
    assert scales[1] == 2 * scales[0]


def test_weights_that_add_up_to_more_than_one_share_no_noise():
    p = project()
    halves = [np.array([0.5, 0.25, 0.0]), np.array([0.5, 0.8, 0.0])]
    stack = [Marginal.of(LinearQuery(p.domain, (Factor(("sex",), weights),))) for weights in halves]
    with pytest.raises(QueryError, match="add up to 1"):
        p.curator.calibration.prepare(stack, Price.of(epsilon=1), stacks=[(0, 1)])
    prepared = p.curator.calibration.prepare(stack, Price.of(epsilon=1))
    with pytest.raises(QueryError, match="add up to 1"):
        p.curator.perform(replace(prepared, stacks=((0, 1),)))
    assert p.ledger.spent.units == 0


@pytest.mark.parametrize("resolution", [1, 2, 64, 1 << 20, 1 << 34])
def test_rounding_adds_at_most_half_a_step_for_each_sum(resolution):
    """Also where a weight and its complement are both half-way between steps, and in numbers beyond 64 bits."""
    p = project()
    for weight in (0.1, 0.25, 1 / 3, 0.5 + 2**-30, 2.0**-60, 1.0):
        table = np.array([weight, 0.0, 1.0])
        stack = [
            Marginal.of(LinearQuery(p.domain, (Factor(("sex",), part),))) for part in (table, 1.0 - table)
        ]
        moved = WeightColumns.of(stack, resolution=resolution).longest
        assert resolution <= moved.l1 <= resolution + 1
        assert resolution**2 <= moved.l2_squared <= resolution * (resolution + 1)


# ---- intervals


@pytest.mark.parametrize("budget", [PURE, ZCDP])
def test_an_average_is_outside_its_bounds_as_seldom_as_promised(budget):
    """People stand where their bins' middles are, so that bounds without the bins are tested."""
    still = FRAME.assign(age=FRAME.age // 20 * 20 + 10, kids=FRAME.kids.clip(upper=2))
    text = (
        "SELECT avg(age), avg(age) FILTER (WHERE kids = 0), sum(kids) FILTER (WHERE kids < 3) "
        "FROM t WHERE sex = 'F'"
    )
    women = still[still.sex == "F"]
    true = [women.age.mean(), women[women.kids == 0].age.mean(), women.kids.sum()]
    p = us.Project.frame(still, declared("add-remove", budget), noise=SeededNoise(8))
    prepared, missed, trials = p.prepare(text, epsilon=0.02, beta=0.2), 0, 60
    for _ in range(trials):
        (row,) = prepared.run().cells
        for cell, value in zip(row, true, strict=True):
            if not cell.low + cell.discretisation - 1e-9 <= value <= cell.high - cell.discretisation + 1e-9:
                missed += 1
                break
    assert_at_most(missed, trials, 0.2)


# ---- what earlier versions charged


def test_a_request_of_an_average_in_two_halves_is_found_again_and_not_paid_twice():
    books = MemoryLedger(declared(budget=ZCDP).budget)
    p = project(budget=ZCDP, ledger=books)
    before = p._as_it_was(p._reader.select(BY_SEX), {"rho": Fraction(1, 1000)})
    assert before is not None
    first = before.run(request="r")
    spent = books.spent
    again = p.ask(BY_SEX, rho=Fraction(1, 1000), request="r")
    assert again.cells == first.cells
    assert books.spent == spent
    with pytest.raises(RequestConflictError):
        p.ask("SELECT sex, avg(kids) FROM t GROUP BY sex", rho=Fraction(1, 1000), request="r")
    with pytest.raises(RequestConflictError):
        p.ask(BY_SEX, rho=Fraction(1, 500), request="r")
    assert books.spent == spent


APART = (
    "SELECT avg(age) FILTER (WHERE sex = 'F'), avg(age) FILTER (WHERE sex = 'M') FROM t",
    "SELECT CASE WHEN kids < 2 THEN 'few' ELSE 'many' END AS k, avg(age) FROM t GROUP BY 1",
    "SELECT sum(age) FILTER (WHERE sex = 'F'), sum(age) FILTER (WHERE sex = 'M') FROM t",
)
"""Statements over rows that exclude each other, with weights other than 0 and 1."""


@pytest.mark.parametrize("text", APART)
@pytest.mark.parametrize(("budget", "price"), [(PURE, {"epsilon": 0.05}), (ZCDP, {"rho": Fraction(1, 1000)})])
def test_a_request_whose_counts_alone_shared_a_price_is_found_again_and_not_paid_twice(text, budget, price):
    """As it was charged while weighted sums of different rows had a price each, and counts of them had one."""
    books = MemoryLedger(declared(budget=budget).budget)
    p = project(budget=budget, ledger=books)
    marginals = p._reader_with("sums").select(text).marginals
    counts = tuple(i for i, marginal in enumerate(marginals) if marginal.where.is_counting)
    stacks = sorted([counts, *((i,) for i in range(len(marginals)) if i not in counts)])
    assert len(counts) == 2
    assert len(stacks) == 3
    (currency, amount), slack = next(iter(price.items())), Fraction(4, 10**15)  # left for rounding up
    each = Price.of(**{currency: Fraction(str(amount)) / 3})
    each = Price(each.currency, Fraction(int(each.amount * 10**15), 10**15) - slack)
    share = Fraction(1, 20) / len(marginals)
    before = p.curator.perform(
        p.curator.calibration.prepare(marginals, each, beta=share, stacks=stacks), request="r"
    )
    spent = books.spent
    again = p.ask(text, **price, request="r")
    assert books.spent == spent == again.cost
    of_counts = next(one for one in before if one.query.where.is_counting)
    total = sum(float(one.noisy.sum()) for one in before if not one.query.where.is_counting)
    if text.startswith("SELECT sum"):
        told = sum(cell.value for cell in again.cells[0])
        rows = sum(float(one.noisy) for one in before if one.query.where.is_counting)
        middles = p.domain["age"].representatives
        assert told == pytest.approx(middles[0] * rows + (middles[-1] - middles[0]) * total)
    assert of_counts.noise == again.noise
    with pytest.raises(RequestConflictError):
        p.ask(text.replace("age", "kids"), **price, request="r")


# ---- sums beside an average


SMALL = pd.DataFrame({"kids": [0] * 55 + [1] * 5, "sex": ["M"] * 57 + ["F"] * 3, "age": [70] * 60})
EXACTLY = "CASE WHEN kids < 1 THEN 0 WHEN kids < 3 THEN 2 ELSE 10 END"


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("budget", [PURE, ZCDP])
def test_a_sum_beside_an_average_is_told_between_possible_sums(neighbours, budget):
    """Of three people at a low price: noise is much larger than the sum, and may be larger than any sum."""
    p = us.Project.frame(SMALL, declared(neighbours, budget), noise=SeededNoise(2))
    most = 60 if neighbours == "replace" else 4000
    for aggregate, least, largest in ((EXACTLY, 0, 10), (f"0 - {EXACTLY}", -10, 0), ("age", 0, 80)):
        prepared = p.prepare(
            f"SELECT sex, avg({aggregate}), sum({aggregate}) FROM t GROUP BY sex", epsilon=0.01
        )
        for _ in range(12):
            for _, _, told in prepared.run().cells:
                assert least * most <= told.low <= told.value <= told.high <= largest * most
                assert told.discretisation >= 0


def test_a_sum_that_contradicts_its_rows_is_one_possible_point():
    """Released: so far below 0 of one share that the sum is at most 0, and rows of at least 10 each."""
    rows = Folded(np.array([30.0]), np.array([20.0]), np.array([40.0]))
    bounds = Bounds(below=1.0, above=1.0, least=10.0, most=30.0)
    low, high = bounds.around_sum(lambda tally: rows, rows, np.array([0.0]), np.array([0.0]))
    assert low == high == [120.0]  # half-way between 20 rows of 10 at least, and 40 rows of 1 more than 0
    low, high = bounds.around_sum(lambda tally: rows, rows, np.array([500.0]), np.array([600.0]))
    assert (low, high) == ([460.0], [640.0])


def test_the_part_of_bins_is_never_negative():
    at = [np.array([end]) for end in (-411.0, 0.0, -411.0)]
    crossed = Numbers(("g",), *at, null=np.zeros(1, bool), unknown=np.zeros(1, bool))
    assert estimate(crossed, crossed, 0).discretisation == 0
