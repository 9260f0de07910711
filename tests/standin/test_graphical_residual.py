"""Parts of tables on a lattice, against projections by matrices, and the direction of a fit's next step."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.standin.graphical.descent import StepMemory
from understudy.standin.graphical.residual import ResidualSpace, lattice, maximal
from understudy.standin.graphical.tree import Layout

SIZES = (2, 3, 3, 4)
LATTICES = {
    "all triples": list(combinations(range(4), 3)),
    "triples that share a pair": [(0, 1, 2), (1, 2, 3), (0,), (3,)],
    "everything": [(0, 1, 2, 3), (0, 1), (1, 2), (2,)],
    "pairs and a column": [(0, 1), (2, 3), (1,)],
}


def space_of(cliques) -> ResidualSpace:
    layout = Layout(Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate(SIZES))))
    return ResidualSpace(layout, maximal(cliques), lattice(cliques))


def own_part(space, table, s):
    """What is orthogonal to the functions of all smaller sets of the lattice, by least squares."""
    basis = []
    for t in space.sets:
        if set(t) < set(s):
            for cell in np.ndindex(*space.layout.shape(t)):
                indicator = np.zeros(table.shape)
                at = dict(zip(t, cell, strict=True))
                indicator[tuple(at.get(a, slice(None)) for a in s)] = 1.0
                basis.append(indicator.ravel())
    if not basis:
        return table
    matrix = np.array(basis).T
    return table - (matrix @ np.linalg.lstsq(matrix, table.ravel(), rcond=None)[0]).reshape(table.shape)


@pytest.mark.parametrize("cliques", LATTICES.values(), ids=LATTICES.keys())
def test_each_part_is_what_no_smaller_set_of_the_lattice_tells(cliques):
    space, rng = space_of(cliques), np.random.default_rng(0)
    functions = rng.normal(size=space.size)
    found = space.projected(functions)
    for part in space.parts:
        shape = space.layout.shape(part.attributes)
        table = functions[part.start : part.stop].reshape(shape)
        wanted = own_part(space, table, part.attributes)
        np.testing.assert_allclose(found[part.start : part.stop].reshape(shape), wanted, atol=1e-12)


@pytest.mark.parametrize("cliques", LATTICES.values(), ids=LATTICES.keys())
def test_parts_of_consistent_tables_are_put_together_again(cliques):
    space, rng = space_of(cliques), np.random.default_rng(1)
    joint = rng.random(SIZES)
    tables = np.concatenate(
        [joint.sum(axis=tuple(a for a in range(4) if a not in c)).ravel() for c in space.cliques]
    )
    parts = space.residuals(tables)
    np.testing.assert_allclose(space.expand(parts), tables, atol=1e-12)
    for part in space.parts:
        table = joint.sum(axis=tuple(a for a in range(4) if a not in part.attributes))
        wanted = own_part(space, table, part.attributes)
        np.testing.assert_allclose(parts[part.start : part.stop], wanted.ravel(), atol=1e-12)


@pytest.mark.parametrize("cliques", LATTICES.values(), ids=LATTICES.keys())
def test_expanding_is_the_adjoint_of_effects(cliques):
    """On parts: what stands in a part's place and lies outside of its space has no effect."""
    space, rng = space_of(cliques), np.random.default_rng(2)
    tables, parts = rng.normal(size=space.cells), space.projected(rng.normal(size=space.size))
    effects = space.effects(tables)
    np.testing.assert_allclose(space.projected(effects), effects, atol=1e-12)
    assert effects @ parts == pytest.approx(tables @ space.expand(parts), abs=1e-10)
    assert abs(effects @ parts) > 1e-3


@pytest.mark.parametrize("steps", [0, 1, 3, 7])
def test_the_next_step_is_that_of_l_bfgs(steps):
    """Against the inverse Hessian that the last four steps build up, written out as a matrix."""
    size, memory = 9, 4
    rng = np.random.default_rng(steps)
    root = rng.normal(size=(size, size))
    hessian = root @ root.T + np.eye(size)
    rates, own, total = rng.random(size), 0.1 + rng.random(size), 50.0
    search, theta, pairs = StepMemory(memory, size), rng.normal(size=size), []
    for _ in range(steps):
        new = theta + rng.normal(size=size)
        search.learn(new, theta, hessian @ new, hessian @ theta)
        pairs.append((new - theta, hessian @ (new - theta)))
        theta = new
    guess = np.diag(1 / (total * rates + own))
    inverse = 0.3 * guess
    if pairs:
        moved, turned = pairs[-1]
        inverse = guess * (moved @ turned) / (turned @ guess @ turned)
    for moved, turned in pairs[-memory:]:
        turn = np.eye(size) - np.outer(moved, turned) / (moved @ turned)
        inverse = turn @ inverse @ turn.T + np.outer(moved, moved) / (moved @ turned)
    gradient = rng.normal(size=size)
    found = search.direction(gradient, rates, own, total)
    np.testing.assert_allclose(found, -inverse @ gradient, rtol=1e-3, atol=1e-4)


def test_a_step_along_which_the_function_does_not_bend_is_not_remembered():
    search, zero, step = StepMemory(3, 2), np.zeros(2), np.array([1.0, -2.0])
    before = search.direction(step, np.ones(2), np.ones(2), 1.0)
    search.learn(step, zero, -step, zero)
    np.testing.assert_array_equal(search.direction(step, np.ones(2), np.ones(2), 1.0), before)
