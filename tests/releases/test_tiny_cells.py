"""Cells that are more likely empty than not are told as empty, and sums stay as near as noise leaves them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_table import make, mean_tvd
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.workload import Workload
from understudy.releases.adaptive import adaptive as release
from understudy.releases.adaptive import tiny_cells
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.tiny_cells import LOST, TINY, with_tiny_cells_empty

SIZES = (12, 10, 9, 8)
DOMAIN = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate(SIZES)))
TRIPLES = Workload.all_marginals(DOMAIN, 3)
BETA = Fraction(1, 10**9)
"""All bars of a release hold but with this probability."""


def drawn(seed: int, shape: tuple[int, ...] = (7, 6, 5), shape_of_law: float = 0.3) -> np.ndarray:
    return np.random.default_rng(seed).gamma(shape_of_law, 3.0, shape)


def sums(table: np.ndarray, axis: int) -> np.ndarray:
    return table.sum(axis=tuple(i for i in range(table.ndim) if i != axis))


@given(st.integers(0, 10**6), st.floats(0, 20))
def test_no_value_loses_more_than_noise_hides_and_the_rows_stay(seed: int, noise: float):
    table = drawn(seed)
    told = with_tiny_cells_empty(table, noise)
    assert told.sum() == pytest.approx(table.sum())
    emptied = (told == 0) & (table > 0)
    assert (table[emptied] < TINY).all()
    for axis in range(3):
        assert (sums(np.where(emptied, table, 0.0), axis) <= LOST * noise * (1 + 1e-9)).all()
    kept = table[~emptied]
    np.testing.assert_allclose(told[~emptied], kept * table.sum() / kept.sum())


@given(st.integers(0, 10**6), st.floats(0.1, 20))
def test_no_cell_is_left_that_could_be_emptied_too(seed: int, noise: float):
    """The least are emptied first, and none is passed over that all of its values could still lose."""
    table = drawn(seed)
    emptied = with_tiny_cells_empty(table, noise) == 0
    lost = [sums(np.where(emptied, table, 0.0), axis) for axis in range(3)]
    for cell in np.argwhere((table < TINY) & ~emptied):
        count = table[tuple(cell)]
        assert any(lost[axis][cell[axis]] + count > LOST * noise * (1 - 1e-9) for axis in range(3))


def test_all_tiny_cells_are_emptied_where_noise_hides_it_and_none_without_noise():
    table = drawn(1)
    assert (with_tiny_cells_empty(table, 1e6) == 0).sum() == (table < TINY).sum() > 0
    np.testing.assert_array_equal(with_tiny_cells_empty(table, 0.0), table)


@pytest.mark.parametrize("shape", [(4,), (6, 5)])
def test_columns_and_pairs_stay_as_they_are(shape: tuple[int, ...]):
    table = drawn(2, shape)
    assert with_tiny_cells_empty(table, 1e6) is table


def test_a_table_of_tiny_cells_alone_stays_as_it_is():
    table = np.full((3, 3, 3), 0.1)
    np.testing.assert_array_equal(with_tiny_cells_empty(table, 1e6), table)


def test_whole_people_are_nearer_to_their_median_than_to_their_mean():
    """Poisson counts whose means are known: half the L1 distance from what is told."""
    means = drawn(3, (20, 20, 20), 0.1)
    counts = np.random.default_rng(4).poisson(means)
    told = with_tiny_cells_empty(means, 100.0)
    assert np.abs(told - counts).sum() < 0.95 * np.abs(means - counts).sum()


def rare(seed: int, rows: int = 8000) -> np.ndarray:
    """Columns with a few common values and many rare ones, which all follow a hidden number."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    return np.stack([(n * (0.6 * hidden + 0.4 * rng.random(rows)) ** 3).astype(np.int64) for n in SIZES])


@pytest.mark.parametrize("epsilon", [1, 10])
def test_answers_of_a_release_are_nearer_and_their_bars_hold(monkeypatch: pytest.MonkeyPatch, epsilon: int):
    def judged() -> tuple[float, dict]:
        distances, columns = [], {}
        for seed in range(4):
            table = rare(seed)
            run = make(table=table, domain=DOMAIN, workload=TRIPLES, epsilon=epsilon, seed=seed, beta=BETA)
            outcome = adaptive(run)
            distances.append(mean_tvd(run, outcome))
            for answer in (*outcome.answers, *outcome.also):
                exact = run.curator._truth.count(answer.clique)
                assert (np.abs(exact - answer.counts) <= answer.error + 1e-9).all()
            columns[seed] = {a.clique: a.counts for a in outcome.also}
        return float(np.mean(distances)), columns

    found, beside = judged()
    monkeypatch.setattr(release, "with_tiny_cells_empty", lambda table, _: table)
    before, as_they_were = judged()
    assert found < 0.998 * before
    for seed, told in beside.items():  # what is told beside the workload is the same
        for clique, counts in told.items():
            np.testing.assert_allclose(counts, as_they_were[seed][clique], rtol=1e-9, atol=1e-6)


def test_without_a_limit_sums_would_be_farther_from_the_truth(monkeypatch: pytest.MonkeyPatch):
    """Of rare values: emptying every tiny cell would leave some of them without anybody."""
    rates = 0.5 ** np.arange(12.0)
    means = 3 * np.broadcast_to(rates[:, None, None], (12, 12, 12))

    held = sums(means, 0)
    rare = (held > 10) & (held < 100)

    def off(told: np.ndarray) -> float:
        return float(np.abs(sums(told, 0) - held)[rare].max())

    assert off(with_tiny_cells_empty(means, 4.0)) < 4.0
    monkeypatch.setattr(tiny_cells, "LOST", np.inf)
    assert off(with_tiny_cells_empty(means, 4.0)) > 25
