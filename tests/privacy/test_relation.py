"""Sensitivities against brute force over every pair of neighbouring tables of small domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.privacy.columns import ONE_COUNT, PARTITION, CountColumns, lattice_bounds
from understudy.privacy.relation import NOTHING, Neighbours, Relation, Sensitivity
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

Row = tuple[int, ...]
REPLACE = Relation(Neighbours.REPLACE)
ADD = Relation(Neighbours.ADD_REMOVE)

RESOLUTIONS = [1, 2, 7, 128, 10**6]


@st.composite
def marginals(draw: st.DrawFn) -> Marginal:
    """Any grouping of a small domain, with or without a condition; weights 0, 1 or anything between."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))
    by = draw(st.sets(st.sampled_from(domain.names)))
    weight = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)

    def weights(names: Iterable[str]) -> list[float]:
        return draw(st.lists(weight, min_size=domain.size(names), max_size=domain.size(names)))

    kind = draw(st.sampled_from(["everyone", "conjunction", "table"]))
    named = draw(st.sets(st.sampled_from(domain.names), min_size=1))
    if kind == "everyone":
        return Marginal(domain, tuple(by))
    if kind == "conjunction":
        return Marginal(
            domain, tuple(by), LinearQuery.conjunction(domain, {name: weights([name]) for name in named})
        )
    clique = domain.clique(named)
    table = np.array(weights(clique)).reshape(domain.shape(clique))
    return Marginal(domain, tuple(by), LinearQuery.table(domain, clique, table))


def universe(domain: Domain) -> list[Row]:
    return [tuple(map(int, cell)) for cell in np.ndindex(*domain.shape())]


def contribution(marginal: Marginal, row: Row, resolution: int) -> NDArray[np.int64]:
    """What one row adds to the vector of sums: its rounded weight, in its own cell."""
    codes = {
        name: np.array([code], dtype=np.uint8) for name, code in zip(marginal.domain.names, row, strict=True)
    }
    steps = np.rint(np.broadcast_to(marginal.where.row_weights(codes), 1) * resolution)
    vector = np.zeros(marginal.shape, dtype=np.int64)
    vector[tuple(int(codes[name][0]) for name in marginal.by)] = int(steps[0])
    return vector.ravel()


def furthest(differences: Iterator[NDArray[np.int64]]) -> Sensitivity:
    l1 = l2_squared = 0
    for difference in differences:
        l1 = max(l1, int(np.abs(difference).sum()))
        l2_squared = max(l2_squared, int((difference**2).sum()))
    return Sensitivity(l1, l2_squared)


def moves(marginal: Marginal, relation: Relation, resolution: int = 1) -> Sensitivity:
    return relation.moves(CountColumns.of(marginal, resolution=resolution))


def brute_force(marginal: Marginal, relation: Relation, resolution: int) -> Sensitivity:
    """Over all ways to exchange a row, or to add up to `max_rows` of them: the other rows cancel."""
    vectors = [contribution(marginal, row, resolution) for row in universe(marginal.domain)]
    if relation == REPLACE:
        return furthest(a - b for a, b in product(vectors, repeat=2))
    groups = (
        g for rows in range(1, relation.max_rows + 1) for g in combinations_with_replacement(vectors, rows)
    )
    return furthest(sum(group[1:], group[0]) for group in groups)


@given(marginals(), st.sampled_from(RESOLUTIONS))
def test_lattice_bounds_are_those_of_the_rows(marginal, resolution):
    steps = [int(contribution(marginal, row, resolution).sum()) for row in universe(marginal.domain)]
    assert lattice_bounds(marginal.where, resolution) == (min(steps), max(steps))


@given(marginals(), st.sampled_from(RESOLUTIONS))
def test_lecture4_definition_3_replacing_a_row(marginal, resolution):
    claimed = moves(marginal, REPLACE, resolution)
    true = brute_force(marginal, REPLACE, resolution)
    assert true.l1 <= claimed.l1
    assert true.l2_squared <= claimed.l2_squared
    if marginal.size == 1 or not set(marginal.by) & set(marginal.where.clique):
        assert true == claimed


@given(marginals(), st.sampled_from(RESOLUTIONS), st.integers(1, 3))
def test_adding_or_removing_the_rows_of_one_person(marginal, resolution, max_rows):
    relation = Relation(Neighbours.ADD_REMOVE, max_rows)
    assert brute_force(marginal, relation, resolution) == moves(marginal, relation, resolution)


SMALL = Domain((Bins.integers("a", 0, 1), Bins.integers("b", 0, 2)))


def neighbouring_tables(n: int) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """Every table of n rows, with every table that differs in at most one of them."""
    rows = universe(SMALL)
    for table in product(rows, repeat=n):
        for i, row in product(range(n), rows):
            yield table, (*table[:i], row, *table[i + 1 :])


def sums(marginal: Marginal, table: tuple[Row, ...]) -> NDArray[np.int64]:
    return np.sum([contribution(marginal, row, 1) for row in table], axis=0)


@pytest.mark.parametrize(
    ("by", "where", "claimed"),
    [
        ((), {}, Sensitivity(0, 0)),
        ((), {"a": [0, 1]}, Sensitivity(1, 1)),
        (("a",), {}, Sensitivity(2, 2)),
        (("a", "b"), {"b": [0, 1, 1]}, Sensitivity(2, 2)),
    ],
)
def test_lecture4_definition_3_on_whole_tables(by, where, claimed):
    """Counts of all tables of three rows; two exchanged rows can do more than one."""
    marginal = Marginal(SMALL, by, LinearQuery.conjunction(SMALL, where))
    assert moves(marginal, REPLACE) == claimed
    pairs = ((sums(marginal, x), sums(marginal, y)) for x, y in neighbouring_tables(3))
    assert furthest(x - y for x, y in pairs) == claimed
    if claimed.l1:
        far = ((0, 1),) * 3, ((1, 2), (1, 2), (0, 1))
        assert np.abs(sums(marginal, far[0]) - sums(marginal, far[1])).sum() > claimed.l1


@dataclass(frozen=True)
class Table:
    """The plainest projection: rows in a list."""

    rows: tuple[Row, ...]
    domain: Domain = SMALL

    def project(self, clique: Clique) -> NDArray[np.float64]:
        axes = [SMALL.names.index(name) for name in clique]
        rates = np.zeros(SMALL.shape(clique))
        for row in self.rows:
            rates[tuple(row[axis] for axis in axes)] += 1 / len(self.rows)
        return rates


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.sampled_from([1, 2, 3]))
def test_lectures9_10_definition_2_a_rate_moves_by_at_most_one_over_n(weights, n):
    """Over all neighbours of n rows; and by (high - low)/(resolution·n), up to the rounding of each weight."""
    query = LinearQuery.table(SMALL, SMALL.names, np.reshape(weights, (2, 3)))
    table = ((0, 1),) * (n - 1)
    rates = [query.answer(Table((*table, row))) for row in universe(SMALL)]
    moved = max(rates) - min(rates)
    resolution = 10**6
    claimed = moves(Marginal.of(query), REPLACE, resolution).l1 / (resolution * n)
    assert moved <= 1 / n + 1e-12
    assert claimed <= 1 / n
    assert moved == pytest.approx(claimed, abs=1.01 / (resolution * n))


def test_a_condition_that_some_weight_never_leaves_moves_less():
    """Everyone weighs between 1/4 and 3/4: replacing one moves the sum by half a person."""
    query = LinearQuery.conjunction(SMALL, {"a": [0.25, 0.75]})
    assert moves(Marginal.of(query), REPLACE, 4) == Sensitivity(2, 4)
    assert moves(Marginal.of(query), ADD, 4) == Sensitivity(3, 9)
    constant = LinearQuery.conjunction(SMALL, {"a": [0.5, 0.5]})
    assert moves(Marginal.of(constant), REPLACE, 4) == NOTHING


def test_a_wide_condition_is_not_expanded():
    wide = Domain(tuple(Bins.integers(f"a{i}", 0, 9) for i in range(40)))
    query = LinearQuery.conjunction(wide, {name: np.eye(10)[3] for name in wide.names})
    assert moves(Marginal.of(query), REPLACE) == Sensitivity(1, 1)


def test_a_person_of_many_rows_cannot_be_replaced():
    with pytest.raises(ParameterError, match="add-remove"):
        Relation(Neighbours.REPLACE, 2)


@pytest.mark.parametrize("max_rows", [0, -1])
@pytest.mark.parametrize("kind", list(Neighbours))
def test_a_person_has_at_least_one_row(kind, max_rows):
    """A sensitivity of 0 would release exact counts."""
    with pytest.raises(ParameterError, match="at least one row"):
        Relation(kind, max_rows)


def test_relations_have_the_names_of_a_declaration():
    assert [Neighbours("replace"), Neighbours("add-remove")] == [Neighbours.REPLACE, Neighbours.ADD_REMOVE]


def test_relations_have_the_names_that_events_store():
    assert [str(relation) for relation in (REPLACE, ADD, Relation(Neighbours.ADD_REMOVE, 7))] == [
        "replace", "add-remove 1", "add-remove 7",
    ]  # fmt: skip


@st.composite
def looks(draw: st.DrawFn) -> NDArray[np.int64]:
    """A row of whole numbers for each of a few cells: what a row in it adds."""
    cells, size = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    numbers = st.lists(st.integers(-5, 5), min_size=size, max_size=size)
    return np.array(draw(st.lists(numbers, min_size=cells, max_size=cells)))


@dataclass(frozen=True)
class Listed:
    """Columns that are listed, with the norms of the longest and the farthest two."""

    columns: NDArray[np.int64]

    @property
    def longest(self) -> Sensitivity:
        return furthest(iter(self.columns))

    @property
    def farthest(self) -> Sensitivity:
        return furthest(a - b for a, b in product(self.columns, repeat=2))


def differences(columns: NDArray[np.int64], relation: Relation) -> Iterator[NDArray[np.int64]]:
    """What the sums of all pairs of neighbours differ by: the rows that they have in common cancel."""
    if relation == REPLACE:
        yield from (a - b for a, b in product(columns, repeat=2))
        return
    for rows in range(1, relation.max_rows + 1):
        for group in combinations_with_replacement(list(columns), rows):
            yield np.sum(group, axis=0)


RELATIONS = st.sampled_from([REPLACE, ADD, Relation(Neighbours.ADD_REMOVE, 3)])


@given(looks(), RELATIONS)
def test_lemma_1_is_attained_by_all_sums_over_rows(columns, relation):
    claimed = relation.moves(Listed(columns))
    assert furthest(differences(columns, relation)) == claimed
    listed = Listed(columns)
    squared = relation.moves_squared(
        lambda: Fraction(listed.longest.l2_squared), lambda: Fraction(listed.farthest.l2_squared)
    )
    assert squared == claimed.l2_squared


@given(looks(), looks(), RELATIONS, st.integers(-3, 3))
def test_lemma_2_a_stack_moves_by_no_more_than_its_parts_together(one, two, relation, weight):
    cells = min(len(one), len(two))
    one, two = one[:cells], two[:cells]
    true = furthest(differences(np.hstack([one, weight * two]), relation))
    claimed = relation.moves(Listed(one)) + relation.moves(Listed(two)) * weight
    assert true.l1 <= claimed.l1
    assert true.l2_squared <= claimed.l2_squared
    assert furthest(differences(weight * two, relation)) == relation.moves(Listed(two)) * weight
    same = furthest(differences(np.hstack([one, one]), relation))
    assert same == relation.moves(Listed(one)) + relation.moves(Listed(one))


@given(looks(), RELATIONS, st.lists(st.integers(-9, 9), min_size=3, max_size=3), st.integers(-9, 9))
def test_lemma_3_a_distance_moves_by_no_more_than_the_vector(columns, relation, guess, start):
    far, begin = np.array(guess[: columns.shape[1]]), np.full(columns.shape[1], start)
    claimed = relation.moves(Listed(columns)).of_distance
    for moved in differences(columns, relation):
        change = abs(int(np.abs(begin + moved - far).sum()) - int(np.abs(begin - far).sum()))
        assert change <= claimed.l1
        assert change**2 <= claimed.l2_squared


@given(looks(), RELATIONS, st.data())
def test_lemma_4_a_map_of_rows_moves_sums_by_no_more(columns, relation, data):
    cells = data.draw(st.lists(st.integers(0, len(columns) - 1), min_size=1, max_size=4))
    true = furthest(differences(columns[cells], relation))
    claimed = relation.moves(Listed(columns))
    assert true.l1 <= claimed.l1
    assert true.l2_squared <= claimed.l2_squared


@given(
    st.lists(st.integers(0, 3), max_size=5),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.integers(0, 3),
)
def test_lemma_5_the_number_of_different_values_moves_as_a_count(common, of_person, other):
    def different(rows: list[int]) -> int:
        return len(set(rows))

    person = Relation(Neighbours.ADD_REMOVE, max_rows=len(of_person))
    with_and_without = abs(different(common + of_person) - different(common))
    assert with_and_without <= person.moves(ONE_COUNT).l1
    replaced = abs(different([*common, of_person[0]]) - different([*common, other]))
    assert replaced <= REPLACE.moves(ONE_COUNT).l1


def test_lemma_5_is_attained():
    assert ADD.moves(ONE_COUNT).l1 == len({1}) - len(set[int]())
    assert Relation(Neighbours.ADD_REMOVE, max_rows=3).moves(ONE_COUNT).l1 == len({1, 2, 3})
    assert REPLACE.moves(ONE_COUNT).l1 == len({1, 2}) - len({1})


def test_single_counts_and_partitions():
    several = Relation(Neighbours.ADD_REMOVE, 3)
    assert [r.moves(ONE_COUNT) for r in (REPLACE, ADD, several)] == [
        Sensitivity(1, 1), Sensitivity(1, 1), Sensitivity(3, 9),
    ]  # fmt: skip
    assert [r.moves(PARTITION) for r in (REPLACE, ADD, several)] == [
        Sensitivity(2, 2), Sensitivity(1, 1), Sensitivity(3, 9),
    ]  # fmt: skip
    assert [r.moves(CountColumns(1)) for r in (REPLACE, several)] == [NOTHING, Sensitivity(3, 9)]


def test_a_replacement_is_one_step_or_two():
    assert [relation.steps_to_replace for relation in (REPLACE, ADD)] == [1, 2]
    assert [relation.cells_of_a_difference for relation in (REPLACE, ADD)] == [2, 1]
    assert [relation.rows_are_public for relation in (REPLACE, ADD)] == [True, False]


def test_vectors_side_by_side_move_by_the_sum_of_what_each_moves():
    """Lemma 2: squared norms add up, and are not multiplied as those of one longer vector are."""
    one = Sensitivity(2, 3)
    assert one.repeated(3) == one + one + one == Sensitivity(6, 9) != one * 3
    assert one.repeated(0) == Sensitivity(0, 0)
