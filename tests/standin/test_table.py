from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.attribute import Boolean
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, ParameterError
from understudy.query.linear import LinearQuery
from understudy.standin.table import SmallTable

DOMAIN = Domain((Boolean(name="a"), Bins.integers("x", 0, 2), Bins.integers("y", 0, 4)))
ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=12)


@given(ROWS, st.sets(st.sampled_from(DOMAIN.names)))
def test_projections_count_rows(rows, names):
    table = SmallTable.of_rows(DOMAIN, rows)
    clique = DOMAIN.clique(names)
    expected = np.zeros(DOMAIN.shape(clique))
    for row in rows:
        expected[tuple(row[DOMAIN.position(name)] for name in clique)] += 1
    assert (table.count(clique) == expected).all()
    assert table.project(clique) == pytest.approx(expected / len(rows))
    assert table.project(clique).sum() == pytest.approx(1)
    assert table.rows == len(rows)


@given(ROWS, st.lists(st.floats(0, 1), min_size=3, max_size=3), st.integers(0, 1))
def test_both_ways_to_answer_agree(rows, weights, cell):
    table = SmallTable.of_rows(DOMAIN, rows)
    query = LinearQuery.conjunction(DOMAIN, {"x": weights, "a": np.arange(2) == cell})
    assert table.answer(query) == pytest.approx(query.answer(table))
    assert table.answer(LinearQuery.everyone(DOMAIN)) == pytest.approx(1)


def test_a_query_over_very_many_attributes():
    wide = Domain(tuple(Boolean(name=f"b{i}") for i in range(80)))
    table = SmallTable.of_rows(wide, [[1] * 80, [0] * 80, [1] * 80, [1] * 79 + [0]])
    assert table.answer(LinearQuery.conjunction(wide, {name: [0, 1] for name in wide.names})) == 0.5


@given(ROWS)
def test_columns_are_the_rows_again(rows):
    columns = SmallTable.of_rows(DOMAIN, rows).columns()
    assert sorted(zip(*(columns[name].tolist() for name in DOMAIN.names), strict=True)) == sorted(rows)


@given(ROWS, st.integers(0, 50), st.integers(0, 5))
def test_samples_keep_the_shares(rows, wanted, seed):
    table = SmallTable.of_rows(DOMAIN, rows)
    drawn = table.sample_codes(wanted, np.random.default_rng(seed))
    again = (
        SmallTable.of_rows(DOMAIN, zip(*(drawn[name] for name in DOMAIN.names), strict=True))
        if wanted
        else None
    )
    for codes, count in zip(table.codes, table.counts, strict=True):
        found = again.count(DOMAIN.names)[tuple(codes)] if again else 0
        assert abs(found - count * wanted / table.rows) < 1 + 1e-9


def test_what_is_no_table_is_refused():
    for codes, counts in (
        ([[0, 0, 5]], [1]),
        ([[0, -1, 0]], [1]),
        ([[0, 0]], [1]),
        ([[0, 0, 0]], [1, 1]),
        ([[0.0, 0.0, 0.0]], [1]),
    ):
        with pytest.raises(DomainError):
            SmallTable(DOMAIN, np.array(codes), np.array(counts))
    for counts in ([0], [-1], [0.5]):
        with pytest.raises(ParameterError):
            SmallTable(DOMAIN, np.array([[0, 0, 0]]), np.array(counts))
    other = Domain((Boolean(name="a"),))
    with pytest.raises(DomainError, match="another domain"):
        SmallTable.of_rows(DOMAIN, [(0, 0, 0)]).answer(LinearQuery.everyone(other))
    table = SmallTable.of_rows(DOMAIN, [(0, 0, 0)])
    with pytest.raises(ValueError, match="read-only"):
        table.counts[0] = 5
