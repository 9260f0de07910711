"""Measures through a project: the price, the look, the bounds and the words, in SQL and in the small language."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import understudy as us
from statistical import assert_at_most
from understudy.curator.question_price import QuestionPrice
from understudy.declaration.file import parse
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DeclarationError, InsufficientBudgetError, ParameterError, QueryError
from understudy.ledger import export
from understudy.mechanism.quantile import QuantileMechanism
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.price import Price
from understudy.project import Project
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd, ends_of

ROWS = 3_000
ATTRIBUTES = {
    "sex": ["F", "M"],
    "age": {"bounds": [17, 90], "resolution": 1},
    "pay": {"type": "real", "bounds": [0, 1000], "resolution": 0.5, "null": True},
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(5)
    pay = np.where(draw.random(ROWS) < 0.1, np.nan, draw.lognormal(5, 1, ROWS))
    return pd.DataFrame(
        {"sex": draw.choice(["F", "M"], ROWS), "age": draw.integers(17, 91, ROWS), "pay": pay}
    )


def project(frame, *, pure: bool = False, neighbours: str = "add-remove", epsilon: float = 20.0, noise=None):
    budget = {"epsilon": epsilon} if pure else {"epsilon": epsilon, "delta": 1e-9}
    return us.declare(frame, attributes=ATTRIBUTES, name="t", neighbours=neighbours, noise=noise, **budget)


def kept(frame: pd.DataFrame) -> pd.Series:
    """The measured pay: cut to its bounds and rounded to its steps, missing values left out."""
    known = frame["pay"].dropna().clip(0, 1000)
    return np.floor(known * 2 + 0.5) / 2


@pytest.mark.parametrize(("pure", "neighbours"), [(False, "add-remove"), (True, "replace")])
def test_bounds_hold_and_a_quarter_of_them_does_not(frame, pure, neighbours):
    """Averages, sums and deviations: all numbers of a run are within their bounds with probability 19/20."""
    asked = "SELECT sex, avg(age), sum(pay), stddev_pop(age) FROM t GROUP BY sex"
    groups = frame.assign(pay=kept(frame)).groupby("sex")
    true = {sex: (g["age"].mean(), g["pay"].sum(), g["age"].std(ddof=0)) for sex, g in groups}
    failures, quarter, runs = 0, 0, 8
    with project(frame, pure=pure, neighbours=neighbours, epsilon=500) as opened:
        for _ in range(runs):
            told = opened.ask(asked, epsilon=1)
            cells = [
                (c, t)
                for row in told.cells
                if row[0] in true
                for c, t in zip(row[1:], true[row[0]], strict=True)
            ]
            failures += any(not cell.low <= value <= cell.high for cell, value in cells)
            quarter += any(abs(cell.value - value) > (cell.high - cell.low) / 8 for cell, value in cells)
    assert_at_most(failures, runs, 0.05)
    assert quarter > failures


def test_nothing_is_looked_at_before_it_is_charged(frame, monkeypatch):
    looked = []
    with project(frame, epsilon=0.1) as opened:
        monkeypatch.setattr(opened.curator._truth, "sums_of", lambda *a, **k: looked.append(a))
        with pytest.raises(InsufficientBudgetError):
            opened.ask("avg age by sex", epsilon=5)
    assert not looked


@pytest.mark.parametrize("pure", [False, True])
def test_groups_cost_what_one_group_costs_and_the_quote_is_charged(frame, pure):
    with project(frame, pure=pure) as opened:
        alone = opened.quote("SELECT avg(age) FROM t", epsilon=0.5)
        grouped = opened.quote("SELECT sex, avg(age) FROM t GROUP BY sex", epsilon=0.5)
        assert grouped.cost == alone.cost
        told = opened.ask("SELECT sex, avg(age) FROM t GROUP BY sex", epsilon=0.5)
        assert told.cost == grouped.cost
        assert float(told.cost.amount) <= float(opened.quote("count", epsilon=0.5).cost.amount)


def test_conditions_on_different_people_share_a_price(frame):
    """Joint accounting knows where moments are: averages of women and of men cost together what one costs."""
    with project(frame, pure=True) as opened:
        first = opened.ask("avg age where sex = F", epsilon=0.5)
        second = opened.ask("avg age where sex = M", epsilon=0.5)
    assert float(first.cost.amount) == pytest.approx(0.5)
    assert second.cost.units == 0


@pytest.mark.parametrize("aggregates", ["avg(pay), stddev(pay)", "median(pay), quantile_cont(pay, 0.9)"])
def test_a_repeated_request_is_answered_from_the_ledger_and_the_ledger_verifies(frame, tmp_path, aggregates):
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: t.csv\nneighbours: add-remove\nbudget: {epsilon: 2, delta: 1e-9}\n"
        "attributes:\n  sex: {type: category, values: [F, M]}\n"
        "  age: {type: integer, bounds: [17, 90], resolution: 1}\n"
        "  pay: {type: real, bounds: [0, 1000], resolution: 0.5, null: true}\n"
    )
    answers = []
    for _ in range(2):
        with us.open(tmp_path / "understudy.yml") as opened:
            answers.append(
                opened.ask(f"SELECT sex, {aggregates} FROM t GROUP BY sex", epsilon=0.5, request="r")
            )
            spent, url = opened.ledger.spent, opened.ledger.url
    assert answers[0].cells == answers[1].cells
    assert spent.units == answers[0].cost.units
    verdict = export.verify(url, "t")
    assert verdict["sound"], verdict["problems"]
    assert verdict["spent_units"] == spent.units


def test_small_language_and_sql_ask_for_the_same(frame):
    with project(frame) as opened:
        for small, select in (
            ("avg age by sex", "SELECT sex, avg(age) FROM t GROUP BY sex"),
            ("sum(pay) where age < 50", "SELECT sum(pay) FROM t WHERE age < 50"),
            ("stddev pay", "SELECT stddev_pop(pay) FROM t"),
            ("covariance age, pay sex = F", "SELECT covar_pop(age, pay) FROM t WHERE sex = 'F'"),
        ):
            one, other = opened.prepare(small, epsilon=1), opened.prepare(select, epsilon=1)
            assert [m.key for m in one.question.marginals] == [m.key for m in other.question.marginals]
            assert one.quote.cost == other.quote.cost
            told = one.run()
            assert told.unit.startswith(small.split()[0].partition("(")[0])
            assert np.isfinite(told.error).all()
            assert one.columns[-1].name == told.to_pandas().columns[len(told.query.by)]
            (forecast,) = one.forecast() or (None,)
            assert forecast is None or forecast.unit == told.unit


@pytest.mark.parametrize(
    "question",
    ["avg sex", "avg", "avg nothing", "avg age, pay", "covariance age", "covariance age, age", "avg (age by sex",
     "avg age where", "sum pay by", "avg age by age by age", "variance 'age'"],
)  # fmt: skip
def test_a_mistake_is_refused_for_nothing(frame, question):
    with project(frame) as opened:
        with pytest.raises(QueryError) as refused:
            opened.ask(question, epsilon=1)
        assert refused.value.remedy
        assert opened.ledger.spent.units == 0


def test_a_group_that_may_be_empty_keeps_the_bounds_of_its_measure(frame):
    with project(frame) as opened:
        told = opened.ask("SELECT sex, avg(age) FROM t GROUP BY sex", epsilon=0.1)
    nobody = next(row[1] for row in told.cells if row[0] == "other")
    assert (nobody.low, nobody.high) == (17.0, 90.0)


@pytest.mark.parametrize(
    ("fields", "size", "steps"),
    [
        ("type: integer, bounds: [17, 90], resolution: 1", 15, 73),
        ("type: integer, bounds: [0, 9], resolution: 3", 10, 3),
        ("type: real, bounds: [0, 200000], resolution: 0.01", 20, 20_000_000),
        ("type: real, bounds: [0, 1], bins: 4, resolution: 0.125", 4, 8),
        ("type: integer, edges: [0, 18, 65, 120], resolution: 1", 3, 120),
    ],
)
def test_a_declaration_may_say_bounds_and_a_resolution_alone(fields, size, steps):
    text = "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 1}\nattributes:\n  x: {" + fields + "}\n"
    attribute = parse(text).domain["x"]
    assert isinstance(attribute, Bins)
    assert (attribute.size, attribute.steps) == (size, steps)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ("type: integer, bounds: [0, 10], resolution: 3", "whole number of steps"),
        ("type: integer, bounds: [0, 10], resolution: 0.5", "whole one for an integer"),
        ("type: real, bounds: [0, 1], bins: 2, resolution: -1", "positive number"),
        ("type: real, bounds: [0, 1000000], resolution: 0.001", "steps between the bounds"),
        ("type: date, bounds: [2000-01-01, 2001-01-01], resolution: 1", "means nothing for a date"),
        ("type: category, values: [a], resolution: 1", "means nothing for a category"),
    ],
)
def test_a_resolution_that_makes_no_sense_is_refused_with_its_line(fields, complaint):
    text = "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 1}\nattributes:\n  x: {" + fields + "}\n"
    with pytest.raises(DeclarationError, match=complaint):
        parse(text)


def test_the_parts_of_a_price_are_the_best_for_an_average_that_may_be_anywhere():
    from understudy.curator.pricing import BESIDE_MOMENTS

    def expected(part: float) -> float:
        """The mean squared error, for m² = 1/12, of a count that is paid `part` beside a moment that is paid 1."""
        whole = 1 + part
        return whole / 8 + whole / part / 24

    assert expected(float(BESIDE_MOMENTS)) <= 1.001 * min(expected(p / 100) for p in range(5, 200))
    assert isinstance(BESIDE_MOMENTS, Fraction)


@pytest.mark.parametrize(("pure", "neighbours"), [(False, "replace"), (True, "add-remove")])
def test_quantiles_lie_between_their_ends_in_sql_and_in_the_small_language(frame, pure, neighbours):
    known = frame.assign(pay=kept(frame)).dropna()
    true = known.groupby("sex")["pay"].quantile(0.9)
    with project(frame, pure=pure, neighbours=neighbours, epsilon=200) as opened:
        asked = "SELECT sex, median(age), quantile_cont(pay, 0.9) FROM t GROUP BY sex"
        quoted = opened.quote(asked, epsilon=20, beta=1e-9)
        told = opened.ask(asked, epsilon=20, beta=1e-9)
        assert told.cost == quoted.cost
        for row in told.cells:
            if row[0] in true:
                assert row[2].low <= true[row[0]] <= row[2].high
                assert row[2].high - row[2].low < 200
                assert row[2].low <= row[2].value <= row[2].high
                assert row[1].low <= frame[frame["sex"] == row[0]]["age"].median() <= row[1].high
        small = opened.ask("quantile 0.9 pay where sex = F", epsilon=20, beta=1e-9)
        assert abs(float(small.value) - true["F"]) <= float(small.error)
        assert small.unit == "quantile 0.9 of pay"
        assert opened.quote("median pay", epsilon=1).noise == ("laplace" if pure else "gaussian")
        merged = "SELECT median(pay) FROM t GROUP BY CASE WHEN sex = 'F' THEN 1 ELSE 2 END"
        assert all(m.moment is None for m in opened.prepare(merged, epsilon=1).question.marginals)


def asked_quantiles(*levels: float) -> str:
    return f"SELECT {', '.join(f'quantile_cont(pay, {level})' for level in levels)} FROM t"


def test_several_quantiles_of_a_measure_are_one_purchase(frame):
    with project(frame, epsilon=50) as opened:
        one, nine = (
            opened.prepare(asked_quantiles(*at), rho=0.01, beta=1e-9) for at in ((0.5,), (0.1, 0.2, 0.5, 0.9))
        )
        assert len(nine._measurement.stacks) == 1 == len({m for m, _ in nine._measurement.mechanisms})
        assert nine.quote.cost == one.quote.cost
        told = nine.run()
        assert told.cost.units <= one.quote.cost.units
        for cell, level in zip(told.cells[0], (0.1, 0.2, 0.5, 0.9), strict=True):
            assert cell.low <= kept(frame).quantile(level) <= cell.high


@pytest.mark.parametrize(
    "written",
    [
        "quantile_cont(pay, [0.25, 0.5])",
        "percentile_disc([0.25, 0.5]) WITHIN GROUP (ORDER BY pay)",
        "quantile(pay, [0.25, 0.5]) FILTER (WHERE age < 95)",
    ],
)
def test_a_list_of_levels_is_a_column_for_each(frame, written):
    with project(frame, epsilon=50) as opened:
        asked = f"SELECT sex, {written} AS q, count(*) FROM t GROUP BY sex ORDER BY sex"
        assert [column.name for column in opened.columns(asked)][:3] == ["sex", "q_0.25", "q_0.5"]
        told = opened.ask(asked, rho=0.05, beta=1e-9)
        for row in told.cells[:2]:
            assert row[1].low <= row[2].high
            pay = kept(frame[frame["sex"] == row[0]])
            assert row[1].low <= pay.quantile(0.25) <= row[1].high
        with pytest.raises(QueryError, match="no levels"):
            opened.ask("SELECT quantile_cont(pay, []) FROM t", rho=0.05)
        with pytest.raises(QueryError, match="between 0 and 1"):
            opened.ask("SELECT quantile_cont(pay, [0.5, 3]) FROM t", rho=0.05)


def test_that_mechanism_is_taken_whose_ends_are_expected_to_be_nearer(frame):
    """Quantiles that are too many to be found together are drawn each by itself; others from refined counts."""
    many = [round(0.01 + 0.005 * i, 3) for i in range(33)]
    with project(frame) as opened:
        ends = [
            Marginal(opened.domain, (), LinearQuery.everyone(opened.domain), moment=end)
            for level in many
            for end in ends_of(level, "age")
        ]
        pricing, asked = opened._pricing, QuestionPrice(rho=Fraction(1, 10))
        alone = pricing.prepare(ends, asked)
        assert all(isinstance(mechanism, QuantileMechanism) for mechanism, _ in alone.mechanisms)
        together = pricing.prepare(ends[:-3], asked)
        assert all(isinstance(mechanism, QuantileHierarchy) for mechanism, _ in together.mechanisms)
        assert max(together.errors) < max(alone.errors)


@pytest.mark.parametrize("asked", ["median pay", "SELECT median(pay), quantile_cont(pay, 0.9) FROM t"])
def test_a_budget_in_gdp_finds_quantiles_from_refined_counts(frame, asked):
    with us.declare(
        frame,
        attributes=ATTRIBUTES,
        name="t",
        neighbours="add-remove",
        epsilon=50,
        delta=1e-9,
        filter="gdp",
    ) as opened:
        prepared = opened.prepare(asked, rho=0.1, beta=1e-10)
        assert all(isinstance(one, QuantileHierarchy) for one, _ in prepared._measurement.mechanisms)
        told = prepared.run()
        low, high = (
            (told.cells[0][0].low, told.cells[0][0].high)
            if asked.startswith("SELECT")
            else (told.value - told.error, told.value + told.error)
        )
        assert low <= kept(frame).median() <= high
        assert 0 < float(opened.ledger.spent.amount) <= 0.1


def test_the_price_of_quantiles_at_a_given_error_is_the_least(frame):
    with project(frame, epsilon=50) as opened:
        priced = opened.prepare("SELECT median(pay), quantile_cont(pay, 0.9) FROM t", error=100, beta=1e-9)
        assert 90 < max(priced._measurement.errors) <= 100
        told = priced.run()
        assert told.cells[0][0].low <= kept(frame).median() <= told.cells[0][0].high


def test_quantiles_of_different_people_share_a_price(frame):
    """The rounds of a quantile are counts of the rows that meet its condition, and are charged as such."""
    with project(frame, epsilon=50) as opened:
        first = opened.ask("median pay where sex = F", rho=0.01)
        other = opened.ask("median pay where sex = M", rho=0.01)
        again = opened.ask("quantile 0.9 pay where sex = F", rho=0.01)
        assert first.cost.units > 0
        assert other.cost.units == 0
        assert again.cost.units > 0.99 * first.cost.units
        assert opened.ledger.spent.units < 2.01 * first.cost.units


def test_rounds_for_another_sensitivity_or_level_are_refused_for_nothing(frame):
    with project(frame) as opened:
        prepared = opened.prepare("SELECT median(pay) FROM t", rho=0.01)._measurement
        [(mechanism, steps)] = set(prepared.mechanisms)
        assert isinstance(mechanism, QuantileHierarchy)
        wide = tuple(replace(one, l2_squared=4) for one in mechanism.rounds)
        for forged in (replace(mechanism, rounds=wide), replace(mechanism, levels=(Fraction(1, 3),))):
            with pytest.raises(ParameterError, match="another sensitivity"):
                opened.curator.perform(replace(prepared, mechanisms=((forged, steps),) * 3))
        assert opened.ledger.spent.units == 0


@pytest.mark.parametrize(
    "question",
    [
        "quantile pay",
        "quantile 2.5 pay",
        "avg 0.5 pay",
        "quantile 0.12345 pay",
        "median sex",
        "median pay, age",
    ],
)
def test_a_quantile_that_makes_no_sense_is_refused_for_nothing(frame, question):
    with project(frame) as opened:
        with pytest.raises(QueryError):
            opened.ask(question, epsilon=1)
        assert opened.ledger.spent.units == 0


def test_a_session_answers_quantiles_from_bins(frame):
    with project(frame, neighbours="replace") as opened:
        session = us.session(opened, alpha=0.05, queries=10)
        assert session.ask("SELECT median(pay) FROM t").cells[0][0].discretisation > 0
        with pytest.raises(QueryError, match="from bins"):
            session.ask("median pay")


def test_the_page_of_an_answer_names_its_aggregate(frame):
    from understudy.server.pages.answers import _of_cells

    with project(frame) as opened:
        for question, name in (
            ("avg age by sex", "avg"),
            ("share sex = F", "share"),
            ("count by sex", "people"),
        ):
            _, (column,), _ = _of_cells(opened.ask(question, epsilon=1).as_dict())
            assert column.name == name


# ---- what was prepared elsewhere


def test_a_quantile_about_another_domain_is_refused_for_nothing(frame):
    other = Domain((Bins.measure("age", 0, 10**6, resolution=1),))
    end = QuantileEnd("point", Fraction(1, 2), "age")
    with project(frame) as opened:
        with pytest.raises(QueryError, match="another domain"):
            opened.curator.measure(Marginal(other, (), LinearQuery.everyone(other), moment=end), epsilon=1)
        assert opened.ledger.spent.units == 0


def test_a_measurement_that_was_prepared_for_other_cells_is_refused_for_nothing(frame):
    """A wide cell that is located at the declared cell where it starts would be priced beside its own people."""
    with project(frame) as opened:
        wide = Domain(
            tuple(Bins.between("age", [17, 50, 90]) if one.name == "age" else one for one in opened.domain)
        )
        strange = replace(opened.curator.calibration, domain=wide)
        prepared = strange.prepare([Marginal(wide, ("age",))], Price.of(rho=Fraction(1, 10)))
        with pytest.raises(QueryError, match="another domain"):
            opened.curator.perform(prepared)
        assert opened.ledger.spent.units == 0


def test_a_quantile_of_another_level_than_it_is_charged_for_is_refused(frame):
    with project(frame, pure=True) as opened:
        end = QuantileEnd("point", Fraction(1, 2), "age")
        asked = Marginal(opened.domain, (), LinearQuery.everyone(opened.domain), moment=end)
        prepared = opened.curator.calibration.prepare([asked], Price.of(epsilon=1))
        [(mechanism, steps)] = prepared.mechanisms
        forged = replace(mechanism, level=Fraction(4999, 10_000))
        with pytest.raises(ParameterError, match="another sensitivity"):
            opened.curator.perform(replace(prepared, mechanisms=((forged, steps),)))
        opened.curator.perform(prepared)  # which is then known, and is examined again once it has changed
        object.__setattr__(prepared, "mechanisms", ((forged, steps),))
        with pytest.raises(ParameterError, match="another sensitivity"):
            opened.curator.perform(prepared)


def test_a_budget_that_reads_variances_finds_quantiles_with_rounded_normal_noise(frame):
    """Its price there is that of normal noise, whatever its variance is, and the law of its sums is known."""
    text = (
        "understudy: 1\nname: t\nsource: t.csv\nneighbours: add-remove\n"
        "budget: {epsilon: 8, delta: 1.0e-6, filter: gdp}\nattributes:\n"
        "  sex: {type: category, values: [F, M]}\n  age: {type: integer, bounds: [17, 90], resolution: 1}\n"
        "  pay: {type: real, bounds: [0, 1000], resolution: 0.5, null: true}\n"
    )
    with Project.frame(frame, parse(text)) as opened:
        assert opened.ledger.budget.filter.reads_variance
        prepared = opened.prepare("SELECT median(age) FROM t", epsilon=2, noise="gaussian", beta=1e-9)
        [mechanism] = {mechanism for mechanism, _ in prepared._measurement.mechanisms}
        assert isinstance(mechanism, QuantileHierarchy)
        assert {type(one) for one in mechanism.rounds} == {RoundedNormalMechanism}
        told = prepared.run().cells[0][0]
        assert told.low <= frame["age"].median() <= told.high


def test_the_small_language_tells_both_ends_of_a_quantile(frame):
    """They lie unevenly around the estimate; `error` is the distance to the farther one."""
    with project(frame, noise=SeededNoise(4)) as opened:
        told = opened.ask("quantile 0.9 pay by sex", rho=0.01)
    assert told.low is not None
    assert told.high is not None
    assert (told.low <= told.value).all()
    assert (told.value <= told.high).all()
    assert np.allclose(told.error, np.maximum(told.high - told.value, told.value - told.low))
    assert (np.abs((told.high - told.value) - (told.value - told.low)) > 0).any()
    assert told.as_dict()["low"] == told.low.tolist()
    frame_of = told.to_frame("pandas")
    assert frame_of["low"].tolist() == told.low.ravel().tolist()
    assert frame_of["high"].tolist() == told.high.ravel().tolist()
    counted = project(frame).ask("count by sex", rho=0.01)
    assert counted.low is None
    assert "low" not in counted.as_dict()
