from __future__ import annotations

from itertools import permutations
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, TooLargeError

A = Bins.integers("a", 0, 2)
B = Categories(name="b", values=("x", "y"))
C = Bins.integers("c", 1, 4)
ABC = Domain((A, B, C))


def test_size_is_exact_for_huge_universes():
    huge = Domain(tuple(Bins.integers(f"a{i}", 0, 9) for i in range(100)))
    assert huge.size() == 10**100
    assert huge.index((9,) * 100) == 10**100 - 1
    assert huge.cell(10**100 - 1) == (9,) * 100


def test_huge_cliques_are_refused_before_allocating():
    huge = Domain(tuple(Bins.integers(f"a{i}", 0, 9) for i in range(30)))
    with pytest.raises(TooLargeError) as refused:
        huge.allocatable_shape(huge.names)
    assert refused.value.cells == 10**30


def test_project_keeps_domain_order():
    assert ABC.project(["c", "a"]).names == ("a", "c")
    assert ABC.shape() == (3, 3, 4)
    assert ABC.clique(["c", "b"]) == ("b", "c")


def test_a_clique_is_the_same_however_it_is_named():
    cafe = Domain((A, Bins.integers("caf\u00e9", 0, 1), C))
    for length in range(4):
        for names in permutations(cafe.names, length):
            ordered = tuple(name for name in cafe.names if name in names)
            for words in (names, list(names), iter(names), np.array(names, str), map(decomposed, names)):
                found = cafe.clique(words)
                assert found == ordered
                assert {type(name) for name in found} <= {str}
    for names in (("a", "c", "a"), ("a", "a"), ("caf\u00e9", "cafe\u0301")):
        with pytest.raises(DomainError, match="twice"):
            cafe.clique(names)
    with pytest.raises(DomainError, match="no attribute 'd'"):
        cafe.clique(("a", "d", "a"))


def decomposed(name: str) -> str:
    return normalize("NFD", name)


def test_merge_joins_and_refuses_contradictions():
    left, right = Domain((A, B)), Domain((B, C))
    assert left.merge(right) == ABC
    with pytest.raises(DomainError, match="differently"):
        left.merge(Domain((Bins.integers("a", 0, 5),)))


def test_duplicates_and_unknown_names_are_refused():
    with pytest.raises(DomainError, match="twice"):
        Domain((A, A))
    with pytest.raises(DomainError, match="twice"):
        Domain((Bins.integers("caf\u00e9", 0, 1), Bins.integers("cafe\u0301", 0, 1)))
    with pytest.raises(DomainError, match="no attribute 'bb'"):
        ABC["bb"]
    with pytest.raises(DomainError, match="twice"):
        ABC.clique(["a", "a"])
    with pytest.raises(DomainError):
        Domain(())


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_index_and_cell_are_inverse(sizes, data):
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))
    index = data.draw(st.integers(0, domain.size() - 1))
    cell = domain.cell(index)
    assert domain.index(cell) == index
    assert cell == np.unravel_index(index, domain.shape())


def test_index_refuses_codes_outside():
    with pytest.raises(DomainError):
        ABC.index((3, 0, 0))
    with pytest.raises(DomainError):
        ABC.cell(36)


def test_labels():
    assert ABC.labels((2, 2, 0)) == ("2", "other", "1")
