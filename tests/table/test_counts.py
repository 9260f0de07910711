"""Counting over the cover equals counting each clique by brute force, however the rows arrive."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.table.counts import MarginalCounter, roll_up

UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]


def brute_force(rows, sizes, clique):
    table = np.zeros([sizes[a] for a in clique], np.int64)
    for row in rows:
        table[tuple(row[a] for a in clique)] += 1
    return table


def counted(counter, rows, splits=(), dtype=np.uint8):
    """Add the rows in batches cut at `splits` (which may repeat) and return the tables."""
    codes = np.array(rows or np.empty((0, 9)), dtype=np.int64)
    bounds = [0, *sorted(min(s, len(rows)) for s in splits), len(rows)]
    for start, stop in itertools.pairwise(bounds):
        batch = [codes[start:stop, a].astype(dtype) for a in counter.attributes]
        counter.add(batch, rows=stop - start)
    return counter.tables()


def assert_same(tables, expected):
    assert list(tables) == list(expected)
    for clique, table in expected.items():
        assert tables[clique].dtype == np.int64
        assert tables[clique].shape == table.shape
        assert tables[clique].flags.c_contiguous
        assert_array_equal(tables[clique], table)


@st.composite
def few(draw):
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=6))
    rows = draw(st.lists(st.tuples(*(st.integers(0, s - 1) for s in sizes)), max_size=40))
    subset = st.sets(st.integers(0, len(sizes) - 1)).map(lambda s: tuple(sorted(s)))
    cliques = draw(st.lists(subset, max_size=12, unique=True))
    return sizes, rows, cliques


@st.composite
def many(draw):
    """Many cliques and rows: the cover has several tables, which share the beginnings of their indices."""
    random = draw(st.randoms(use_true_random=False))
    sizes = [random.randint(1, 7) for _ in range(random.randint(3, 6))]
    rows = [tuple(random.randrange(s) for s in sizes) for _ in range(random.randint(0, 60))]
    subsets = [c for k in range(4) for c in itertools.combinations(range(len(sizes)), k)]
    return sizes, rows, random.sample(subsets, random.randint(1, len(subsets)))


def cases():
    return few() | many()


@given(
    cases(),
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from(UNSIGNED),
    st.sampled_from([1, 8, 50, 2**17]),
    st.sampled_from([1, 2, 7, 64]),
)
@example(([3], [], [()]), [], np.uint8, 2**17, 64)
@example(([3, 2], [(2, 1), (0, 0)], [()]), [1], np.uint8, 2**17, 1)
@example(([1, 1], [(0, 0)], [(0, 1)]), [], np.uint8, 1, 64)
def test_tables_equal_brute_force(case, splits, dtype, limit, block_rows):
    sizes, rows, cliques = case
    counter = MarginalCounter(sizes, cliques, limit=limit, block_rows=block_rows)
    tables = counted(counter, rows, splits, dtype)
    assert counter.rows == len(rows)
    assert_same(tables, {clique: brute_force(rows, sizes, clique) for clique in cliques})


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_batches_does_not_matter(case, random):
    sizes, rows, cliques = case
    shuffled = list(rows)
    random.shuffle(shuffled)
    one = counted(MarginalCounter(sizes, cliques), rows)
    other = counted(MarginalCounter(sizes, cliques, block_rows=3), shuffled, splits=[0, 1, 1, 5])
    assert_same(other, one)


@given(cases(), st.integers(0, 39))
def test_one_row_more_or_less_is_one_count_more_or_less(case, dropped):
    """The check has power: losing a single row, in any batch, shows in every table."""
    sizes, rows, cliques = case
    if not rows:
        return
    dropped %= len(rows)
    whole = counted(MarginalCounter(sizes, cliques, block_rows=4), rows)
    part = counted(MarginalCounter(sizes, cliques, block_rows=4), rows[:dropped] + rows[dropped + 1 :])
    for clique in cliques:
        difference = whole[clique] - part[clique]
        assert difference.sum() == 1
        assert difference[tuple(rows[dropped][a] for a in clique)] == 1


def big_case():
    """Wide attributes: 16-bit and 32-bit indices, tables beyond the limit, several blocks."""
    sizes = [2, 70_000, 300, 5, 256, 65_536, 17]
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, s, 5_000).astype(np.min_scalar_type(s - 1)) for s in sizes]
    cliques = [(1,), (0, 1), (0, 2, 3), (2, 4), (3, 5), (2, 3, 4), (0, 1, 6), (5,), (0, 3, 6), ()]
    return sizes, codes, cliques


def histogram(codes, sizes, clique):
    table = np.zeros([sizes[a] for a in clique], np.int64)
    for cell in zip(*(codes[a].tolist() for a in clique), strict=True):
        table[cell] += 1
    return table if clique else np.array(len(codes[0]))


def test_wide_attributes_and_large_tables():
    sizes, codes, cliques = big_case()
    counter = MarginalCounter(sizes, cliques, block_rows=999)
    assert counter.attributes == tuple(range(7))
    for start in range(0, 5_000, 1_234):
        counter.add([column[start : start + 1_234] for column in codes])
    assert_same(counter.tables(), {c: histogram(codes, sizes, c) for c in cliques})


@pytest.mark.parametrize("sizes", [[1, 2**16, 1], [2**15, 2], [2**8, 2**8, 2], [2**16 - 1, 1], [3, 2**16]])
def test_indices_at_the_edge_of_16_bits(sizes):
    everything = tuple(range(len(sizes)))
    codes = [np.array([s - 1, 0, s - 1, s // 2], np.uint32) for s in sizes]
    counter = MarginalCounter(sizes, [everything])
    counter.add(codes)
    assert_same(counter.tables(), {everything: histogram(codes, sizes, everything)})


def test_a_table_beyond_32_bits_is_refused_before_it_is_allocated():
    with pytest.raises(TooLargeError):
        MarginalCounter([2**12, 2**12, 2**9], [(0, 1, 2)])


@pytest.mark.parametrize("limit", [2**10, 2**17])
def test_all_triples_of_a_census_like_table(limit):
    sizes = [16, 3, 6, 2, 32, 8, 5, 2, 9, 24, 4, 5, 2, 12, 7]
    rng = np.random.default_rng(7)
    common = rng.random(3_000)
    codes = [((common + rng.random(3_000)) / 2 * s).astype(np.uint8) for s in sizes]
    cliques = list(itertools.combinations(range(15), 3))
    counter = MarginalCounter(sizes, cliques, limit=limit, block_rows=1_000)
    counter.add(codes)
    assert len(counter.cover) < len(cliques)
    assert_same(counter.tables(), {c: histogram(codes, sizes, c) for c in cliques})


def test_tables_may_be_read_and_changed_between_batches():
    counter = MarginalCounter([2, 3], [(0, 1), (0,)])
    batch = [np.array([0, 1, 1], np.uint8), np.array([2, 0, 0], np.uint8)]
    counter.add(batch)
    first = counter.tables()
    assert_array_equal(first[0, 1], [[0, 0, 1], [2, 0, 0]])
    first[0, 1][...] = -7
    first[0,][...] = -7
    counter.add(batch)
    assert_array_equal(counter.tables()[0, 1], [[0, 0, 2], [4, 0, 0]])
    assert_array_equal(counter.tables()[0,], [2, 4])


def test_the_batch_may_be_overwritten_after_it_was_added():
    counter = MarginalCounter([4], [(0,)])
    batch = np.array([3, 3, 1], np.uint8)
    counter.add([batch])
    batch[:] = 0
    assert_array_equal(counter.tables()[0,], [0, 1, 0, 2])


def test_only_needed_attributes_are_asked_for():
    counter = MarginalCounter([2, 9, 3, 9], [(0, 2), ()])
    assert counter.attributes == (0, 2)
    counter.add([np.array([1], np.uint8), np.array([2], np.uint8)])
    assert counter.tables()[()] == 1


def test_accumulators_hold_more_than_32_bits():
    counter = MarginalCounter([2], [(0,), ()])
    counter._counts[0,][1] = 2**40
    counter.add([np.array([1], np.uint8)])
    assert counter.tables()[0,][1] == 2**40 + 1


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("wrong", [200, 237])
def test_a_code_outside_its_attribute_is_refused_and_counts_nothing(dtype, wrong):
    counter = MarginalCounter([3, 200], [(0, 1)], block_rows=2)
    counter.add([np.array([2], dtype), np.array([199], dtype)])
    before = counter.tables()
    with pytest.raises(DomainError) as refused:
        counter.add([np.array([0, 1, 0], dtype), np.array([7, 8, wrong], dtype)])
    assert "237" not in str(refused.value)
    assert_same(counter.tables(), before)
    assert counter.rows == 1


@pytest.mark.parametrize(
    "batch",
    [
        [np.zeros(2, np.uint8)],
        [np.zeros(2, np.uint8), np.zeros(3, np.uint8)],
        [np.zeros(2, np.uint8), np.zeros(2, np.int64)],
        [np.zeros(2, np.uint8), np.zeros(2, np.float64)],
        [np.zeros(2, np.uint8), np.zeros((2, 1), np.uint8)],
    ],
    ids=["too few", "uneven", "signed", "float", "two-dimensional"],
)
def test_a_malformed_batch_is_refused(batch):
    counter = MarginalCounter([3, 3], [(0, 1)])
    with pytest.raises(ParameterError):
        counter.add(batch)
    assert counter.rows == 0


def test_the_number_of_rows_must_be_known():
    counter = MarginalCounter([3], [()])
    with pytest.raises(ParameterError):
        counter.add([])
    with pytest.raises(ParameterError):
        counter.add([], rows=-1)
    with pytest.raises(ParameterError):
        MarginalCounter([3], [(0,)]).add([np.zeros(2, np.uint8)], rows=3)
    with pytest.raises(ParameterError):
        MarginalCounter([3], [(0,)], block_rows=0)


def test_roll_up_takes_the_smallest_table_and_refuses_what_no_table_holds():
    rng = np.random.default_rng(11)
    cube = rng.integers(0, 9, (4, 3, 5))
    tables = {(0, 2, 7): cube, (2, 7): np.full((3, 5), -1)}
    rolled = roll_up(tables, [(0, 7), (7,), (0, 2, 7), ()])
    assert_array_equal(rolled[0, 7], cube.sum(axis=1))
    assert_array_equal(rolled[7,], [-3] * 5)
    assert_array_equal(rolled[0, 2, 7], cube)
    assert rolled[()] == -15
    with pytest.raises(DomainError):
        roll_up(tables, [(1,)])


@given(cases())
def test_roll_up_does_not_depend_on_the_table_it_sums(case):
    sizes, rows, cliques = case
    everything = tuple(range(len(sizes)))
    full = {everything: brute_force(rows, sizes, everything)}
    assert_same(roll_up(full, cliques), counted(MarginalCounter(sizes, cliques, limit=1), rows))
