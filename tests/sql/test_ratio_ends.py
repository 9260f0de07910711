"""Intervals from the noise of sums, for averages and variances: they hold as often as they say, and are narrower
than those from a box around each sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import erfc, sqrt
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

import understudy as us
from statistical import assert_at_most
from understudy.curator.prepared_measurement import LatticeSums
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.law import discrete_gaussian_log_law
from understudy.noise.samplers import SeededNoise
from understudy.noise.sums import NoiseLaw
from understudy.query.cell_noise import CellNoise, TallyNoise
from understudy.query.linear import LinearQuery
from understudy.sql import ratio_intervals
from understudy.sql.aggregate import Folded
from understudy.sql.compiler import compile_sql
from understudy.sql.grid import Floats
from understudy.sql.group import Tally
from understudy.sql.measured import MeasuredSpread, Moments, moments
from understudy.sql.ratio_intervals import JointNoise

BETA, RUNS, SPREADS = 0.2, 4_000, 1_000
PAY = Bins.measure("pay", 0, 100)
DOMAIN = Domain((PAY,))
AVERAGE = moments("centred", "x", LinearQuery.everyone(DOMAIN), (PAY,))
RESOLUTION = 1 << 20
"""The lattice of the sum of centred places; that of rows is the whole numbers."""


def released(rows: float, place: float, *, seed: int) -> list[Folded]:
    """Many releases of one group, whose average is at a place between 0 and 1: a count, and a sum of t - 1/2."""
    counts = GaussianMechanism(rho=Fraction(1, 5_000), l2_squared=1)
    sums = GaussianMechanism(rho=Fraction(1, 5_000), l2_squared=(RESOLUTION // 2) ** 2)
    noise, found = SeededNoise(seed), list[Folded]()
    for mechanism, exact, resolution, step in (
        (counts, rows, 1, 1.0),
        (sums, rows * (place - 0.5), RESOLUTION, 1.5),
    ):
        steps = np.full(RUNS, round(exact * resolution), np.int64)
        value = mechanism.release(steps, noise=noise) / resolution
        told = CellNoise(float(mechanism.variance) / resolution**2, step / resolution, RUNS * BETA / 2)
        found.append(
            Folded(value, value, value, noise=told.on(value))
        )  # β is divided by the number of groups
    return found


def misses(rows: float, place: float, *, seed: int = 4) -> int:
    low, high = AVERAGE.ratio_ends(released(rows, place, seed=seed), AVERAGE.forms["x"])
    return int(((low > place) | (high < place)).sum())


@pytest.mark.parametrize("rows", [20, 200, 10_000])
@pytest.mark.parametrize("place", [0.0, 0.125, 0.5, 0.9375])
def test_the_ratio_is_outside_as_often_as_it_may_be(rows, place):
    assert_at_most(misses(rows, place), RUNS, BETA)


@pytest.mark.parametrize("place", [0.125, 0.5])
def test_where_there_are_many_rows_it_is_no_wider_than_it_has_to_be(place):
    assert misses(10_000, place) > 0.75 * BETA * RUNS


def test_an_interval_that_forgets_the_noise_of_the_rows_is_noticed(monkeypatch):
    """A mutant: the number of rows taken as exact."""
    told = released(10_000, 0.125, seed=4)
    quiet = [Folded(told[0].value, told[0].low, told[0].high, noise=CellNoise(0, 0, 0).on(told[0].value))]
    ends = AVERAGE.ratio_ends([*quiet, told[1]], AVERAGE.forms["x"])
    assert ends is not None
    missed = int(((ends[0] > 0.125) | (ends[1] < 0.125)).sum())
    with pytest.raises(AssertionError):
        assert_at_most(missed, RUNS, BETA / 2)  # the quiet tally brings no β


def test_a_quantile_of_another_probability_is_noticed(monkeypatch):
    """A mutant: the normal quantile of one side taken for both."""

    class OneSided:
        def inv_cdf(self, p: float) -> float:
            return NormalDist().inv_cdf(2 * p)

    monkeypatch.setattr(ratio_intervals, "NormalDist", OneSided)
    with pytest.raises(AssertionError):
        assert_at_most(misses(10_000, 0.125), RUNS, BETA)


def test_without_noise_that_is_known_or_a_probability_there_is_none():
    told = released(200, 0.5, seed=1)
    assert AVERAGE.ratio_ends([told[0], Folded(*(told[1].value,) * 3)], AVERAGE.forms["x"]) is None
    silent = [
        Folded(part.value, part.low, part.high, noise=CellNoise(1, 0, 0).on(part.value)) for part in told
    ]
    assert AVERAGE.ratio_ends(silent, AVERAGE.forms["x"]) is None


# ---- Laplace noise, and variances


def laplace_released(
    kinds: Sequence[float], *, seed: int, cells: int = 1, loud: float = 1.0, runs: int = RUNS
) -> list[Folded]:
    """Many releases of sums by Laplace noise of one scale, each added up of some cells; `loud` is a mutant's."""
    resolution, scale = 1 << 10, Fraction(20 << 10)
    mechanism = LaplaceMechanism(epsilon=1 / scale, l1=1)
    noise, found = SeededNoise(seed), list[Folded]()
    for exact in kinds:
        steps = np.full((cells, runs), round(exact * resolution / cells), np.int64)
        value = mechanism.release(steps.ravel(), noise=noise).reshape(steps.shape).sum(axis=0) / resolution
        told = TallyNoise(
            value,
            np.full(runs, cells * 2 * (20.0 / loud) ** 2),
            np.full(runs, cells * 1.5 / resolution),
            np.full(runs, float(cells)),
            runs * BETA / len(kinds),
            LatticeSums(NoiseLaw("laplace", scale / Fraction(loud)), resolution),
        )
        found.append(Folded(value, value, value, noise=told))
    return found


SHARES = moments("shares", "x", LinearQuery.everyone(DOMAIN), (PAY,))


def laplace_misses(rows: float, place: float, **given) -> int:
    told = laplace_released([rows * (1 - place), rows * place], seed=5, **given)
    found = SHARES.ratio_ends(told, SHARES.forms["x"])
    assert found is not None
    exact = round(rows * place * 1024) / (round(rows * place * 1024) + round(rows * (1 - place) * 1024))
    return int(((found[0] > exact) | (found[1] < exact)).sum())


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize(("rows", "place"), [(50, 0.5), (300, 0.125), (30_000, 0.0), (30_000, 0.4)])
def test_with_laplace_noise_the_ratio_is_outside_as_often_as_it_may_be(rows, place, cells):
    assert_at_most(laplace_misses(rows, place, cells=cells), RUNS, BETA)


def test_with_laplace_noise_it_is_no_wider_than_it_has_to_be():
    assert laplace_misses(30_000, 0.4) > 0.8 * BETA * RUNS


def test_an_interval_for_less_laplace_noise_is_noticed():
    with pytest.raises(AssertionError):
        assert_at_most(laplace_misses(30_000, 0.4, loud=1.25), RUNS, BETA)


def spread_of(family: str, rows: int, *, loud: float = 1.0, seed: int = 8) -> tuple[Floats, Floats, float]:
    """The ends of the variance of a group with as many rows at a quarter as at three quarters, many times."""
    x, xx = rows * 0.5, rows * (0.0625 + 0.5625) / 2
    made = moments(family, "xx", LinearQuery.everyone(DOMAIN), (PAY,))
    matrix = np.array([made.forms[name] for name in ("rows", "x", "xx")])
    exact = np.linalg.solve(matrix, [rows, x, xx])
    if family == "shares":
        told = laplace_released(exact.tolist(), seed=seed, loud=loud, runs=SPREADS)
    else:
        told, noise = [], SeededNoise(seed)
        mechanism = GaussianMechanism(rho=Fraction(1, 800), l2_squared=RESOLUTION**2)
        for value in exact:
            drawn = mechanism.release(np.full(SPREADS, round(value * RESOLUTION)), noise=noise) / RESOLUTION
            known = CellNoise(
                float(mechanism.variance) / RESOLUTION**2 / loud**2, 1.5 / RESOLUTION, SPREADS * BETA / 3
            )
            told.append(Folded(drawn, drawn, drawn, noise=known.on(drawn)))
    ends = MeasuredSpread(made, "variance", sample=False).estimate(_fold(made, told), discretised=True)
    return ends.low / 100**2, ends.high / 100**2, 0.0625


def _fold(made: Moments, told: Sequence[Folded]) -> Callable[[Tally], Folded]:
    held = dict(zip((tally.key for tally in made.tallies), told, strict=True))
    return lambda tally: held[tally.key]


def spread_misses(family: str, rows: int, **given) -> int:
    low, high, exact = spread_of(family, rows, **given)
    return int(((low > exact) | (high < exact)).sum())


@pytest.mark.parametrize("rows", [100, 4_000])
@pytest.mark.parametrize("family", ["centred", "shares"])
def test_the_variance_is_outside_as_often_as_it_may_be(family, rows):
    assert_at_most(spread_misses(family, rows), SPREADS, BETA)


@pytest.mark.parametrize("family", ["centred", "shares"])
def test_an_interval_of_a_variance_for_less_noise_is_noticed(family):
    with pytest.raises(AssertionError):
        assert_at_most(spread_misses(family, 4_000, loud=2.0), SPREADS, BETA)


# ---- in questions


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(6)
    return pd.DataFrame({"sex": draw.choice(["F", "M"], 2_000), "pay": draw.integers(0, 40, 2_000)})


def widths(frame: pd.DataFrame, question: str, column: int) -> float:
    attributes = {"sex": ["F", "M"], "pay": {"bounds": [0, 100], "resolution": 1}}
    with us.declare(
        frame, attributes=attributes, name="t", neighbours="add-remove", epsilon=50, delta=1e-9
    ) as opened:
        told = opened.ask(question, rho=0.01)
    cell = told.cells[0][column]
    return cell.high - cell.low


def test_an_average_alone_is_narrower_and_beside_its_sum_it_has_the_box(frame):
    """What the bounds of a sum and of a number of rows are used for cannot be spent on their ratio again.

    There are so many rows that the noise hardly moves a width: less than 1%.
    """
    frame = pd.concat([frame] * 10)
    alone = widths(frame, "SELECT sex, avg(pay) FROM t GROUP BY sex", 1)
    counted = widths(frame, "SELECT sex, avg(pay), count(*) FROM t GROUP BY sex", 1)
    summed = widths(frame, "SELECT sex, avg(pay), sum(pay), count(*) FROM t GROUP BY sex", 1)
    assert alone < 0.96 * counted < 0.96 * 0.92 * summed


@pytest.mark.parametrize("aggregate", ["avg(pay)", "variance(pay)", "stddev(pay)", "covar_pop(pay, age)"])
@pytest.mark.parametrize("delta", [1e-9, 0])
def test_intervals_from_the_noise_are_narrower_than_those_from_boxes(frame, aggregate, delta, monkeypatch):
    attributes = {"pay": {"bounds": [0, 100], "resolution": 1}, "age": {"bounds": [0, 120], "resolution": 1}}
    wide = frame.assign(age=frame["pay"] + 20)

    def width() -> float:
        with us.declare(
            wide, attributes=attributes, name="t", neighbours="add-remove", epsilon=50, delta=delta
        ) as opened:
            opened.curator._noise = SeededNoise(3)
            given = {"rho": 0.05} if delta else {"epsilon": 0.5}
            cell = opened.sql(f"SELECT {aggregate} FROM t", **given).cells[0][0]
        return cell.high - cell.low

    narrow = width()
    monkeypatch.setattr(JointNoise, "of", classmethod(lambda cls, noises: None))
    box = width()
    assert narrow < (0.85 if aggregate.startswith("avg") else 0.75) * box


def test_all_averages_of_a_statement_hold_together(frame):
    attributes = {"sex": ["F", "M"], "pay": {"bounds": [0, 100], "resolution": 1}}
    true, failed, runs = frame.groupby("sex")["pay"].mean(), 0, 40
    with us.declare(
        frame, attributes=attributes, name="t", neighbours="add-remove", epsilon=900, delta=1e-9
    ) as opened:
        prepared = opened.prepare("SELECT sex, avg(pay) FROM t GROUP BY sex", rho=0.01, beta=0.5)
        for _ in range(runs):
            told = {row[0]: row[1] for row in prepared.run().cells}
            failed += any(not told[sex].low <= true[sex] <= told[sex].high for sex in true.index)
    assert_at_most(failed, runs, 0.5)


# ---- Plain sums of many cells


@pytest.mark.parametrize(
    "variance", [Fraction(1, 20), Fraction(1, 4), Fraction(1), Fraction(2), Fraction(3), Fraction(4)]
)
def test_a_discrete_gaussian_of_any_variance_is_within_a_step_of_a_normal_number(variance):
    """P[N ≥ m] ≤ P[X ≥ m] ≤ P[N ≥ m - 1] for m ≥ 1; the rest follows since both laws are symmetric."""
    at = np.arange(1, 60)
    chances = np.exp(discrete_gaussian_log_law(variance, at))
    above = np.cumsum(chances[::-1])[::-1][:8]
    normal = [erfc(m / sqrt(2 * variance)) / 2 for m in range(9)]
    assert (above >= np.array(normal[1:]) * (1 - 1e-9)).all()
    assert (above <= np.array(normal[:-1]) * (1 + 1e-9)).all()


PLAIN = [
    (GaussianMechanism(rho=Fraction(1, 4), l2_squared=1), NoiseLaw("gaussian", Fraction(2))),
    (GaussianMechanism(rho=Fraction(1, 100), l2_squared=1), NoiseLaw("gaussian", Fraction(50))),
    (LaplaceMechanism(epsilon=Fraction(2), l1=1), NoiseLaw("laplace", Fraction(1, 2))),
]


@pytest.mark.parametrize(("mechanism", "law"), PLAIN, ids=["small", "gaussian", "laplace"])
def test_a_sum_of_cells_is_within_the_reach_of_its_own_law_and_that_has_no_step_for_each_cell(mechanism, law):
    cells, runs = 31, 2000
    drawn = (
        mechanism.release(np.zeros(cells * runs, np.int64), noise=SeededNoise(3))
        .reshape(cells, runs)
        .sum(axis=0)
    )
    plain = LatticeSums(law, 1)
    told = TallyNoise(
        drawn.astype(float),
        np.full(runs, cells * float(mechanism.variance)),
        np.full(runs, float(cells)),
        np.full(runs, float(cells)),
        runs * BETA,
        plain if law.kind == "laplace" else None,
        plain,
    )
    joint = JointNoise.of([told])
    assert joint is not None
    reach = joint.reach_of_sum(BETA)
    assert_at_most(int((np.abs(drawn) > reach).sum()), runs, BETA)
    deviation = (cells * float(mechanism.variance)) ** 0.5
    quantile = -NormalDist().inv_cdf(BETA / 2)
    assert (reach < 1.05 * quantile * deviation + 1.5).all()
    assert (joint.reach([1.0], BETA) > reach + 25).all()


def test_what_values_were_rounded_by_is_added_to_the_reach_of_a_sum():
    plain, ones = LatticeSums(NoiseLaw("gaussian", Fraction(50)), 1), np.ones(2)
    exact, rounded = (
        TallyNoise(ones, 50 * ones, ones, ones, 0.1, None, plain, off) for off in (0 * ones, 7 * ones)
    )
    reaches = [JointNoise((one,), 0.05).reach_of_sum(0.05) for one in (exact, rounded)]
    assert (reaches[1] == reaches[0] + 7).all()
    other = replace(exact, plain=LatticeSums(NoiseLaw("gaussian", Fraction(60)), 1))
    both = JointNoise((exact, other), 0.05)
    assert (both.reach_of_sum(0.05) == both.reach([1.0, 1.0], 0.05)).all()  # two laws: as continuous noise


def test_errors_of_cells_leave_nothing_of_their_probability_to_laws():
    """Two averages share the number of rows; one of them rests on errors of cells, as its own noise is coarse.

    The errors use up β of both its marginals: the other average has that of its own sum alone.
    """
    domain = Domain((PAY, Bins.measure("age", 0, 100)))
    compiled = compile_sql("SELECT avg(pay), avg(age) FROM t", domain, tables=["t"], measured="centred")
    asked = compiled.marginals
    places = {one.moment.names[0] if one.moment else "rows": i for i, one in enumerate(asked)}
    values = [np.asarray(0.0 if one.moment else 1000.0) for one in asked]
    fine = CellNoise(variance=100.0, step=0.0, beta=0.02)

    def widths(**changed: CellNoise | None) -> list[float]:
        noises = [fine] * len(values)
        for name, noise in changed.items():
            noises[places[name]] = noise
        ((pay, age),) = compiled.evaluate(values, [np.asarray(40.0)] * len(values), noises=noises)
        return [pay.high - pay.low, age.high - age.low]

    unpaid = widths(rows=replace(fine, beta=0.0), age=fine)[1]
    half = widths()[1]
    assert half < unpaid  # each of two laws has half of what the rows leave
    for odd in (replace(fine, coarse=True), None, replace(fine, bound=lambda sums, beta: 100.0)):
        box, law = widths(pay=odd)
        assert box > widths()[0]
        assert law == unpaid
