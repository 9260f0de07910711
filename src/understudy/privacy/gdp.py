"""Gaussian differential privacy (GDP): how much of it a budget has, and what events take of that.

Two laws P, Q of what neighbours tell are μ-GDP if telling them apart is no easier than telling N(0, 1) from
N(μ, 1). Everything here is in s = μ². Write L = ln(P/Q), h(l) = (1 - exp(ε - l))₊, and H_s(l) = E h(l + s/2 +
√s·Z), Z normal: P[S] - exp(ε)·Q[S] is at most E h(L), and for s-GDP at most δ = H_s(0).

**Filter.** An event *takes* c at the reserve r if E H_r(l + L) ≤ H_(r+c)(l) for all l. Applying the normal
semigroup to both sides gives the same at every s ≥ r. So as long as the amounts taken add up to S - r at most
on every path, H_(S - taken)(loss so far) is a supermartingale, whatever is chosen next: it begins at H_S(0)
and ends at no less than E h(loss of everything). All of it is (ε, H_S(0))-DP, and S-GDP, as ε was arbitrary.
Rounded normal noise takes exactly Δ²/σ², at every reserve: it is a function of normal noise.
[SmithThakurta22]

Put k_s(x) = exp(-x/2)·H_s(ε - x), which is even in x and solves k'' = k/4 + ν_s and ∂k/∂s = ν_s/2, with ν_s(x) =
exp(-s/8)·(density of N(0, s) at x). Then c is taken at r if and only if the tilted curve of (event after normal
noise r) is at most k_(r+c) at every x.

**ε-DP** (`pure_cost`). Randomised response is the worst, with losses ±ε. Let D be k_(r+c) less its curve, and
g the difference of the tilted densities, so that D'' = D/4 + g. The logarithm of their ratio is a constant
plus αx² - ln cosh(εx/r), convex in x²: for x > 0 the signs of g are at most +, -, +. Where g ≥ 0 from some x
on, D ≥ 0 there. A negative minimum needs g > 0, hence lies in the first stretch; but there D(0) ≥ 0 and D'(0)
= 0 make D increase. So D ≥ 0 everywhere if D(0) ≥ 0: the amount taken is the one at which the *total
variations* are equal,

    erf(√(r + c)/√8) = p·erf((ε/√r + √r/2)/√2) - (1 - p)·erf((ε/√r - √r/2)/√2),     p = 1/(1 + exp(-ε)).

**One selection** (`selection_cost`). Its losses lie in [t - 2h, t], h = ε/2, for some t; the worst are at
both ends, and then the curve at x is the chord (of solutions of v'' = v/4) that k_r has over an interval of
length 2h around x. Such a chord exceeds k_r(x) by ∫ G ν_r, G Green's function, at most the triangle's of
straight chords; k_(r+c)(x) exceeds it by ∫₀ᶜ ν_(r+u)(x)/2 du, in which exp(-u/8) is at least exp(-c/8). What
remains is a statement on straight chords: over any interval of length 2h around x, the chord of the price C₁
of a call, C_v(x) = E(√v·Z - x)₊, is at most C_(1+κ)(x) for κ = (1 + ηA/2)² - 1, η = h²/r, which is an
equality for x in the middle of [-h, h]. It is a theorem for every η (`understudy_textbook.chords` has the proof):
of the lines through chords, each held against the tangent of the same slope, that of the middle is worst. With
the middle's value

    A = (2/h²)·(h·√(πr/2)·erf(h/√(2r)) - r·(1 - exp(-h²/2r)))

and D = h²·A·exp(c'/8), the event takes c = D + D²/(4r), if c ≤ c'. That holds for c' = E + E²/(4r), E =
h²·A·(1 + h²/4): as c' ≤ 9h²/5 and h ≤ 1/2, exp(c'/8) ≤ 1 + h²/4. Elsewhere it takes what it takes as ε-DP.

**Discrete Gaussian noise** (`discrete_gaussian_cost`) is no function of normal noise. Its loss is the same
linear function of the noise as in the normal case, so E H_r(l + L) is a sum over a lattice where the normal
case has an integral, which is H_(r+m)(l), m = Δ²/σ². By Poisson's formula they differ by the Fourier
coefficients at the other points j of the dual lattice; moving the integral into the complex plane, where
|H_r(u + iv)| ≤ exp(v²/2r)·H_r(u), bounds that at j by exp(-2π²|j|²σ²/(1 + m/r))·H_(r+m)(l). The normaliser is
at least the integral's. Each coordinate that moves moves by one step at least, so there are at most Δ² of
them, and the sum is at most (1 + τ)·H_(r+m)(l),

    τ = exp(Δ²·θ) - 1,   θ = 2q/(1 - q),   q = exp(-2π²σ²/(1 + m/r)).

The same holds of K(l) = H(l) - (1 - exp(ε - l)), as E exp(-L) = 1; so the excess is τ·min(H, K) at most. With
s = r + m that is at most τ·C·√s·φ(d), d = (l - ε)/√s + √s/2, C = 1 + √(2πs)·exp(s/2) by Mills' ratio, while H
grows with s at the rate φ(d)/(2√s), and d² by at most u/4 while s grows by u: 3τCs more are enough where 3τC ≤
1/2 and 3τCs ≤ 3/2, since (3/2)·exp(-3/16) ≥ √(3/2). Where coordinates have different variances, σ² is the
least of them and Δ² = m·σ²: for coordinate i, θ_i ≤ m_i·σ²·θ as long as 2π²σ² ≥ 1 + m/r, which is needed here.
Usually τ is below 10⁻³⁰, and the event takes what normal noise does.

Prices are rounded up and caps down. The arithmetic is Decimal's, whose operations are exactly specified, so that
every machine finds the same numbers; its error is far below the 10⁻³⁰ that are added.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, e, erf, erfc, exp, log10, pi, sqrt

from understudy.errors import ParameterError, RefusedError

DIGITS = 70
"""Significant digits of prices' arithmetic."""

GRID = 10**30
"""Amounts are told as whole multiples of 1/GRID."""

STEP = Fraction(2, 10**15)
"""The cap is a multiple of this: a whole number of the ledger's units of μ²/2."""

LARGE_EPSILON = 20
"""From here on an ε-DP event takes 8ε, which is at least its μ² without a reserve."""

FAR = 13
"""erf of this and more is 1 up to 10⁻⁷⁴."""

STRAIGHT = 8
"""So often the search for a cap follows a straight line between its ends; two or three times are enough."""

MOST_ETA = 1000
"""The largest h²/r for which a selection has a price of its own; with less in reserve it takes that of ε-DP."""

PLAIN = Fraction(1, 10**15)
"""Discrete Gaussian noise is plain where its surcharge is at most this part of any move's price.

It is then charged as normal noise is, and the filter's cap is smaller by the same part: so a price buys under
every filter the same noise, to the last unit.
"""

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534")
"""π to more digits than prices are worked out with."""


def gdp_cap(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest μ² for which μ-GDP implies (ε, δ)-DP, rounded down to a multiple of `STEP`. [DRS22,
    Corollary 2.13]

    >>> round(float(gdp_cap(Fraction(1), Fraction(1, 10**6))) ** 0.5, 7)
    0.2367044
    """
    if epsilon <= 0 or not 0 < delta < 1:
        raise ParameterError("a cap on mu needs a positive epsilon, and a delta between 0 and 1")
    return _cap(epsilon, delta)


@lru_cache(maxsize=256)
def _cap(epsilon: Fraction, delta: Fraction) -> Fraction:
    target = max(float(delta), 1e-300)
    low, high = 0.0, 1.0
    while _rough_delta(high, float(epsilon)) <= target:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _rough_delta(middle, float(epsilon)) <= target else (low, middle)
    least = max(0, int(low * (1 - 1e-8) / float(STEP)) - 1)
    most = int(high * (1 + 1e-8) / float(STEP)) + 1
    below, above = _over(least, epsilon, delta), _over(most, epsilon, delta)
    while below > 0:
        least, most, above = least // 2, least, below
        below = _over(least, epsilon, delta)
    while above <= 0:
        least, most, below = most, 2 * most, above
        above = _over(most, epsilon, delta)
    turns = 0
    while most - least > 1:
        # Between ends so near to each other δ is nearly a straight line; were it not, halving ends the search.
        ahead = _crossing(below, above, most - least) if turns < STRAIGHT else (most - least) // 2
        middle = min(max(least + ahead, least + 1), most - 1)
        found, turns = _over(middle, epsilon, delta), turns + 1
        if found <= 0:
            least, below = middle, found
        else:
            most, above = middle, found
    return least * STEP


def _crossing(below: Decimal, above: Decimal, width: int) -> int:
    """Where a straight line from `below`, which is not positive, to `above`, which is, crosses 0: rounded down."""
    with localcontext(_context()):
        return int(-below / (above - below) * width)


def gdp_epsilon(mu_squared: Fraction, delta: Fraction) -> float:
    """The smallest ε found for which μ-GDP implies (ε, δ)-DP: for numbers that are shown, not for prices."""
    low, high, target = 0.0, 1.0, max(float(delta), 1e-300)
    if mu_squared <= 0 or _rough_delta(float(mu_squared), 0.0) <= target:
        return 0.0
    while _rough_delta(float(mu_squared), high) > target:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _rough_delta(float(mu_squared), middle) <= target else (middle, high)
    return high


def _rough_delta(mu_squared: float, epsilon: float) -> float:
    """δ(ε) of μ-GDP in floats."""
    if mu_squared <= 0:
        return 0.0
    mu = sqrt(mu_squared)
    near, far = (epsilon / mu - mu / 2) / sqrt(2), (mu / 2 + epsilon / mu) / sqrt(2)
    if epsilon < 700:
        beyond = exp(epsilon) * erfc(far) / 2
    else:  # the factors over- and underflow: their product by ε - far² = -near² and the tail's series, far out
        series = 1 - 1 / (2 * far**2) + 3 / (4 * far**4) - 15 / (8 * far**6) + 105 / (16 * far**8)
        beyond = exp(-(near**2)) * series / (2 * far * sqrt(pi))
    return max(erfc(near) / 2 - beyond, 0.0)


def _over(steps: int, epsilon: Fraction, delta: Fraction) -> Decimal:
    """By how much the δ of μ² = steps·STEP at ε, and a hair more, is above δ: where by nothing, it is kept."""
    if steps <= 0:
        return -_decimal(delta)
    # The second tail is multiplied by exp(ε), and its error with it; what remains is compared with δ.
    lost = 2 * ceil(-log10(max(float(delta), 1e-300))) + ceil(float(epsilon) * log10(e)) + 1
    with localcontext(_context(DIGITS + lost)):
        mu = _decimal(steps * STEP).sqrt()
        price = _decimal(epsilon)
        here = _upper_tail(price / mu - mu / 2)
        there = price.exp() * _upper_tail(price / mu + mu / 2)
        return (here - there) * (1 + Decimal(10) ** -30) - _decimal(delta)


@lru_cache(maxsize=4096)
def pure_cost(epsilon: Fraction, reserve: Fraction) -> Fraction:
    """The μ² that an ε-DP event takes at a reserve, rounded up; 0 for ε = 0."""
    _checked(epsilon, reserve)
    if epsilon == 0:
        return Fraction(0)
    if epsilon >= LARGE_EPSILON:
        return 8 * epsilon
    with localcontext(_context()):
        price, root = _decimal(epsilon), _decimal(reserve).sqrt()
        likely = 1 / (1 + (-price).exp())
        two = Decimal(2).sqrt()
        total_variation = likely * _erf((price / root + root / 2) / two) - (1 - likely) * _erf(
            (price / root - root / 2) / two
        )
        found = _inverse_erf(total_variation)
        return _rounded_up(8 * found * found - _decimal(reserve))


@lru_cache(maxsize=4096)
def selection_cost(epsilon: Fraction, reserve: Fraction) -> Fraction:
    """The μ² that one run of the exponential mechanism takes at a reserve, rounded up; 0 for ε = 0."""
    _checked(epsilon, reserve)
    half = epsilon / 2
    if epsilon == 0:
        return Fraction(0)
    if half > Fraction(1, 2) or half * half > MOST_ETA * reserve:
        return pure_cost(epsilon, reserve)
    with localcontext(_context()):
        kept, square = _decimal(reserve), _decimal(half * half)
        if half * half * 10**6 < reserve:  # the average of exp(-x²/2r) over the triangle is nearly 1
            middle = square
        else:
            side = _decimal(half)
            bell = side * (PI * kept / 2).sqrt() * _erf(side / (2 * kept).sqrt())
            middle = 2 * (bell - kept * (1 - (-square / (2 * kept)).exp()))
        risen = middle * (1 + square / 4)
        risen = middle * ((risen + risen * risen / (4 * kept)) / 8).exp()
        found = _rounded_up(risen + risen * risen / (4 * kept))
    return min(found, pure_cost(epsilon, reserve))


def discrete_gaussian_cost(l2_squared: Fraction, variance: Fraction, reserve: Fraction) -> Fraction:
    """The μ² that discrete Gaussian noise takes at a reserve, rounded up, but for the part `PLAIN` of it.

    Raises RefusedError where the noise is so small that nothing was proved about it.
    """
    if l2_squared == 0:
        return Fraction(0)
    surcharge = _surcharge(l2_squared, variance, reserve)
    if surcharge is None:
        raise RefusedError(
            "discrete Gaussian noise of so small a variance has no price where a ledger is kept in GDP",
            remedy="ask for a larger error, that is a smaller price, or for Laplace noise",
        )
    mu_squared = l2_squared / variance
    return mu_squared if surcharge * variance <= PLAIN else mu_squared + surcharge


def is_plain(l2_squared: Fraction, variance: Fraction, reserve: Fraction) -> bool:
    """Whether discrete Gaussian noise takes what normal noise does, in proportion to how far values move.

    Then what any smaller move takes is at most its part of the price, as joint accounting needs it.
    """
    surcharge = _surcharge(l2_squared, variance, reserve)
    return surcharge is not None and surcharge * variance <= PLAIN


@lru_cache(maxsize=4096)
def _surcharge(l2_squared: Fraction, variance: Fraction, reserve: Fraction) -> Fraction | None:
    """3τCs, rounded up; None where its conditions do not hold."""
    _checked(l2_squared, reserve)
    mu_squared = l2_squared / variance
    whole = reserve + mu_squared
    with localcontext(_context()):
        exponent = 2 * PI * PI * _decimal(variance) / (1 + _decimal(mu_squared / reserve))
        if exponent < 1:
            return None
        if exponent > 10_000 + whole:
            return Fraction(0)
        one = (-exponent).exp()
        power = _decimal(l2_squared) * 2 * one / (1 - one)
        if power > 1:
            return None
        excess = power.exp() - 1 if power > Decimal(10) ** -20 else power * 2
        total = _decimal(whole)
        most = 1 + (2 * PI * total).sqrt() * (total / 2).exp()
        if 3 * excess * most > min(Decimal("0.5"), Decimal("1.5") / total):
            return None
        return _rounded_up(3 * excess * most * total)


def _checked(amount: Fraction, reserve: Fraction) -> None:
    if amount < 0 or reserve <= 0:
        raise ParameterError("an event takes of a positive reserve, and nothing can earn budget")


def _context(digits: int = DIGITS) -> Context:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _rounded_up(amount: Decimal) -> Fraction:
    """The next multiple of 1/GRID but one: the first is far above the error of the arithmetic."""
    return Fraction(ceil(Fraction(amount) * GRID) + 1, GRID)


def _erf(x: Decimal) -> Decimal:
    """The error function: 2/√π·exp(-x²)·Σ 2ᵏx^(2k+1)/(1·3·…·(2k+1)), whose terms have one sign."""
    if abs(x) >= FAR:
        return Decimal(1).copy_sign(x)
    square = 2 * x * x
    term = total = x
    odd = 1
    least = abs(x) * Decimal(10) ** -(DIGITS + 4)
    while abs(term) > least or square > odd:
        odd += 2
        term = term * square / odd
        total += term
    return 2 / PI.sqrt() * (-x * x).exp() * total


def _upper_tail(x: Decimal) -> Decimal:
    """P[Z > x] of a normal Z, by the same series, at the precision of the context."""
    square = x * x
    term = total = x
    odd = 1
    least = Decimal(10) ** -(getcontext().prec + 4)
    while abs(term) > least or square > odd:
        odd += 2
        term = term * square / odd
        total += term
    return Decimal("0.5") - (-square / 2).exp() / (2 * _pi()).sqrt() * total


def _pi() -> Decimal:
    """π at the precision of the context: 16·arctan(1/5) - 4·arctan(1/239), in whole numbers."""
    digits = getcontext().prec + 10

    def arctan(of: int) -> int:
        term = total = 10**digits // of
        odd, sign = 1, 1
        while term:
            term //= of * of
            odd, sign = odd + 2, -sign
            total += sign * (term // odd)
        return total

    return Decimal(16 * arctan(5) - 4 * arctan(239)).scaleb(-digits)


def _inverse_erf(value: Decimal) -> Decimal:
    """x with erf(x) = value, by Newton's method from a float."""
    low, high = 0.0, float(FAR)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if erf(middle) < float(value) else (low, middle)
    x = Decimal(low) if low > 0 else value
    slope = PI.sqrt() / 2
    for _ in range(8):
        x += (value - _erf(x)) * slope * (x * x).exp()
    return x
