from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import e, exp

import numpy as np
import pytest

from understudy.errors import ParameterError
from understudy.lectures.monitor import choice_law, monitor
from understudy.noise.samplers import SeededNoise, bernoulli
from understudy_textbook.stability import privacy_curve, replace_neighbours

UNIVERSE = (0, 1)


def response(eps):
    """Randomised response: a sample of one bit names the query 'is it 1?' (1) or 'is it 0?' (0)."""
    return exp(eps) / (1 + exp(eps))


def law(epsilon, own):
    """The exact law of the Monitor on two samples of one bit: which query, of which run, negated or not."""

    def of(rows):
        found = {}
        for named in product(UNIVERSE, repeat=2):
            chance = 1.0
            for bit, query in zip(rows, named, strict=True):
                chance *= response(epsilon) if bit == query else 1 - response(epsilon)
            errors = np.array([float(bit == query) - 0.5 for bit, query in zip(rows, named, strict=True)])
            for place, share in enumerate(choice_law(errors, 1, own)):
                outcome = (named[place % 2], place % 2, place >= 2)
                found[outcome] = found.get(outcome, 0.0) + chance * float(share)
        return found

    return of


def test_lecture18_algorithm_2_is_as_private_as_it_says():
    """(ε + ε', 0) on a case that can be written down; and hardly less, so that the check has power."""
    curve = privacy_curve(law(1, 1), replace_neighbours(UNIVERSE, 2))
    assert curve.is_stable(2, Fraction(1, 10**9))
    assert not curve.is_stable(1, Fraction(1, 10**9))
    assert not privacy_curve(law(1, 4), replace_neighbours(UNIVERSE, 2)).is_stable(2, Fraction(1, 10**9))


def test_lecture18_algorithm_2_samples_its_law():
    counts = np.zeros(4)
    for seed in range(400):
        noise = SeededNoise(seed)
        sample = iter([np.array([1]), np.array([0])]).__next__
        found = monitor(
            lambda rows: lambda at: (at == 1).astype(float), sample, lambda query: 0.5,
            runs=2, epsilon=2, noise=noise,
        )  # fmt: skip
        counts[found.run + 2 * found.negated] += 1
        assert found.errors.tolist() == [0.5, -0.5]
    expected = choice_law(np.array([0.5, -0.5]), 1, 2)
    assert abs(counts / 400 - expected).max() < 0.15


ROWS = 20


def overfitter(draw):
    """Asks for the share of people who are in its own sample: it overfits by all there is."""
    return lambda rows: lambda at: np.isin(at, rows).astype(float)


def run(runs, procedure, seed):
    draw = np.random.default_rng(seed)
    size = 1000
    return monitor(
        procedure(draw), lambda: draw.integers(0, size, ROWS),
        lambda query: float(np.mean(query(np.arange(size)))), runs=runs, noise=SeededNoise(seed),
    )  # fmt: skip


def test_lecture18_claim_0_3():
    found = run(20, overfitter, 1)
    assert found.largest >= found.gain(0.5)
    assert found.exceeded(0.5) == 1
    assert found.gain(0.5) == pytest.approx(0.5)
    # over many monitors, the mean of S_max against α(1 - (1 - p_α)^T), p_α estimated from all runs
    noisy = [run(3, _random_query, seed) for seed in range(200)]
    alpha = 0.12
    p = np.mean([each.exceeded(alpha) for each in noisy])
    assert np.mean([each.largest for each in noisy]) >= alpha * (1 - (1 - p) ** 3) - 0.02


def _random_query(draw):
    def procedure(rows):
        table = draw.random(1000)
        return lambda at: table[at]

    return procedure


def test_lecture18_lemma_0_4():
    """A private procedure's chosen query is off by at most e^ε - 1 on average; an overfitter's is not."""

    def private(draw):
        def procedure(rows):
            said = int(bernoulli(Fraction(1, 4), 1, noise=SeededNoise(int(draw.integers(2**31))))[0])
            half = (int(np.mean(rows) > 500) + said) % 2
            return lambda at: ((at > 500) == half).astype(float)

        return procedure

    chosen = [run(5, private, seed).chosen for seed in range(200)]
    ceiling = run(5, private, 0).ceiling(np.log(3) + 1)
    assert np.mean(chosen) <= ceiling == pytest.approx(3 * e - 1)
    # the lemma at a small ε is broken by the overfitter, which is not private at all
    assert np.mean([run(5, overfitter, seed).chosen for seed in range(20)]) > run(5, overfitter, 0).ceiling(
        0.5
    )


def test_bad_samples_are_refused():
    with pytest.raises(ParameterError, match="at least one"):
        run(0, overfitter, 0)
    sizes = iter([3, 4])
    with pytest.raises(ParameterError, match="same number"):
        monitor(lambda rows: lambda at: at * 0.0, lambda: np.zeros(next(sizes)), lambda query: 0.0, runs=2)
    with pytest.raises(ParameterError, match="one number"):
        monitor(lambda rows: lambda at: np.zeros((2, 2)), lambda: np.zeros(2), lambda query: 0.0, runs=1)
