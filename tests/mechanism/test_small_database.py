from __future__ import annotations

import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import comb, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statistical import assert_does_not_follow, assert_follows
from understudy.domain.attribute import Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.mechanism.look import released
from understudy.mechanism.small_database import shells as small_database_shells
from understudy.mechanism.small_database.chain import Chain, chain_order
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.mechanism.small_database.levels import Enumeration
from understudy.mechanism.small_database.shells import Kind
from understudy.mechanism.small_database.small_database import (
    Cover,
    SmallDatabase,
    best_design,
    cover,
)
from understudy.mechanism.small_database.tree import Tree, set_tree
from understudy.noise.samplers import SeededNoise
from understudy.query.family import conjunctions, prefixes, ranges
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.theory.lectures9_10 import smalldb_best, smalldb_size
from understudy_textbook.stability import privacy_curve, replace_neighbours

BITS = Domain(tuple(Boolean(name=name) for name in "abcd"))
LINE = Domain((Bins.integers("x", 0, 4), Boolean(name="a")))


def multisets(classes: int, size: int) -> list[tuple[int, ...]]:
    return [
        tuple(np.bincount(chosen, minlength=classes).tolist())
        for chosen in combinations_with_replacement(range(classes), size)
    ]


def level(matrix, answers, units, size: int, rows: int) -> int:
    return int(np.abs(size * np.asarray(answers) - rows * (matrix @ np.asarray(units))).max())


def by_level(matrix, answers, size: int, rows: int) -> dict[int, set[tuple[int, ...]]]:
    found: dict[int, set[tuple[int, ...]]] = {}
    for units in multisets(matrix.shape[1], size):
        found.setdefault(level(matrix, answers, units, size, rows), set()).add(units)
    return dict(sorted(found.items()))


def thresholds(classes: int) -> np.ndarray:
    return np.tri(classes - 1, classes, dtype=bool)


@st.composite
def instances(draw, *, chain: bool):
    """A class with distinct columns, and the answers of some table."""
    classes, size = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    if chain:
        matrix = thresholds(classes)[:, draw(st.permutations(range(classes)))]
        matrix = matrix[draw(st.permutations(range(classes - 1)))]
        flips = draw(st.lists(st.booleans(), min_size=classes - 1, max_size=classes - 1))
        matrix = matrix ^ np.array(flips)[:, None]
    else:
        column = st.lists(st.booleans(), min_size=(q := draw(st.integers(3, 6))), max_size=q)
        columns = draw(st.lists(column, min_size=classes, max_size=classes, unique_by=tuple))
        matrix = np.array(columns).T
    table = np.array(draw(st.lists(st.integers(0, 9), min_size=classes, max_size=classes)))
    table[0] += 1
    return matrix, (matrix @ table).astype(np.int64), size, int(table.sum())


# ------------------------------------------------------------------------------- counting and unranking


@given(instances(chain=False))
@settings(max_examples=60)
def test_the_enumeration_counts_every_level_and_its_ranks_are_a_bijection(instance):
    matrix, answers, size, rows = instance
    expected = by_level(matrix, answers, size, rows)
    databases = Enumeration(matrix, size, rows, Fraction(1))
    assert databases.levels(answers) == {at: len(found) for at, found in expected.items()}
    assert databases.candidates == sum(map(len, expected.values()))
    for at, found in expected.items():
        ranked = [tuple(databases.database(answers, at, rank)) for rank in range(len(found))]
        assert len(set(ranked)) == len(ranked)
        assert set(ranked) == found


@pytest.mark.parametrize("rows", [10**3, 10**6, 10**12], ids=["32 bits", "near 2^31", "64 bits"])
def test_keys_of_32_and_of_64_bits_count_the_same(rows):
    """The table is the same up to a factor, and so are its levels."""
    draw = np.random.default_rng(1)
    matrix = draw.random((40, 6)) < 0.5
    small = np.array([1, 2, 0, 3, 1, 3])
    answers = (matrix @ small * (rows // 10)).astype(np.int64)
    found = Enumeration(matrix, 7, rows, Fraction(1)).levels(answers)
    plain = Enumeration(matrix, 7, 10, Fraction(1)).levels((matrix @ small).astype(np.int64))
    assert found == {at * (rows // 10): count for at, count in plain.items()}
    assert sum(found.values()) == comb(12, 7)


@given(instances(chain=True))
@settings(max_examples=60)
def test_the_chain_counts_every_level_and_its_ranks_are_a_bijection(instance):
    matrix, answers, size, rows = instance
    expected = by_level(matrix, answers, size, rows)
    databases = Chain(matrix, size, rows, Fraction(1))
    assert databases.levels(answers) == {at: len(found) for at, found in expected.items()}
    assert databases.candidates == sum(map(len, expected.values()))
    ends = sorted(expected)
    for low, high in [(a, b) for a in ends for b in ends if a <= b]:
        shell = set().union(*(found for at, found in expected.items() if low <= at <= high))
        ranked = [tuple(databases.database(answers, low, high, rank)) for rank in range(len(shell))]
        assert len(set(ranked)) == len(ranked)
        assert set(ranked) == shell


@given(instances(chain=True))
@settings(max_examples=25)
def test_the_chain_and_the_enumeration_agree(instance):
    matrix, answers, size, rows = instance
    assert Chain(matrix, size, rows, Fraction(1)).levels(answers) == Enumeration(
        matrix, size, rows, Fraction(1)
    ).levels(answers)


def test_a_chain_is_recognised_and_nothing_else_is():
    assert chain_order(thresholds(7)).tolist() in ([*range(7)], [*range(6, -1, -1)])
    assert chain_order(np.eye(4, dtype=bool)) is None
    star = np.eye(4, dtype=bool)[:3]  # three classes told from a fourth: as many queries as a chain has
    assert chain_order(star) is None
    assert DistinctQueries.of_queries(prefixes(LINE, "x")).shape.kind is Kind.CHAIN
    assert DistinctQueries.of_queries(ranges(LINE, "x")).shape.kind is Kind.ANY
    assert DistinctQueries.of_workload(Workload.of(LINE, [("x",)])).shape.kind is Kind.TREE
    with pytest.raises(QueryError, match="nested"):
        Chain(star, 2, 10, Fraction(1))
    with pytest.raises(QueryError, match="one class"):
        Enumeration(np.ones((3, 2), bool), 2, 10, Fraction(1))


@st.composite
def hierarchies(draw):
    """Sets from splitting the classes again and again, some left out, some complemented."""
    classes = draw(st.integers(2, 6))
    order = draw(st.permutations(range(classes)))
    sets, waiting = {}, [order]
    while waiting:
        part = waiting.pop()
        if len(part) < 2:
            continue
        cut = draw(st.integers(1, len(part) - 1))
        for side in (part[:cut], part[cut:]):
            waiting.append(side)
            if draw(st.integers(0, 3)):
                row = np.isin(np.arange(classes), side)
                sets[(row ^ row[0]).tobytes()] = row ^ draw(st.booleans())
    sets = sets or {b"": np.arange(classes) == order[0]}
    table = np.array(draw(st.lists(st.integers(0, 9), min_size=classes, max_size=classes)))
    table[0] += 1
    matrix = np.array(list(sets.values()))
    return matrix, (matrix @ table).astype(np.int64), draw(st.integers(1, 5)), int(table.sum())


@given(hierarchies())
@settings(max_examples=60)
def test_the_tree_counts_every_level_and_its_ranks_are_a_bijection(instance):
    matrix, answers, size, rows = instance
    expected = by_level(matrix, answers, size, rows)
    databases = Tree(matrix, size, rows, Fraction(1))
    assert databases.levels(answers) == {at: len(found) for at, found in expected.items()}
    assert databases.candidates == sum(map(len, expected.values()))
    assert databases._least(answers) == min(expected) < rows  # within less than one row of the m
    ends = sorted(expected)
    for low, high in [(a, b) for a in ends[:4] for b in (a, *ends[-2:]) if a <= b]:
        shell = set().union(*(found for at, found in expected.items() if low <= at <= high))
        ranked = [tuple(databases.database(answers, low, high, rank)) for rank in range(len(shell))]
        assert len(set(ranked)) == len(ranked)
        assert set(ranked) == shell


def test_a_hierarchy_is_recognised_and_nothing_else_is():
    assert set_tree(np.eye(5, dtype=bool)) is not None
    assert set_tree(thresholds(5)) is not None
    crossing = np.array([[1, 1, 0, 0], [0, 1, 1, 0]], bool)
    assert set_tree(crossing) is None
    assert set_tree(np.array([[1, 1, 0, 0], [0, 0, 1, 1]], bool)) is not None
    with pytest.raises(QueryError, match="hierarchy"):
        Tree(crossing, 2, 10, Fraction(1))
    bins = [np.isin(np.arange(5), cells) for cells in ([0], [1], [0, 1], [2, 3, 4], [2], [3])]
    queries = [LinearQuery.conjunction(LINE, {"x": weights}) for weights in bins]
    found = DistinctQueries.of_queries(queries)
    assert (found.shape.kind, found.shape.queries, found.classes) == (Kind.TREE, 5, 5)


# ------------------------------------------------------------------------------- the sampled law


def exact_law(matrix, answers, size, rows, rate) -> dict[tuple[int, ...], float]:
    weights = {
        units: exp(-float(rate) * level(matrix, answers, units, size, rows))
        for units in multisets(matrix.shape[1], size)
    }
    total = sum(weights.values())
    return {units: weight / total for units, weight in weights.items()}


def assert_draws_follow(databases, matrix, answers, draws: int) -> None:
    noise = SeededNoise(20241108)
    seen = Counter(tuple(databases.draw(answers, noise=noise)) for _ in range(draws))
    law = exact_law(matrix, answers, databases.size, databases.rows, databases.rate)
    assert set(seen) <= set(law)
    counts = [seen[units] for units in law]
    assert_follows(counts, list(law.values()))
    for wrong in (Fraction(1, 2), Fraction(2)):
        mutant = exact_law(matrix, answers, databases.size, databases.rows, databases.rate * wrong)
        assert_does_not_follow(counts, [mutant[units] for units in law])


def test_the_enumeration_draws_by_its_law():
    matrix = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 0]], bool)
    answers = (matrix @ np.array([7, 1, 3, 1])).astype(np.int64)
    assert_draws_follow(Enumeration(matrix, 3, 12, Fraction(1, 10)), matrix, answers, 3000)


def test_the_chain_draws_by_its_law_level_by_level():
    matrix = thresholds(4)
    answers = (matrix @ np.array([7, 1, 3, 1])).astype(np.int64)
    databases = Chain(matrix, 3, 12, Fraction(1, 10))
    assert databases.by_level
    assert_draws_follow(databases, matrix, answers, 3000)


def test_the_chain_draws_by_its_law_in_shells(monkeypatch):
    """With few shells and few trials, so that the last shell is used and trials are often repeated."""
    monkeypatch.setattr(small_database_shells, "BEYOND", -2)
    monkeypatch.setattr(small_database_shells, "TRIALS", 2)
    matrix = thresholds(4)
    answers = (matrix @ np.array([7, 1, 3, 1])).astype(np.int64)
    databases = Chain(matrix, 4, 12, Fraction(1, 11))
    assert not databases.by_level
    _, counts = databases.shells(answers)
    assert sum(counts) == databases.candidates
    assert counts[-1] > 0
    assert_draws_follow(databases, matrix, answers, 3000)


def test_the_tree_draws_by_its_law(monkeypatch):
    matrix = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
    answers = (matrix @ np.array([7, 1, 3, 1])).astype(np.int64)
    databases = Tree(matrix, 3, 12, Fraction(1, 10))
    assert databases.by_level
    assert_draws_follow(databases, matrix, answers, 1500)
    monkeypatch.setattr(small_database_shells, "BEYOND", -2)
    monkeypatch.setattr(small_database_shells, "TRIALS", 2)
    databases = Tree(matrix, 4, 12, Fraction(1, 11))
    assert not databases.by_level
    assert_draws_follow(databases, matrix, answers, 1500)


def test_the_chain_in_shells_at_its_own_size():
    """Without any patch, on levels: a database of 14 rows over 12 classes."""
    matrix = thresholds(12)
    table = np.array([5, 0, 9, 1, 1, 30, 12, 0, 0, 8, 2, 11])
    answers = (matrix @ table).astype(np.int64)
    databases = Chain(matrix, 14, int(table.sum()), Fraction(1, 60))
    assert not databases.by_level
    found = databases.levels(answers)
    assert sum(found.values()) == databases.candidates == comb(25, 14)
    noise = SeededNoise(5)
    drawn = [databases.draw(answers, noise=noise) for _ in range(150)]
    seen = Counter(level(matrix, answers, units, 14, databases.rows) for units in drawn)
    for factor, check in ((1, assert_follows), (Fraction(1, 4), assert_does_not_follow)):
        weights = {at: count * exp(-float(databases.rate * factor) * at) for at, count in found.items()}
        total = sum(weights.values())
        middle = sorted(weights)[len(weights) // 6 :: len(weights) // 30]
        bounds = [-1, *middle, max(weights)]
        law = [
            sum(weight for at, weight in weights.items() if low < at <= high) / total
            for low, high in pairwise(bounds)
        ]
        counts = [
            sum(count for at, count in seen.items() if low < at <= high) for low, high in pairwise(bounds)
        ]
        check(counts, law)


@given(instances(chain=True))
@settings(max_examples=40)
def test_shells_hold_every_database_once(instance):
    matrix, answers, size, rows = instance
    databases = Chain(matrix, size, rows, Fraction(1, 2 * size))
    shells, counts = databases.shells(answers)
    assert sum(counts) == databases.candidates
    assert min(counts) >= 0
    assert all(a[1] < b[0] for a, b in pairwise(shells))


# ------------------------------------------------------------------------------- the collapsed universe


def full_matrix(domain: Domain, queries) -> np.ndarray:
    return np.array([query.weights(domain.names).ravel() == 1 for query in queries])


@st.composite
def query_lists(draw):
    domain = Domain(
        (
            Boolean(name="a"),
            Categories(name="b", values=("p", "q"), outside=Outside.OTHER),
            Bins.integers("c", 0, 3),
        )
    )
    queries = []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            names = draw(st.lists(st.sampled_from(domain.names), min_size=1, max_size=2, unique=True))
            shape = domain.shape(names)
            bits = draw(st.lists(st.booleans(), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
            queries.append(LinearQuery.table(domain, names, np.array(bits).reshape(shape)))
        else:
            names = draw(st.lists(st.sampled_from(domain.names), max_size=3, unique=True))
            parts = {
                name: draw(st.lists(st.booleans(), min_size=domain[name].size, max_size=domain[name].size))
                for name in names
            }
            queries.append(LinearQuery.conjunction(domain, parts))
    return domain, queries


@given(query_lists())
@settings(max_examples=80)
def test_the_collapsed_universe_is_the_set_of_distinct_columns(case):
    domain, queries = case
    full = full_matrix(domain, queries)
    found = DistinctQueries.of_queries(queries)
    columns, sizes = np.unique(full, axis=1, return_counts=True)
    assert found.classes == columns.shape[1]
    assert sorted(found.sizes) == sorted(sizes.tolist())
    flat = [domain.index(codes) for codes in found.codes.tolist()]
    assert len({full[:, i].tobytes() for i in flat}) == found.classes
    assert (full[found.sources][:, flat] == found.matrix).all()
    # What is left out is constant, repeated or complemented.
    kept = {(row ^ row[0]).tobytes() for row in found.matrix}
    assert len(kept) == found.queries
    for row in full[:, flat]:
        assert (row == row[0]).all() or (row ^ row[0]).tobytes() in kept


def test_a_workload_and_its_queries_are_the_same_class():
    workload = Workload.all_marginals(BITS, 2)
    one, other = DistinctQueries.of_workload(workload), DistinctQueries.of_queries(conjunctions(BITS, 2))
    assert one.classes == other.classes == 16
    assert (one.codes == other.codes).all()
    assert {r.tobytes() for r in one.matrix} == {r.tobytes() for r in other.matrix}
    table = np.arange(16).reshape(2, 2, 2, 2)
    counts = [
        table.sum(axis=tuple(i for i, name in enumerate(BITS.names) if name not in clique))
        for clique in workload
    ]
    assert (one.answers(counts) == one.matrix @ table[tuple(one.codes.T)]).all()


def test_the_law_of_answers_is_that_of_the_uncollapsed_universe_with_one_row_a_class():
    """The collapsed mechanism against the exponential mechanism written down on the full matrix."""
    queries = [
        LinearQuery.conjunction(LINE, {"x": np.arange(5) < 2}),
        LinearQuery.conjunction(LINE, {"x": np.arange(5) == 3, "a": [0, 1]}),
    ]
    full = full_matrix(LINE, queries)
    table = np.random.default_rng(3).integers(0, 5, 10)
    rows, size, epsilon = int(table.sum()), 4, Fraction(1)
    look = SmallDatabase(DistinctQueries.of_queries(queries), size, rows, epsilon)
    columns = np.unique(full, axis=1)
    uncollapsed: Counter = Counter()
    for units in multisets(columns.shape[1], size):
        error = np.abs(full @ table / rows - columns @ units / size).max()
        uncollapsed[tuple((columns @ units).tolist())] += exp(-float(epsilon) * rows * error / 2)
    law: Counter = Counter()
    answers = look.queries.answers([np.array(int(count)) for count in full @ table])
    for units, p in exact_law(look.queries.matrix, answers, size, rows, look.rate).items():
        flat = [LINE.index(codes) for codes in look.queries.codes.tolist()]
        law[tuple((full[:, flat] @ units).tolist())] += p
    total = sum(uncollapsed.values())
    assert law.keys() == uncollapsed.keys()
    for outcome, p in law.items():
        assert p == pytest.approx(uncollapsed[outcome] / total, rel=1e-12)


def test_a_universe_that_cannot_be_written_down():
    domain = Domain((*(Boolean(name=f"b{i}") for i in range(60)), Bins.integers("t", 0, 10**5)))
    every = LinearQuery.conjunction(domain, {f"b{i}": [0, 1] for i in range(60)})
    some = LinearQuery.conjunction(domain, {"t": np.arange(10**5 + 1) < 700, "b3": [1, 0]})
    found = DistinctQueries.of_queries([every, some])
    assert found.classes == 3
    assert sum(found.sizes) == domain.size() > 10**22
    look = SmallDatabase(found, 5, 100, Fraction(1))
    units = released(look, [np.array(40), np.array(30)], noise=SeededNoise(1))
    assert sum(units) == 5


def test_too_many_kinds_of_rows_are_refused():
    domain = Domain(tuple(Bins.integers(f"b{i}", 0, 9) for i in range(12)))
    with pytest.raises(RefusedError, match="mwem"):
        DistinctQueries.of_workload(Workload.all_marginals(domain, 1))
    with pytest.raises(QueryError, match="0 or 1"):
        DistinctQueries.of_queries([LinearQuery.conjunction(LINE, {"x": np.linspace(0, 1, 5)})])
    with pytest.raises(QueryError, match="one query"):
        DistinctQueries.of([])
    with pytest.raises(QueryError, match="one domain"):
        DistinctQueries.of([Marginal(LINE, ("x",)), Marginal(BITS, ("a",))])


# ------------------------------------------------------------------------------- privacy


def mechanism_law(look: SmallDatabase, cells: list[int], *, mistake: int = 1):
    """The law on tables of rows, each one of `cells` of the flat universe."""
    matrix = look.queries.matrix
    full = np.array(
        [
            marginal.where.weights(look.queries.domain.names).ravel() == 1
            for marginal in look.queries.marginals
        ]
    )

    def law(rows):
        counts = full[:, [cells[row] for row in rows]].sum(axis=1)
        answers = look.queries.answers([np.array(count) for count in counts])
        found = look.databases.levels(answers)
        assert sum(found.values()) == look.databases.candidates
        total = sum(
            count * exp(-mistake * float(look.rate) * (at - min(found))) for at, count in found.items()
        )
        return {
            units: exp(
                -mistake
                * float(look.rate)
                * (level(matrix, answers, units, look.size, look.rows) - min(found))
            )
            / total
            for units in multisets(matrix.shape[1], look.size)
        }

    return law


def test_thresholds_written_down_at_once_are_the_prefixes():
    gaps = Domain((Bins.between("x", [0, 1, 2, 3], outside=Outside.OTHER, null=True), Boolean(name="a")))
    for domain in (LINE, gaps):
        one, other = (
            DistinctQueries.thresholds(domain, "x"),
            DistinctQueries.of_queries(prefixes(domain, "x")),
        )
        assert (one.classes, one.queries, one.sizes) == (other.classes, other.queries, other.sizes)
        assert (one.codes == other.codes).all()
        assert (one.matrix == other.matrix).all()
        table = np.arange(1, domain["x"].size + 1)
        summed = [np.array(int(query.weights(("x",)) @ table)) for query in prefixes(domain, "x")]
        assert (one.answers([table]) == other.answers(summed)).all()
        assert one.key != other.key
    with pytest.raises(QueryError, match="ordered"):
        DistinctQueries.thresholds(LINE, "a")


PRIVATE = [
    DistinctQueries.of_queries(prefixes(LINE, "x")),
    DistinctQueries.of_queries(
        [
            LinearQuery.conjunction(LINE, {"x": np.arange(5) < 2}),
            LinearQuery.conjunction(LINE, {"x": np.arange(5) == 3, "a": [0, 1]}),
            LinearQuery.conjunction(LINE, {"a": [1, 0]}),
        ]
    ),
    DistinctQueries.of_queries(
        [
            LinearQuery.conjunction(LINE, {"x": np.isin(np.arange(5), cells)})
            for cells in ([0], [1], [0, 1], [2])
        ]
    ),
]
KINDS = ["chain", "enumeration", "tree"]


@pytest.mark.parametrize("queries", PRIVATE, ids=KINDS)
def test_lectures9_10_theorem_3_over_all_neighbours(queries):
    """ε over every pair of tables; without the factor 2 it is not."""
    epsilon = Fraction(3, 2)
    look = SmallDatabase(queries, 2, 3, epsilon)
    cells = [queries.domain.index(codes) for codes in queries.codes.tolist()]
    kinds = range(len(cells))
    assert privacy_curve(mechanism_law(look, cells), replace_neighbours(kinds, 3)).is_stable(epsilon, 0)
    mutant = privacy_curve(mechanism_law(look, cells, mistake=2), replace_neighbours(kinds, 3))
    assert not mutant.is_stable(epsilon, 0)
    assert look.event.epsilon == epsilon


def test_lectures9_10_algorithm_1_draws_with_the_rate_that_privacy_needs():
    """The rate of the sampler is the one whose law was checked: ε/(2m) a level."""
    look = SmallDatabase(PRIVATE[1], 2, 12, Fraction(3))
    counts = [np.array(3), np.array(4), np.array(7)]
    answers = look.queries.answers(counts)
    assert look.rate == Fraction(3, 4)
    assert look.databases.rate == look.rate
    noise = SeededNoise(9)
    seen = Counter(tuple(released(look, counts, noise=noise)) for _ in range(3000))
    law = exact_law(look.queries.matrix, answers, 2, 12, Fraction(3, 4))
    assert_follows([seen[units] for units in law], list(law.values()))
    mutant = exact_law(look.queries.matrix, answers, 2, 12, Fraction(3, 2))
    assert_does_not_follow([seen[units] for units in law], list(mutant.values()))


# ------------------------------------------------------------------------------- accuracy


@given(instances(chain=False))
@settings(max_examples=60)
def test_lectures9_10_theorem_5_some_small_database_is_near(instance):
    """Every argument of the cover, on every table that hypothesis thinks of."""
    matrix, answers, size, rows = instance
    found = DistinctQueries(BITS, (), matrix, np.arange(0), np.zeros((matrix.shape[1], 4), int), ())
    best = min(by_level(matrix, answers, size, rows)) / (size * rows)
    for c, k in cover(found).arguments().values():
        assert best <= c / size ** (1 / k) + 1e-12


def test_lectures9_10_theorem_5_rounding_is_sharp():
    """All sets of four classes, of which the table holds one row each and the small database two rows in all."""
    matrix = np.array(list(product([False, True], repeat=4)))[1:-1]
    best = min(by_level(matrix, matrix.sum(axis=1), 2, 4)) / 8
    assert best == Cover(14, 4, 2).arguments()["rounding"][0] / 2 == 0.5


@given(instances(chain=True))
@settings(max_examples=60)
def test_thresholds_are_covered_within_half_a_row(instance):
    matrix, answers, size, rows = instance
    assert 2 * min(by_level(matrix, answers, size, rows)) <= rows
    assert chain_order(matrix) is not None


@given(
    st.integers(1, 10**6),
    st.integers(5, 10**4),
    st.integers(2, 5),
    st.sampled_from(Kind),
    st.fractions(Fraction(1, 1000), Fraction(1, 2)),
)
def test_lectures9_10_theorem_11_sizes_reach_alpha_and_none_is_wasted(queries, classes, share, kind, alpha):
    ways = Cover(queries, classes, classes // share, kind)
    size = ways.size(alpha)
    assert ways.alpha(size)[0] <= float(alpha) * (1 + 1e-12)
    assert size == 1 or ways.alpha(size - 1)[0] > float(alpha) * (1 - 1e-9)
    assert size <= smalldb_size(queries, alpha)


@pytest.mark.parametrize("beta", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("queries", PRIVATE, ids=KINDS)
def test_lectures9_10_proposition_6_on_the_law_that_is_drawn_from(queries, beta):
    draw = np.random.default_rng(2)
    for size, rows in ((3, 40), (5, 200)):
        look = SmallDatabase(queries, size, rows, Fraction(1))
        bound = look.design(beta).error * size * rows
        for _ in range(5):
            shares = draw.dirichlet(np.full(queries.classes, 0.5))
            answers = (queries.matrix @ draw.multinomial(rows, shares)).astype(np.int64)
            weights = {
                at: count * exp(-float(look.rate) * at)
                for at, count in look.databases.levels(answers).items()
            }
            assert sum(w for at, w in weights.items() if at >= bound) <= beta * sum(weights.values())


@pytest.mark.parametrize("rows", [50, 5000, 10**6])
def test_lectures9_10_theorem_7_the_best_size_is_the_best(rows):
    for queries in (*PRIVATE, DistinctQueries.of_workload(Workload.all_marginals(BITS, 1))):
        found = best_design(queries, rows=rows, epsilon=1, beta=0.05)
        for size in (1, found.size - 1, found.size + 1, 2 * found.size):
            try:
                other = SmallDatabase(queries, max(size, 1), rows, Fraction(1)).design(0.05)
            except RefusedError:
                continue
            assert other.error >= found.error * (1 - 1e-12)
        lecture = smalldb_best(rows, queries.classes, queries.queries, 1, 0.05)
        if queries.shape.kind is Kind.CHAIN:
            assert found.error <= lecture.error


# ------------------------------------------------------------------------------- what is refused


def test_what_is_too_large_is_refused_when_it_is_made():
    cube = DistinctQueries.of_workload(Workload.all_marginals(BITS, 2))
    with pytest.raises(RefusedError, match="mwem"):
        SmallDatabase(cube, 60, 1000, Fraction(1))
    with pytest.raises(RefusedError, match="mwem"):
        SmallDatabase(PRIVATE[0], 10**7, 1000, Fraction(1))
    with pytest.raises(RefusedError):
        SmallDatabase(PRIVATE[0], 3, 2**61, Fraction(1))
    with pytest.raises(QueryError, match="constant"):
        SmallDatabase(DistinctQueries.of_queries([LinearQuery.everyone(LINE)]), 3, 10, Fraction(1))
    for size, rows, epsilon in ((0, 10, 1), (2, 0, 1), (2, 10, 0), (1.5, 10, 1), (2, 10, 2000)):
        with pytest.raises(ParameterError):
            SmallDatabase(PRIVATE[0], size, rows, epsilon)  # type: ignore[arg-type]


def test_equal_keys_ask_the_same():
    same = SmallDatabase(PRIVATE[0], 3, 10, Fraction(1)).key
    assert same == SmallDatabase(DistinctQueries.of_queries(prefixes(LINE, "x")), 3, 10, Fraction(1)).key
    others = [
        SmallDatabase(PRIVATE[0], 4, 10, Fraction(1)).key,
        SmallDatabase(PRIVATE[0], 3, 11, Fraction(1)).key,
        SmallDatabase(PRIVATE[1], 3, 10, Fraction(1)).key,
    ]
    assert len({same, *others}) == 4


def test_numba_is_not_imported_before_it_is_needed():
    check = (
        "import sys, understudy.releases.smalldb, understudy.releases.net; assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.slow("minutes")
def test_a_thousand_thresholds():
    matrix = thresholds(1000)
    table = np.random.default_rng(1).multinomial(5000, np.full(1000, 1e-3))
    answers = (matrix @ table).astype(np.int64)
    databases = Chain(matrix, 100, 5000, Fraction(1, 200))
    found = [
        level(matrix, answers, databases.draw(answers, noise=SeededNoise(i)), 100, 5000) for i in range(20)
    ]
    bound = 2500 + 200 * (log(databases.candidates) + log(20 / 1e-9))
    assert max(found) <= bound
