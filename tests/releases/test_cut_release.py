"""Releases and conditions that cut bins: a rule for the value, certified ends, and the part of bins apart."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiny_release
import understudy as us
from tiny_release import DECLARATION, people, tiny
from understudy.answer.cut_bins import CutBins
from understudy.answer.plain import without_infinity
from understudy.client.decode import answer_from_plain
from understudy.domain.refinement import refined
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.within_bins import EvenlySpread, averaged, enclosing, portions, spread
from understudy.query.workload import marginals
from understudy.releases.making import release
from understudy.releases.release import Release

FRAME = people().to_pandas()
PRIVATE = DECLARATION.replace("budget:", "neighbours: add-remove\nbudget:")
DELTA = DECLARATION.replace("{epsilon: 2}", "{epsilon: 200, delta: 1.0e-6}")


@pytest.fixture(scope="module")
def made() -> Release:
    return release(tiny_release.project(), "1-way", epsilon=1, method=tiny)


@pytest.fixture(scope="module")
def pairs() -> Release:
    return release(tiny_release.project(DELTA), marginals(2), epsilon=50, delta=1e-6)


def test_a_cut_bin_is_shared_out_evenly_between_certified_ends(made):
    [young] = [answer for answer in made.answers if answer.clique == ("age",)]
    whole, cut = young.counts[0], young.counts[1]  # 0-17 and 18-64, of which 10 of 47 years are below 28
    told = made.answer("count age < 28")
    assert told.source == "uncertified"
    assert float(told.value) == pytest.approx(whole + cut * 10 / 47)
    assert told.cut_bins is not None
    assert float(told.cut_bins.low) == pytest.approx(max(whole - young.error[0], 0))
    around = made.answer("count age < 65")
    assert float(told.cut_bins.high) == pytest.approx(float(around.noisy + around.error))
    half = (float(told.cut_bins.high) - float(told.cut_bins.low)) / 2
    assert float(told.cut_bins.discretisation) == pytest.approx(half - young.error[0])
    ends = told.cut_bins.high - told.value, told.value - told.cut_bins.low
    assert float(told.error) == pytest.approx(float(max(ends)))
    assert (FRAME["age"] < 28).sum() <= float(told.cut_bins.high)


def test_a_frame_and_a_bar_have_the_certified_ends(made):
    told = made.answer("count age < 28")
    assert told.cut_bins is not None
    assert told.to_frame().column_names == ["value", "error", "noisy", "low", "high"]
    assert told.interval(0) == (float(told.cut_bins.low), float(told.cut_bins.high))
    [bar] = told._bars(1)
    assert (bar.low, bar.high) == told.interval(0)
    unknown = made.answer("count age < 28 and income < 1234.5")
    assert unknown.interval(0) is None
    assert unknown._bars(1)[0].high is None


def test_whole_bins_are_answered_as_ever(made):
    for question in ("count age < 65", "count age < 65 and age >= 0", "count income < 1000 by income"):
        told = made.answer(question)
        assert (told.source, told.cut_bins) == ("measured", None)


@pytest.mark.parametrize(
    ("question", "exact"),
    [
        ("count age < 28", lambda f: (f["age"] < 28).sum()),
        ("count age >= 28 and income < 1234.5", lambda f: ((f["age"] >= 28) & (f["income"] < 1234.5)).sum()),
        ("count born < 1977-03-09 by sex", None),
        ("share age < 28 and sex = F", lambda f: ((f["age"] < 28) & (f["sex"] == "F")).mean()),
        ("rate age < 28 within smoker", None),
        ("count age < 28 by age", None),
    ],
)
@pytest.mark.parametrize("declared", ["public", "private"])
def test_the_true_number_lies_between_the_ends(pairs, question, exact, declared):
    made = pairs
    if declared == "private":
        made = release(
            tiny_release.project(DELTA.replace("budget:", "neighbours: add-remove\nbudget:")),
            marginals(2),
            epsilon=50,
            delta=1e-6,
        )
    told = made.answer(question)
    assert (told.source, told.cost.units) == ("uncertified", 0)
    cut = told.cut_bins
    assert cut is not None
    assert (cut.low <= told.value + 1e-9).all()
    assert (told.value <= cut.high + 1e-9).all()
    assert (cut.discretisation <= (cut.high - cut.low) / 2 + 1e-9).all()
    assert (told.error >= np.maximum(cut.high - told.value, told.value - cut.low) - 1e-9).all()
    if exact is not None:
        assert float(cut.low) - 1e-9 <= exact(FRAME) <= float(cut.high) + 1e-9
    if question.endswith("by age"):
        assert told.value[3:].tolist() == [0.0] * len(told.value[3:])  # from 28 on there is nobody
        assert cut.high[3:].max() == 0


def test_sql_has_certified_bounds_and_names_what_comes_from_bins(pairs):
    told = pairs.answer("SELECT sex, count(*) AS n FROM people WHERE age BETWEEN 28 AND 77 GROUP BY sex")
    assert told.source == "uncertified"
    for name, number in told.cells:
        exact = (FRAME["age"].between(28, 77) & (FRAME["sex"] == name)).sum()
        if name in ("F", "M"):
            assert number.low - 1e-9 <= exact <= number.high + 1e-9
            assert number.discretisation > 0
            assert number.value - number.low != pytest.approx(number.high - number.value)  # ends as they are
    plain = pairs.answer("SELECT count(*) FROM people WHERE age < 65").cells[0][0]
    assert plain.discretisation == 0
    some = pairs.answer("SELECT count(*) FROM people WHERE age * 2 < 55 OR income > 7000").cells[0][0]
    exact = ((FRAME["age"] * 2 < 55) | (FRAME["income"] > 7000)).sum()
    assert some.low <= exact <= some.high


def test_where_the_bins_are_not_certified_there_are_no_ends(made):
    told = made.answer("count age < 28 and income < 1234.5")  # a pair, and the release has single attributes
    assert told.source == "uncertified"
    assert np.isinf(told.error)
    assert told.cut_bins is not None
    assert np.isinf(told.cut_bins.high)
    assert np.isinf(told.cut_bins.discretisation)
    json.dumps(without_infinity(told.as_dict()), allow_nan=False)


@pytest.mark.parametrize("declared", [DECLARATION, PRIVATE])
@pytest.mark.parametrize("question", ["share age < 28 by smoker", "rate age < 28 within smoker"])
def test_of_a_share_and_a_rate_that_nobody_vouches_for_nothing_is_proved(declared, question):
    told = release(tiny_release.project(declared), "1-way", epsilon=1, method=tiny).answer(question)
    assert told.cut_bins is not None
    assert np.isinf(told.error).all()
    assert told.cut_bins.low.tolist() == [0, 0, 0]
    assert told.cut_bins.high.tolist() == [1, 1, 1]
    assert np.isinf(told.cut_bins.discretisation).all()
    said = told.cut_bins.told(unit=told.unit, beta=told.beta)
    assert said[1:] == ["nothing is proved of the error"]


def test_it_goes_into_json_and_comes_back(made, tmp_path):
    made.save(tmp_path / "out")
    kept = Release.load(tmp_path / "out")
    for question in ("count age < 28", "count age < 28 by age", "share born < 1977-03-09"):
        told = kept.answer(question)
        plain = json.loads(json.dumps(without_infinity(told.as_dict())))
        assert set(plain["cut_bins"]) == {"low", "high", "discretisation"}
        back = answer_from_plain(plain, question, kept.domain)
        assert (back.value == told.value).all()
        assert isinstance(back.cut_bins, CutBins)
        assert (back.cut_bins.high == told.cut_bins.high).all()
    assert "cut_bins" not in kept.answer("count age < 65").as_dict()
    assert "spread evenly" in kept.answer("count age < 28")._repr_html_()


# ---- the rule


def test_portions_of_bins_add_up_to_one(made):
    fine = refined(refined(made.domain, "age", [28, 40]), "income", [3.5, 20000.0])
    for name in ("age", "income", "sex"):
        parts = portions(fine, made.domain, name)
        table = np.arange(1.0, made.domain[name].size + 1)
        assert spread(table, (name,), fine, made.domain).sum() == pytest.approx(table.sum())
        assert (parts >= 0).all()


def test_averages_and_the_spread_of_a_stand_in_agree(made):
    fine = refined(made.domain, "age", [28, 40])
    draw = np.random.default_rng(2)
    for _ in range(5):
        query = LinearQuery.conjunction(
            fine, {"age": draw.random(fine["age"].size), "sex": draw.random(fine["sex"].size)}
        )
        over = averaged(query, made.domain)
        assert query.answer(EvenlySpread(made.standin, fine)) == pytest.approx(over.answer(made.standin))
        least, most = enclosing(query, made.domain)
        assert least.answer(made.standin) <= over.answer(made.standin) <= most.answer(made.standin)


def test_a_group_that_is_a_part_holds_at_most_its_cell(made):
    fine = refined(made.domain, "age", [28])
    told = made.answer(Marginal(fine, ("age",)))
    [age] = [answer for answer in made.answers if answer.clique == ("age",)]
    assert told.cut_bins is not None
    assert told.cut_bins.high.tolist()[1:3] == pytest.approx([age.counts[1] + age.error[1]] * 2)
    assert told.cut_bins.low.tolist()[1:3] == [0.0, 0.0]
    assert told.value.sum() == pytest.approx(age.counts.sum())
    assert isinstance(told, us.Answer)
