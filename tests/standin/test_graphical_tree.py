"""Junction trees: triangulated, joined rightly, and sized before they are built."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.standin.graphical.model import CandidateSizes, model_cells
from understudy.standin.graphical.tree import GrowingTree, Layout, junction_tree


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


@st.composite
def domains_with_cliques(draw, *, most=8):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=most))
    clique = st.sets(st.integers(0, len(sizes) - 1), max_size=4)
    cliques = draw(st.lists(clique, max_size=10))
    return domain_of(*sizes), [tuple(f"a{i}" for i in sorted(c)) for c in cliques]


@given(domains_with_cliques())
def test_a_tree_covers_its_cliques_and_all_attributes(case):
    domain, cliques = case
    layout = Layout(domain)
    tree = junction_tree(layout, [layout.attributes(c) for c in cliques])
    for clique in [*cliques, *((name,) for name in domain.names)]:
        assert tree.host(layout.attributes(clique), layout) is not None
    for a, b in combinations(tree.members, 2):
        assert not a <= b
        assert not b <= a


@given(domains_with_cliques())
def test_running_intersection(case):
    domain, cliques = case
    layout = Layout(domain)
    tree = junction_tree(layout, [layout.attributes(c) for c in cliques])
    for j, parent in enumerate(tree.parents):
        assert parent < j
        shared = tree.members[j] & tree.members[parent] if parent >= 0 else frozenset()
        assert tree.separators[j] == tuple(sorted(shared))
        seen = frozenset().union(*tree.members[:j])
        assert tree.members[j] & seen == shared, "what a clique shares with any earlier one, its parent has"


@given(domains_with_cliques())
def test_cells_are_known_before_anything_is_built(case):
    domain, cliques = case
    layout = Layout(domain)
    tree = junction_tree(layout, [layout.attributes(c) for c in cliques])
    assert model_cells(domain, cliques) == sum(layout.cells(c) for c in tree.cliques)


@given(domains_with_cliques(), st.data())
def test_candidates_are_sized_as_if_each_were_added_alone(case, data):
    domain, cliques = case
    wanted = st.sets(st.sampled_from(domain.names), max_size=4)
    candidates = [domain.clique(c) for c in data.draw(st.lists(wanted, max_size=6))]
    cells = CandidateSizes(domain, candidates).cells(cliques)
    assert cells.tolist() == [model_cells(domain, [*cliques, c]) for c in candidates]


@given(domains_with_cliques(), st.integers(0, 3), st.integers(1, 400))
def test_a_growing_tree_takes_what_a_model_of_so_many_cells_can_hold(case, begun, most):
    domain, cliques = case
    held = list(cliques[:begun])
    tree = GrowingTree(domain, held, most)
    for clique in cliques[begun:]:
        cells = model_cells(domain, [*held, clique])
        assert tree.grown(clique) == cells
        assert tree.take(clique) == (cells <= most)
        held += [clique] if cells <= most else []
        assert tree.cells == model_cells(domain, held)


def test_a_chain_needs_no_fill_in():
    domain = domain_of(*[10] * 30)
    pairs = [(f"a{i}", f"a{i + 1}") for i in range(29)]
    assert model_cells(domain, pairs) == 29 * 100
    assert model_cells(domain, [*pairs, ("a0", "a29")]) <= 28 * 1000


def test_sizes_beyond_floats_are_exact_for_one_model_and_infinite_for_candidates():
    domain = domain_of(*[1000] * 110)
    assert model_cells(domain, [domain.names]) == 1000**110
    assert CandidateSizes(domain, [domain.names, ("a0",)]).cells([]).tolist() == [np.inf, 110_000]


@pytest.mark.parametrize("shape", [(4, 2, 3), (2, 2, 2), (1, 5, 1)])
def test_tables_go_in_and_out_of_the_layout(shape):
    layout = Layout(domain_of(*shape))
    attributes = layout.attributes(layout.domain.names)
    table = np.arange(np.prod(shape), dtype=float).reshape(shape)
    flat = layout.inward(attributes, table)
    assert (layout.outward(attributes, flat) == table).all()
    assert list(layout.sizes) == sorted(shape)
    assert layout.clique(attributes) == layout.domain.names
