"""Blum and Hardt's ladder: the tree of all that it can say, walked; and the parameter-free one, step by step."""

from __future__ import annotations

from functools import cache
from math import exp, log
from statistics import mean, stdev

import numpy as np
import pytest

from understudy.noise.samplers import SeededNoise
from understudy.theory.guess_and_check import log_tree_queries
from understudy.theory.ladder import _log_queries
from understudy.validity.ladder import FreeLadder, Ladder
from understudy.validity.modes import Heard, SealedLook


def walked(ladder: Ladder) -> int:
    """Queries that can come after anything that it can say, of any scores on its rows: every one is walked to."""
    losses = [i / ladder.rows for i in range(ladder.rows + 1)]

    @cache
    def queries(best: float, rounds: int) -> int:
        if rounds == 0:
            return 0
        heard = Heard(best=best)
        told = {
            ladder.say(SealedLook.at(1 - loss, ladder.rows), heard, noise=SeededNoise(0))["best"]
            for loss in losses
        }
        return 1 + sum(queries(best if value is None else value, rounds - 1) for value in told)

    return queries(1.0, ladder.queries)


@pytest.mark.parametrize(("rows", "k"), [(10, 1), (10, 6), (30, 4), (100, 3), (200, 4)])
def test_blumhardt15_theorem_3_1_counts_all_that_a_ladder_says(rows, k):
    """2·queries ≤ exp((1/η + 2) ln(4k/η) + 1): Hoeffding's inequality on each of them is the theorem."""
    ladder = Ladder(rows, k, 0.05)
    found, grid = walked(ladder), int(1 / ladder.eta) + 1
    published = (1 / ladder.eta + 2) * log(4 * k / ladder.eta) + 1
    assert log(2 * found) <= published
    assert found <= exp(_log_queries(k, grid)) * (1 + 1e-9)  # the exact tree is smaller, and large enough


def test_blumhardt15_theorem_3_1_does_not_count_a_board_that_tells_every_score():
    """Of G values in each of k rounds: more than the theorem allows for, already in some fifty rounds."""
    eta, k = 0.1, 50
    published = (1 / eta + 2) * log(4 * k / eta) + 1
    assert log(2) + log_tree_queries(k, k, 11) > published


def test_blumhardt15_the_free_ladder_tells_what_beats_the_standard_error():
    """A loss below the best by more than std(l - l_best)/sqrt(n), rounded to 1/n; the first is always told."""
    n, draw = 60, np.random.default_rng(0)
    ladder, heard = FreeLadder(n, 400, 0.05), Heard()
    best: list[float] = []
    told, lower = 0, 0
    right = draw.integers(0, 2, n)
    for _ in range(400):
        values = right.copy()
        flips = draw.integers(0, n, 3)
        values[flips] = 1 - values[flips]
        losses = [1.0 - v for v in values]
        step = ladder.say(SealedLook.of(values.astype(float), 1), heard, noise=SeededNoise(0))
        ladder.read(step, heard)
        differences = [a - b for a, b in zip(losses, best, strict=True)] if best else []
        beats = not best or mean(losses) < mean(best) - stdev(differences) / n**0.5
        assert (step["best"] is not None) == beats
        if beats:
            assert step["best"] == pytest.approx(mean(losses), abs=1e-12)
            best, right, told = losses, values, told + 1
        else:
            lower += mean(losses) < mean(best)
    assert told >= 5
    assert lower > 5  # a board without the standard error would have told these
