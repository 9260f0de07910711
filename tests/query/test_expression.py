from __future__ import annotations

import datetime as dt
import itertools
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain.attribute import Boolean, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError, UnderstudyError
from understudy.query import measure_words
from understudy.query.expression import MEASURED, parse

DOMAIN = Domain(
    (
        Bins.between("age", [0, 10, 20, 30]),
        Categories(name="sex", values=("F", "M")),
        Boolean(name="smoker", null=True),
        Categories(name="home town", values=("Bree", "Old Forest", "no")),
        Bins.between("born", [dt.date(1990, 1, 1), dt.date(2000, 1, 1), dt.date(2010, 1, 1)]),
        Bins.between("income", [0.0, 0.5, 1.0], null=True),
    )
)
AGES = DOMAIN["age"].labels


def true_cells(text: str) -> set[tuple[str, ...]]:
    where = parse(text, DOMAIN).marginal.where
    return {DOMAIN.labels(cell, where.clique) for cell in zip(*np.nonzero(where.weights()), strict=True)}


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("count age<20", {("0-9",), ("10-19",)}),
        ("COUNT where age >= 20", {("20-30",)}),
        ("count age between 10 and 19", {("10-19",)}),
        ("count age not between 10 and 19", {("0-9",), ("20-30",)}),
        ("count sex=F", {("F",)}),
        ("count sex<>F", {("M",), ("other",)}),
        ("count sex not in (F, M)", {("other",)}),
        ("count not sex in (F)", {("M",), ("other",)}),
        ("count smoker=true", {("true",)}),
        ("count smoker is null", {("null",)}),
        ("count smoker is not null", {("false",), ("true",)}),
        ("count not smoker=true", {("false",)}),
        ("count \"home town\"='Old Forest'", {("Old Forest",)}),
        ("count \"home town\"=no", {("no",)}),
        ("count born < 2000-01-01", {("1990-01-01..1999-12-31",)}),
        ("count income >= .5", {("[0.5, 1]",)}),
        ("count income < 5e-1", {("[0, 0.5)",)}),
        ("count age<10 and sex=M", {("0-9", "M")}),
        ("count age>=20 or sex=M", {("20-30", "F"), ("20-30", "other"), *((a, "M") for a in AGES)}),
        ("count not (age<20 or sex=M)", {("20-30", "F"), ("20-30", "other")}),
        ("count age<20 and age>=10", {("10-19",)}),
    ],
)  # fmt: skip
def test_conditions(text, cells):
    assert true_cells(text) == cells


def test_aggregates_and_groups():
    question = parse("share age<10 by sex, smoker", DOMAIN)
    assert question.aggregate == "share"
    assert question.marginal.by == ("sex", "smoker")
    assert question.marginal.clique == ("age", "sex", "smoker")
    assert parse("count", DOMAIN).marginal.clique == ()
    assert parse("count by sex", DOMAIN).marginal.by == ("sex",)


def test_conjunctions_stay_factorised():
    question = parse("count age<10 and sex=F and smoker=true and (income<0.5 or born<2000-01-01)", DOMAIN)
    assert [factor.clique for factor in question.marginal.where.factors] == [
        ("age",), ("sex",), ("smoker",), ("born", "income"),
    ]  # fmt: skip


def test_two_spellings_are_one_question():
    one = parse("count sex=F and age<10", DOMAIN).marginal
    two = parse("count not (age>=10 or not sex = 'F')", DOMAIN).marginal
    assert one.key == two.key
    assert one.key.startswith("age in (0-9) and sex in (F) #")
    assert (
        parse("count income<0.5 or age<10 by sex", DOMAIN).marginal.describe()
        == "weights on age, income by sex"
    )
    assert parse("count", DOMAIN).marginal.describe() == "everyone"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cout sex = F", "count"),
        ("counts by sex", "count"),
        ("shar sex = F", "share"),
        ("Rates sex = F within sex", "rate"),
        ("avrage income", "average"),
        ("averge(income)", "average"),
        ("mediann age", "median"),
    ],
)
def test_a_misspelt_first_word_is_told_the_nearest(written, meant):
    with pytest.raises(QueryError, match="starts with count, share or rate") as refusal:
        parse(written, DOMAIN)
    assert refusal.value.remedy == f"did you mean {meant}?"
    assert refusal.value.suggestions[0] == meant


def test_a_first_word_that_is_like_none_is_shown_a_question():
    for written in ("banana", "how many women", ""):
        with pytest.raises(QueryError, match="a question reads: count age") as refusal:
            parse(written, DOMAIN)
        assert not refusal.value.suggestions
    assert set(MEASURED) == set(measure_words.AGGREGATES)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "starts with count, share or rate"),
        ("sum age", "starts with count, share or rate"),
        ("count age<17", "17 is not a bin edge of age; nearest: 10 and 20: try age < 10 or age < 20"),
        ("count age<=10", "age <= 10 cuts the bin 10-19; try age < 10 or age < 20"),
        ("count income>0.5", "income > 0.5 cuts"),
        ("max age", "hang on single rows, which are private; quantiles come close"),
        ("count sex = 'F", "is a quote open?"),
        ("median age", "quantiles are asked in SQL: SELECT avg(age), median(age) FROM …"),
        ("count sex=F age<10", "a question reads: count age < 30"),
        ("count agee<10", "no attribute 'agee'; the domain has: age"),
        ("count sex=X", "not a declared value of sex"),
        ("count sex<F", "not ordered"),
        ("count age<ten", "is a number"),
        ("count age<10 sex=F", "expected 'and', 'or', 'by' or the end"),
        ("count (age<10", "expected ')'"),
        ("count age<", "expected a value"),
        ("count age in ()", "expected a value"),
        ("count by", "expected an attribute"),
        ("count by age, age", "twice"),
        ("count born<2000-13-01", "not a day"),
        ("count income=0.5", "is real"),
        ("count age<1e400", "number"),
        ("count 'age", "cannot read"),
        ("count age < 10; drop table people", "expected"),
        ("count " + "(" * 60 + "age<10" + ")" * 60, "nested"),
        ("count " + "x" * 20_000, "characters"),
    ],
)
def test_refusals_say_what_to_write(text, hint):
    with pytest.raises(UnderstudyError) as refused:
        parse(text, DOMAIN)
    assert hint in str(refused.value)


def test_a_condition_that_spreads_too_far_is_refused_before_allocating():
    wide = Domain(tuple(Bins.integers(f"a{i}", 0, 99) for i in range(10)))
    parse("count " + " and ".join(f"a{i}<50" for i in range(10)), wide)
    with pytest.raises(QueryError, match="cells"):
        parse("count " + " or ".join(f"a{i}<50" for i in range(10)), wide)


# ---- a second reading of the language, row by row, to hold the first one against

LEAVES = {
    "age<10": lambda r: r["age"] < 10,
    "age>=20": lambda r: r["age"] >= 20,
    "sex=F": lambda r: r["sex"] == "F",
    "sex!=M": lambda r: r["sex"] != "M",
    "smoker=true": lambda r: None if r["smoker"] is None else r["smoker"],
    "smoker is null": lambda r: r["smoker"] is None,
}


def conditions():
    leaf = st.sampled_from(sorted(LEAVES)).map(lambda text: (text, LEAVES[text]))

    def negate(part):
        return f"not ({part[0]})", lambda r: None if (v := part[1](r)) is None else not v

    def both(pair):
        (a, f), (b, g) = pair
        return (
            f"({a}) and ({b})",
            lambda r: False if False in (f(r), g(r)) else None if None in (f(r), g(r)) else True,
        )

    def either(pair):
        (a, f), (b, g) = pair
        return (
            f"({a}) or ({b})",
            lambda r: True if True in (f(r), g(r)) else None if None in (f(r), g(r)) else False,
        )

    return st.recursive(
        leaf, lambda inner: inner.map(negate) | st.tuples(inner, inner).flatmap(
            lambda pair: st.sampled_from([both(pair), either(pair)])), max_leaves=6
    )  # fmt: skip


@given(conditions())
@settings(max_examples=150)
def test_cells_agree_with_three_valued_logic_on_rows(condition):
    text, holds = condition
    where = parse(f"count {text}", DOMAIN).marginal.where
    weights = where.weights(("age", "sex", "smoker"))
    for age, sex, smoker in itertools.product((5, 15, 25), ("F", "M", "X"), (True, False, None)):
        cell = DOMAIN["age"].code(age), DOMAIN["sex"].code(sex), DOMAIN["smoker"].code(smoker)
        assert weights[cell] == (holds({"age": age, "sex": sex, "smoker": smoker}) is True)


@given(st.text(alphabet="count share by age sex and or not in ()<>='\",0123456789.é\x00\n", max_size=60))
@settings(max_examples=300)
def test_any_text_is_a_question_or_a_clear_refusal(text):
    with suppress(UnderstudyError):
        parse(text, DOMAIN)


@pytest.mark.parametrize(
    ("question", "written"),
    [
        ('count city = "Paris"', "in single quotes: 'Paris', or without any: Paris"),
        ('count city in (Rome, "Paris")', "in single quotes: 'Paris', or without any: Paris"),
        ('count city = "St. John\'s"', "in single quotes: 'St. John''s'"),
    ],
)
def test_a_value_in_double_quotes_is_told_how_to_write_it(question: str, written: str):
    domain = Domain((Categories(name="city", values=("Paris", "Rome", "St. John's")),))
    with pytest.raises(QueryError) as refused:
        parse(question, domain)
    assert str(refused.value).startswith("double quotes name an attribute; write the value")
    assert str(refused.value).endswith(written)
    said = re.search("single quotes: (.*?)(, or|$)", str(refused.value))
    assert said is not None
    parse(f"count city = {said[1]}", domain)  # what it says can be asked


def test_a_code_with_leading_zeros_needs_no_quotes():
    domain = Domain((Categories(name="zip", values=("01067", "1067", "04109")),))
    for written in ("zip = 01067", "zip = '01067'", "zip in (01067)"):
        assert (
            parse(f"count {written}", domain).marginal.key == parse("count zip='01067'", domain).marginal.key
        )
    assert parse("count zip = 1067", domain).marginal.key == parse("count zip='1067'", domain).marginal.key
    with pytest.raises(QueryError, match="'01068' is not a declared value of zip; try: 01067"):
        parse("count zip = 01068", domain)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("value", [20_000, 50_000, 70_000])
def test_what_a_refusal_suggests_can_be_asked_as_it_stands(operator, value):
    """Also in the last bin, which holds its upper edge."""
    domain = Domain((Bins.between("income (€)", [0.0, 50_000.0, 1_000_000.0]),))
    if value == 50_000 and operator in ("<", ">="):
        return
    with pytest.raises(QueryError) as refused:
        parse(f'count "income (€)" {operator} {value}', domain)
    assert ".0" not in str(refused.value)
    assert len(refused.value.suggestions) == 2
    assert len({parse(f"count {one}", domain).marginal.key for one in refused.value.suggestions}) == 2


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "count work = not working",
            "not working is a value of several words; write 'not working' in single quotes",
        ),
        ("count work in (nurse, not working)", "write 'not working' in single quotes"),
        ("count by home town", 'home town is a name of several words; write "home town" in double quotes'),
        ("count home town = a", 'write "home town" in double quotes'),
        ("count by home towns", "there is no attribute 'home'"),
    ],
)
def test_words_that_need_quotes_are_told(question, said):
    domain = Domain(
        (
            Categories(name="work", values=("not working", "nurse")),
            Categories(name="home town", values=("a", "b")),
        )
    )
    with pytest.raises(QueryError) as refused:
        parse(question, domain)
    assert said in str(refused.value)
