"""Sampled rows: every row follows the model, and their marginals follow it more closely than chance would."""

from __future__ import annotations

import numpy as np
import pytest

from statistical import assert_does_not_follow, assert_follows
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.standin.graphical.model import GraphicalStandIn, LogFactor


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def chain(*sizes: int, seed: int = 0) -> GraphicalStandIn:
    domain, rng = domain_of(*sizes), np.random.default_rng(seed)
    cliques = [(f"a{i}", f"a{i + 1}") for i in range(len(sizes) - 1)]
    return GraphicalStandIn(
        domain, 1.0, tuple(LogFactor(c, rng.normal(size=domain.shape(c))) for c in cliques)
    )


def counted(model, rows, clique):
    shape = model.domain.shape(clique)
    flat = np.ravel_multi_index([rows[name].astype(np.int64) for name in clique], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize("rows", [0, 1, 17, 1000])
def test_rows_are_codes_of_every_attribute_in_domain_order(rows):
    model = chain(4, 300, 1, 2)
    drawn = model.sample_codes(rows, rng=np.random.default_rng(0))
    assert list(drawn) == list(model.domain.names)
    for name, codes in drawn.items():
        assert codes.shape == (rows,)
        assert (codes < model.domain[name].size).all()
    assert drawn["a1"].dtype == np.uint16
    assert drawn["a0"].dtype == np.uint8


def test_a_single_clique_is_rounded_up_or_down_cell_by_cell():
    model = chain(7, 9)
    rows = 1234
    counts = counted(model, model.sample_codes(rows, rng=np.random.default_rng(3)), ("a0", "a1"))
    expected = rows * model.project(("a0", "a1"))
    assert counts.sum() == rows
    assert np.abs(counts - expected).max() < 1


def test_every_clique_is_closer_to_the_model_than_independent_rows():
    model = chain(6, 5, 7, 4, 6)
    rows, rng = 20_000, np.random.default_rng(4)
    drawn = model.sample_codes(rows, rng=rng)
    for clique in model.cliques:
        rates = model.project(clique)
        by_chance = rng.multinomial(rows, rates.ravel()).reshape(rates.shape)
        ours = np.abs(counted(model, drawn, clique) - rows * rates)
        assert ours.sum() < 0.5 * np.abs(by_chance - rows * rates).sum()
        assert ours.max() < 6


def test_each_row_follows_the_model():
    """One row from each of many draws: systematic rounding is unbiased, also across cliques."""
    model = chain(2, 3, 2, seed=7)
    rng = np.random.default_rng(11)
    counts = np.zeros(model.domain.shape(), dtype=np.int64)
    for _ in range(20_000):
        drawn = model.sample_codes(1, rng=rng)
        counts[tuple(int(drawn[name][0]) for name in model.domain.names)] += 1
    law = model.project(model.domain.names)
    assert_follows(counts.ravel().tolist(), law.ravel().tolist())
    assert_does_not_follow(counts.ravel().tolist(), (0.8 * law + 0.2 / law.size).ravel().tolist())


def test_one_generator_state_gives_one_table():
    model = chain(4, 3, 5)
    first, second = (model.sample_codes(100, rng=np.random.default_rng(6)) for _ in range(2))
    assert all((first[name] == second[name]).all() for name in first)
