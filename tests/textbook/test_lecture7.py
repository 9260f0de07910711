"""Lecture 7, statement by statement; the printed Theorems 4, 5, 7 and 8 also by counterexample."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement
from math import comb, exp, log, log2, nan, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from statistical import assert_covers
from understudy.errors import ParameterError
from understudy_textbook.lecture4 import claim1_size_min
from understudy_textbook.lecture7 import (
    distinguisher_error,
    frieze_kannan_updates,
    ic_alpha,
    ic_alpha_corrected,
    ic_alpha_same_threshold,
    ic_alpha_thm5_seed,
    ic_alpha_thm7_seed,
    ic_alpha_thm8_seed,
    ic_cost,
    ic_design,
    ic_eps0,
    ic_threshold,
    is_update_sequence,
    median_updates,
    mw_updates,
    noise_margin,
    stop_error,
    update_gap,
)

rows = st.integers(10, 10**9)
updates = st.integers(1, 10**6)
classes = st.integers(1, 10**12)
prices = st.floats(1e-6, 10)
betas = st.floats(1e-9, 0.5)


# Update sequences -------------------------------------------------------------------------------------------


def test_lecture7_definition_1():
    assert is_update_sequence([0.5, 0.4], [0.2, 0.8], [0.45, 0.2], 0.3)
    assert not is_update_sequence([0.5], [0.3], [0.5], 0.3)  # the gap is too small
    assert not is_update_sequence([0.5], [0.2], [0.1], 0.3)  # the estimate is too far off
    with pytest.raises(ParameterError, match="must be equally long"):
        is_update_sequence([0.5], [0.2], [], 0.3)


@given(
    st.floats(0, 1), st.floats(0.01, 0.5), st.floats(0, 1), st.sampled_from((-1, 1)), st.floats(-0.999, 0.999)
)
def test_lecture7_definition_1_fixes_the_sign(truth, alpha, extra, side, noise):
    standin, estimate = truth + side * (alpha * (1 + 1e-9) + extra), truth + noise * alpha
    assert is_update_sequence([truth], [standin], [estimate], alpha)
    assert (estimate > standin) == (truth > standin)


def mw_run(truth: np.ndarray, alpha: float, step: float, rng: np.random.Generator) -> int:
    """Updates until no query has a gap of α; random queries at first, then the worst one, {x : D(x) > D^t(x)}."""
    model, count = np.full(len(truth), 1 / len(truth)), 0
    while True:
        query = rng.integers(0, 2, len(truth)) if count % 2 else (truth > model).astype(int)
        gap = query @ (truth - model)
        if abs(gap) < alpha:
            query = (truth > model).astype(int)
            gap = query @ (truth - model)
        if abs(gap) < alpha:
            return count
        model = model * np.exp(step * np.sign(gap) * query)
        model /= model.sum()
        count += 1


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.4])
def test_lecture7_definition_2_multiplicative_weights(alpha):
    rng = np.random.default_rng(7)
    for X in (2, 16, 128):
        for truth in (np.eye(X)[0], rng.dirichlet(np.full(X, 0.1)), rng.dirichlet(np.ones(X))):
            assert mw_run(truth, alpha, 4 * alpha, rng) <= mw_updates(X, alpha)
            assert mw_run(truth, alpha, alpha / 2, rng) <= mw_updates(X, alpha, "textbook")


def test_lecture7_definition_2_multiplicative_weights_values():
    assert mw_updates(256, 0.1) == 277
    assert mw_updates(256, 0.1, "textbook") == 2218
    assert mw_updates(1, 0.1) == 0
    assert mw_updates(10**100, 1e-3) == int(log(10**100) / 2e-6)
    assert mw_updates(2**5000, Fraction(1, 2)) == int(2 * 5000 * log(2))
    with pytest.raises(ParameterError, match="const must be 'tight' or 'textbook', not 'loose'"):
        mw_updates(10, 0.1, "loose")  # type: ignore[arg-type]


@given(st.floats(0.01, 0.99), st.floats(0, 1), st.integers(2, 12), st.integers(0, 10**6))
def test_lecture7_definition_2_potential_falls_by_twice_alpha_squared(alpha, sharpness, X, seed):
    """Hoeffding's lemma, on random distributions and queries with values in [0, 1] whose gap is at least α."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(X, 0.05 + sharpness))
    model = rng.dirichlet(np.full(X, 0.3)) + 1e-9
    model /= model.sum()
    query = np.where(rng.random(X) < 0.5, truth > model, rng.random(X))
    gap = query @ (truth - model)
    assume(abs(gap) >= alpha)
    moved = model * np.exp(4 * alpha * np.sign(gap) * query)
    drop = truth @ np.log(moved / moved.sum() / model)
    assert drop >= 2 * alpha**2 - 1e-12


def test_lecture7_definition_2_median_by_sign_keeps_a_good_candidate():
    """Every cut halves the candidates and spares the best: all multisets over three values."""
    rng = np.random.default_rng(17)
    alpha, X = 0.25, 3
    queries = np.array([[bool(bits >> x & 1) for x in range(X)] for bits in range(2**X)], dtype=float)
    size = claim1_size_min(len(queries), alpha)
    candidates = np.array(
        [np.bincount(c, minlength=X) / size for c in combinations_with_replacement(range(X), size)]
    )
    most = median_updates(len(queries), X, alpha)
    assert most == int(log2(comb(size + X - 1, size)))
    longest = 0
    for _ in range(40):
        truth, alive, count = rng.dirichlet(np.full(X, 0.4)), candidates, 0
        star = candidates[np.abs((candidates - truth) @ queries.T).max(axis=1).argmin()]
        while True:
            values = alive @ queries.T
            medians = np.sort(values, axis=0)[(len(values) - 1) // 2]
            gaps = queries @ truth - medians
            worst = np.abs(gaps).argmax()
            if abs(gaps[worst]) < alpha:
                break
            below = gaps[worst] < 0
            keep = values[:, worst] < medians[worst] if below else values[:, worst] > medians[worst]
            assert keep.sum() <= len(alive) / 2
            alive, count = alive[keep], count + 1
            assert (np.abs(alive - star).sum(axis=1) < 1e-12).any()
        longest = max(longest, count)
        assert count <= most
    assert longest > 0
    assert median_updates(10, 4, 0.3) <= median_updates(10, 4, 0.3, multiset=False)
    assert median_updates(10, 1024, 0.3, multiset=False) == 10 * claim1_size_min(10, 0.3)


def test_lecture7_definition_2_frieze_kannan():
    rng = np.random.default_rng(27)
    X = 30
    for alpha in (2.0, 6.0):
        truth = np.where(rng.random(X) < 0.2, rng.integers(0, 9, X), 0).astype(float)
        model, count = np.zeros(X), 0
        most = frieze_kannan_updates(X, float(truth @ truth), alpha)
        while True:
            positive, negative = truth > model, truth < model
            query = (
                positive if (truth - model)[positive].sum() >= (model - truth)[negative].sum() else negative
            )
            gap = float(query @ (truth - model))
            if abs(gap) < alpha:
                break
            before = ((truth - model) ** 2).sum()
            model = model + np.sign(gap) * alpha / X * query
            assert before - ((truth - model) ** 2).sum() >= alpha**2 / X - 1e-9
            count += 1
        assert 0 < count <= most


@given(st.integers(2, 10**9), st.floats(0.01, 0.4), st.integers(2, 10**6), st.integers(0, 10**6))
def test_update_bounds_are_monotone(X, alpha, C, norm):
    for const in ("tight", "textbook"):
        assert mw_updates(X, alpha, const) <= mw_updates(2 * X, alpha, const)
        assert mw_updates(X, 2 * alpha, const) <= mw_updates(X, alpha, const)
    assert mw_updates(X, alpha) * 8 <= mw_updates(X, alpha, "textbook")
    for multiset in (True, False):
        count = median_updates(C, X, alpha, multiset=multiset)
        assert median_updates(C, 2 * X, alpha, multiset=multiset) >= count
        assert median_updates(2 * C, X, alpha, multiset=multiset) >= count
        assert median_updates(C, X, 2 * alpha, multiset=multiset) <= count
    assert frieze_kannan_updates(X, norm, alpha) <= frieze_kannan_updates(X, norm + 1, alpha)
    assert frieze_kannan_updates(X, norm, 2 * alpha) <= frieze_kannan_updates(X, norm, alpha)


# Privacy ----------------------------------------------------------------------------------------------------


def exact_delta(eps0: float, steps: int, promised: float) -> float:
    """δ(promised) of `steps` randomised responses, the hardest of all ε₀-DP mechanisms."""
    told = np.arange(steps + 1)
    truth = 1 / (1 + exp(-eps0))
    here, there = stats.binom.logpmf(told, steps, truth), stats.binom.logpmf(told, steps, 1 - truth)
    more = eps0 * (2 * told - steps) > promised
    return float((np.exp(here[more]) - np.exp(promised + there[more])).sum())


def test_lecture7_theorem_4():
    assert ic_eps0(1, 1e-6, 100) == pytest.approx(0.006725994984505173, rel=1e-12)
    assert ic_eps0(1, 0, 2218) == 1 / 4436
    assert ic_cost(ic_eps0(1, 1e-6, 100), 1e-6, 100) == pytest.approx(0.509, abs=5e-4)
    assert ic_cost(0.01, 0, 50) == 1


@given(st.floats(0.01, 30), st.floats(1e-9, 0.3), st.integers(1, 500))
def test_lecture7_theorem_4_holds_on_the_exact_composition(eps, delta, B):
    assume(eps <= 2 * log(1 / delta) and eps <= 4 * sqrt(B * log(1 / delta)))
    eps0 = ic_eps0(eps, delta, B)
    assert ic_cost(eps0, delta, B) <= eps * (1 + 1e-12)
    assert exact_delta(eps0, 2 * B, eps) <= delta
    assert ic_cost(ic_eps0(eps, 0, B), 0, B) == pytest.approx(eps, rel=1e-12)


def test_lecture7_theorem_4_needs_its_missing_hypothesis():
    """ε = 25: the printed sum is 36.8. At ε = 60.7 the conclusion itself is false: δ is near 1, not 0.1."""
    assert ic_cost(25 / (4 * sqrt(3 * log(1000))), 1e-3, 3) == pytest.approx(36.8, abs=0.05)
    with pytest.raises(ParameterError, match=r"needs eps ≤ 2 ln\(1/delta\) = 13\.82, not 25"):
        ic_eps0(25, 1e-3, 3)
    eps = 4 * sqrt(100 * log(10))  # so that ε₀ = 1
    assert exact_delta(1.0, 200, eps) > 0.99
    with pytest.raises(ParameterError, match=r"needs eps ≤ 2 ln\(1/delta\)"):
        ic_eps0(eps, 0.1, 100)
    with pytest.raises(ParameterError, match=r"steps of eps0 ≤ 1, and these cost 1\.681"):
        ic_eps0(50, 1e-12, 2)


@given(prices, st.floats(1e-9, 1e-3), updates)
def test_lecture7_theorem_4_is_monotone(eps, delta, B):
    for slack in (0, delta):
        step = ic_eps0(eps / 2, slack, B)
        assert ic_eps0(eps, slack, B) >= step >= ic_eps0(eps / 2, slack, 2 * B)
    assert ic_eps0(eps, delta, B) >= ic_eps0(eps, delta / 2, B)


# Accuracy ---------------------------------------------------------------------------------------------------


def test_lecture7_theorem_6():
    assert distinguisher_error(1000, 50, 0.1, 0.01) == pytest.approx(2 / 100 * log(5000), rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(1, 300), st.floats(1e-6, 0.5))
def test_lecture7_theorem_6_on_the_exact_law(gaps, eps_n, gamma):
    values = np.array(gaps)
    law = np.exp(eps_n / 2 * (values - values.max()))
    law /= law.sum()
    F = distinguisher_error(1000, len(gaps), eps_n / 1000, gamma)
    assert law[values < values.max() - F - 1e-12].sum() <= gamma


def test_lecture7_theorem_5_printed_is_false_for_an_admissible_distinguisher():
    """α = 0.4: the largest gap is 0.41, the distinguisher finds one of 0.21 ≥ 0.41 - F, and IC stops there."""
    n, B, beta = 1000, 1, 0.05
    eps0 = log(2 * B / beta) / (0.1 * n)
    assert ic_alpha_thm5_seed(n, B, beta, eps0, 0.2) == pytest.approx(0.4)
    stops = stats.laplace(0.21, 1 / (eps0 * n)).cdf([0.3, -0.3])
    assert stops[0] - stops[1] > 0.97  # the probability of an error above α, where β = 0.05 is promised
    # The worst case that the printed argument leaves open, and the two repairs.
    assert stop_error(0.3, 0.1, 0.2) == pytest.approx(1.5 * 0.4)
    assert ic_alpha(n, B, beta, eps0, 0.2) == pytest.approx(0.8)
    assert ic_alpha_same_threshold(n, B, beta, eps0, 0.2) == pytest.approx(1.2)


def test_lecture7_theorem_5_the_slip_in_case_2():
    """|v - Q(D')| < 3α/4 and |v - Q(D)| ≤ α/4 leave |Q(D) - Q(D')| below α, not below α/2."""
    alpha, truth, v, standin = 0.4, 0.385, 0.29, 0.0
    assert abs(v - standin) < 3 * alpha / 4
    assert abs(v - truth) <= alpha / 4
    assert alpha / 2 < abs(truth - standin) < alpha


@given(rows, updates, betas, prices, st.floats(0, 1))
def test_lecture7_theorem_5_corrected(n, B, beta, eps0, F):
    """With θ = α/2 + λ an update has a gap of α/2 at least, and a stop an error of α at most."""
    alpha, margin = ic_alpha(n, B, beta, eps0, F), noise_margin(n, B, beta, eps0)
    threshold = ic_threshold(alpha, margin)
    assert update_gap(threshold, margin) >= alpha / 2 * (1 - 1e-9)
    assert stop_error(threshold, margin, F) <= alpha * (1 + 1e-9)
    printed = ic_alpha_thm5_seed(n, B, beta, eps0, F)
    assert printed <= alpha <= 2 * printed * (1 + 1e-9)
    wide = ic_alpha_same_threshold(n, B, beta, eps0, F)
    assert alpha <= wide * (1 + 1e-12)
    assert stop_error(3 * wide / 4, margin, F) <= wide * (1 + 1e-9)
    assert update_gap(3 * wide / 4, margin) >= wide / 2 * (1 - 1e-9)


def printed_failure(n: int, C: int, beta: float, alpha: float, eps0: float) -> float:
    """Exact probability that one step of the printed IC outputs an error above α.

    A universe of two values, all rows 1, D⁰ uniform; Q(1) - Q(0) is 2.0005α for one query and 1.4995α for others.
    """
    best, others = 1.00025 * alpha, 0.74975 * alpha
    good = 1 / (1 + (C - 1) * exp(-eps0 * n * (best - others) / 2))
    stop = [stats.laplace(gap, 1 / (eps0 * n)).cdf([0.75 * alpha, -0.75 * alpha]) for gap in (best, others)]
    return good * (stop[0][0] - stop[0][1]) + (1 - good) * (stop[1][0] - stop[1][1])


def test_lecture7_theorem_7_printed_is_false_with_the_exponential_mechanism():
    """Six times the promised β, although every hypothesis holds: B is that of multiplicative weights."""
    alpha, beta, C, n = 0.4, 0.05, 1000, 10**5
    B = mw_updates(2, alpha / 2)
    eps0 = ic_alpha_thm7_seed(n, B, C, beta, 1.0) / alpha
    assert ic_alpha_thm7_seed(n, B, C, beta, eps0) == pytest.approx(alpha, rel=1e-12)
    assert printed_failure(n, C, beta, alpha, eps0) > 6 * beta
    # At the corrected price, with the corrected threshold, the same instance is as good as promised.
    eps0 = ic_alpha_corrected(n, B, C, beta, 1.0) / alpha
    theta = ic_threshold(alpha, noise_margin(n, B, beta, eps0))
    good = 1 / (1 + (C - 1) * exp(-eps0 * n * 0.2505 * alpha / 2))
    stop = [stats.laplace(gap * alpha, 1 / (eps0 * n)).cdf([theta, -theta]) for gap in (1.00025, 0.74975)]
    assert good * (stop[0][0] - stop[0][1]) + (1 - good) * (stop[1][0] - stop[1][1]) <= beta


@given(rows, updates, classes, betas, prices)
def test_lecture7_theorem_7_corrected_is_at_most_twice_the_printed(n, B, C, beta, eps0):
    printed, corrected = (f(n, B, C, beta, eps0) for f in (ic_alpha_thm7_seed, ic_alpha_corrected))
    assert printed <= corrected <= 2 * printed * (1 + 1e-12)


def test_lecture7_theorem_8():
    n, C, beta = 10**5, 1000, 0.05
    B = mw_updates(256, 0.1, "textbook")
    assert ic_alpha_thm8_seed(n, B, C, beta, 1) == pytest.approx(3.2473287126745736, rel=1e-12)
    assert ic_alpha_thm8_seed(n, B, C, beta, 1, 1e-6) == pytest.approx(0.5125768016337499, rel=1e-12)
    assert ic_alpha_corrected(1e5, 2218, 1000, 0.05, 1 / (2 * 2218)) == pytest.approx(
        5.268945328646557, rel=1e-12
    )
    assert ic_alpha_corrected(n, B, C, beta, ic_eps0(1, 1e-6, B)) == pytest.approx(0.8317, abs=5e-5)
    assert ic_alpha_corrected(n, 277, C, beta, ic_eps0(1, 0, 277)) == pytest.approx(0.566, abs=5e-4)


@given(rows, updates, classes, betas, prices)
def test_lecture7_theorem_8_is_theorem_7_at_theorem_4(n, B, C, beta, eps):
    assert ic_alpha_thm8_seed(n, B, C, beta, eps) == pytest.approx(
        8 * B / (n * eps) * log(C * 2 * B / beta), rel=1e-9
    )
    assert ic_alpha_thm8_seed(n, B, C, beta, eps) == pytest.approx(
        ic_alpha_thm7_seed(n, B, C, beta, ic_eps0(eps, 0, B)), rel=1e-9
    )


@given(rows, updates, classes, betas, prices)
def test_accuracies_are_monotone(n, B, C, beta, eps0):
    for alpha in (ic_alpha_corrected, ic_alpha_thm7_seed):
        value = alpha(n, B, C, beta, eps0)
        assert alpha(2 * n, B, C, beta, eps0) <= value
        assert alpha(n, 2 * B, C, beta, eps0) >= value
        assert alpha(n, B, 2 * C, beta, eps0) >= value
        assert alpha(n, B, C, beta / 2, eps0) >= value
        assert alpha(n, B, C, beta, 2 * eps0) <= value


# Both sides -------------------------------------------------------------------------------------------------


@given(
    st.integers(10**5, 10**12), st.integers(2, 2**40), st.integers(1, 10**9), st.sampled_from([0, 1e-6, 1e-9])
)
def test_the_design_is_the_least_alpha_that_pays_for_itself(n, X, C, delta):
    count = partial(mw_updates, X)

    def needs(alpha: float) -> float:
        B = max(1, count(alpha / 2))
        return ic_alpha_corrected(n, B, C, 0.05, ic_eps0(1, delta, B))

    assume(needs(1.0) <= 1)
    design = ic_design(n, C, 0.05, 1, delta, count)
    assert needs(design.alpha) <= design.alpha
    assert needs(design.alpha * (1 - 1e-9)) > design.alpha * (1 - 1e-9)
    assert max(1, count(design.alpha / 2)) == design.B
    assert design.eps0 == ic_eps0(1, delta, design.B)
    assert design.threshold > design.alpha / 2


def test_the_design_takes_any_update_algorithm_and_says_when_there_is_none():
    dense = ic_design(10**6, 1000, 0.05, 1, 0, partial(mw_updates, 256))
    median = ic_design(10**8, 1000, 0.05, 1, 0, partial(median_updates, 1000, 4))
    assert (dense.B, round(dense.alpha, 4)) == (617, 0.134)
    assert 0 < median.alpha < 1
    textbook = ic_design(10**6, 1000, 0.05, 1, 0, partial(mw_updates, 256, const="textbook"))
    assert 1.9 < textbook.alpha / dense.alpha < 2.2  # eight times the updates: a cube root more
    with pytest.raises(ParameterError, match="no alpha up to 1 is reached; even alpha = 1 needs"):
        ic_design(100, 1000, 0.05, 1, 0, partial(mw_updates, 256))


def ic_run(truth: np.ndarray, queries: np.ndarray, n: int, design, rng: np.random.Generator) -> float:
    """The corrected IC with multiplicative weights; its largest error."""
    model = np.full(len(truth), 1 / len(truth))
    for _ in range(design.B):
        gaps = np.abs(queries @ (truth - model))
        chosen = (
            design.eps0 * n / 2 * gaps + rng.gumbel(size=len(gaps))
        ).argmax()  # the exponential mechanism
        v = queries[chosen] @ truth + rng.laplace(0, 1 / (design.eps0 * n))
        error = v - queries[chosen] @ model
        if abs(error) < design.threshold:
            break
        model = model * np.exp(2 * design.alpha * np.sign(error) * queries[chosen])  # 4 · α/2
        model /= model.sum()
    return float(np.abs(queries @ (truth - model)).max())


def test_the_corrected_construction_is_as_accurate_as_promised():
    rng = np.random.default_rng(77)
    n, X, C, beta = 30_000, 16, 200, 1e-3
    design = ic_design(n, C, beta, 1, 0, partial(mw_updates, X))
    assert design.alpha < 0.5
    ratios = []
    for _ in range(2000):
        truth = rng.multinomial(n, rng.dirichlet(np.full(X, 0.1))) / n
        queries = rng.integers(0, 2, (C, X)).astype(float)
        ratios.append(ic_run(truth, queries, n, design, rng) / design.alpha)
    # A run stops at a gap of 0.6 α; the rest is for union bounds over all of its steps and queries.
    assert_covers(ratios, beta, mutant=0.6)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: mw_updates(0, 0.1), "X must be at least 1, not 0"),
        (lambda: mw_updates(10, 0), "alpha must be positive, not 0"),
        (lambda: median_updates(0, 4, 0.1), "C must be at least 1, not 0"),
        (lambda: frieze_kannan_updates(4, -1, 0.1), "squared_norm must not be negative, not -1"),
        (lambda: ic_eps0(0, 0, 5), "eps must be positive, not 0"),
        (lambda: ic_eps0(1, 0, 0), "B must be at least 1, not 0"),
        (lambda: ic_eps0(1, 1, 5), "delta must lie strictly between 0 and 1, not 1"),
        (
            lambda: ic_cost(800, 1e-6, 5),
            "eps0 must be at most 700 for its exponential to be a number, not 800",
        ),
        (lambda: distinguisher_error(9, 5, 1, 0), "gamma must lie strictly between 0 and 1, not 0"),
        (lambda: distinguisher_error(0, 5, 1, 0.1), "n must be at least 1, not 0"),
        (lambda: ic_alpha_corrected(10, 5, 0, 0.05, 1), "C must be at least 1, not 0"),
        (lambda: ic_alpha_corrected(10, 5, 10, 0, 1), "beta must lie strictly between 0 and 1, not 0"),
        (lambda: ic_alpha(10, 5, 0.05, 1, -1), "F must not be negative, not -1"),
        (lambda: ic_threshold(nan, 0.1), "alpha must be finite, not nan"),
    ],
)
def test_what_is_no_parameter_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()
