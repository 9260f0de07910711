"""The graphical stand-in against brute force on universes small enough to be written out."""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.standin.graphical.model import Constraint, GraphicalStandIn, LogFactor

EMPTY = "forbid every cell"


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def dense(model):
    """The model's distribution over its whole universe; None where its constraints leave nothing."""
    names = model.domain.names
    logs = np.zeros(model.domain.shape())
    for factor in model.factors:
        sizes = dict(zip(factor.clique, factor.logs.shape, strict=True))
        logs = logs + factor.logs.reshape([sizes.get(name, 1) for name in names])
    for constraint in model.constraints:
        sizes = dict(zip(constraint.clique, constraint.allowed.shape, strict=True))
        logs = np.where(constraint.allowed.reshape([sizes.get(name, 1) for name in names]), logs, -np.inf)
    if logs.max() == -np.inf:
        return None
    rates = np.exp(logs - logs.max())
    return rates / rates.sum()


def marginal(domain: Domain, rates: np.ndarray, clique: tuple[str, ...]) -> np.ndarray:
    return rates.sum(axis=tuple(i for i, name in enumerate(domain.names) if name not in clique))


def cliques_of(domain: Domain, most: int) -> list[tuple[str, ...]]:
    return [c for k in range(most + 1) for c in combinations(domain.names, k)]


SPREADS = st.sampled_from([0.5, 3.0, 50.0, 2000.0])


@st.composite
def models(draw, *, spread=SPREADS, constrained=True):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    domain = domain_of(*sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    subsets = st.sets(st.sampled_from(domain.names), max_size=3)
    scale = draw(spread)
    factors = []
    for names in draw(st.lists(subsets, max_size=6)):
        clique = domain.clique(names)
        factors.append(LogFactor(clique, scale * rng.normal(size=domain.shape(clique))))
    constraints = []
    for names in draw(st.lists(subsets, max_size=2)) if constrained else []:
        clique = domain.clique(names)
        allowed = rng.random(domain.shape(clique)) < 0.8
        constraints.append(Constraint(clique, allowed | ~allowed.any()))
    return GraphicalStandIn(domain, 1000.0, tuple(factors), tuple(constraints))


@given(models())
def test_answers_equal_brute_force_inside_and_outside_the_tree(model):
    domain = model.domain
    rates = dense(model)
    if rates is None:
        with pytest.raises(ParameterError, match=EMPTY):
            model.project(())
        return
    answers = model.project_many(cliques_of(domain, 6))
    for clique, answer in zip(cliques_of(domain, 6), answers, strict=True):
        assert answer.shape == domain.shape(clique)
        np.testing.assert_allclose(answer, marginal(domain, rates, clique), rtol=1e-8, atol=1e-11)
        assert abs(answer.sum() - 1) < 1e-12


@given(models(constrained=False), st.data())
def test_reweighting_equals_multiplicative_weights_on_the_histogram(model, data):
    domain = model.domain
    clique = domain.clique(data.draw(st.sets(st.sampled_from(domain.names), max_size=3)))
    step = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=domain.shape(clique))
    new = model.reweight(clique, step)
    sizes = dict(zip(clique, step.shape, strict=True))
    rates = dense(model) * np.exp(step.reshape([sizes.get(name, 1) for name in domain.names]))
    rates /= rates.sum()
    for other in cliques_of(domain, 2):
        np.testing.assert_allclose(new.project(other), marginal(domain, rates, other), atol=1e-11)
    assert any(set(clique) <= set(held) for held in new.cliques)
    assert model.project(clique).shape == step.shape, "the old model still answers"


def test_many_steps_of_multiplicative_weights_follow_the_histogram():
    domain = domain_of(3, 2, 4, 3)
    rng = np.random.default_rng(5)
    model = GraphicalStandIn(domain, 100.0)
    rates = np.full(domain.shape(), 1 / domain.size())
    for _ in range(60):
        clique = domain.clique(rng.choice(domain.names, size=2, replace=False))
        query = LinearQuery.table(domain, clique, rng.integers(0, 2, domain.shape(clique)))
        model = model.reweight(clique, 0.3 * query.weights())
        rates = rates * np.exp(0.3 * query.weights(domain.names))
        rates /= rates.sum()
        assert query.answer(model) == pytest.approx(float((rates * query.weights(domain.names)).sum()))
    assert len(model.factors) <= 6
    np.testing.assert_allclose(model.project(domain.names), rates, atol=1e-12)


@given(models(spread=st.just(1.0)))
def test_forbidden_cells_have_no_mass_at_all(model):
    if dense(model) is None:
        return
    tables = model.project_many([c.clique for c in model.constraints])
    rows = model.sample_codes(50, rng=np.random.default_rng(1))
    for constraint, table in zip(model.constraints, tables, strict=True):
        assert (table[~constraint.allowed] == 0).all()
        assert constraint.allowed[tuple(rows[name] for name in constraint.clique)].all()


def test_a_functional_dependency_is_kept_across_the_tree():
    domain = domain_of(6, 3, 2)
    region_of = np.arange(6)[:, None] // 2 == np.arange(3)
    model = GraphicalStandIn(
        domain,
        10.0,
        (LogFactor(("a0", "a2"), np.random.default_rng(0).normal(size=(6, 2))),),
        (Constraint(("a0", "a1"), region_of),),
    )
    joint = model.project(("a0", "a1", "a2"))
    assert (joint[~region_of] == 0).all()
    np.testing.assert_allclose(model.project(("a1",)), joint.sum(axis=(0, 2)))


def test_constraints_that_exclude_each_other_are_refused():
    domain = domain_of(2, 2)
    model = GraphicalStandIn(
        domain,
        1.0,
        (),
        (Constraint(("a0",), np.array([True, False])), Constraint(("a0",), np.array([False, True]))),
    )
    with pytest.raises(ParameterError, match=EMPTY):
        model.project(("a1",))


def test_a_hundred_and_ten_attributes():
    domain = domain_of(*[2, 3, 5, 10, 1] * 22)
    rng = np.random.default_rng(3)
    factors = tuple(
        LogFactor(c, rng.normal(size=domain.shape(c)))
        for c in (domain.clique((f"a{i}", f"a{i + 3}")) for i in range(100))
    )
    model = GraphicalStandIn(domain, 5e4, factors)
    ends = model.project(("a0", "a54", "a99", "a109"))
    assert ends.shape == domain.shape(("a0", "a54", "a99", "a109"))
    assert ends.sum() == pytest.approx(1)
    np.testing.assert_allclose(ends.sum(axis=(0, 2, 3)), model.project(("a54",)))
    assert set(model.sample_codes(7, rng=rng)) == set(domain.names)


def test_a_chain_answers_across_its_whole_length():
    domain = domain_of(*[3] * 12)
    rng = np.random.default_rng(4)
    steps = [rng.dirichlet(np.ones(3), size=3) for _ in range(11)]
    factors = tuple(
        LogFactor(domain.clique((f"a{i}", f"a{i + 1}")), np.log(step)) for i, step in enumerate(steps)
    )
    joint = np.linalg.multi_dot(steps) / 3
    np.testing.assert_allclose(GraphicalStandIn(domain, 1.0, factors).project(("a0", "a11")), joint)


@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_many_potentials_on_one_clique(spread):
    domain = domain_of(2, 2, 3, 2, 2, 3, 2, 2)
    rng = np.random.default_rng(6)
    factors = tuple(
        LogFactor(c, spread * rng.normal(size=domain.shape(c))) for c in combinations(domain.names, 2)
    )
    model = GraphicalStandIn(domain, 1.0, factors)
    rates = dense(model)
    assert rates is not None
    for clique in cliques_of(domain, 3):
        np.testing.assert_allclose(model.project(clique), marginal(domain, rates, clique), atol=1e-11)


def test_a_way_longer_than_the_stack_is_deep():
    domain = domain_of(*[2] * 700)
    rng = np.random.default_rng(4)
    steps = [rng.dirichlet([9, 1], size=2) for _ in range(699)]
    factors = tuple(LogFactor((f"a{i}", f"a{i + 1}"), np.log(step)) for i, step in enumerate(steps))
    model = GraphicalStandIn(domain, 1.0, factors)
    ends = model.project(("a0", "a699"))
    np.testing.assert_allclose(ends, reduce(np.matmul, steps) / 2, atol=1e-12)


@given(models(), st.integers(0, 2**32 - 1))
def test_queries_are_answered_alike_expanded_and_factor_by_factor(model, seed):
    domain, rng = model.domain, np.random.default_rng(seed)
    rates = dense(model)
    if rates is None:
        return
    names = rng.permutation(domain.names)
    parts = {
        name: np.round(rng.random(domain[name].size), 1) for name in names[: rng.integers(0, len(names) + 1)]
    }
    query = LinearQuery.conjunction(domain, parts)
    expected = float((rates * query.weights(domain.names)).sum())
    with pytest.MonkeyPatch.context() as patch:
        for limit in (0, 2**16):
            patch.setattr("understudy.standin.graphical.model.EXPANDED_CELLS", limit)
            assert model.answer(query) == pytest.approx(expected, abs=1e-11)


def test_a_conjunction_over_forty_attributes():
    domain = domain_of(*[3] * 40)
    rng = np.random.default_rng(4)
    steps = [rng.dirichlet(np.ones(3), size=3) for _ in range(39)]
    factors = tuple(
        LogFactor(domain.clique((f"a{i}", f"a{i + 1}")), np.log(step)) for i, step in enumerate(steps)
    )
    model = GraphicalStandIn(domain, 1.0, factors)
    allowed = rng.integers(0, 2, (40, 3)) | np.eye(40, 3, dtype=int) | 1 * (np.arange(3) == 1)
    query = LinearQuery.conjunction(domain, {f"a{i}": allowed[i] for i in range(40)})
    row = allowed[0] / 3
    for step, weights in zip(steps, allowed[1:], strict=True):
        row = (row @ step) * weights
    assert model.answer(query) == pytest.approx(row.sum(), rel=1e-10)
    nothing = LinearQuery.conjunction(domain, {f"a{i}": np.zeros(3) for i in range(40)})
    assert model.answer(nothing) == 0


def test_what_cannot_be_held_is_refused():
    domain = domain_of(*[100] * 8)
    model = GraphicalStandIn(domain, 1.0)
    with pytest.raises(TooLargeError):
        model.project(domain.names)
    with pytest.raises(TooLargeError):
        model.reweight(("a0", "a1", "a2", "a3", "a4"), np.zeros((1, 1, 1, 1, 1)))
    pairs = [domain.clique(c) for c in combinations(domain.names, 2)]
    factors = tuple(LogFactor(c, np.zeros((100, 100))) for c in pairs)
    with pytest.raises(TooLargeError) as refused:
        GraphicalStandIn(domain, 1.0, factors).project(("a0",))
    assert refused.value.cells == 100**8


@pytest.mark.parametrize(
    "wrong",
    [
        lambda d: GraphicalStandIn(d, -1.0),
        lambda d: GraphicalStandIn(d, np.nan),
        lambda d: GraphicalStandIn(d, 1.0, (LogFactor(("a1", "a0"), np.zeros((3, 2))),)),
        lambda d: GraphicalStandIn(d, 1.0, (LogFactor(("a0",), np.zeros(3)),)),
        lambda d: LogFactor(("a0",), np.array([0.0, -np.inf])),
        lambda d: Constraint(("a0",), np.array([1, 0])),
        lambda d: Constraint(("a0",), np.array([False, False])),
        lambda d: GraphicalStandIn(d, 1.0).reweight(("a0",), np.zeros(3)),
        lambda d: GraphicalStandIn(d, 1.0).sample_codes(-1, rng=np.random.default_rng(0)),
    ],
)
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong(domain_of(2, 3))


def test_an_unknown_attribute_is_refused():
    with pytest.raises(DomainError):
        GraphicalStandIn(domain_of(2, 3), 1.0).project(("b",))
