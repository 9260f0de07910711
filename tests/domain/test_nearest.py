"""The choices that a message offers: the nearest first, all of a few, and of many where to find them all."""

from __future__ import annotations

import pytest

from understudy.domain.attribute import Boolean, Categories, close_to, listed
from understudy.domain.domain import Domain
from understudy.errors import DomainError, QueryError
from understudy.query.expression import parse

TOWNS = tuple(f"Town {i:03}" for i in range(200))
DOMAIN = Domain((Categories(name="town", values=TOWNS), Boolean(name="smoker")))


def test_of_a_few_choices_all_are_named_the_nearest_first():
    names = ["age", "sex", "smoker"]
    assert close_to("SEX", names)[0] == "sex"
    assert listed(close_to("SEX", names), names, "there").split(", ")[0] == "sex"
    assert set(listed(close_to("x", names), names, "there").split(", ")) == set(names)
    with pytest.raises(DomainError, match=r"the domain has: smoker, town$"):
        DOMAIN["smokes"]


def test_of_many_the_nearest_are_named_and_where_all_are_listed():
    with pytest.raises(QueryError) as refusal:
        parse("count town = 'town 123'", DOMAIN)
    said = str(refusal.value)
    assert "try: Town 123, " in said
    assert said.endswith("(200 in all: see the declaration, or `domain['town'].values` in Python)")


def test_very_many_choices_are_compared_in_a_moment():
    many = [f"value {i}" for i in range(20_000)]
    assert close_to("value 12345x", many)[0] == "value 12345"
