"""Lecture 18, statement by statement; the Monitor by exact enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, expm1, inf, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from understudy.errors import ParameterError
from understudy_textbook.lecture18 import (
    em_error,
    em_error_log,
    em_expected_error,
    expectation_bound,
    indistinguishable,
    monitor_ceiling,
    monitor_excess,
    monitor_gain,
    monitor_loss,
    monitor_privacy,
    monitor_rounds,
    seed_transfer,
    seed_transfer_adaptive,
    seed_transfer_printed,
)

betas = st.floats(1e-9, 0.9)


# The exponential mechanism ----------------------------------------------------------------------------------


def test_lecture18_theorem_0_1():
    assert em_error(1e-3, 1, 100, 0.05) == pytest.approx(0.015201804919084164, rel=1e-12)
    assert em_error(1e-3, 1, 10**400, 0.05) == pytest.approx(em_error_log(1e-3, 1, 400 * log(10), 0.05))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.1, 200), betas)
def test_lecture18_theorem_0_1_on_the_exact_law(scores, eps, beta):
    values = np.array(scores)
    law = np.exp(eps / 2 * (values - values.max()))  # Δ = 1
    law /= law.sum()
    short = values.max() - em_error(1, eps, len(values), beta)
    assert law[values <= short - 1e-12].sum() <= beta * (1 + 1e-9)
    assert values.max() - values @ law <= em_expected_error(1, eps, len(values)) + 1e-12


def test_lecture18_theorem_0_1_check_has_power():
    """k - 1 bad candidates against one good: half of the bound is passed with a probability far above β."""
    k, eps, beta = 1000, 1.0, 0.01
    gap = em_error(1, eps, k, beta) / 2
    law = np.exp(-eps / 2 * np.array([0.0] + [gap] * (k - 1)))
    assert 1 - law[0] / law.sum() > beta
    gap = em_error(1, eps, k, beta)
    law = np.exp(-eps / 2 * np.array([0.0] + [gap] * (k - 1)))
    assert 0.9 * beta < 1 - law[0] / law.sum() <= beta


@given(st.floats(1e-6, 1), st.floats(0.01, 10), st.integers(2, 10**9), betas)
def test_the_error_is_monotone(Delta, eps, Y, beta):
    error = em_error(Delta, eps, Y, beta)
    assert em_error(2 * Delta, eps, Y, beta) >= error
    assert em_error(Delta, 2 * eps, Y, beta) <= error
    assert em_error(Delta, eps, 2 * Y, beta) >= error
    assert em_error(Delta, eps, Y, beta / 2) >= error
    assert em_expected_error(Delta, eps, Y) <= error


# Indistinguishability ---------------------------------------------------------------------------------------


def brute_force(first: dict, second: dict, ratio: Fraction, delta: Fraction) -> bool:
    outcomes = sorted({*first, *second})
    for bits in product((0, 1), repeat=len(outcomes)):
        event = [o for o, bit in zip(outcomes, bits, strict=True) if bit]
        p, q = (sum((law.get(o, Fraction(0)) for o in event), Fraction(0)) for law in (first, second))
        if p > ratio * q + delta or q > ratio * p + delta:
            return False
    return True


weights = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)


def as_law(counts: list[int]) -> dict[int, Fraction]:
    return {i: Fraction(count, sum(counts)) for i, count in enumerate(counts) if count}


@given(weights, weights, st.sampled_from([1, 2, 3]), st.fractions(0, 1))
def test_lecture18_definition_0_5(first, second, ratio, delta):
    """Every event in both directions; ε is nudged, since ln 2 and ln 3 are no rationals."""
    X, Y = as_law(first), as_law(second)
    below, above = Fraction(ratio) * (1 - Fraction(1, 10**9)), Fraction(ratio) * (1 + Fraction(1, 10**9))
    assume(brute_force(X, Y, below, delta) == brute_force(X, Y, above, delta))
    assert indistinguishable(X, Y, log(ratio), delta) == brute_force(X, Y, Fraction(ratio), delta)
    assert indistinguishable(X, Y, log(ratio), delta) == indistinguishable(Y, X, log(ratio), delta)


def test_lecture18_definition_0_5_needs_both_directions():
    """X is covered by Y, Y is not by X: one direction alone would pass."""
    X, Y = {"a": Fraction(1)}, {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert all(p <= 2 * Y.get(o, 0) for o, p in X.items())
    assert not indistinguishable(X, Y, log(2), 0)
    assert indistinguishable(X, Y, log(2), Fraction(1, 2))


@given(weights, weights, st.lists(st.fractions(0, 1), min_size=4, max_size=4), st.sampled_from([0, 0.5, 1]))
def test_lecture18_lemma_0_6(first, second, values, eps):
    """With the least δ at which the laws are indistinguishable."""
    X, Y = as_law(first), as_law(second)
    delta = max(
        sum(
            (float(p) - exp(eps) * float(Y.get(o, 0)) for o, p in X.items() if p > exp(eps) * Y.get(o, 0)),
            0.0,
        ),
        sum(
            (float(q) - exp(eps) * float(X.get(o, 0)) for o, q in Y.items() if q > exp(eps) * X.get(o, 0)),
            0.0,
        ),
    )
    mean = [float(sum(law.get(i, 0) * value for i, value in enumerate(values))) for law in (X, Y)]
    assert mean[0] <= expectation_bound(min(mean[1], 1.0), eps, delta) + 1e-12
    assert mean[1] <= expectation_bound(min(mean[0], 1.0), eps, delta) + 1e-12


def test_lecture18_lemma_0_6_printed_identity_is_that_of_one_minus_f():
    """∫Pr[f ≤ z]dz over [0, 1] is 1 - E f, not E f; ∫Pr[f ≥ z]dz is E f."""
    f, law = np.array([0.1, 0.4, 0.9]), np.array([0.2, 0.5, 0.3])
    z = (np.arange(10_000) + 0.5) / 10_000
    below = (law * (f[:, None] <= z).T).sum(axis=1).mean()
    above = (law * (f[:, None] >= z).T).sum(axis=1).mean()
    assert above == pytest.approx(f @ law, abs=1e-3)
    assert below == pytest.approx(1 - f @ law, abs=1e-3)


# The Monitor ------------------------------------------------------------------------------------------------

# Three values, two rows in each of T = 2 samples. The mechanism names the value that is most over-represented in
# its sample, by randomised response: a small overfitter, whose law can be written down.
UNIVERSE, POPULATION, ROWS, ROUNDS = (0, 1, 2), (0.5, 0.3, 0.2), 2, 2
QUERIES = (*np.eye(3), *(1 - np.eye(3)))  # query q is answered by QUERIES[q]; q and q ± 3 are complements


def generalisation_error(query: int, sample: tuple[int, ...]) -> float:
    answers = QUERIES[query]
    return float(np.mean([answers[x] for x in sample]) - answers @ np.array(POPULATION))


def mechanism(sample: tuple[int, ...], eps: float) -> dict[int, float]:
    """ε-DP: whatever the truth is, another report is at most e^ε times less likely."""
    truth = max(range(3), key=lambda q: generalisation_error(q, sample))
    return {q: exp(eps * (q == truth)) / (exp(eps) + 2) for q in range(3)}


def monitor_runs(eps: float, eps_prime: float):
    """(probability, samples, what is offered, its scores, the Monitor's law) of everything that can happen."""
    for drawn in product(UNIVERSE, repeat=ROWS * ROUNDS):
        chance = float(np.prod([POPULATION[x] for x in drawn]))
        samples = tuple(drawn[t * ROWS : (t + 1) * ROWS] for t in range(ROUNDS))
        laws = [mechanism(sample, eps) for sample in samples]
        for queries in product(range(3), repeat=ROUNDS):
            likely = chance * float(np.prod([law[q] for law, q in zip(laws, queries, strict=True)]))
            offered = [(t, q) for t in range(ROUNDS) for q in (queries[t], queries[t] + 3)]
            scores = np.array([generalisation_error(q, samples[t]) for t, q in offered])
            law = np.exp(eps_prime * ROWS / 2 * scores)
            yield likely, samples, offered, scores, law / law.sum()


@pytest.mark.parametrize("eps", [0.2, 1.0, 3.0])
def test_lecture18_claim_0_3(eps):
    largest = sum(drawn * scores.max() for drawn, _, _, scores, _ in monitor_runs(eps, eps))
    for alpha in (0.1, 1 / 3, 2 / 3):
        p = sum(
            POPULATION[a] * POPULATION[b] * chance
            for a, b in product(UNIVERSE, repeat=2)
            for q, chance in mechanism((a, b), eps).items()
            if abs(generalisation_error(q, (a, b))) >= alpha - 1e-12
        )
        assert largest >= monitor_gain(alpha, min(p, 1.0), ROUNDS) - 1e-12
    # As sharp as it can be: an error that always happens.
    assert monitor_gain(0.25, 1, 7) == 0.25


@pytest.mark.parametrize("eps", [0.2, 1.0, 3.0])
def test_lecture18_lemma_0_4(eps):
    """The Monitor is (2ε, 0)-DP; its expected error is below e^{2ε} - 1 and above gain less loss."""
    total, delta = monitor_privacy(eps, eps, 0)
    runs = list(monitor_runs(eps, eps))
    error = sum(drawn * (scores @ law) for drawn, _, _, scores, law in runs)
    best = sum(drawn * scores.max() for drawn, _, _, scores, _ in runs)
    assert sum(drawn for drawn, *_ in runs) == pytest.approx(1)
    assert 0 < error <= monitor_ceiling(total, delta, ROUNDS)
    assert error >= best - monitor_loss(ROWS, eps, ROUNDS)


def test_lecture18_lemma_0_4_privacy_of_the_monitor_exactly():
    """The law of (t*, q*) over samples that differ in one row: ratio at most e^{ε+ε'}, and above e^ε."""
    eps, eps_prime = 0.7, 0.4
    laws: dict[tuple, dict] = {}
    for drawn, samples, offered, _, law in monitor_runs(eps, eps_prime):
        seen = laws.setdefault(samples, {})
        for outcome, chance in zip(offered, law, strict=True):
            seen[outcome] = seen.get(outcome, 0.0) + drawn * chance
    worst = 0.0
    for samples, seen in laws.items():
        for t, j, x in product(range(ROUNDS), range(ROWS), UNIVERSE):
            moved = [list(sample) for sample in samples]
            moved[t][j] = x
            other = laws[tuple(tuple(sample) for sample in moved)]
            mine, theirs = sum(seen.values()), sum(other.values())
            worst = max(worst, *(abs(log(seen[o] / mine) - log(other[o] / theirs)) for o in seen))
    assert eps < worst <= sum(monitor_privacy(eps, eps_prime, 0))


@given(st.floats(0.01, 1), st.floats(0, 0.5), st.integers(1, 100))
def test_the_steps_are_monotone(alpha, p, T):
    gain = monitor_gain(alpha, p, T)
    assert monitor_gain(2 * alpha, p, T) >= gain
    assert monitor_gain(alpha, 2 * p, T) >= gain
    assert monitor_gain(alpha, p, 2 * T) >= gain
    assert monitor_loss(1000, 0.1, 2 * T) >= monitor_loss(1000, 0.1, T) >= monitor_loss(2000, 0.1, T)
    assert monitor_ceiling(0.1, p, 2 * T) >= monitor_ceiling(0.1, p, T) >= monitor_ceiling(0.05, p, T)


# The transfer theorem ---------------------------------------------------------------------------------------


def test_lecture18_theorem_0_2():
    assert 0 < seed_transfer(10**9, 0.1, 0).probability < 1e-300
    assert seed_transfer(1e5, 0.05, 1e-5) == pytest.approx((0.30, 0.0008), rel=1e-12)
    assert seed_transfer(16 * 10**4, 0.01, 0).probability == pytest.approx(2 * exp(-2), rel=1e-12)
    printed = seed_transfer_printed(16 * 10**4, 0.01, 0)
    assert printed == pytest.approx((0.06, exp(-2)), rel=1e-12)


@given(st.integers(768, 10**8), st.floats(0, 1), st.floats(0, 1 - 1e-9), st.floats(1.0001, 50))
def test_lecture18_theorem_0_2_follows_from_the_steps(n, where, share, factor):
    """A larger p is contradicted by T = ⌊1/p⌋ samples, or by three when p > 1/4, for all admissible ε and δ."""
    eps = sqrt(12 / n) + where * (1 / 8 - sqrt(12 / n))
    assume(sqrt(12 / n) * (1 + 1e-9) <= eps <= 1 / 8)
    delta = share * eps / 16
    bound = seed_transfer(n, eps, delta)
    p = bound.probability * factor
    assume(1e-290 <= p <= 1)
    assert monitor_excess(n, eps, delta, bound.width, p, monitor_rounds(p)) > 0


def test_lecture18_theorem_0_2_the_missing_case_needs_three_samples():
    """p above 1/4 at the edge ε²m = 12, δ = ε/16. Bounding (1-p)^T by 1/2, four samples would not do."""
    m, eps, p = 10**6, sqrt(12 / 10**6), 0.2501
    delta = eps / 16
    assert monitor_rounds(p) == 3
    assert monitor_excess(m, eps, delta, 6 * eps, p, 3) > 0
    assert 4 * log(6) / 12 + 6 / 16 < 1 < 4 * log(8) / 12 + 8 / 16
    assert (3 / 4) ** 3 < 0.5


def test_lecture18_theorem_0_2_arithmetic_of_step_4():
    x = np.linspace(0, 1 / 2, 1001)
    assert (np.exp(2 * x) <= 1 + 2 * x + 4 * x**2 + 1e-15).all()
    e = np.linspace(1e-6, 1 / 8, 1001)
    assert (6 * e - 4 * e - 8 * e**2 >= e - 1e-15).all()
    assert (6 - 4 - 8 * 0.126) * 0.126 < 0.126
    p = np.linspace(1e-4, 0.25, 5000)
    assert ((1 - p) ** np.floor(1 / p) <= 0.4724).all()
    # The printed count of T candidates instead of 2T would allow the printed constant.
    assert monitor_loss(1000, 0.1, 5) == pytest.approx(2 * log(10) / 100)


@given(st.integers(10**4, 10**8), st.floats(0, 1))
def test_lecture18_theorem_0_2_is_monotone(n, share):
    eps = 0.06
    delta = share * eps / 32
    bound = seed_transfer(n, eps, delta)
    assert seed_transfer(2 * n, eps, delta).probability <= bound.probability
    assert seed_transfer(n, 2 * eps, delta).probability <= bound.probability
    assert seed_transfer(n, 2 * eps, delta).width >= bound.width
    assert seed_transfer(n, eps, 2 * delta).probability >= bound.probability
    assert seed_transfer_printed(n, eps, delta).probability <= bound.probability


def test_lecture18_theorem_0_2_for_a_session():
    session = seed_transfer_adaptive(1e5, 0.05, 1e-5, 0.02, 0.01)
    assert session == pytest.approx((0.32, 0.0108), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: seed_transfer(100, 0.1, 0),
            r"the theorem needs eps ≥ sqrt\(12/n\), and eps = 0.1 is below that",
        ),
        (lambda: seed_transfer(10**5, 0.126, 0), "the theorem needs eps ≤ 1/8, not 0.126"),
        (lambda: seed_transfer(10**5, 0.1, 0.01), "the theorem needs 0 ≤ delta ≤ eps/16, not 0.01"),
        (lambda: seed_transfer(10**5, 0.1, -1e-9), "the theorem needs 0 ≤ delta ≤ eps/16, not -1e-09"),
        (lambda: seed_transfer_printed(0, 0.1, 0), "n must be at least 1, not 0"),
        (lambda: seed_transfer(10**5, nan, 0), "eps must be finite, not nan"),
        (lambda: seed_transfer_adaptive(10**5, 0.1, 0, 0.1, 1), "beta_s must be below 1, not 1"),
        (lambda: em_error(0, 1, 2, 0.1), "Delta must be positive, not 0"),
        (lambda: em_error(1, 1, 0, 0.1), "Y must be at least 1, not 0"),
        (lambda: em_error(1, 1, 2, 0), "beta must lie strictly between 0 and 1, not 0"),
        (lambda: em_expected_error(1, inf, 2), "eps must be finite, not inf"),
        (lambda: monitor_gain(0.1, 1.5, 2), "p must be a probability, not 1.5"),
        (lambda: monitor_gain(0.1, 0.5, 10**400), r"T must be below 10\^300"),
        (lambda: monitor_rounds(0), "p must be positive, not 0"),
        (lambda: monitor_rounds(1.5), "p must be a probability, not 1.5"),
        (
            lambda: monitor_ceiling(800, 0, 1),
            "eps must be at most 700 for its exponential to be a number, not 800",
        ),
        (
            lambda: expectation_bound(1.2, 1, 0),
            r"the expectation of a function with values in \[0, 1\] is at most 1, not 1.2",
        ),
    ],
)
def test_what_is_no_parameter_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()


def test_the_ceiling_is_an_exponential_less_one():
    assert monitor_ceiling(0.3, 0.001, 5) == pytest.approx(expm1(0.3) + 0.005, rel=1e-12)
    assert monitor_ceiling(1e-9, 0, 1) == pytest.approx(1e-9, rel=1e-6)
