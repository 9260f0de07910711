"""Plans, tables and error bars against brute force; ranges; the fit of a stand-in."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError, TooLargeError
from understudy.mechanism.matrix.bases import CellBasis, RangeBasis, basis
from understudy.mechanism.matrix.ranges import LEAST_SUM_CELLS, range_ends
from understudy.mechanism.matrix.residual_plan import CLOSE, Residuals, check_size
from understudy.noise.law import discrete_gaussian_log_law
from understudy.noise.normal import rounded_normal_log_law
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.workload import Workload
from understudy.releases.residual.half_width import GaussianLaw, half_width
from understudy.releases.residual.tables import ResidualTables
from understudy.standin import from_interactions, maximum_entropy, newton
from understudy.standin.from_interactions import ENTROPY, fit_tree, stand_in
from understudy.standin.interactions import Interaction
from understudy.standin.maximum_entropy import fit_histogram

ADD, REPLACE = Relation(Neighbours.ADD_REMOVE), Relation(Neighbours.REPLACE)
DOMAIN = Domain(
    (Bins.integers("a", 0, 1), Bins.integers("b", 0, 2), Bins.integers("c", 0, 4), Bins.integers("d", 0, 0))
)
TRIPLES = Workload.of(
    DOMAIN, [("a", "b", "c"), ("a", "d"), ("c",), ("b", "c", "d")], [1, 2, 1, Fraction(1, 3)]
)


def histogram(seed=0, domain=DOMAIN) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 50, domain.shape())


def marginal(table, clique, domain=DOMAIN):
    return table.sum(axis=tuple(i for i, name in enumerate(domain.names) if name not in clique))


def measured(neighbours, ranges=(), table=None, workload=TRIPLES):
    """Everything below a workload, with `released` as if the noise were 0."""
    table = histogram() if table is None else table
    residuals = Residuals.of(workload, ranges, total=neighbours is ADD)
    look = residuals.strategies(residuals.precisions(), neighbours, Fraction(1, 3))
    exact = [look.combine(part, marginal(table, part.clique, workload.domain)).ravel() for part in look.parts]
    return residuals, look, np.concatenate(exact), float(table.sum()) if neighbours is REPLACE else None


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("ranges", [(), ("c",), ("b", "c")])
def test_tables_without_noise_are_the_marginals(neighbours, ranges):
    tables = ResidualTables(*measured(neighbours, ranges))
    for clique in [*TRIPLES, ("a", "b"), ("a",), ()]:
        np.testing.assert_allclose(tables.table(clique), marginal(histogram(), clique), atol=1e-8)
    for interaction in tables.interactions.values():
        for axis in range(interaction.ndim):
            np.testing.assert_allclose(interaction.sum(axis=axis), 0, atol=1e-8)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("ranges", [(), ("c",)])
def test_variances_and_reaches_are_those_of_the_linear_map(neighbours, ranges):
    residuals, look, exact, rows = measured(neighbours, ranges)
    noise = np.concatenate(
        [np.full(np.prod(look.shape(p), dtype=int), float(1 / p.precision)) for p in look.parts]
    )
    base = ResidualTables(residuals, look, exact, rows)
    units = [
        ResidualTables(residuals, look, exact + np.eye(exact.size, dtype=np.int64)[j], rows)
        for j in range(exact.size)
    ]
    for clique in [*TRIPLES, ("a", "b"), ()]:
        found = [np.asarray(unit.table(clique) - base.table(clique)) for unit in units]
        coefficients = np.stack(found, axis=-1)  # of each released number
        np.testing.assert_allclose(base.variance(clique), coefficients**2 @ noise, rtol=1e-6, atol=1e-12)
        beta, own = Fraction(1, 100), np.abs(coefficients).sum(axis=-1).max()
        used = np.abs(coefficients).reshape(-1, exact.size).max(axis=0) > 1e-12
        expected = half_width(
            base.variance(clique), beta, reach=float(own), lift=float((1 / (24 * noise))[used].sum())
        )
        # A reach is taken as a product over attributes: exact where all cells are alike.
        assert (base.error(clique, beta) >= expected * (1 - 1e-9)).all()
        if not ranges:
            np.testing.assert_allclose(base.error(clique, beta), expected, rtol=1e-9)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("ranges", [(), ("b", "c")])
def test_questions_of_product_weights_and_their_bars(neighbours, ranges):
    """A range is the sum of its cells; its variance and reach are those of the linear map."""
    residuals, look, exact, rows = measured(neighbours, ranges)
    noise = np.concatenate(
        [np.full(np.prod(look.shape(p), dtype=int), float(1 / p.precision)) for p in look.parts]
    )
    weights = {"b": np.array([0.0, 1, 1]), "c": np.array([0.0, 1, 1, 1, 0]), "a": np.array([1.0, 0])}
    released = exact + np.random.default_rng(0).integers(-9, 9, exact.size)
    tables = ResidualTables(residuals, look, released, rows)
    value, half = (float(told[0, 0, 0]) for told in tables.sums(weights, Fraction(1, 100)))
    assert value == pytest.approx(tables.table(("a", "b", "c"))[0, 1:, 1:4].sum())
    coefficients = np.array(
        [
            float(
                ResidualTables(residuals, look, released + unit, rows).sums(weights, Fraction(1, 100))[0][
                    0, 0, 0
                ]
            )
            - value
            for unit in np.eye(exact.size, dtype=np.int64)
        ]
    )
    expected = half_width(
        np.array(coefficients**2 @ noise),
        Fraction(1, 100),
        reach=float(np.abs(coefficients).sum()),
        lift=float((1 / (24 * noise)).sum()),
    )
    assert half == pytest.approx(float(expected), rel=1e-6)
    with pytest.raises(QueryError):
        tables.sums({"a": np.ones(2), "c": np.ones(5), "d": np.ones(1)}, Fraction(1, 100))


def law(variance: float, reach: int) -> np.ndarray:
    found = np.exp(discrete_gaussian_log_law(Fraction(variance), np.arange(-reach, reach + 1)))
    return found / found.sum()


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.floats(0.05, 60)), min_size=1, max_size=6),
    st.sampled_from([0.2, 0.01, 1e-5]),
)
def test_half_widths_hold_for_sums_of_discrete_gaussians(terms, beta):
    """P[|Σ a X| > t] by convolution of the exact laws; and a variance taken at half does not hold."""
    total = np.ones(1)
    for weight, variance in terms:
        reach = int(9 * sqrt(variance)) + 3
        spaced = np.zeros(2 * reach * weight + 1)
        spaced[::weight] = law(round(variance, 3), reach)
        total = np.convolve(total, spaced)
    middle = total.size // 2
    whole = np.array(sum(a * a * round(v, 3) for a, v in terms))
    lift, reach = sum(1 / (24 * round(v, 3)) for _, v in terms), sum(a for a, _ in terms)
    t = float(half_width(whole, Fraction(beta), reach=reach, lift=lift))
    inside = int(t)
    beyond = 1 - total[max(middle - inside, 0) : middle + inside + 1].sum()
    assert beyond <= beta * (1 + 1e-6) + 1e-12


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.floats(0.1, 60)), min_size=1, max_size=6),
    st.sampled_from([0.2, 0.01, 1e-5]),
)
def test_half_widths_hold_for_sums_of_rounded_normal_numbers(terms, beta):
    """The same by convolution of rounded normal laws, which have no lift."""
    total = np.ones(1)
    laws = [(weight, GaussianLaw(round(variance, 3), rounded=True)) for weight, variance in terms]
    for weight, one in laws:
        reach = int(9 * sqrt(one.variance)) + 3
        spaced = np.zeros(2 * reach * weight + 1)
        spaced[::weight] = np.exp(
            rounded_normal_log_law(Fraction(one.variance), np.arange(-reach, reach + 1))
        )
        total = np.convolve(total, spaced)
    middle, whole = total.size // 2, np.array(sum(a * a * one.variance for a, one in laws))
    loose, reach = max(one.looseness for _, one in laws), sum(a for a, _ in laws)
    t = float(half_width(whole, Fraction(beta), reach=reach, lift=0.0, looseness=loose))
    beyond = 1 - total[max(middle - int(t), 0) : middle + int(t) + 1].sum()
    assert beyond <= beta * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize(
    ("looseness", "holds"), [(1.0, False), (GaussianLaw(0.2, rounded=True).looseness, True)]
)
def test_rounded_noise_needs_its_looseness(looseness, holds):
    """The bound that is right for discrete noise fails for the sum of sixty rounded numbers of variance 1/5."""
    total = np.ones(1)
    for _ in range(60):
        total = np.convolve(total, np.exp(rounded_normal_log_law(Fraction(1, 5), np.arange(-6, 7))))
    t = int(half_width(np.array(60 * 0.2), Fraction(1, 10**5), reach=60, lift=0.0, looseness=looseness))
    assert (2 * total[: total.size // 2 - t].sum() <= 1e-5) == holds


@pytest.mark.parametrize(("reach", "holds"), [(0.0, False), (1.0, True)])
def test_rounded_noise_needs_its_reach(reach, holds):
    """1.96·σ of a normal number of variance 1/10 is .62; rounded, it is 1 or more as soon as it is .5 or more."""
    one = GaussianLaw(0.1, rounded=True)
    exact = np.exp(rounded_normal_log_law(Fraction(1, 10), np.arange(-6, 7)))
    t = int(half_width(np.array(0.1), Fraction(1, 20), reach=reach, lift=0.0, looseness=one.looseness))
    assert (1 - exact[6 - t : 7 + t].sum() <= 0.05) == holds


def test_a_variance_taken_at_half_does_not_hold():
    exact = law(400.0, 300)
    halved = int(half_width(np.array(200.0), Fraction(1, 20), reach=1, lift=1 / 4800))
    assert 1 - exact[300 - halved : 300 + halved + 1].sum() > 0.1
    right = int(half_width(np.array(400.0), Fraction(1, 20), reach=1, lift=1 / 9600))
    assert 1 - exact[300 - right : 300 + right + 1].sum() <= 0.05
    assert right <= 41  # about 1.96·20: hardly wider than it must be


# ---------------------------------------------------------------------------------------- plans


def objective(residuals: Residuals, logs: np.ndarray, kind: str) -> float:
    precisions = np.exp(logs)
    precisions = precisions / float(precisions @ residuals.price)
    weights = np.array([float(w) for w in residuals.workload.weights])
    if kind == "sum":
        return float(weights @ (residuals.queries * residuals.variances(precisions, residuals.mean)))
    return float((weights * residuals.variances(precisions, residuals.largest)).max())


@pytest.mark.parametrize("ranges", [(), ("c",)])
def test_the_sum_of_variances_is_least(ranges):
    residuals = Residuals.of(TRIPLES, ranges)
    found = np.log(residuals.precisions("sum"))
    least = minimize(lambda x: objective(residuals, x, "sum"), np.zeros(found.size), method="BFGS").fun
    assert objective(residuals, found, "sum") <= least * (1 + 1e-6)


@pytest.mark.parametrize("ranges", [(), ("c",)])
def test_the_largest_variance_is_within_its_proved_factor(ranges):
    residuals = Residuals.of(TRIPLES, ranges)
    found = objective(residuals, np.log(residuals.precisions("largest")), "largest")
    rng = np.random.default_rng(0)
    best = np.log(residuals.precisions("largest"))
    for _ in range(3000):
        tried = best + rng.normal(0, rng.choice([0.5, 0.1, 0.02]), best.size)
        assert objective(residuals, tried, "largest") >= found / CLOSE


@settings(max_examples=20)
@given(st.data(), st.sampled_from([ADD, REPLACE]))
def test_no_answer_is_noisier_than_with_plain_noise_on_every_marginal(data, neighbours):
    """Plain noise is itself a choice of precisions, so the best one is never worse."""
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    domain = Domain(tuple(Bins.integers(f"x{i}", 0, size - 1) for i, size in enumerate(sizes)))
    everything = [c for k in range(1, 4) for c in combinations(domain.names, k)]
    workload = Workload.of(domain, data.draw(st.lists(st.sampled_from(everything), min_size=1, unique=True)))
    rho = Fraction(1, 7)
    plain = (1 if neighbours is ADD else 2) * len(workload) / (2 * float(rho))
    residuals = Residuals.of(workload, total=neighbours is ADD)
    if not residuals.cliques:
        return
    look = residuals.strategies(residuals.precisions(), neighbours, rho)
    assert rho * (1 - Fraction(1, 10**6)) <= look.rho <= rho
    precisions = np.array([float(part.precision) for part in look.parts])
    assert residuals.variances(precisions, residuals.largest).max() <= plain * CLOSE * 1.001


def test_what_is_too_large_is_refused():
    residuals = Residuals.of(TRIPLES)
    check_size(residuals, residuals.cells)
    with pytest.raises(TooLargeError):
        check_size(residuals, residuals.cells - 1)
    with pytest.raises(ParameterError):
        residuals.precisions("best")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------- ranges


@pytest.mark.parametrize("size", [3, 8, 40])
def test_ranges_come_out_better_than_as_sums_of_cells(size):
    ranges, cells = RangeBasis.of(size), CellBasis(size)
    assert not ranges.factor.matrix.sum(axis=1).any()
    starts, ends = range_ends(size)
    rows = (np.arange(size) >= starts[:, None]) & (np.arange(size) < ends[:, None])
    np.testing.assert_allclose(
        ranges.variances, ((rows @ ranges.mixing) ** 2).sum(axis=1), atol=1e-12, rtol=1e-8
    )
    # Differences from the mean come back, whatever the counts.
    counts = np.random.default_rng(1).integers(0, 99, size)
    back = ranges.unmix((ranges.factor.matrix @ counts).astype(float), 0)
    np.testing.assert_allclose(back, counts - counts.mean(), atol=1e-8)
    plain = (np.eye(size) - 1 / size) / size
    as_sums = ((rows @ plain) ** 2).sum(axis=1).mean() * cells.factor.own
    assert ranges.inside[0] * ranges.factor.own <= as_sums * (
        1.001 if size == 3 else 0.9 if size == 8 else 0.5
    )


def test_ranges_of_few_or_very_many_cells_are_sums_of_cells():
    assert isinstance(basis(2, ranges=True), CellBasis)
    assert isinstance(basis(LEAST_SUM_CELLS + 1, ranges=True), CellBasis)
    assert isinstance(basis(9, ranges=True), RangeBasis)


def test_range_questions_cost_less_when_they_are_declared():
    domain = Domain((Bins.integers("age", 0, 63), Bins.integers("sex", 0, 1)))
    workload = Workload.of(domain, [("age", "sex")])

    def mean_variance(ranges):
        residuals = Residuals.of(workload, ranges)
        look = residuals.strategies(residuals.precisions("sum"), ADD, Fraction(1))
        tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64))
        starts, ends = range_ends(64)
        rows = ((np.arange(64) >= starts[:, None]) & (np.arange(64) < ends[:, None])).astype(float)
        total = 0.0
        for part in look.parts:
            matrix = np.eye(1)
            for name in domain.names:
                size = domain[name].size
                unmixed = residuals.bases[name].unmix(np.eye(residuals.bases[name].factor.rows), 0)
                own = unmixed if name in part.clique else np.full((size, 1), 1 / size)
                matrix = np.kron(matrix, rows @ own if name == "age" else own)
            total += float((matrix**2).sum()) * tables.noise[part.clique]
        return total / (2 * len(starts))

    assert mean_variance(("age",)) < 0.5 * mean_variance(())


# ---------------------------------------------------------------------------------------- stand-ins


def told(domain, table, variance=1.0, order=2) -> list[Interaction]:
    found = []
    for k in range(1, order + 1):
        for clique in combinations(domain.names, k):
            counts = marginal(table, clique, domain).astype(float)
            for axis in range(k):
                counts = counts - counts.mean(axis=axis, keepdims=True)
            found.append(Interaction(clique, counts, variance))
    return found


SMALL = Domain(
    (Bins.integers("a", 0, 1), Bins.integers("b", 0, 2), Bins.integers("c", 0, 3), Bins.integers("d", 0, 1))
)


@pytest.mark.parametrize("limit", [0, 10_000, "unsolved"])
def test_the_fit_solves_its_problem_by_either_way(limit, monkeypatch):
    """The primal: Σ (n Φᵀp - y)²/(2v) + κ n·KL is not improved by any other histogram near it."""
    if limit == "unsolved":

        def unsolved(*given, **more):
            raise np.linalg.LinAlgError

        monkeypatch.setattr(newton, "cho_factor", unsolved)
    else:
        monkeypatch.setattr(maximum_entropy, "NEWTON_LIMIT", limit)
    table = histogram(3, SMALL)
    rows = float(table.sum())
    parts = told(SMALL, table, 25.0)
    noisy = [
        Interaction(p.clique, p.counts + centred_noise(p.counts.shape, i), 25.0) for i, p in enumerate(parts)
    ]
    found = fit_histogram(SMALL, noisy, rows=rows, entropy=1.0)
    assert found.min() > 0
    assert found.sum() == pytest.approx(1)

    def primal(p):
        loss = sum(
            float(((rows * q.counts - y.counts) ** 2).sum()) / (2 * y.variance)
            for q, y in zip(told(SMALL, p, 1.0), noisy, strict=True)
        )
        return loss + (1.0 / 5.0) * rows * float((p * np.log(p * p.size)).sum())

    best, rng = primal(found), np.random.default_rng(4)
    for scale in (0.3, 0.1, 0.03, 0.01):
        for _ in range(20):
            other = found * np.exp(rng.normal(0, scale, found.shape))
            assert primal(other / other.sum()) >= best - 0.05


def centred_noise(shape, seed):
    noise = np.random.default_rng(seed).normal(0, 5, shape)
    for axis in range(len(shape)):
        noise = noise - noise.mean(axis=axis, keepdims=True)
    return noise


def test_a_fit_to_exact_interactions_reproduces_the_marginals():
    table = histogram(5, SMALL) + 5
    found = fit_histogram(SMALL, told(SMALL, table, 1e-3), rows=float(table.sum()), entropy=1e-3)
    for clique in combinations(SMALL.names, 2):
        np.testing.assert_allclose(
            marginal(found, clique, SMALL) * table.sum(), marginal(table, clique, SMALL), atol=0.5
        )


def test_a_stand_in_is_a_distribution_of_either_kind(monkeypatch):
    table = histogram(6, SMALL)
    parts = told(SMALL, table, 4.0)
    for cells in (1 << 22, 1):
        monkeypatch.setattr(from_interactions, "NEWTON_CELLS", cells)
        model = stand_in(SMALL, parts, rows=float(table.sum()))
        for clique in [("a",), ("b", "d"), ("a", "b", "c", "d")]:
            rates = model.project(clique)
            assert rates.min() >= 0
            assert rates.sum() == pytest.approx(1)
    assert type(model).__name__ == "GraphicalStandIn"


def test_a_tree_stays_within_its_cells_and_tells_what_it_holds():
    table = histogram(7, SMALL) ** 2
    model = fit_tree(SMALL, told(SMALL, table, 1.0), rows=float(table.sum()), cells=24)
    assert model.cells <= 24
    for name in SMALL.names:
        np.testing.assert_allclose(
            model.project((name,)), marginal(table, (name,), SMALL) / table.sum(), atol=0.01
        )


def test_fits_refuse_what_has_no_noise_or_lacks_its_parts():
    with pytest.raises(ParameterError):
        fit_histogram(SMALL, [Interaction(("a",), np.zeros(2), 0.0)], rows=5, entropy=ENTROPY)
    with pytest.raises(ParameterError):
        fit_histogram(SMALL, [Interaction(("a", "b"), np.ones((2, 3)), 1.0)], rows=5, entropy=ENTROPY)
    uniform = fit_histogram(SMALL, [], rows=5, entropy=ENTROPY)
    np.testing.assert_allclose(uniform, 1 / 48)
