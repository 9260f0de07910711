"""The cover holds every requested clique, within the limit, and is short."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.errors import DomainError, ParameterError
from understudy.table.cover import clique_cover

CENSUS = [16, 3, 6, 2, 32, 8, 5, 2, 9, 24, 4, 5, 2, 12, 7]
ADULT = [74, 9, 16, 16, 7, 15, 6, 5, 2, 20, 20, 20, 42, 2, 2]


def cells(clique, sizes):
    return math.prod(sizes[a] for a in clique)


def uncovered(cliques, cover):
    return [c for c in cliques if not any(set(c) <= set(merged) for merged in cover)]


@st.composite
def few(draw):
    sizes = draw(st.lists(st.integers(1, 40), min_size=1, max_size=9))
    subset = st.sets(st.integers(0, len(sizes) - 1), max_size=5).map(lambda s: tuple(sorted(s)))
    cliques = draw(st.lists(subset, max_size=40))
    limit = draw(st.sampled_from([1, 2, 7, 64, 1000, 2**17]))
    return cliques, sizes, limit


@st.composite
def many(draw):
    """Most pairs and triples of several attributes: only then is there anything to choose."""
    random = draw(st.randoms(use_true_random=False))
    sizes = [random.randint(1, 12) for _ in range(random.randint(5, 9))]
    subsets = [c for k in (1, 2, 3, 4) for c in itertools.combinations(range(len(sizes)), k)]
    return (
        random.sample(subsets, random.randint(10, len(subsets) // 2)),
        sizes,
        random.choice([20, 100, 1000]),
    )


def requests():
    return few() | many()


@given(requests())
@example(([()], [3], 64))
@example(([], [3], 64))
@example(([()], [], 64))
@example(([(0,), (0, 1), (0, 1, 2)], [1, 1, 1], 1))
@example(([(0, 1), (0, 2)], [2**40, 2**30, 3], 2**17))
def test_every_clique_is_covered_within_the_limit(request_):
    cliques, sizes, limit = request_
    cover = clique_cover(cliques, sizes, limit=limit)
    assert uncovered(cliques, cover) == []
    for merged in cover:
        assert list(merged) == sorted(set(merged))
        assert cells(merged, sizes) <= limit or merged in cliques


@given(requests())
def test_no_clique_of_the_cover_is_within_another(request_):
    cliques, sizes, limit = request_
    cover = clique_cover(cliques, sizes, limit=limit)
    assert not [(a, b) for a, b in itertools.permutations(cover, 2) if set(a) <= set(b)]


@given(requests(), st.randoms(use_true_random=False))
def test_the_cover_depends_on_the_set_of_cliques_only(request_, random):
    cliques, sizes, limit = request_
    shuffled = cliques + cliques[: len(cliques) // 2]
    random.shuffle(shuffled)
    assert clique_cover(iter(shuffled), sizes, limit=limit) == clique_cover(cliques, sizes, limit=limit)


def test_ties_are_broken_by_position_not_by_the_order_of_request():
    triples = list(itertools.combinations(range(12), 3))
    covers = [
        clique_cover(map(tuple, np.random.default_rng(seed).permutation(triples).tolist()), [5] * 12)
        for seed in range(5)
    ]
    assert all(cover == covers[0] for cover in covers)


@given(requests())
def test_every_attribute_of_the_cover_is_there_for_a_reason(request_):
    cliques, sizes, limit = request_
    cover = clique_cover(cliques, sizes, limit=limit)
    for k, merged in enumerate(cover):
        for attribute in merged:
            smaller = tuple(a for a in merged if a != attribute)
            assert uncovered(cliques, [*cover[:k], smaller, *cover[k + 1 :]])


def test_everything_small_is_one_clique():
    pairs = list(itertools.combinations(range(16), 2))
    assert clique_cover(pairs, [2] * 16) == [tuple(range(16))]


def test_a_clique_beyond_the_limit_is_kept_and_serves_its_parts():
    assert clique_cover([(0, 1), (0,), (2,)], [1000, 1000, 3], limit=100) == [(0, 1), (2,)]


@pytest.mark.parametrize(
    ("sizes", "largest", "at_most"),
    [(CENSUS, 2**17, 36), (ADULT, 10_000, 58), ([4] * 20, 2**17, 42)],
    ids=["455 triples", "adult", "1,140 equal triples"],
)
def test_the_cover_of_all_triples_is_short(sizes, largest, at_most):
    triples = [t for t in itertools.combinations(range(len(sizes)), 3) if cells(t, sizes) <= largest]
    cover = clique_cover(triples, sizes)
    assert uncovered(triples, cover) == []
    assert len(cover) <= at_most


def test_four_thousand_cliques():
    sizes = np.random.default_rng(5).integers(2, 20, 30).tolist()
    triples = list(itertools.combinations(range(30), 3))
    cover = clique_cover(triples, sizes)
    assert uncovered(triples, cover) == []
    assert len(cover) <= 560
    assert max(cells(merged, sizes) for merged in cover) <= 2**17


@pytest.mark.parametrize("clique", [(1, 0), (0, 0), (0, 3), (-1, 0), (3,)])
def test_what_is_no_clique_of_these_attributes_is_refused(clique):
    with pytest.raises(DomainError):
        clique_cover([clique], [2, 2, 2])


def test_impossible_sizes_and_limits_are_refused():
    with pytest.raises(ParameterError):
        clique_cover([(0,)], [0])
    with pytest.raises(ParameterError):
        clique_cover([(0,)], [2], limit=0)
