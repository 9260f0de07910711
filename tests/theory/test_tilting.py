"""Theorem T: its figures, its rounding, and exact small cases that never exceed it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import cos, e, exp, inf, log, pi, sqrt, tan

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from understudy.errors import ParameterError
from understudy.theory.smoothing import LOG_FACTOR, SMOOTHING, normal_rho, smoothing_excess
from understudy_textbook.cosine_noise import (
    cosine_capacity,
    cosine_excess,
    cosine_log_bound,
    cosine_t,
    cosine_width,
)
from understudy_textbook.elementary import (
    cosine_divergence,
    cosine_price,
    elementary_cosine,
    elementary_normal,
    normal_price,
    pure_price,
    table_price,
)
from understudy_textbook.tilting import (
    best_tilting_t,
    discrete_gaussian_log_bound,
    laplace_log_bound,
    normal_log_bound,
    table_log_bound,
    tilting_failure,
    tilting_gauss_alpha,
    tilting_gauss_t,
    tilting_split,
    tilting_t,
    tilting_transfer_t,
    tilting_width,
    tilting_width_at,
    tilting_width_discrete,
    tilting_width_laplace,
)

B = 0.05

# ---- figures


@pytest.mark.parametrize(
    ("found", "pin", "tolerance"),
    [
        (lambda: tilting_gauss_t(0.08, 10**5, B), 0.04037103, 6e-9),
        (lambda: 1 + cosine_excess(0.0154), 1.015921416, 6e-10),
        (lambda: 1 + cosine_excess(0.1), 1.102157103, 6e-10),
        (lambda: cosine_t(10**5, 10**4, 0.04, B)[0], 0.04014450, 6e-9),
        (lambda: cosine_t(10**5, 10**4, 0.04, B)[1], 2.019875, 1e-5),
        (lambda: cosine_width(10**5, 10**4, B).r, 0.039678, 1e-6),
        (lambda: cosine_width(10**5, 10**4, 1e-6).width, 0.081417, 6e-7),
        (lambda: tilting_split(10**5, 10**4, B)[1], 0.010394, 1e-6),
        (lambda: tilting_split(10**5, 10**4, B)[2], 0.04783, 1e-5),
        (lambda: tilting_width_discrete(10**5, 10**4, B)[0], 0.096787, 6e-7),
        (lambda: tilting_transfer_t(0.02, 10**5, B), 0.141527, 6e-7),
    ],
)
def test_theorem_t_pins(found, pin, tolerance):
    assert found() == pytest.approx(pin, abs=tolerance)


@pytest.mark.parametrize(
    ("n", "k", "bounded", "normal"),
    [
        (10**5, 10**4, 0.080142, 0.096224),
        (10**5, 10**5, 0.141922, 0.178662),
        (10**4, 100, 0.080404, 0.088879),
        (10**3, 100, 0.254259, 0.281060),
    ],
)
def test_theorem_t_widths(n, k, bounded, normal):
    assert cosine_width(n, k, B).width == pytest.approx(bounded, abs=6e-7)
    width, sigma = tilting_width(n, k, B)
    assert width == pytest.approx(normal, abs=6e-7)
    assert tilting_width_at(n, k, B, sigma) == pytest.approx(width, rel=1e-6)


def test_theorem_t_capacity_at_a_hundred_thousand_rows():
    assert cosine_capacity(10**5, 0.05, B) == 1489
    most = cosine_capacity(10**5, 0.1, B)
    assert most == 24416  # a search that stops at one in 2,000 finds 24,408
    assert cosine_width(10**5, most, B).width <= 0.1 < cosine_width(10**5, most + 1, B).width
    assert cosine_capacity(10, 0.01, B) == 0


def test_theorem_t_widths_are_functions_of_k_and_beta_over_the_root_of_n():
    for found in (tilting_width, lambda *a: cosine_width(*a)[:2]):
        wide, narrow = found(10**4, 500, B), found(10**6, 500, B)
        assert wide[0] == pytest.approx(10 * narrow[0], rel=1e-9)
        assert wide[1] == pytest.approx(10 * narrow[1], rel=1e-9)


def test_theorem_t_says_1_where_it_says_nothing():
    assert cosine_width(10, 10**8, B).width == tilting_width(10, 10**8, B)[0] == 1
    assert tilting_width_discrete(10, 10**6, B)[0] == 1
    assert tilting_width_at(10, 1, B, 1e-9) == 1


# ---- formulas, against forty digits


def _exact_excess(y):
    with mpmath.workdps(40):
        y = mpmath.mpf(y)
        edge = 1 / mpmath.sqrt(2 * y)
        points = [0, *(edge / 4**j for j in range(12, -1, -1))]
        core = mpmath.quad(lambda s: mpmath.exp(y * s * s) / (1 + s * s) ** 2, points)
        return 4 / mpmath.pi * core + 2 * y / (1 + 2 * y) * mpmath.sqrt(8 * mpmath.e * y) / mpmath.pi - 1


@pytest.mark.parametrize("y", [1e-9, 1e-6, 1e-4, 0.003, 0.0154, 0.1, 0.5, 3.0, 40.0, 1e3, 1e6])
def test_theorem_t_bounded_noise_is_never_below_its_exact_value(y):
    exact = _exact_excess(y)
    assert exact <= cosine_excess(y) <= exact * (1 + mpmath.mpf(10) ** -9)


@pytest.mark.parametrize("beta", [0.3, B, 1e-3, 1e-9])
@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.08, 1.0])
def test_theorem_t_normal_noise_is_never_below_its_exact_value_and_its_alpha_is_best(mu, beta):
    n = 5000
    with mpmath.workdps(40):
        m, failure = mpmath.mpf(mu), mpmath.mpf(repr(beta))
        exact = m / 4 + mpmath.sqrt(m * m / 16 + mpmath.log(1 / failure) / (2 * n))
    found = tilting_gauss_t(mu, n, beta)
    assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -11)
    alpha = tilting_gauss_alpha(mu, n, beta)
    at = [tilting_t(n, beta, a, normal_log_bound(n, a, mu)) for a in (alpha * 0.98, alpha, alpha * 1.02)]
    assert at[1] == pytest.approx(found, rel=1e-11)
    assert min(at) == at[1]
    assert best_tilting_t(n, beta, lambda a: normal_log_bound(n, a, mu))[0] == pytest.approx(found, rel=1e-7)


def test_theorem_t_failure_and_t_are_inverse():
    t = tilting_t(1000, 0.01, 2.5, 3.0)
    assert tilting_failure(1000, t, 2.5, 3.0) == pytest.approx(0.01, rel=1e-9)
    assert tilting_failure(1000, 1e-6, 2.5, 3.0) == 1
    assert tilting_t(1000, 0.001, 2.5, 3.0) > t  # a smaller β is a wider promise


@pytest.mark.parametrize("r", [0.06, 0.1, 0.4])
@pytest.mark.parametrize("alpha", [1.3, 2.0, 6.0])
def test_theorem_t_envelope_of_bounded_noise(r, alpha):
    """B by quadrature of the envelope itself: it lies above the density, and no other tangent gives less."""
    n = 60
    R, theta = n * r, pi / (2 * n * r)

    def bound(z0):
        def core(z):
            return cos(theta * z) ** 2 / R * exp(n * alpha * (2 * theta * tan(theta * z)) ** 2 / 8)

        slope = 2 * theta * tan(theta * z0)
        outside = cos(theta * z0) ** 2 / R / slope * exp(n * alpha * slope**2 / 8)
        return 2 * (quad(core, 0, z0, epsabs=0, epsrel=1e-12, limit=200)[0] + outside)

    best = np.arctan(1 / sqrt(n * alpha) / theta) / theta
    assert log(bound(best)) == pytest.approx(cosine_log_bound(n, alpha, r), rel=1e-9)
    assert bound(best) <= min(bound(best * 0.97), bound(min(best * 1.03, 0.9999 * R)))
    z = np.linspace(best, R, 200)
    slope = 2 * theta * tan(theta * best)
    tangent = cos(theta * best) ** 2 / R * np.exp(-slope * (z - best))
    assert (tangent >= np.cos(theta * z) ** 2 / R - 1e-15).all()


def test_theorem_t_normal_noise_is_the_limit_of_many_answers():
    n, alpha, sigma = 1000, 2.0, 40.0
    limit = normal_log_bound(n, alpha, 1 / sigma)
    parts = [
        m * discrete_gaussian_log_bound(n, alpha, sigma * sqrt(m)) for m in (1, 10, 1000)
    ]  # the formula of one normal answer too
    assert parts[0] > parts[1] > parts[2] > limit
    assert parts[2] == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("v", [0.3, 1.0, 9.0])
def test_theorem_t_discrete_sums_are_largest_at_whole_numbers(v):
    """What takes the place of the translation of an integral, for both discrete laws; and the bound of B."""
    a = np.arange(-400, 401)
    at = [np.exp(-((a - c) ** 2) / (2 * v)).sum() for c in np.linspace(0, 1, 41)]
    assert max(at) <= at[0] * (1 + 1e-12)
    flat = [np.exp(-np.abs(a - c) / v).sum() for c in np.linspace(0, 1, 41)]
    assert max(flat) <= flat[0] * (1 + 1e-12)
    n, alpha = 1, 1.1
    if n * alpha < 4 * v:
        lifted = np.exp(-(a**2) / (2 * v) + n * alpha * a**2 / (8 * v**2)).sum() / at[0]
        assert log(lifted) <= discrete_gaussian_log_bound(n, alpha, sqrt(v))
    assert discrete_gaussian_log_bound(100, 2, 5) == inf


def test_theorem_t_table_of_cells_counts_the_trace():
    n, alpha, sigma = 1000, 2.0, 50.0
    assert table_log_bound(n, alpha, sigma, 2) == pytest.approx(2 * normal_log_bound(n, alpha, 1 / sigma))
    assert table_log_bound(n, alpha, sigma, 10**6) < n * alpha / (2 * sigma**2) * (1 + 1e-9)
    # with ρ = 1/σ², the price of a table, tilting_transfer_t uses nαρ/2
    rho = 1 / sigma**2
    assert table_log_bound(n, alpha, sigma, 10**6) <= n * alpha * rho / 2 * (1 + 1e-9)


def test_theorem_t_laplace_is_charged_less_than_its_price():
    n, alpha, scale = 1000, 2.0, 30.0
    rho = 1 / (2 * scale**2)
    assert laplace_log_bound(n, alpha, scale) <= n * alpha * rho / 2
    width, found = tilting_width_laplace(10**5, 10**4, B)
    assert 0.1 < width < 0.2
    assert 0 < found < width


def test_bounds_are_refused_outside_their_conditions():
    with pytest.raises(ParameterError, match="alpha must be above 1"):
        tilting_t(10, B, 1, 0)
    with pytest.raises(ParameterError, match="between 1e-9"):
        cosine_excess(1e-12)
    with pytest.raises(ParameterError, match="3 counts"):
        cosine_price(2)
    assert cosine_log_bound(1, 2, 1e-4) == inf


# ---- exact small cases


def _fair_bits(n):
    """Every sample of n fair bits, every sum of bits, negated bits or nothing, and every count of right bits."""
    samples = np.array(list(product((0, 1), repeat=n)))
    asked = set()
    for parts in product((0, 1, 2), repeat=n):
        columns = [samples[:, i] if p == 0 else 1 - samples[:, i] if p == 1 else 0 * samples[:, i]
                   for i, p in enumerate(parts)]  # fmt: skip
        asked.add(tuple(np.sum(columns, axis=0)))
    right = np.array([(samples == np.array(guess)).sum(1) for guess in samples])
    first = [samples[:, :m].sum(1) for m in range(1, n + 1)]  # up to symmetry of fair bits
    return np.array(sorted(asked)), first, right


def _worst(n, density, answers, step, level):
    """The largest P[some question has `level` of n right], over adaptive pairs of questions, on a grid."""
    asked, first, right = _fair_bits(n)
    second = [density(answers[:, None] - q[None, :]) for q in asked]
    happens = (right >= level).astype(float)
    best = 0.0
    for q in first:
        prior = density(answers[::4, None] - q[None, :]) / 2**n
        value = np.zeros(len(prior))
        for likelihood in second:
            joint = prior[:, None, :] * likelihood[None, ::2, :]
            value = np.maximum(value, (joint @ happens.T).max(axis=2).sum(axis=1) * 2 * step)
        best = max(best, float(value.sum()) * 4 * step)
    return best


@pytest.mark.parametrize(("n", "sigma"), [(2, 3.0), (3, 4.0)])
def test_theorem_t_bounds_every_adaptive_pair_of_questions_with_normal_noise(n, sigma):
    answers = np.linspace(-6 * sigma, n + 6 * sigma, 241)
    step = answers[1] - answers[0]
    mu = sqrt(2) / sigma
    for level in range(n // 2 + 1, n + 1):
        happened = _worst(n, lambda z: norm.pdf(z / sigma) / sigma, answers, step, level)
        t = level / n - 0.5
        alphas = 1 + np.geomspace(0.05, 60, 40)
        bound = min(tilting_failure(n, t, a, normal_log_bound(n, a, mu)) for a in alphas)
        assert 0.2**n < happened <= bound * (1 + 1e-6)


@pytest.mark.parametrize(("n", "R"), [(3, 8.0), (3, 20.0)])
def test_theorem_t_bounds_every_adaptive_pair_of_questions_with_bounded_noise(n, R):
    answers = np.linspace(-R - 0.01, n + R + 0.01, 241)
    step = answers[1] - answers[0]

    def density(z):
        return np.where(np.abs(z) < R, np.cos(pi * z / (2 * R)) ** 2 / R, 0.0)

    for level in range(n // 2 + 1, n + 1):
        happened = _worst(n, density, answers, step, level)
        alphas = 1 + np.geomspace(0.05, 60, 40)
        bound = min(tilting_failure(n, level / n - 0.5, a, cosine_log_bound(n, a, R / n, 2)) for a in alphas)
        assert 0.1**n < happened <= bound * (1 + 1e-6)


@pytest.mark.parametrize(("n", "alpha"), [(2, 2.5), (2, 6.0), (3, 6.0)])
def test_theorem_t_bounds_noise_that_is_chosen_on_the_way_at_the_realised_sum(n, alpha):
    """The second question and its noise are chosen by the first answer, so as to fail most often, and t goes by
    what was spent on that path. One that counts nothing but β fails more often than it says."""
    first, choices = 3.0, (0.4, 4.0)
    asked, once, right = _fair_bits(n)
    answers = np.linspace(-5 * first, n + 5 * first, 45)
    finer = {sigma: np.linspace(-5 * sigma, n + 5 * sigma, 45) for sigma in choices}

    def normal(z, sigma):
        return norm.pdf(z / sigma) / sigma

    def worst(t):
        best = 0.0
        for q in once:
            prior = normal(answers[:, None] - q[None, :], first) / 2**n
            value = np.zeros(len(answers))
            for sigma, grid in finer.items():
                fails = (right / n - 0.5 > t[sigma] + 1e-12).astype(float)
                for second in asked:
                    joint = prior[:, None, :] * normal(grid[:, None] - second[None, :], sigma)[None]
                    found = (joint @ fails.T).max(axis=2).sum(axis=1) * (grid[1] - grid[0])
                    value = np.maximum(value, found)
            best = max(best, float(value.sum()) * (answers[1] - answers[0]))
        return best

    happened, cheated = [], []
    for beta in (0.4, 0.6, 0.8):
        spent = {s: n * alpha / 8 * (1 / first**2 + 1 / s**2) for s in choices}
        happened.append(worst({s: tilting_t(n, beta, alpha, spent[s]) for s in choices}))
        assert happened[-1] <= beta * (1 + 1e-6)
        cheated.append(worst(dict.fromkeys(choices, tilting_t(n, beta, alpha, 0))) - beta)
    assert max(happened) > 0.1
    assert max(cheated) > 0.05


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("law", ["discrete gaussian", "discrete laplace"])
def test_theorem_t_bounds_the_exact_law_of_one_question_on_a_lattice(n, law):
    """Fair bits summed with noise; then the question that the answer makes likeliest to exceed its mean: the same
    one, or its negation. All by summation over whole numbers, with the law of the sum of bits."""
    s = np.arange(n + 1)
    prior = np.array([mpmath.binomial(n, int(i)) for i in s], dtype=float) / 2.0**n
    a = np.arange(-600, 601)
    for scale in (1.5, 3.0, 10.0):
        weight = (
            (lambda z, v=scale**2: np.exp(-z * z / (2 * v)))
            if law == "discrete gaussian"
            else (lambda z, b=scale: np.exp(-np.abs(z) / b))
        )
        noise = weight(a[:, None] - s[None, :]) / weight(a).sum()
        for above in range(n // 2 + 1, n + 1):
            t = above / n - 0.5
            up = (noise * prior)[:, s >= above].sum(axis=1)
            down = (noise * prior)[:, s <= n - above].sum(axis=1)
            happened = float(np.maximum(up, down).sum())
            bounds = []
            for alpha in 1 + np.geomspace(0.05, 60, 40):
                bound = (
                    discrete_gaussian_log_bound(n, alpha, scale)
                    if law == "discrete gaussian"
                    else laplace_log_bound(n, alpha, scale)
                )
                if bound < inf:
                    bounds.append(tilting_failure(n, t - 1e-12, alpha, bound))
            assert happened <= min(bounds, default=1.0)


# ---- a discrete Gaussian as normal noise


@pytest.mark.parametrize(("v", "u"), [(2.0, 0.15), (5.0, 0.3), (9.0, 1.0), (30.0, 4.0)])
def test_discrete_gaussian_is_a_randomised_rounding_of_normal_noise(v, u):
    """P ≤ (1 + η)·Q at every whole number, by quadrature; where η is not tiny, it is needed."""
    m = np.arange(-80, 81)
    total = np.exp(-(m**2) / (2 * v)).sum()

    def theta(y):
        return np.exp(-((m[:, None] - y[None, :]) ** 2) / (2 * u)).sum(axis=0)

    y = np.linspace(-9 * sqrt(v), 9 * sqrt(v), 4001)
    rounded = theta(y)
    density = np.exp(-(y**2) / (2 * (v - u))) / sqrt(2 * pi * (v - u))
    ratios = []
    for a in range(int(5 * sqrt(v))):
        other = np.trapezoid(density * np.exp(-((a - y) ** 2) / (2 * u)) / rounded, y)
        ratios.append(exp(-(a**2) / (2 * v)) / total / other)
    assert max(ratios) <= 1 + smoothing_excess(u) + 1e-9
    if smoothing_excess(u) > 0.01:
        assert max(ratios) > 1 + smoothing_excess(u) / 100


def test_the_factor_of_the_smoothing_is_counted():
    assert 10**23 * smoothing_excess(SMOOTHING) <= LOG_FACTOR < 1e-10
    assert normal_rho(Fraction(2), Fraction(104)) == Fraction(1, 100)
    assert normal_rho(Fraction(2), Fraction(4)) is None


# ---- the independent check


@pytest.mark.parametrize(
    ("found", "pin", "tolerance"),
    [
        (lambda: elementary_normal(10**5, 10**4, B)[0], 0.145963, 6e-7),
        (lambda: elementary_normal(10**5, 10**4, B)[1], 0.015319, 6e-7),
        (lambda: elementary_cosine(10**5, 10**4, B)[0], 0.118531, 6e-7),
        (lambda: elementary_cosine(10**5, 10**4, B)[1], 0.059266, 6e-7),
        (lambda: elementary_cosine(10**5, 10**5, B)[0], 0.210781, 6e-7),
        (lambda: cosine_divergence(10, 0), 0.011660215, 6e-10),
        (lambda: cosine_divergence(10, 0.5), 0.000720127, 6e-10),
    ],
)
def test_elementary_pins(found, pin, tolerance):
    assert found() == pytest.approx(pin, abs=tolerance)


@pytest.mark.parametrize("R", [3.0, 10.0, 50.0])
@pytest.mark.parametrize("x", [0.0, 0.2, 0.5, 1.0])
def test_elementary_divergence_of_bounded_noise_by_quadrature(R, x):
    """KL of cos² noise around x from the law on the circle, whose doubled interval is halved."""
    theta = pi / (2 * R)

    def q(y):
        density = (1 + cos(theta) * cos(2 * theta * (y - 0.5))) / (2 * R)
        twice = y < -R + 1 or y > R  # y and y + 2R are one point of the circle
        return density / 2 if twice else density

    def p(y):
        return cos(theta * (y - x)) ** 2 / R

    def term(y):
        return p(y) * log(p(y) / q(y)) if p(y) > 0 else 0.0

    ends = sorted({x - R, -R + 1, R, x + R})
    pieces = [quad(term, low, high, epsabs=1e-13, epsrel=1e-11, limit=200)[0]
              for low, high in pairwise(ends)]  # fmt: skip
    assert sum(pieces) == pytest.approx(cosine_divergence(R, x), abs=1e-8)
    assert cosine_divergence(R, x) <= cosine_price(R)


def test_elementary_prices():
    assert normal_price(10) == pytest.approx(1 / 800)
    assert table_price(10, 2) == pytest.approx(1 / 400)
    assert pure_price(1) == pytest.approx(1 / 8)
    # randomised response at ε: its information about a fair bit is below ε²/8
    for epsilon in (0.1, 1.0, 3.0):
        p = e**epsilon / (1 + e**epsilon)
        assert log(2) + p * log(p) + (1 - p) * log(1 - p) <= pure_price(epsilon)


@pytest.mark.parametrize(("n", "k"), [(10**3, 10), (10**4, 100), (10**5, 10**4), (10**6, 10**5)])
def test_the_independent_check_is_wider_than_theorem_t(n, k):
    assert tilting_width(n, k, B)[0] < elementary_normal(n, k, B)[0]
    assert cosine_width(n, k, B).width < elementary_cosine(n, k, B)[0]
