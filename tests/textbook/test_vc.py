from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, product
from math import comb, floor, log, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from understudy.errors import ParameterError
from understudy_textbook.half_space import MAX_CELLS, RadonPartition, half_space_traces, radon_partition
from understudy_textbook.lectures9_10 import MAX_TERMS, sauer_shelah
from understudy_textbook.vc import (
    MAX_TRACES,
    BoolMatrix,
    box_dimension,
    conjunction_dimension,
    finite_class_bound,
    grid_box_dimension,
    growth,
    half_space_dimension,
    interval_dimension,
    marginal_dimension_bound,
    monotone_conjunction_dimension,
    one_way_marginal_dimension,
    parity_dimension,
    prefix_dimension,
    shattered_set,
    shatters,
    singleton_dimension,
    subset_dimension,
    vc_dimension,
)

classes = hnp.arrays(np.bool_, st.tuples(st.integers(1, 24), st.integers(0, 7)))


def subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


def shatters_by_definition(traces: BoolMatrix, points: Sequence[int]) -> bool:
    """Definition 8, word for word: every T is the positive part of S under some f."""
    return all(any({x for x in points if f[x]} == set(t) for f in traces) for t in subsets(points))


def has_dimension(traces: BoolMatrix, d: int) -> bool:
    """Definition 9, word for word."""
    columns = range(traces.shape[1])
    return any(shatters_by_definition(traces, s) for s in combinations(columns, max(d, 0))) and not any(
        shatters_by_definition(traces, s) for s in combinations(columns, d + 1)
    )


def subset_class(points: int, *, most: int) -> BoolMatrix:
    """All subsets of at most `most` points: the largest class of that VC dimension."""
    return np.array([[x in t for x in range(points)] for t in subsets(range(points)) if len(t) <= most])


# Definitions 8 and 9 ----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(classes, st.data())
def test_lectures9_10_definition_8(traces: BoolMatrix, data: st.DataObject) -> None:
    columns = list(range(traces.shape[1]))
    points = data.draw(
        st.lists(st.sampled_from(columns), unique=True, max_size=5) if columns else st.just([])
    )
    assert shatters(traces, points) == shatters_by_definition(traces, points)


def test_definition_8_at_the_edges() -> None:
    full = subset_class(3, most=3)
    assert shatters(full, [0, 1, 2])
    assert not shatters(full[1:], [0, 1, 2])
    assert shatters(full, [])
    assert not shatters(full[:0], [])
    assert not shatters(full, [1, 1]), "co-located points are told apart by no query"
    assert not shatters(full, [0, 1, 2] * 10_000)
    assert shatters(full.astype(int), np.array([2, 0]))  # pyright: ignore[reportArgumentType]


@settings(max_examples=60, deadline=None)
@given(classes)
def test_lectures9_10_definition_9(traces: BoolMatrix) -> None:
    d = vc_dimension(traces)
    witness = shattered_set(traces)
    assert has_dimension(traces, d)
    assert len(witness) == d
    assert shatters_by_definition(traces, witness)
    # Power: the definition rejects a dimension that is wrong by one.
    assert not has_dimension(traces, d + 1)
    assert d == 0 or not has_dimension(traces, d - 1)


@settings(max_examples=60, deadline=None)
@given(classes, st.data())
def test_dimension_ignores_repetition_order_and_complements(traces: BoolMatrix, data: st.DataObject) -> None:
    queries, points = traces.shape
    rows = data.draw(st.permutations(range(queries)))
    columns = data.draw(st.permutations(range(points)))
    flips = np.array(data.draw(st.lists(st.booleans(), min_size=points, max_size=points)), dtype=bool)
    moved = np.concatenate([traces, traces[:1]])[[*rows, queries]][:, columns] ^ flips
    assert vc_dimension(moved) == vc_dimension(traces)
    assert growth(moved) == growth(traces)
    if points:
        doubled = np.concatenate([traces, traces, ~traces], axis=1)
        assert vc_dimension(doubled) == vc_dimension(traces)


@settings(max_examples=60, deadline=None)
@given(classes)
def test_dimension_is_monotone_in_queries_and_points(traces: BoolMatrix) -> None:
    assert vc_dimension(traces[:, 1:]) <= vc_dimension(traces) <= vc_dimension(traces[:, 1:]) + 1
    assert len(traces) == 1 or vc_dimension(traces[1:]) <= vc_dimension(traces)


def test_two_thousand_queries_on_sixty_points() -> None:
    rng = np.random.default_rng(20)
    points = rng.random((60, 2))
    corners = np.sort(rng.random((2_000, 2, 2)), axis=1)
    boxes = np.all((corners[:, None, 0] <= points) & (points <= corners[:, None, 1]), axis=2)
    assert len(witness := shattered_set(boxes)) == box_dimension(2)
    assert shatters_by_definition(boxes, witness)
    assert shatters(boxes, witness)
    fours = rng.permuted(np.arange(2_000 * 60).reshape(2_000, 60) % 60 < 4, axis=1)
    assert fours.sum(axis=1).tolist() == [4] * 2_000
    assert vc_dimension(fours) == 4
    planted = np.zeros((2_000, 60), dtype=bool)
    planted[:, 7:12] = rng.random((2_000, 5)) < 0.5
    assert shattered_set(planted) == (7, 8, 9, 10, 11)


@pytest.mark.parametrize("density", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("queries", [40, 150, 400])
def test_search_against_all_subsets(queries: int, density: float) -> None:
    traces = np.random.default_rng(queries).random((queries, 11)) < density
    codes = traces @ (1 << np.arange(11))
    masks = np.array([mask for mask in range(1 << 11) if mask.bit_count() <= finite_class_bound(queries)])
    shattered = [int(m).bit_count() for m in masks if len(np.unique(codes & m)) == 1 << int(m).bit_count()]
    assert vc_dimension(traces) == max(shattered)
    assert len(shattered) >= growth(traces), "Pajor: a class shatters at least as many sets as it has traces"


# Lemma 10 and the Sauer-Shelah lemma ------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(classes)
def test_lectures9_10_lemma_10(traces: BoolMatrix) -> None:
    d = vc_dimension(traces)
    assert d <= finite_class_bound(growth(traces)) <= finite_class_bound(len(traces))
    assert 2**d <= len(traces)


def test_lemma_10_is_tight_and_base_2() -> None:
    for points in range(1, 11):
        everything = subset_class(points, most=points)
        assert vc_dimension(everything) == finite_class_bound(len(everything)) == points
        assert vc_dimension(everything[1:]) == points - 1
        assert vc_dimension(everything) > log(len(everything)), "with the natural log the lemma is false"
    assert [finite_class_bound(q) for q in (1, 2, 3, 4, 7, 8, 2**200 - 1)] == [0, 1, 1, 2, 2, 3, 199]


@settings(max_examples=100, deadline=None)
@given(classes)
def test_sauer_shelah_lemma(traces: BoolMatrix) -> None:
    assert growth(traces) <= sauer_shelah(traces.shape[1], vc_dimension(traces))


def test_sauer_shelah_lemma_is_tight() -> None:
    for points, d in ((6, 2), (8, 3), (12, 1), (10, 4)):
        largest = subset_class(points, most=d)
        assert vc_dimension(largest) == d
        assert growth(largest) == sauer_shelah(points, d)
        assert growth(largest) > sauer_shelah(points, d - 1), "a dimension too small by one is detected"
        one_more = np.concatenate([largest, np.ones((1, points), dtype=bool)])
        assert vc_dimension(one_more) == d + 1


@given(st.integers(0, 40), st.integers(0, 45))
def test_sauer_shelah_sum(points: int, dimension: int) -> None:
    assert sauer_shelah(points, dimension) == sum(comb(points, i) for i in range(dimension + 1))


def test_sauer_shelah_is_exact_for_huge_universes() -> None:
    universe = 2**200
    assert sauer_shelah(universe, 2) == 1 + universe + universe * (universe - 1) // 2
    assert sauer_shelah(5_000, 10**30) == 2**5_000
    assert sauer_shelah(5_001, 2_500) == 2**5_000
    # Sizes of a small database that stands in for any table, with 2 Φ_d(|X|) traces and α = 0.1.
    sizes = [floor(log(2 * sauer_shelah(1024, d)) / (2 * 0.01)) + 1 for d in (1, 3, 10)]
    assert sizes == [382, 985, 2744]


# Closed forms against brute force ---------------------------------------------------------------------------


def chain_queries(size: int, *, prefixes: bool, with_empty: bool) -> BoolMatrix:
    ends = [(s, t) for s in range(size) for t in range(s, size) if not (prefixes and s)]
    rows = [[s <= x <= t for x in range(size)] for s, t in ends]
    return np.array(rows + [[False] * size] * with_empty, dtype=bool)


@pytest.mark.parametrize("with_empty", [True, False])
def test_prefixes_and_intervals(with_empty: bool) -> None:  # noqa: FBT001
    for size in range(0 if with_empty else 1, 9):
        prefixes = chain_queries(size, prefixes=True, with_empty=with_empty)
        intervals = chain_queries(size, prefixes=False, with_empty=with_empty)
        assert vc_dimension(prefixes) == prefix_dimension(size, with_empty=with_empty)
        assert vc_dimension(intervals) == interval_dimension(size, with_empty=with_empty)


def grid(sizes: Sequence[int]) -> np.ndarray:
    return np.array(list(product(*map(range, sizes))), dtype=int).reshape(prod(sizes), len(sizes))


def boxes_of(sizes: Sequence[int]) -> BoolMatrix:
    points = grid(sizes)
    sides = [[(s, t) for s in range(size) for t in range(s, size)] for size in sizes]
    return np.array(
        [
            np.all([(s <= points[:, i]) & (points[:, i] <= t) for i, (s, t) in enumerate(box)], axis=0)
            for box in product(*sides)
        ]
    )


def test_boxes() -> None:
    for d in (1, 2, 3):
        assert vc_dimension(boxes_of((3,) * d)) == box_dimension(d) == grid_box_dimension((3,) * d)
    for sizes in [*product(range(1, 5), repeat=2), (5,), (6, 6), (1, 2, 3), (2, 2, 2), (2, 3, 3), (2, 2, 4)]:
        assert vc_dimension(boxes_of(sizes)) == grid_box_dimension(sizes), sizes


def cells_of(sizes: Sequence[int], k: int) -> BoolMatrix:
    """Conjunctions of exactly k literals attribute = value, on the whole universe."""
    points = grid(sizes)
    return np.array(
        [
            [all(point[a] == v for a, v in zip(clique, cell, strict=True)) for point in points]
            for clique in combinations(range(len(sizes)), k)
            for cell in product(*(range(sizes[a]) for a in clique))
        ]
    )


small_universes = [
    sizes
    for d in (1, 2, 3, 4)
    for sizes in combinations_with_replacement((1, 2, 3, 4), d)
    if prod(sizes) <= 54
]


@pytest.mark.parametrize("sizes", small_universes)
def test_conjunctions_and_marginals(sizes: tuple[int, ...]) -> None:
    marginals = [cells_of(sizes, k) for k in range(len(sizes) + 1)]
    assert vc_dimension(np.concatenate(marginals)) == conjunction_dimension(sizes)
    for k, cells in enumerate(marginals):
        assert vc_dimension(cells) <= marginal_dimension_bound(sizes, k)
    if min(sizes) > 1:
        assert vc_dimension(marginals[1]) == one_way_marginal_dimension(len(sizes))
        assert one_way_marginal_dimension(len(sizes)) == marginal_dimension_bound(sizes, 1)


def test_marginal_bound_is_attained_where_it_says_so() -> None:
    for d, k in ((4, 1), (5, 2), (6, 2), (6, 3), (7, 3), (7, 4)):
        assert k + 3 <= d <= 2 * k + 2
        assert vc_dimension(cells_of((2,) * d, k)) == marginal_dimension_bound((2,) * d, k) == d - k
    assert vc_dimension(cells_of((2,) * 7, 2)) == 4
    assert marginal_dimension_bound((2,) * 7, 2) == 5
    # A cell of all attributes is one point of the universe; one of none is the whole of it.
    assert marginal_dimension_bound((5, 3, 2), 3) == singleton_dimension(30) == 1
    assert marginal_dimension_bound((5, 3, 2), 0) == 0
    assert vc_dimension(cells_of((2,) * 8, 1)) == one_way_marginal_dimension(8) == 4
    assert marginal_dimension_bound((3,) * 5, 1) == one_way_marginal_dimension(5) == 3
    # Far below the count of queries (Lemma 10) once attributes have many values.
    assert marginal_dimension_bound((10**6,) * 8, 3) <= 5 < finite_class_bound(comb(8, 3) * 10**18)


@pytest.mark.parametrize("d", range(6))
def test_monotone_conjunctions_and_parities(d: int) -> None:
    points = grid((2,) * d)
    masks = points
    conjunctions = np.array([[bool((x >= a).all()) for x in points] for a in masks])
    assert vc_dimension(conjunctions) == monotone_conjunction_dimension(d)
    assert vc_dimension(masks @ points.T % 2) == parity_dimension(d)


@pytest.mark.parametrize("size", range(1, 11))
def test_singletons_and_subsets(size: int) -> None:
    assert vc_dimension(np.eye(size, dtype=bool)) == singleton_dimension(size)
    assert vc_dimension(subset_class(size, most=size)) == subset_dimension(size)


# Half-spaces ------------------------------------------------------------------------------------------------

S1 = [(0, 0), (3, 1)]
S2 = [(0, 0), (4, 0), (1, 3)]
S3 = [(0, 0), (1, 2), (3, 6)]
S4 = [(0, 0), (3, 0), (4, 3), (-1, 2)]
S4_INSIDE = [(0, 0), (6, 0), (0, 6), (1, 2)]
S4_CO_LOCATED = [(0, 0), (6, 0), (0, 6), (6, 0)]


@pytest.mark.parametrize(
    ("points", "shattered", "missing"),
    [
        (S1, True, 0),
        (S2, True, 0),
        (S3, False, 2),  # the middle one alone, and the outer two alone
        (S4, False, 2),  # the two diagonals
        (S4_INSIDE, False, 2),  # the inner one alone, and the outer three alone
        (S4_CO_LOCATED, False, 8),  # all that tell the two apart
    ],
)
def test_lecture_examples_of_half_planes(
    points: list[tuple[int, int]],
    shattered: bool,  # noqa: FBT001
    missing: int,
) -> None:
    traces = half_space_traces(points)
    assert shatters(traces, range(len(points))) == shattered
    assert growth(traces) == len(traces) == 2 ** len(points) - missing


def separable(points: np.ndarray, inside: np.ndarray) -> bool:
    """Whether a·x − b ≥ 1 inside and ≤ −1 outside is feasible: an oracle of another kind (a linear program)."""
    side = np.where(inside, -1.0, 1.0)[:, None]
    rows = side * np.hstack([points, -np.ones((len(points), 1))])
    result = linprog(
        np.zeros(rows.shape[1]), A_ub=rows, b_ub=-np.ones(len(points)), bounds=(None, None), method="highs"
    )
    assert result.status in (0, 2)
    return result.status == 0


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_half_space_traces_against_linear_programs(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    for spread in (1, 2, 4):  # close together: many duplicates, lines and planes
        points = rng.integers(-spread, spread + 1, (6, dimension))
        listed = {tuple(trace) for trace in half_space_traces(points.tolist())}
        assert listed == {t for t in product((False, True), repeat=6) if separable(points, np.array(t))}


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_half_space_traces_follow_covers_count(dimension: int) -> None:
    for m in range(1, 10):
        curve = [[t**power for power in range(1, dimension + 1)] for t in range(m)]  # in general position
        assert len(half_space_traces(curve)) == 2 * sauer_shelah(m - 1, dimension)


def test_half_space_traces_are_exact_where_floats_are_not() -> None:
    tiny = Fraction(1, 10**40)
    line = [(Fraction(0), Fraction(0)), (Fraction(1, 3), Fraction(1, 7)), (Fraction(2, 3), Fraction(2, 7))]
    bent = [*line[:2], (line[2][0], line[2][1] + tiny)]
    assert len(half_space_traces(line)) == 6
    assert len(half_space_traces(bent)) == 8
    decimals = [
        (0.0, 0.0),
        (0.1, 0.1),
        (0.2, 0.2),
        (0.3, 0.3),
    ]  # meant as written
    assert len(half_space_traces(decimals)) == 8
    assert half_space_traces(np.array([[0, 0], [1, 0]])).tolist() == [  # pyright: ignore[reportArgumentType]
        [False, False],
        [True, False],
        [False, True],
        [True, True],
    ]


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_half_spaces_have_dimension_d_plus_1(dimension: int) -> None:
    simplex = [[0] * dimension, *np.eye(dimension, dtype=int).tolist()]
    assert shatters(half_space_traces(simplex), range(dimension + 1))
    rng = np.random.default_rng(dimension)
    cloud = rng.integers(-3, 4, ({1: 12, 2: 16, 3: 11, 4: 9}[dimension], dimension)).tolist()
    assert vc_dimension(half_space_traces([*simplex, *cloud])) == half_space_dimension(dimension)


def hulls_meet(partition: RadonPartition, points: Sequence[Sequence[int]]) -> bool:
    """Both weightings are convex, on disjoint sets, and give the same point."""

    def mean(indices: tuple[int, ...], weights: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        return tuple(
            sum((w * points[i][j] for i, w in zip(indices, weights, strict=True)), Fraction(0))
            for j in range(len(points[0]))
        )

    convex = all(
        sum(weights) == 1 and min(weights) > 0
        for weights in (partition.left_weights, partition.right_weights)
    )
    return (
        convex
        and not set(partition.left) & set(partition.right)
        and mean(partition.left, partition.left_weights) == partition.point
        and mean(partition.right, partition.right_weights) == partition.point
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.data())
def test_radon_theorem(dimension: int, data: st.DataObject) -> None:
    coordinate = st.integers(-4, 4)
    count = dimension + 2
    rows = st.lists(coordinate, min_size=dimension, max_size=dimension)
    points = data.draw(st.lists(rows, min_size=count, max_size=count))
    partition = radon_partition(points)
    assert hulls_meet(partition, points)
    traces = half_space_traces(points)
    left, right = list(partition.left), list(partition.right)
    assert not (traces[:, left].all(axis=1) & ~traces[:, right].any(axis=1)).any()
    assert not (traces[:, right].all(axis=1) & ~traces[:, left].any(axis=1)).any()
    assert not shatters(traces, range(count))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=3))
def test_points_are_shattered_or_parted(points: list[tuple[int, int]]) -> None:
    if shatters(half_space_traces(points), range(len(points))):
        with pytest.raises(ParameterError, match="affinely independent"):
            radon_partition(points)
    else:
        assert hulls_meet(radon_partition(points), points)


def test_radon_partition_of_the_lecture_examples() -> None:
    assert {radon_partition(S4).left, radon_partition(S4).right} == {(0, 2), (1, 3)}
    assert {radon_partition(S4_INSIDE).left, radon_partition(S4_INSIDE).right} == {(3,), (0, 1, 2)}
    assert {radon_partition(S3).left, radon_partition(S3).right} == {(1,), (0, 2)}
    assert {radon_partition(S4_CO_LOCATED).left, radon_partition(S4_CO_LOCATED).right} == {(1,), (3,)}
    assert radon_partition([(0, 0), (2, 2), (0, 2), (2, 0)]).point == (1, 1)
    # Power: a partition of other points is not taken for one of these.
    assert not hulls_meet(radon_partition(S4), S4_INSIDE)


# Refusals ---------------------------------------------------------------------------------------------------


def test_a_search_too_long_is_refused_with_what_it_knows() -> None:
    traces = np.random.default_rng(4).random((2_000, 60)) < 0.5
    with pytest.raises(ParameterError, match=r"2,000 distinct traces on 60 points .* from \d+ to 10\."):
        vc_dimension(traces, limit=10**8)
    with pytest.raises(ParameterError, match="given up after 0 steps"):
        shattered_set(traces, limit=0)
    assert vc_dimension(traces[:1], limit=0) == 0


def test_sizes_beyond_the_limits_are_refused_before_the_search() -> None:
    bits = np.arange(MAX_TRACES + 1)[:, None] >> np.arange(15) & 1
    with pytest.raises(ParameterError, match="16,385 distinct traces on 15 points"):
        vc_dimension(bits, limit=0)
    assert vc_dimension(bits[:-1, :14]) == 14
    with pytest.raises(ParameterError, match="terms"):
        sauer_shelah(10**9, MAX_TERMS + 1)
    with pytest.raises(ParameterError, match=f"60 points in dimension 4 .* {MAX_CELLS:,} cells"):
        half_space_traces([[t, t**2, t**3, t**4] for t in range(60)])


def test_what_is_no_class_is_refused() -> None:
    for wrong in ([True, False], [[0.5, 1.0]], [[2, 0]], np.zeros((2, 2, 2))):
        with pytest.raises(ParameterError):
            vc_dimension(wrong)
    with pytest.raises(ParameterError, match="without queries"):
        vc_dimension(np.zeros((0, 3), dtype=bool))
    assert vc_dimension(np.zeros((3, 0), dtype=bool)) == 0
    assert growth(np.zeros((3, 0), dtype=bool)) == 1
    assert growth(np.zeros((0, 3), dtype=bool)) == 0
    for column in (-1, 2):
        with pytest.raises(ParameterError, match="columns 0 to 1"):
            shatters(np.eye(2, dtype=bool), [column])


def test_wrong_numbers_and_points_are_refused() -> None:
    for function in (finite_class_bound, singleton_dimension, one_way_marginal_dimension, box_dimension):
        for wrong in (0, -1, 1.0, True):
            with pytest.raises(ParameterError):
                function(wrong)  # pyright: ignore[reportArgumentType]
    for sizes in ([0], [2, -1], [2.5]):
        with pytest.raises(ParameterError):
            conjunction_dimension(sizes)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ParameterError, match="cannot be chosen"):
        marginal_dimension_bound((2, 2), 3)
    with pytest.raises(ParameterError):
        prefix_dimension(0, with_empty=False)
    for points in ([], [(0, 0), (1,)], [("a",)], [(float("nan"),)], [(True,)]):
        with pytest.raises(ParameterError):
            half_space_traces(points)  # pyright: ignore[reportArgumentType]
