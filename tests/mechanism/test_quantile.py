"""Quantiles of measures by the exponential mechanism: the law, its privacy and its ends, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from statistical import FALSE_ALARM, assert_at_most, assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.mechanism.quantile import QuantileMechanism, quantile_sensitivity, shift_for
from understudy.noise.samplers import SeededNoise
from understudy.privacy.relation import Neighbours, Relation

REPLACE, ADD = Relation(Neighbours.REPLACE), Relation(Neighbours.ADD_REMOVE)
LEVELS = [Fraction(1, 2), Fraction(9, 10), Fraction(0), Fraction(1, 4)]
STEPS = 4


def cell(steps) -> tuple[np.ndarray, np.ndarray]:
    values, counts = np.unique(np.array(steps, np.int64), return_counts=True)
    return values, counts.astype(np.int64)


def made(
    level=Fraction(1, 2), side="low", *, epsilon=Fraction(1), relation=ADD, whole=True, shift=3, steps=STEPS
):
    moved = quantile_sensitivity(level, relation, one_cell_of_all=whole).l1
    return QuantileMechanism(
        epsilon=epsilon, sensitivity=moved, level=level, side=side, steps=steps,
        shift=0 if side == "point" else shift,
    )  # fmt: skip


def by_hand(mechanism: QuantileMechanism, rows: list[int]) -> np.ndarray:
    """The loss of every step, from its definition."""
    a, b, shift = mechanism.level.numerator, mechanism.level.denominator, mechanism.shift
    held = [*rows, *[0 if mechanism.side == "low" else mechanism.steps] * shift]
    target = a * len(rows) + (b * shift if mechanism.side == "high" else 0)
    return np.array(
        [
            max(b * sum(r < k for r in held) - target, target - b * sum(r <= k for r in held), 0)
            for k in range(mechanism.steps + 1)
        ]
    )


@pytest.mark.parametrize("side", ["low", "point", "high"])
@pytest.mark.parametrize("level", LEVELS)
def test_steps_of_equal_loss_are_one_candidate(level, side):
    for rows in ([], [0], [4], [1, 1, 3], [0, 2, 2, 4, 4], [3] * 7):
        mechanism = made(level, side)
        losses, sizes, firsts = mechanism.losses(*cell(rows))
        assert np.repeat(losses, sizes).tolist() == by_hand(mechanism, rows).tolist()
        assert firsts.tolist() == [0, *np.cumsum(sizes)[:-1].tolist()]
        assert (
            min(by_hand(mechanism, rows)) == 0
        )  # so that the regret of the mechanism bounds the loss itself


def largest_ratio(mechanism: QuantileMechanism, pairs) -> float:
    """The largest total log-ratio between neighbours, over all that can be drawn of all cells."""
    worst = 0.0
    for one, other in pairs:
        total = 0.0
        for rows, changed in zip(one, other, strict=True):
            gap = mechanism.log_law(*cell(rows)) - mechanism.log_law(*cell(changed))
            total += float(np.abs(gap).max())
        worst = max(worst, total)
    return worst


TABLES = [list(rows) for size in range(4) for rows in product(range(STEPS + 1), repeat=size)][::3]


def added():
    return [([rows], [[*rows, new]]) for rows in TABLES for new in range(STEPS + 1)]


def replaced_within():
    return [([[*rows, old]], [[*rows, new]]) for rows in TABLES for old in (0, 2, 4) for new in (0, 1, 4)]


def replaced_across():
    return [([[*rows, old], []], [rows, [new]]) for rows in TABLES for old in (0, 2, 4) for new in (0, 1, 4)]


@pytest.mark.parametrize("side", ["low", "point", "high"])
@pytest.mark.parametrize("level", LEVELS)
def test_dworkroth14_theorem_3_10_for_quantiles(level, side):
    """ε-DP for every pair of neighbours, all cells together: on the law."""
    epsilon = Fraction(1)
    slack = 1e-9
    assert largest_ratio(made(level, side, relation=ADD), added()) <= epsilon + slack
    assert largest_ratio(made(level, side, relation=REPLACE), replaced_within()) <= epsilon + slack
    apart = made(level, side, relation=REPLACE, whole=False)
    assert largest_ratio(apart, [*replaced_within(), *replaced_across()]) <= epsilon + slack


def test_a_sensitivity_for_one_cell_only_is_caught():
    """A mutant: a replaced row that changes its cell, charged as if it stayed."""
    level = Fraction(9, 10)
    large = [
        ([[*one, old], other], [one, [*other, new]])
        for one, other in product(([4] * 20, [0] * 20, [1] * 20), repeat=2)
        for old, new in product(range(STEPS + 1), repeat=2)
    ]
    assert largest_ratio(made(level, "point", relation=REPLACE, whole=True), large) > 1
    assert largest_ratio(made(level, "point", relation=REPLACE, whole=False), large) <= 1 + 1e-9


def test_a_sensitivity_that_forgets_the_number_of_rows_is_caught():
    """A mutant: the target pn taken as fixed, for a level of which it is not the smaller part."""
    level = Fraction(1, 10)
    honest = made(level)
    mutant = QuantileMechanism(
        epsilon=Fraction(1),
        sensitivity=honest.sensitivity // 3,
        level=level,
        side="low",
        steps=STEPS,
        shift=3,
    )
    assert largest_ratio(honest, added()) <= 1 + 1e-9
    assert largest_ratio(mutant, added()) > 1


def test_draws_follow_the_law_and_not_another():
    rows, noise = [1, 1, 3, 4], SeededNoise(4)
    mechanism, other = made(Fraction(1, 2), "high", shift=2), made(Fraction(1, 2), "low", shift=2)
    drawn = np.bincount([mechanism.draw(*cell(rows), noise=noise) for _ in range(3_000)], minlength=STEPS + 1)
    assert_follows(drawn.tolist(), np.exp(mechanism.log_law(*cell(rows))).tolist())
    assert_does_not_follow(drawn.tolist(), np.exp(other.log_law(*cell(rows))).tolist())


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10)])
def test_lecture_18_theorem_0_1_for_the_ends_of_a_quantile(level):
    """Both ends on their sides of every value that a quantile may be, with probability 1 - β each: on the law."""
    beta, steps, epsilon = Fraction(1, 5), 60, Fraction(1, 2)
    moved = quantile_sensitivity(level, ADD, one_cell_of_all=True).l1
    shift = shift_for(epsilon, moved, level, steps=steps, cells=1, beta=beta)
    draw = np.random.default_rng(2)
    for size in (0, 1, 5, 60, 400):
        rows = np.sort(draw.integers(0, steps + 1, size))
        n = len(rows)
        for side in ("low", "high"):
            mechanism = QuantileMechanism(
                epsilon=epsilon, sensitivity=moved, level=level, side=side, steps=steps, shift=shift
            )
            law = np.exp(mechanism.log_law(*cell(rows)))
            if not n:
                continue
            rank = float(level) * (n - 1)
            least, most = rows[int(np.floor(rank))], rows[int(np.ceil(rank))]
            places = np.arange(steps + 1)
            right = places <= least if side == "low" else places >= most
            assert law[right].sum() >= 1 - float(beta) - FALSE_ALARM


def test_without_the_shift_the_ends_fail():
    """A mutant: ends drawn at the quantile itself are beyond it half of the time."""
    rows, noise, failures = list(range(61)), SeededNoise(1), 0
    mechanism = made(Fraction(1, 2), "low", epsilon=Fraction(1, 2), shift=0, steps=60)
    for _ in range(100):
        failures += mechanism.draw(*cell(rows), noise=noise) > 30
    with pytest.raises(AssertionError):
        assert_at_most(failures, 100, 0.05)


@pytest.mark.parametrize(
    "wrong", [{"level": Fraction(2)}, {"sensitivity": 0}, {"steps": 0}, {"shift": -1}, {"epsilon": Fraction(0)},
              {"side": "point"}],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong):
    usual = {
        "epsilon": Fraction(1), "sensitivity": 1, "level": Fraction(1, 2), "side": "low", "steps": 4, "shift": 2
    }  # fmt: skip
    with pytest.raises(ParameterError):
        QuantileMechanism(**(usual | wrong))


def test_losses_that_would_not_fit_are_refused_before_anything_is_paid():
    with pytest.raises(ParameterError, match="beyond all rows"):
        QuantileMechanism(
            epsilon=Fraction(1, 10**12),
            sensitivity=10**6,
            level=Fraction(1237, 10_000),
            side="low",
            steps=100,
            shift=2 * 10**15,
        )
