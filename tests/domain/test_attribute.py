from __future__ import annotations

import datetime as dt
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.attribute import Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.instants import Instants
from understudy.errors import DomainError, QueryError

AGE = Bins.between("age", [0, 18, 65, 120])
COLOUR = Categories(name="colour", values=("red", "green", "blue"), null=True)


def cells(mask) -> list[int]:
    return np.flatnonzero(mask.true).tolist()


def test_bins_are_half_open_and_the_last_is_closed():
    assert [AGE.code(x) for x in (0, 17, 18, 64, 65, 120)] == [0, 0, 1, 1, 2, 2]


def test_values_outside_are_clamped_by_default():
    assert AGE.code(-5) == 0
    assert AGE.code(10**9) == 2


@pytest.mark.parametrize(("outside", "null", "cell"), [(Outside.OTHER, False, 3), (Outside.NULL, True, 3)])
def test_values_outside_go_where_declared(outside, null, cell):
    age = Bins.between("age", [0, 18, 65, 120], outside=outside, null=null)
    assert age.size == 4
    assert age.code(-1) == age.code(121) == cell
    assert age.code(120) == 2


DAY = dt.datetime(2024, 3, 1)


@pytest.mark.parametrize(
    ("outside", "null"),
    [
        (Outside.CLAMP, False),
        (Outside.CLAMP, True),
        (Outside.OTHER, False),
        (Outside.OTHER, True),
        (Outside.NULL, True),
    ],
)
def test_there_are_as_many_cells_as_names(outside, null):
    attributes = [
        Bins.between("age", [0, 18, 65, 120], outside=outside, null=null),
        Bins.between("weight", [0.5, 1.5, 9.0], outside=outside, null=null),
        Bins(name="age", starts=(0, 1, 2), upper=2, outside=outside, null=null),
        Instants.between("opened", [DAY, DAY.replace(hour=9)], outside=outside, null=null),
    ]
    if outside is not Outside.CLAMP:  # words have no ends to be clamped to
        attributes.append(
            Categories(name="colour", values=("red", "other", "null"), outside=outside, null=null)
        )
    for attribute in attributes:
        assert attribute.proper_size == len(attribute.proper_labels)
        assert attribute.size == len(attribute.labels) == len(set(attribute.labels))


def test_millions_of_bins_are_counted_without_their_names():
    many = Bins.integers("n", 0, 10**6 - 1)
    assert Domain((many,)).shape() == (10**6,)
    assert not any("labels" in kept for kept in vars(many))
    assert many.labels[-1] == "999999"
    assert any("labels" in kept for kept in vars(many))


def test_where_values_outside_go_may_be_written_as_a_word():
    word = Categories(name="colour", values=("red",), outside="other")  # type: ignore[arg-type]
    assert word == Categories(name="colour", values=("red",), outside=Outside.OTHER)
    assert (word.labels, word.code("blue"), word.identity) == (
        ("red", "other"),
        1,
        Categories(name="colour", values=("red",)).identity,
    )
    with pytest.raises(DomainError, match="clamp, other or null"):
        Categories(name="colour", values=("red",), outside="elsewhere")  # type: ignore[arg-type]


def test_not_a_number_is_missing_and_minus_zero_is_zero():
    x = Bins.between("x", [-0.0, 1.0, 2.0], null=True)
    assert x.code(float("nan")) == x.code(None) == x.null_cell == 2
    assert x.code(-0.0) == 0
    assert np.copysign(1, x.starts[0]) == 1
    assert x.code(float("inf")) == 1
    assert x.code(float("-inf")) == 0


def test_missing_values_without_a_null_cell_have_a_place():
    assert AGE.code(None) == 0
    assert Categories(name="c", values=("a",)).code(None) == 1
    assert Boolean(name="b").code(None) == 0
    assert Boolean(name="b", null=True).code("perhaps") == 2


@pytest.mark.parametrize("edges", [[0], [0, 0], [1, 0], [0.0, float("nan")], [0.0, float("inf")], [0, 1.5]])
def test_bad_edges_are_refused(edges):
    with pytest.raises(DomainError):
        Bins.between("x", edges)


def test_unicode_equal_categories_are_one_category():
    with pytest.raises(DomainError, match="twice"):
        Categories(name="c", values=("caf\u00e9", "cafe\u0301"))
    attribute = Categories(name="c", values=("cafe\u0301",))
    assert attribute.code("caf\u00e9") == attribute.code("cafe\u0301") == 0


def test_categories_cannot_be_clamped():
    with pytest.raises(DomainError, match="clamp"):
        Categories(name="c", values=("a",), outside=Outside.CLAMP)


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("<", 18, [0]), ("<=", 17, [0]), (">=", 65, [2]), (">", 64, [2]), ("<", 0, []), ("<", 500, [0, 1, 2]),
        ("<=", 120, [0, 1, 2]), (">", 120, []), (">=", -3, [0, 1, 2]),
    ],
)  # fmt: skip
def test_comparisons_on_edges(operator, value, expected):
    assert cells(AGE.compare(operator, value)) == expected


def test_a_comparison_off_the_edges_says_the_nearest():
    with pytest.raises(
        QueryError, match=r"17 is not a bin edge of age; nearest: 0 and 18: try age < 0 or age < 18"
    ):
        AGE.compare("<", 17)


def test_equality_needs_a_cell_of_its_own():
    unit = Bins.integers("n", 0, 3)
    assert cells(unit.compare("=", 2)) == [2]
    assert cells(unit.compare("!=", 2)) == [0, 1, 3]
    assert cells(unit.compare("=", 7)) == []
    with pytest.raises(QueryError, match="cuts the bin 0-17"):
        AGE.compare("=", 3)


def test_dates():
    born = Bins.between("born", [dt.date(1990, 1, 1), dt.date(2000, 1, 1), dt.date(2010, 12, 31)])
    assert born.code(dt.date(1999, 12, 31)) == 0
    assert born.code(dt.datetime(2000, 1, 1, 13)) == 1
    assert cells(born.compare("<", "2000-01-01")) == [0]
    assert cells(born.compare("<=", dt.date(1999, 12, 31))) == [0]
    with pytest.raises(QueryError, match="2024-12-31"):
        born.compare("<", "yesterday")


def test_kleene_logic_leaves_missing_values_out():
    red = COLOUR.compare("=", "red")
    assert cells(red) == [0]
    assert cells(~red) == [1, 2, 3]  # `other` is known not to be red; null is not known
    assert cells(COLOUR.is_null()) == [4]
    binned = Bins.between("x", [0, 1, 2], outside=Outside.OTHER, null=True)
    below = binned.compare("<", 1)
    assert cells(below) == [0]
    assert cells(~below) == [1]  # an outside value may be on either side


def test_wrong_types_are_refused_with_a_hint():
    with pytest.raises(QueryError, match="not ordered"):
        COLOUR.compare("<", "red")
    with pytest.raises(QueryError, match="red, green, blue"):
        COLOUR.compare("=", "purple")
    with pytest.raises(QueryError, match="number"):
        AGE.compare("<", "old")
    with pytest.raises(QueryError, match="integer"):
        AGE.compare("<", 17.5)
    with pytest.raises(QueryError, match="true or false"):
        Boolean(name="b").compare("=", "maybe")


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=12, unique=True).map(sorted),
    st.integers(-80, 80) | st.floats(-80, 80),
)
def test_code_is_the_bin_that_holds_the_value(edges, value):
    attribute = Bins.between("x", edges)
    bins = [i for i, (a, b) in enumerate(pairwise(edges)) if a <= value < b or (b == edges[-1] == value)]
    expected = bins[0] if bins else (0 if value < edges[0] else len(edges) - 2)
    assert attribute.code(value) == expected


@given(st.integers(-5, 15), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
def test_comparison_agrees_with_every_value(constant, operator):
    """A mask is right when it agrees with the comparison on each integer that a cell holds."""
    attribute = Bins.integers("n", 0, 9)
    mask = attribute.compare(operator, constant)
    compare = {
        "<": int.__lt__,
        "<=": int.__le__,
        ">": int.__gt__,
        ">=": int.__ge__,
        "=": int.__eq__,
        "!=": int.__ne__,
    }
    for value in range(10):
        assert mask.true[attribute.code(value)] == compare[operator](value, constant)
        assert mask.false[attribute.code(value)] != mask.true[attribute.code(value)]


@pytest.mark.parametrize(
    "words", [("yes",), ("yes", "no", "n"), (), (True, False), (1, 0), ("yes", None), None, "yn", 3]
)
def test_words_of_a_boolean_are_two_texts(words):
    with pytest.raises(DomainError, match=r"smoker: `words` are two texts, not .*words=\('yes', 'no'\)"):
        Boolean(name="smoker", words=words)


def test_words_of_a_boolean_may_be_a_list_and_are_kept_as_a_tuple():
    listed = Boolean(name="smoker", words=["yes", "no"])  # type: ignore[arg-type]
    assert listed.words == ("yes", "no")
    assert hash(listed) == hash(Boolean(name="smoker", words=("yes", "no")))
