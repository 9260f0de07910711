"""Questions about measures in the small language, and what is said of those that it has no words for."""

from __future__ import annotations

import re

import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.measure_words import parse_measure

TOWN = Domain((Bins.measure("income", 0, 200_000), Bins.integers("rooms", 1, 4)))


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("quantile 0.1, 0.5 income", "has one level", r"quantile_cont\(income, \[0.1, 0.9\]\)"),
        ("quantile [0.1, 0.5] income", "has one level", "quantile_cont"),
        ("quantile (0.1, 0.5) income by rooms", "has one level", "quantile_cont"),
        ("quantile (income)", "a quantile has a level", "quantile 0.9 income"),
        ("avg 0.5 income", "a quantile has a level, and nothing else has", "quantile 0.9 income"),
        ("avg", "names it after the aggregate", "avg income"),
    ],
)
def test_what_there_are_no_words_for_is_told_with_what_to_write(text, problem, remedy):
    with pytest.raises(QueryError, match=problem) as refusal:
        parse_measure(text, TOWN)
    assert re.search(remedy, refusal.value.remedy or "")
