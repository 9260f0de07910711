"""Questions about measures in the small language, and what is said of those that it has no words for."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from understudy.domain.attribute import Boolean, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.measure_words import parse_measure

TOWN = Domain(
    (
        Bins.measure("income", 0, 200_000),
        Bins.integers("rooms", 1, 4),
        Categories(name="sex", values=("F", "M")),
        Boolean(name="smoker"),
        Bins(name="born", starts=(dt.date(1950, 1, 1),), upper=dt.date(2000, 1, 1)),
    )
)


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("quantile 0.1, 0.5 income", "has one level", r"quantile_cont\(income, \[0.1, 0.9\]\)"),
        ("quantile [0.1, 0.5] income", "has one level", "quantile_cont"),
        ("quantile (0.1, 0.5) income by rooms", "has one level", "quantile_cont"),
        ("quantile (income)", "a quantile has a level", "quantile 0.9 income"),
        ("avg 0.5 income", "a quantile has a level between 0 and 1, and nothing else", "quantile 0.9 income"),
        ("quantile 90 income", "a quantile has a level between 0 and 1", "quantile 0.9 income"),
        ("sum rooms", "not declared as a measure", r"SELECT sum\(rooms\) FROM"),
        ("avg rooms", "not declared as a measure", r"SELECT avg\(rooms\) FROM"),
        ("median rooms", "not declared as a measure", r"SELECT median\(rooms\) FROM"),
        ("quantile 0.25 rooms", "not declared as a measure", r"SELECT quantile_cont\(rooms, 0.25\) FROM"),
        (
            "variance rooms",
            "not declared as a measure",
            r"SELECT avg\(rooms \* rooms\) - avg\(rooms\) \* avg\(rooms\)",
        ),
        ("stddev rooms", "not declared as a measure", r"SELECT sqrt\(avg\(rooms \* rooms\)"),
        ("covariance income, rooms", "not declared as a measure", r"SELECT avg\(income \* rooms\)"),
        ("avg sex", "sex holds no numbers", "count by sex"),
        ("avg smoker", "smoker holds no numbers", "share smoker = true"),
        ("avg born", "born holds days", r"SELECT median\(born\) FROM"),
        ("avg", "names it after the aggregate", "avg income"),
    ],
)
def test_what_there_are_no_words_for_is_told_with_what_to_write(text, problem, remedy):
    with pytest.raises(QueryError, match=problem) as refusal:
        parse_measure(text, TOWN)
    assert re.search(remedy, refusal.value.remedy or "")
