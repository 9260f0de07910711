"""Which privacy filter suits what will be asked."""

from __future__ import annotations

from fractions import Fraction

import pytest

from program import call
from understudy.declaration.file import parse
from understudy.planner.filters import advice_for, filter_advice
from understudy.privacy.event import GaussianNoise, RandomizedReport


def test_normal_noise_is_kept_best_in_gdp():
    advice = advice_for("normal", 1, 1e-6, 1000)
    assert advice.filter == "gdp"
    assert advice.shares["zcdp"] == pytest.approx(1, abs=1e-9)
    assert advice.shares["gdp"] == pytest.approx(1 / 1.1157, abs=1e-4)
    assert advice.declared == "budget: {epsilon: 1, delta: 1e-06, filter: gdp}"
    assert "takes 89.6% of the budget for 1,000 answers with normal noise" in advice.line()


def test_few_large_pure_answers_are_kept_best_at_one_order_and_many_small_ones_in_gdp():
    few, many = advice_for("pure", 1, 1e-6, 5), advice_for("pure", 1, 1e-6, 5000)
    assert (few.filter, many.filter) == ("renyi", "gdp")
    assert few.shares["renyi"] == pytest.approx(0.641, abs=1e-3)
    assert few.shares["gdp"] is not None
    assert few.shares["gdp"] > 1
    assert few.as_dict()["recommended"] == "renyi"


def test_a_release_is_between_them():
    advice = advice_for("release", 1, 1e-9, 48)
    assert advice.filter == "gdp"
    assert advice.shares["gdp"] == pytest.approx(0.939, abs=1e-3)


def test_where_nothing_is_clearly_better_the_usual_one_stays():
    tiny = RandomizedReport(epsilon=Fraction(1, 10**6))
    advice = filter_advice(1, Fraction(1, 10**250), [(tiny, 10)], "ten tiny answers")
    assert advice.filter == "zcdp"
    assert advice.declared == "budget: {epsilon: 1, delta: 1e-250}"
    assert "no other takes less" in advice.line()


def test_a_filter_without_a_price_is_not_recommended():
    small = GaussianNoise(l2_squared=Fraction(1), variance=Fraction(1, 10))
    advice = filter_advice(50, 1e-6, [(small, 1)], "one exact answer")
    assert advice.shares["gdp"] is None
    assert advice.filter != "gdp"


def test_the_declaration_that_is_recommended_can_be_read():
    for kind in ("normal", "pure", "release"):
        line = advice_for(kind, 1, 1e-6, 20).declared
        text = f"understudy: 1\nname: t\nsource: t.csv\n{line}\nattributes:\n  a: {{type: boolean}}\n"
        assert parse(text).budget.filter.name == advice_for(kind, 1, 1e-6, 20).filter


def test_init_writes_the_filter_and_the_first_charge_fixes_it(tmp_path):
    (tmp_path / "t.csv").write_text("sex\n" + "F\nM\n" * 200, encoding="utf-8")
    call("init", "t.csv", "--filter", "renyi", "--yes", cwd=tmp_path)
    written = (tmp_path / "understudy.yml").read_text(encoding="utf-8")
    assert "budget: {epsilon: 1, delta: 1e-9, filter: renyi}" in written
    assert parse(written).budget.filter.name == "renyi"
