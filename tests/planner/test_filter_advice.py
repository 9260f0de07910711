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
    assert "budget: {epsilon: 1, delta: 1e-9, key_delta: 1e-10, filter: renyi}" in written
    assert parse(written).budget.filter.name == "renyi"


def test_the_part_of_delta_that_is_set_aside_stays_in_the_advice():
    advice = advice_for("pure", 1, 1e-6, 5, key_delta=2e-7)
    assert advice.declared == "budget: {epsilon: 1, delta: 1e-06, key_delta: 2e-07, filter: renyi}"
    assert advice.shares["zcdp"] == pytest.approx(1, abs=1e-9)  # of the smaller cap that is left


DECLARED = """\
understudy: 1
name: t
source: t.csv
budget: {epsilon: 1, delta: 1e-6, key_delta: 1e-7}
attributes:
  sex: {type: category, values: [F, M]}
"""


def test_of_a_ledger_that_was_charged_the_plan_says_that_its_filter_is_fixed(tmp_path):
    (tmp_path / "t.csv").write_text("sex\n" + "F\nM\n" * 200, encoding="utf-8")
    (tmp_path / "understudy.yml").write_text(DECLARED, encoding="utf-8")
    terms = ("plan", "--project", "understudy.yml", "--rows", "100000", "--queries", "1000")
    before = call(*terms, cwd=tmp_path).stdout
    assert "Declare it before the first charge" in before
    assert "budget: {epsilon: 1, delta: 1e-06, key_delta: 1e-07, filter: gdp}" in before
    assert not (tmp_path / "understudy.ledger").exists()
    call("ask", "count sex = F", cwd=tmp_path)
    after = call(*terms, cwd=tmp_path).stdout
    assert "filter: zcdp, which the first charge to the ledger has fixed" in after
    assert "a new ledger would do better with gdp" in after
    assert "Declare it" not in after
