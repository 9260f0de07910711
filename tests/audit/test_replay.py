"""Recorded runs on neighbouring tables: the same control flow, and values no further apart than declared."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest

from understudy.audit.coins import (
    OutOfCoinsError,
    RecordingNoise,
    ReplayedNoise,
    exact_choice_law,
    largest_ratio,
)
from understudy.audit.composite import AB, CELLS, DOMAIN, WORKLOAD, A, Composite, composites
from understudy.audit.neighbours import Setting, table_pairs
from understudy.audit.replay import control_flow, perform, sensitivities
from understudy.curator import Candidate
from understudy.errors import InsufficientBudgetError
from understudy.mechanism.gap import Guess, WorstGuess
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.releases.residual import planned
from understudy.releases.run import Run

FULL = bool(os.environ.get("UNDERSTUDY_AUDIT"))
PAIRS = 100_000 if FULL else 400
SETTINGS = [
    Setting(Budget.of(8), kind, rows_at_least=1, rows_at_most=4096)
    for kind in (Neighbours.REPLACE, Neighbours.ADD_REMOVE)
]


@pytest.mark.parametrize("composite", composites(), ids=lambda composite: composite.name)
def test_what_an_analyst_sees_is_the_same_on_neighbours(composite: Composite):
    slow = composite.name.startswith(("mwem", "ic", "session", "adaptive", "residual", "online"))
    for pair in composite.tables(30 if FULL else 2 if slow else 6):
        noise = SeededNoise(5)
        flow = control_flow(composite.setting, pair.first, pair.second, composite.act, noise=noise)
        assert flow == [], pair.name
        moved, _ = sensitivities(composite.setting, pair.first, pair.second, composite.act, noise=noise)
        assert moved == [], pair.name


def random_marginal(draw: np.random.Generator) -> Marginal:
    by = tuple(name for name in DOMAIN.names if draw.random() < 0.5)
    where = {
        name: draw.choice([0.0, 1.0, 1.0, draw.random()], DOMAIN[name].size)
        for name in DOMAIN.names
        if name not in by and draw.random() < 0.7
    }
    return Marginal(DOMAIN, by, LinearQuery.conjunction(DOMAIN, where))


def random_pair(draw: np.random.Generator, kind: Neighbours):
    rows = [
        tuple(int(draw.integers(size)) for size in DOMAIN.shape()) for _ in range(int(draw.integers(1, 9)))
    ]
    if kind is Neighbours.ADD_REMOVE:
        return tuple(rows), tuple(rows[1:] or rows)
    other = tuple(int(draw.integers(size)) for size in DOMAIN.shape())
    return tuple(rows), (other, *rows[1:])


def test_every_value_that_meets_noise_is_within_its_declared_sensitivity():
    """Random marginals, weights and neighbours.

    Random tables are counted here and now, so that their number is not bounded by the time to open one.
    """
    draw = np.random.default_rng(8)
    compared = 0
    for i in range(PAIRS):
        setting = SETTINGS[i % 2]
        first, second = random_pair(draw, setting.neighbours)
        marginals = [random_marginal(draw) for _ in range(2)]
        counts = [[_sums(marginal, rows) for marginal in marginals] for rows in (first, second)]
        for marginal, one, two in zip(marginals, *counts, strict=True):
            compared += 1
            resolution = 1 if marginal.where.is_counting else 1 << 12
            moved = np.rint((two - one) * resolution).astype(np.int64)
            bound = setting.curator(((0, 0),), noise=SeededNoise(1)).sensitivity(marginal, resolution)
            # Weights are rounded row by row, so each of two rows may be off by half a step.
            slack = 0 if resolution == 1 else 2
            assert np.abs(moved).sum() <= bound.l1 + slack
            assert (moved**2).sum() <= (np.sqrt(bound.l2_squared) + slack) ** 2
    assert compared == 2 * PAIRS


def _sums(marginal: Marginal, rows) -> np.ndarray:
    total = np.zeros(marginal.shape or (1,))
    for row in rows:
        codes = dict(zip(DOMAIN.names, row, strict=True))
        weight = 1.0
        for factor in marginal.where.factors:
            weight *= float(factor.weights[tuple(codes[name] for name in factor.clique)])
        total[tuple(codes[name] for name in marginal.by) or (0,)] += weight
    return total


def test_releases_on_the_same_coins_differ_by_what_the_tables_differ():
    setting = SETTINGS[0]
    found = 0
    for pair in table_pairs(Neighbours.REPLACE, rows=9):
        differences, compared = sensitivities(
            setting,
            pair.first,
            pair.second,
            lambda c: c.measure_all([A, AB], epsilon=1),
            noise=SeededNoise(3),
        )
        assert differences == []
        found += compared
    assert found == 60


def test_residuals_move_by_no_more_than_their_joint_price():
    """Each part is measured in units of its own noise: Σ t·‖moved‖² is at most what the event says."""
    setting = Setting(Budget.of(1, 1e-6), rows_at_least=1, rows_at_most=4096)
    worst = Fraction(0)
    for pair in table_pairs(Neighbours.REPLACE, rows=12):
        curators = [setting.curator(rows, noise=SeededNoise(1)) for rows in (pair.first, pair.second)]
        found = planned(Run(curators[0], WORKLOAD, setting.budget, "r"))
        assert found is not None
        _, look = found
        tables = [dict(zip([m.by for m in look.marginals], c._truth.sums_of(look.marginals), strict=True))
                  for c in curators]  # fmt: skip
        moved = Fraction(0)
        for part in look.parts:
            holder = next(by for by in tables[0] if set(part.clique) <= set(by))
            dropped = tuple(i for i, name in enumerate(holder) if name not in part.clique)
            one, two = (look.combine(part, table[holder].sum(axis=dropped)) for table in tables)
            moved += part.precision * int(((one - two) ** 2).sum())
        assert moved <= look.event.l2_squared
        worst = max(worst, moved)
    assert worst > look.event.l2_squared * Fraction(9, 10)


SELECTIONS = {
    "worst query": lambda kind: WorstQuery(QueryClass(DOMAIN, (AB,)), np.full(6, 2.0), Fraction(1), kind),
    "worst guess": lambda kind: WorstGuess(
        (Guess(A, np.array([6, 6])), Guess(AB, np.full((2, 3), 2), weight=Fraction(1, 2))), Fraction(1), kind
    ),
}


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.neighbours.value)
def test_selections_on_neighbouring_tables_keep_their_price_exactly(name, setting):
    """From the rows to the choice, by bisection of the coin: whatever the scores are and however they move."""
    worst = 0.0
    for pair in table_pairs(setting.neighbours, rows=12):
        laws = []
        for rows in (pair.first, pair.second):
            look = SELECTIONS[name](setting.neighbours)
            counts = setting.curator(rows, noise=SeededNoise(1))._truth.sums_of(look.marginals)
            size = 6 if name == "worst query" else 2
            laws.append(exact_choice_law(lambda noise, k=look, c=counts: k.release(c, noise=noise), size))
        worst = max(worst, largest_ratio(*laws))
    assert 0.15 < worst <= 1 + 1e-9


def test_the_curators_own_choice_keeps_its_price_exactly():
    setting = SETTINGS[0]
    candidates = [Candidate(query, Fraction(2)) for query in CELLS]
    for pair in list(table_pairs(Neighbours.REPLACE, rows=12))[:4]:
        laws = [
            exact_choice_law(
                lambda noise, rows=rows: setting.curator(rows, noise=noise).choose(candidates, epsilon=1), 6
            )
            for rows in (pair.first, pair.second)
        ]
        assert largest_ratio(*laws) <= 1 + 1e-9


def test_a_forced_replay_follows_the_script():
    setting = SETTINGS[0]
    first, second = ((0, 0),) * 9, (*((0, 0),) * 8, (1, 2))

    def act(curator):
        handle = curator.sparse(threshold=3, epsilon=1, hits=2)
        asked = [handle.ask(query) for query in (CELLS[0], CELLS[5]) if handle.hits_left]
        return [*asked, curator.measure(AB, epsilon=1).noisy.tolist()]

    one = perform(setting, first, act, SeededNoise(1))
    two = perform(setting, second, act, SeededNoise(2), script=one)
    assert one.calls == two.calls
    assert one.settled == two.settled
    assert one.advanced == two.advanced


def test_refusals_are_part_of_what_is_seen():
    def greedy(curator):
        for _ in range(20):
            curator.measure(A, epsilon=1)

    setting = SETTINGS[0]
    run = perform(setting, ((0, 0),) * 4, greedy, SeededNoise(1))
    assert InsufficientBudgetError.__name__ in run.ending
    assert control_flow(setting, ((0, 0),) * 4, ((0, 0),) * 3 + ((1, 1),), greedy, noise=SeededNoise(1)) == []


def test_replayed_coins_are_the_recorded_ones():
    tape = RecordingNoise(SeededNoise(4))
    words = np.concatenate([tape.words(3), tape.words(2)])
    again = ReplayedNoise(tape.kept)
    assert (again.words(4) == words[:4]).all()
    assert (tape.calls, again.left) == ((3, 2), 1)
    with pytest.raises(OutOfCoinsError):
        again.words(2)
    assert ReplayedNoise(tape.kept, beyond=SeededNoise(1)).words(8).size == 8


def test_pairs_of_tables_are_neighbours():
    for kind in Neighbours:
        for pair in table_pairs(kind, rows=12):
            differ = sum(a != b for a, b in zip(sorted(pair.first), sorted(pair.second), strict=False))
            sizes = len(pair.first) - len(pair.second)
            assert (sizes == 0 and differ >= 1) if kind is Neighbours.REPLACE else sizes == 1
