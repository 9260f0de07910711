"""The samplers against their exact laws, against other samplers, and bit by bit where they settle ties."""

from __future__ import annotations

import os
import random
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features
from scipy import stats

from statistical import FALSE_ALARM, assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.law import (
    Coin,
    ExpCoin,
    Law,
    Magnitude,
    discrete_gaussian_log_law,
    discrete_gaussian_quantile,
    discrete_gaussian_tail,
    discrete_laplace_log_law,
    discrete_laplace_quantile,
    discrete_laplace_tail,
    exp_enclosure,
)
from understudy.noise import (
    WORD,
    NoiseSource,
    SeededNoise,
    SystemNoise,
    _invert_exactly,
    _sampler,
    _Selection,
    _table,
    bernoulli,
    bernoulli_exp,
    choose,
    choose_many,
    discrete_gaussian,
    discrete_laplace,
    uniform_array,
    uniform_below,
)

Sampler = Callable[..., NDArray[np.int64]]

SCALES = [
    Fraction(number)
    for number in (
        "1/3",
        "1/2",
        "10/7",
        "3",
        "17/2",
        "32",
        "100/3",
        "64",
        "1000",
        "123456/7",
        "1000000",
        "1099511627776",
    )
]
VARIANCES = [
    Fraction(number)
    for number in (
        "1/9",
        "1/3",
        "2",
        "50/7",
        "100",
        "1024",
        "3333/2",
        "4097",
        "1000000",
        "1000000000/7",
        "1000000000000",
        "1152921504606846976",
    )
]


class Script:
    """A noise source that plays the given words, then refuses: a test sees exactly how many were needed."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > len(self.left):
            raise EOFError
        played, self.left = self.left[:count], self.left[count:]
        return np.array(played, dtype=np.uint64)


# ---------------------------------------------------------------------------------------- laws


def cells(
    tail: Callable[..., float], quantile: Callable[..., int], parameter: Fraction
) -> tuple[NDArray[np.int64], Callable[[Fraction], list[float]]]:
    """Edges of about forty cells of equal weight, and the law of any parameter over them."""
    edges = sorted({0, *(quantile(parameter, beta) for beta in np.arange(1, 20) / 20)})

    def law(other: Fraction) -> list[float]:
        tails = [tail(other, t) for t in edges]
        positive = [(a - b) / 2 for a, b in pairwise(tails)] + [tails[-1] / 2]
        return [*reversed(positive), 1 - tails[0], *positive]

    return np.array(edges), law


def tally(draws: NDArray[np.int64], edges: NDArray[np.int64]) -> list[int]:
    index = np.sign(draws) * np.searchsorted(edges, np.abs(draws), side="left")
    return np.bincount(index + len(edges), minlength=2 * len(edges) + 1).tolist()


def assert_law_and_mutants(
    sampler: Sampler, tail: Callable[..., float], quantile: Callable[..., int], parameter: Fraction, seed: int
) -> None:
    draws = sampler(parameter, 1_000_000, noise=SeededNoise(seed))
    edges, law = cells(tail, quantile, parameter)
    counts = tally(draws, edges)
    assert_follows(counts, law(parameter))
    for factor in (Fraction("0.8"), Fraction("0.97"), Fraction("1.03"), Fraction("1.25")):
        assert_does_not_follow(counts, law(parameter * factor))


@pytest.mark.parametrize("scale", [s for s in SCALES if s < 2**39])
def test_discrete_laplace_follows_its_law(scale: Fraction) -> None:
    assert_law_and_mutants(discrete_laplace, discrete_laplace_tail, discrete_laplace_quantile, scale, seed=1)


@pytest.mark.parametrize("variance", [v for v in VARIANCES if v < 2**59])
def test_discrete_gaussian_follows_its_law(variance: Fraction) -> None:
    assert_law_and_mutants(
        discrete_gaussian, discrete_gaussian_tail, discrete_gaussian_quantile, variance, seed=2
    )


def test_the_largest_parameters_follow_their_laws() -> None:
    for sampler, tail, quantile, parameter in (
        (discrete_laplace, discrete_laplace_tail, discrete_laplace_quantile, SCALES[-1]),
        (discrete_gaussian, discrete_gaussian_tail, discrete_gaussian_quantile, VARIANCES[-1]),
    ):
        counts_of = sampler(parameter, 1_000_000, noise=SeededNoise(3))
        edges, law = cells(tail, quantile, parameter)
        assert_follows(tally(counts_of, edges), law(parameter))
        assert_does_not_follow(tally(counts_of, edges), law(parameter * Fraction("0.97")))


@pytest.mark.parametrize(
    ("sampler", "log_law", "parameter"),
    [
        (discrete_laplace, discrete_laplace_log_law, Fraction(9, 2)),
        (discrete_laplace, discrete_laplace_log_law, Fraction(33)),
        (discrete_laplace, discrete_laplace_log_law, Fraction(260, 3)),
        (discrete_gaussian, discrete_gaussian_log_law, Fraction(37, 3)),
        (discrete_gaussian, discrete_gaussian_log_law, Fraction(33**2)),
        (discrete_gaussian, discrete_gaussian_log_law, Fraction(15007, 2)),
    ],
)
def test_every_integer_has_its_probability(
    sampler: Sampler, log_law: Callable[..., NDArray[np.float64]], parameter: Fraction
) -> None:
    draws = sampler(parameter, 2_000_000, noise=SeededNoise(4))
    reach = 4000
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    points = np.arange(-reach, reach + 1)
    assert_follows(counts.tolist(), np.exp(log_law(parameter, points)).tolist())
    assert_does_not_follow(counts.tolist(), np.exp(log_law(parameter * Fraction("1.02"), points)).tolist())


def test_the_rejection_step_is_seen() -> None:
    """The low part has a geometric law, and not the uniform one of a sampler that never rejects."""
    scale = 10**6
    sampler = _sampler(Fraction(1, scale), 1)
    never = replace(sampler, rate=sampler.rate / 10**9)
    shift = sampler.low_bits - 3
    law = np.exp(-(np.arange(8) << shift) / scale)

    def eighths(draws: NDArray[np.int64]) -> list[int]:
        return np.bincount(np.abs(draws) >> shift & 7, minlength=8).tolist()

    noise = SeededNoise(4)
    right, wrong = (np.concatenate([s.draw(1 << 15, noise) for _ in range(60)]) for s in (sampler, never))
    assert_follows(eighths(right), (law / law.sum()).tolist())
    assert_does_not_follow(eighths(wrong), (law / law.sum()).tolist())


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(40), Fraction(10**6)])
def test_laplace_parity_and_sign(scale: Fraction) -> None:
    draws = discrete_laplace(scale, 1_000_000, noise=SeededNoise(5))
    ratio = exp(-1 / float(scale))
    even = (1 + ratio**2) / (1 + ratio) ** 2
    odd_count = int((draws & 1).sum())
    assert_follows([draws.size - odd_count, odd_count], [even, 1 - even])
    assert_symmetric(draws)


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(7, 3), Fraction(2000), Fraction(10**12)])
def test_gaussian_parity_and_sign(variance: Fraction) -> None:
    draws = discrete_gaussian(variance, 1_000_000, noise=SeededNoise(6))
    points = np.arange(-600, 601)
    law = np.exp(discrete_gaussian_log_law(variance, points))
    even = float(law[points % 2 == 0].sum()) if variance < 10**4 else 0.5
    odd_count = int((draws & 1).sum())
    assert_follows([draws.size - odd_count, odd_count], [even, 1 - even])
    assert_symmetric(draws)


def assert_symmetric(draws: NDArray[np.int64]) -> None:
    counts = [int((draws > 0).sum()), int((draws < 0).sum())]
    assert_follows(counts, [0.5, 0.5])
    assert_does_not_follow(counts, [0.52, 0.48])


def test_draws_are_independent_of_their_neighbours() -> None:
    draws = np.sign(discrete_laplace(50, 400_001, noise=SeededNoise(7)))
    agree = int((draws[1:] == draws[:-1])[(draws[1:] != 0) & (draws[:-1] != 0)].sum())
    both = int(((draws[1:] != 0) & (draws[:-1] != 0)).sum())
    assert_follows([agree, both - agree], [0.5, 0.5])


# ---------------------------------------------------------------------------------------- other samplers


def assert_same_law(
    a: Sequence[int] | NDArray[np.int64], b: NDArray[np.int64], mutants: list[NDArray[np.int64]]
) -> None:
    assert two_sample(np.asarray(a), b) >= FALSE_ALARM
    for mutant in mutants:
        assert two_sample(np.asarray(a), mutant) < FALSE_ALARM, "a wrong law passed: the check has no power"


def two_sample(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    both = np.sort(np.concatenate([a, b]))
    edges = np.unique(both[np.linspace(0, both.size - 1, 30).astype(int)])
    counts = [np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (a, b)]
    table = np.array(counts)[:, np.sum(counts, axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, table.shape[1] - 1))


@pytest.mark.parametrize("scale", [0.75, 6.5, 200.0])
def test_discrete_laplace_agrees_with_opendp(scale: float) -> None:
    enable_features("contrib")
    space = vector_domain(atom_domain(T=int)), l1_distance(T=int)
    theirs = make_laplace(*space, scale=scale)([0] * 50_000)
    noise = SeededNoise(8)
    assert_same_law(
        theirs,
        discrete_laplace(scale, 500_000, noise=noise),
        [
            discrete_laplace(Fraction(scale) * f, 500_000, noise=noise)
            for f in (Fraction("0.8"), Fraction("1.25"))
        ],
    )


@pytest.mark.parametrize("std", [0.75, 6.5, 200.0])
def test_discrete_gaussian_agrees_with_opendp(std: float) -> None:
    enable_features("contrib")
    space = vector_domain(atom_domain(T=int)), l2_distance(T=float)
    theirs = make_gaussian(*space, scale=std)([0] * 50_000)
    noise, variance = SeededNoise(9), Fraction(std) ** 2
    assert_same_law(
        theirs,
        discrete_gaussian(variance, 500_000, noise=noise),
        [discrete_gaussian(variance * f, 500_000, noise=noise) for f in (Fraction("0.8"), Fraction("1.25"))],
    )


def textbook_bernoulli_exp(numerator: int, denominator: int, rng: random.Random) -> bool:
    """[CKS20, Algorithm 1], for a rate of any size."""
    while numerator > denominator:
        if not textbook_bernoulli_exp(1, 1, rng):
            return False
        numerator -= denominator
    k = 1
    while rng.randrange(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def textbook_laplace(t: int, s: int, rng: random.Random) -> int:
    """[CKS20, Algorithm 2]: scale t/s."""
    while True:
        low = rng.randrange(t)
        if not textbook_bernoulli_exp(low, t, rng):
            continue
        high = 0
        while textbook_bernoulli_exp(1, 1, rng):
            high += 1
        magnitude, minus = (low + t * high) // s, rng.random() < 0.5
        if not (minus and magnitude == 0):
            return -magnitude if minus else magnitude


def textbook_gaussian(variance: Fraction, rng: random.Random) -> int:
    """[CKS20, Algorithm 3]."""
    t = int(float(variance) ** 0.5) + 1
    while True:
        proposal = textbook_laplace(t, 1, rng)
        excess = (abs(proposal) - variance / t) ** 2 / (2 * variance)
        if textbook_bernoulli_exp(excess.numerator, excess.denominator, rng):
            return proposal


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1), Fraction(11, 4)])
def test_cks20_algorithm_1(rate: Fraction) -> None:
    rng = random.Random(10)
    theirs = sum(textbook_bernoulli_exp(rate.numerator, rate.denominator, rng) for _ in range(40_000))
    assert_follows([theirs, 40_000 - theirs], [exp(-rate), 1 - exp(-rate)])
    ours = int(bernoulli_exp(rate, 400_000, noise=SeededNoise(10)).sum())
    assert_follows([ours, 400_000 - ours], [exp(-rate), 1 - exp(-rate)])
    assert_does_not_follow([ours, 400_000 - ours], [exp(-rate * 1.25), 1 - exp(-rate * 1.25)])


@pytest.mark.parametrize("scale", [Fraction(3, 2), Fraction(75)])
def test_cks20_algorithm_2(scale: Fraction) -> None:
    rng, noise = random.Random(11), SeededNoise(11)
    theirs = [textbook_laplace(scale.numerator, scale.denominator, rng) for _ in range(40_000)]
    assert_same_law(
        theirs,
        discrete_laplace(scale, 400_000, noise=noise),
        [discrete_laplace(scale * f, 400_000, noise=noise) for f in (Fraction("0.8"), Fraction("1.25"))],
    )


@pytest.mark.parametrize("variance", [Fraction(7, 2), Fraction(4000)])
def test_cks20_algorithm_3(variance: Fraction) -> None:
    rng, noise = random.Random(12), SeededNoise(12)
    theirs = [textbook_gaussian(variance, rng) for _ in range(30_000)]
    assert_same_law(
        theirs,
        discrete_gaussian(variance, 400_000, noise=noise),
        [discrete_gaussian(variance * f, 400_000, noise=noise) for f in (Fraction("0.7"), Fraction("1.4"))],
    )


# ---------------------------------------------------------------------------------------- bit by bit


LAWS: list[Law] = [
    Coin(Fraction(1, 3)),
    Coin(Fraction(5, 16)),
    ExpCoin(Fraction(7, 5)),
    Magnitude(Fraction(1, 2), 1, folded=True),
    Magnitude(Fraction(1, 9), 1, folded=False),
    Magnitude(Fraction(1, 18), 2, folded=True),
    Magnitude(Fraction(1, 50), 2, folded=False),
]


def outcome_or_tie(law: Law, head_bits: int, word_bits: int, u: int) -> int | None:
    """What the table makes of uniform numbers that begin with the bits of `u`; None if undecided."""
    more = word_bits - head_bits
    script = Script((u & (1 << more) - 1) << WORD - more)
    try:
        return int(_table(law, head_bits, word_bits).invert(np.array([u >> more]), script)[0])
    except EOFError:
        return None


@pytest.mark.parametrize("law", LAWS)
def test_every_first_word_is_decided_as_the_law_says(law: Law) -> None:
    """Exhaustive over all words of 10 bits: decided where no cut is inside the cell, and then rightly."""
    bits, fine = 10, 90
    cuts = law.cuts(fine)  # exact floors, 80 bits finer than the cells
    for u in range(1 << bits):
        first = bisect_right(cuts, u << fine - bits)
        last = bisect_right(cuts, (u + 1 << fine - bits) - 1)
        dyadic = (u << fine - bits) in cuts  # a cut on the cell's very edge may be looked at again
        found = outcome_or_tie(law, 4, bits, u)
        if found is None:
            assert first != last or dyadic
        else:
            assert first == last == found


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("more", [1, 2, 3])
def test_ties_are_settled_by_further_words(law: Law, more: int) -> None:
    """A uniform number that shares `more` words with a cut is decided on the next, on the right side."""
    bits = 8 + WORD * more
    for k, cut in enumerate(law.cuts(bits)[:6]):
        if cut == (1 << bits) - 1:
            break
        for step, outcome in ((-1, k), (1, k + 1)):
            u = cut + step
            neighbours = law.cuts(bits)[max(0, k - 1) : k + 2]
            if u in neighbours or not 0 <= u < 1 << bits:
                continue
            words = [u >> WORD * i & (1 << WORD) - 1 for i in reversed(range(more))]
            script = Script(*words)
            assert _invert_exactly(law, u >> WORD * more, 8, script) == outcome


@pytest.mark.parametrize(
    ("head_bits", "word_bits"),
    [(2, 4), (4, 8), (8, 12)],
)
@pytest.mark.parametrize("law", LAWS[3:6])
def test_the_law_does_not_depend_on_the_width_of_the_first_comparison(
    law: Magnitude, head_bits: int, word_bits: int
) -> None:
    """With words this short most draws tie: the exact path alone must make the law."""
    noise, draws = SeededNoise(13), 30_000
    heads = (noise.words(draws) >> np.uint64(WORD - head_bits)).astype(np.int64)
    outcomes = _table(law, head_bits, word_bits).invert(heads, noise)
    weights = np.array([exp(-law.rate * k**law.power) * (2 if law.folded and k else 1) for k in range(400)])
    counts = np.bincount(outcomes, minlength=400)
    assert_follows(counts.tolist(), (weights / weights.sum()).tolist())
    wrong = weights ** np.array(1.25)
    assert_does_not_follow(counts.tolist(), (wrong / wrong.sum()).tolist())


@pytest.mark.parametrize("parameter", [Fraction(3, 2), Fraction(2**20)])
def test_every_bit_of_the_first_word_has_one_use(parameter: Fraction) -> None:
    """Head, sign, low part and the start of the rejection's number share no bit."""
    sampler = _sampler(1 / parameter, 1)
    word = 0x5A5A_0000_0000_0000 | 5 << 40
    sign, spare = WORD - 17, WORD - 17 - sampler.low_bits

    def draw(bits: int) -> int:
        return int(sampler.draw(1, Script(bits))[0])

    plain = draw(word)
    assert plain > 0
    assert draw(word ^ 1 << sign) == -plain
    for bit in range(sign):
        moved = abs(draw(word ^ 1 << bit) - plain)
        assert moved == (1 << bit - spare if sampler.low_bits and bit >= spare else 0)
    for bit in range(WORD - 16, WORD):
        heads = word ^ 1 << bit
        assert draw(heads) >= 0
        assert draw(heads ^ 1 << sign) == -draw(heads)
        assert (draw(heads) - plain) % (1 << sampler.low_bits) == 0


@pytest.mark.parametrize("guard", [2.0**-40, 2.0**-3])
@pytest.mark.parametrize(
    ("rate", "power"), [(Fraction(1, 70), 1), (Fraction(1, 70**2), 2), (Fraction(1, 9**9), 2)]
)
def test_the_rejection_does_not_depend_on_its_guard(rate: Fraction, power: int, guard: float) -> None:
    """Cells of the uniform number just below and above exp(-e); a wide guard sends all to exact arithmetic."""
    sampler = replace(_sampler(rate, 1 if power == 1 else 2), guard=guard)
    block, bits = 1 << sampler.low_bits, 16
    base, low = (grid.ravel() for grid in np.meshgrid(np.arange(60) * block, [1, block // 2, block - 1]))
    chance = np.exp(-float(rate) * ((base + low).astype(float) ** power - base.astype(float) ** power))
    cut = np.floor(chance * 2**bits).astype(np.int64)
    assert sampler._accept(base, low, cut - 1, bits, SeededNoise(14)).all()
    above = cut + 1 < 1 << bits
    assert not sampler._accept(base[above], low[above], cut[above] + 1, bits, SeededNoise(14)).any()
    assert above.sum() > 20


def test_the_rejection_is_settled_on_the_right_side() -> None:
    """The uniform number set next to exp(-e), from either side, far inside the guard band."""
    sampler = _sampler(Fraction(1, 1000), 1)
    for low in (1, 7, 19):
        cut = ExpCoin(Fraction(low, 1000)).cuts(10 + 2 * WORD)[0]
        for step, kept in ((-1, True), (1, False)):
            u = cut + step
            script = Script(u >> WORD & (1 << WORD) - 1, u & (1 << WORD) - 1)
            start = np.array([u >> 2 * WORD])
            found = sampler._accept(np.array([0]), np.array([low]), start, 10, script)
            assert found.tolist() == [kept]


@pytest.mark.parametrize("power", [1, 2])
def test_karney16_algorithm_n(power: int) -> None:
    """Proposal times acceptance is the law: the exponents add up exactly, for every high and low part."""
    rate = Fraction(1, 4321) if power == 1 else Fraction(1, 2 * 777**2)
    sampler = _sampler(rate, 1 if power == 1 else 2)
    law = sampler.table.law
    assert isinstance(law, Magnitude)
    block = 1 << sampler.low_bits
    for high in (0, 1, 2, 17):
        for low in (0, 1, block - 1):
            proposal = law.rate * high**power
            acceptance = rate * ((block * high + low) ** power - (block * high) ** power)
            assert proposal + acceptance == rate * (block * high + low) ** power


# ---------------------------------------------------------------------------------------- choose


def selection_law(
    levels: Sequence[int], rate: Fraction, counts: Sequence[int], bits: int = 1500
) -> list[Fraction]:
    """Cumulative law of `choose`, within 2^-300."""
    low = min(level for level, count in zip(levels, counts, strict=True) if count)
    weights = [
        count * exp_enclosure(rate * max(0, level - low), bits)[0]
        for level, count in zip(levels, counts, strict=True)
    ]
    return [Fraction(c, sum(weights)) for c in accumulate(weights)]


CASES: list[tuple[list[int], Fraction, list[int] | None]] = [
    ([0, 0, 0], Fraction(1), None),
    ([5, -3, 0, 12, -3], Fraction(1, 4), None),
    ([0, 30, 31], Fraction(1), None),
    ([-(2**63), 2**63 - 1, -(2**63) + 1], Fraction(1, 3), None),
    ([0, 460, 3], Fraction(1), [1, 10**200, 3]),
    ([0, 100, 200], Fraction(0), [10**300, 2 * 10**300, 10**299]),
    ([7, 0, 9], Fraction(2, 3), [3, 0, 10]),
    ([10**15, -(10**15), 10**15 + 1], Fraction(1, 3), [1, 0, 1]),
    (list(range(300)), Fraction(1, 100), None),
]


def select(levels: Sequence[int], rate: Fraction, counts: Sequence[int] | None, noise: NoiseSource) -> int:
    return choose(np.array(levels, dtype=np.int64), rate, noise=noise, multiplicities=counts)


@pytest.mark.parametrize(("levels", "rate", "counts"), CASES)
def test_choose_is_exact_on_both_sides_of_every_boundary(
    levels: list[int], rate: Fraction, counts: list[int] | None
) -> None:
    """The uniform number is set next to each boundary of the law: one word away, then one word in 2⁶⁴ away."""
    cumulative = selection_law(levels, rate, counts or [1] * len(levels))
    for words in (1, 2):
        unit = 1 << WORD * words
        for cut in {boundary * unit // 1 for boundary in cumulative[:: 1 + len(levels) // 12]}:
            for u in (cut - 1, cut + 1):
                if not 0 <= u < unit or any(boundary * unit // 1 == u for boundary in cumulative):
                    continue
                script = Script(*(u >> WORD * i & (1 << WORD) - 1 for i in reversed(range(words))), 1 << 63)
                assert select(levels, rate, counts, script) == bisect_right(cumulative, Fraction(u, unit))


def test_a_tie_asks_for_more_words() -> None:
    cumulative = selection_law([0, 1], Fraction(1), [1, 1])
    with pytest.raises(EOFError):
        select([0, 1], Fraction(1), None, Script(int(cumulative[0] * 2**64)))


def test_a_gap_of_ten_thousand_is_unlikely_and_not_impossible() -> None:
    """Candidate 0 has probability e^-10000: it is chosen by a uniform number below that, and by none above."""
    bits = 1 << 14  # 64 · 2^8, as `choose` doubles its uniform number until it is decided
    tiny = exp_enclosure(Fraction(10**4), bits + 100)[0]
    cut = tiny * (1 << bits) // ((1 << bits + 100) + tiny)
    assert 0 < cut.bit_length() < 2000  # e^-10000 is 2^-14427
    for u, chosen in ((cut - 1, 0), (cut + 1, 1)):
        words, last = [], bits
        for first in [0, *(WORD << i for i in range(8))]:
            size = (first or WORD) // WORD
            last -= size * WORD
            part = u >> last & (1 << size * WORD) - 1
            words += [part >> WORD * i & (1 << WORD) - 1 for i in range(size)]  # least significant first
        script = Script(*words)
        assert select([10**4, 0], Fraction(1), None, script) == chosen
        assert script.left == []


def test_choose_follows_its_law() -> None:
    levels, rate, noise = [0, 3, 1, 8, 3, -1], Fraction(2, 5), SeededNoise(16)
    counts = np.bincount([select(levels, rate, None, noise) for _ in range(20_000)], minlength=6)
    for factor, check in (
        (1.0, assert_follows),
        (0.8, assert_does_not_follow),
        (1.25, assert_does_not_follow),
    ):
        weights = np.exp(-float(rate) * factor * np.array(levels))
        check(counts.tolist(), (weights / weights.sum()).tolist())


def test_choose_follows_its_law_with_multiplicities() -> None:
    levels, rate, noise = [0, 460, 461, 900], Fraction(1), SeededNoise(17)
    multiplicities = [3, 10**200, 2 * 10**200, 10**391]
    drawn = [select(levels, rate, multiplicities, noise) for _ in range(20_000)]
    logs = np.array([log(m) for m in multiplicities]) - np.array(levels)
    for factor, check in (
        (1.0, assert_follows),
        (0.8, assert_does_not_follow),
        (1.25, assert_does_not_follow),
    ):
        weights = np.exp(factor * (logs - logs.max()))
        check(np.bincount(drawn, minlength=4).tolist(), (weights / weights.sum()).tolist())


def test_the_exact_path_alone_makes_the_law() -> None:
    gaps, noise = np.array([0, 2, 5, 1, 1, 9], dtype=np.uint64), SeededNoise(18)
    selection = _Selection(gaps, Fraction(1, 3), margin=1.0)
    assert selection.by_floats(np.array([1 << 62], np.uint64)).tolist() == [-1]
    counts = np.bincount(selection.draw(8_000, noise), minlength=6)
    for factor, check in (
        (1.0, assert_follows),
        (0.8, assert_does_not_follow),
        (1.25, assert_does_not_follow),
    ):
        weights = np.exp(-gaps.astype(float) / 3 * factor)
        check(counts.tolist(), (weights / weights.sum()).tolist())


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-(10**4), 10**4), min_size=1, max_size=300),
    st.fractions(min_value=0, max_value=5, max_denominator=1000),
    st.integers(0, 2**64 - 1),
    st.integers(0, 10**6),
)
def test_floats_never_contradict_integers(levels: list[int], rate: Fraction, word: int, pick: int) -> None:
    """At any uniform number, also close to a boundary, floats give the exact answer or none."""
    cumulative = selection_law(levels, rate, [1] * len(levels))
    selection = _Selection((np.array(levels) - min(levels)).astype(np.uint64), rate)
    boundary = int(cumulative[pick % len(levels)] * 2**64)
    for start in (word, *(boundary + offset for offset in (-(2**12), -(2**9), -3, 3, 2**9, 2**12))):
        if 0 <= start < 2**64:
            (found,) = selection.by_floats(np.array([start], np.uint64))
            assert found in (-1, bisect_right(cumulative, Fraction(2 * start + 1, 2**65)))


def test_choose_among_a_million() -> None:
    """All but a few first words are settled by floats, and agree with the exact path."""
    rng = np.random.default_rng(19)
    levels = rng.integers(0, 50, 1_000_000)
    selection = _Selection((levels - levels.min()).astype(np.uint64), Fraction(1, 7))
    starts = [int(word) for word in SeededNoise(20).words(3)]
    distinct, groups = np.unique(selection.gaps, return_inverse=True)
    for start in starts:
        (found,) = selection.by_floats(np.array([start], np.uint64))
        assert found == selection.by_integers(distinct.tolist(), groups.tolist(), start, 64)
    chosen = [choose(levels, Fraction(1, 7), noise=SeededNoise(seed)) for seed in range(40)]
    assert np.mean(levels[chosen]) < 15


@pytest.mark.parametrize("size", [1, 2, 64, 65, 5_000])
def test_many_choices_are_those_of_one_at_a_time(size: int) -> None:
    """Each first word settles its draw, whether it comes alone or among others."""
    levels = np.random.default_rng(size).integers(0, 40, size)
    many = choose_many(levels, Fraction(1, 9), 300, noise=SeededNoise(21))
    noise = SeededNoise(21)
    assert many.tolist() == [choose(levels, Fraction(1, 9), noise=noise) for _ in range(300)]
    assert choose_many(levels, Fraction(1, 9), 0, noise=noise).size == 0
    with pytest.raises(ParameterError):
        choose_many(levels, Fraction(1, 9), -1, noise=noise)


def test_choose_alone() -> None:
    assert select([17], Fraction(3), None, SystemNoise()) == 0
    assert select([17, -4], Fraction(3), [1, 0], SystemNoise()) == 0


@pytest.mark.parametrize(
    ("levels", "rate", "multiplicities"),
    [
        (np.array([], dtype=np.int64), 1, None),
        (np.array([0.5, 1.0]), 1, None),
        (np.array([[1, 2]]), 1, None),
        (np.array([1, 2], dtype=np.uint64), 1, None),
        (np.array([1, 2]), -1, None),
        (np.array([1, 2]), float("nan"), None),
        (np.array([1, 2]), 2**41, None),
        (np.array([1, 2]), Fraction(1, 2**201), None),
        (np.array([1, 2]), 1, [1]),
        (np.array([1, 2]), 1, [0, 0]),
        (np.array([1, 2]), 1, [3, -1]),
    ],
)
def test_choose_refuses_bad_parameters(
    levels: NDArray[np.int64], rate: Fraction, multiplicities: list[int] | None
) -> None:
    with pytest.raises(ParameterError):
        choose(levels, rate, noise=SystemNoise(), multiplicities=multiplicities)


# ---------------------------------------------------------------------------------------- coins, integers


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 2), Fraction(3, 1000), Fraction(99, 100)])
def test_bernoulli_follows_its_law(p: Fraction) -> None:
    ones = int(bernoulli(p, 1_000_000, noise=SeededNoise(21)).sum())
    assert_follows([ones, 1_000_000 - ones], [float(p), float(1 - p)])
    for factor in (0.8, 1.25) if p < Fraction(4, 5) else (0.99,):
        assert_does_not_follow([ones, 1_000_000 - ones], [float(p) * factor, 1 - float(p) * factor])


def test_sure_coins() -> None:
    assert not bernoulli(0, 100, noise=Script()).any()
    assert bernoulli(1, 100, noise=Script()).all()
    assert bernoulli_exp(0, 100, noise=Script()).all()
    assert not bernoulli_exp(10**9, 100, noise=SeededNoise(22)).any()


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 64, 100])
def test_uniform_below_is_uniform(bound: int) -> None:
    noise = SeededNoise(23)
    counts = np.bincount([uniform_below(bound, noise=noise) for _ in range(20_000)], minlength=bound)
    assert len(counts) == bound
    assert_follows(counts.tolist(), [1 / bound] * bound)
    if bound > 2:
        wrong = np.linspace(0.8, 1.2, bound)
        assert_does_not_follow(counts.tolist(), (wrong / wrong.sum()).tolist())


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 64, 100])
def test_uniform_array_is_uniform(bound: int) -> None:
    draws = uniform_array(bound, 60_000, noise=SeededNoise(bound))
    counts = np.bincount(draws, minlength=bound)
    assert len(counts) == bound
    assert_follows(counts.tolist(), [1 / bound] * bound)
    if bound > 2:
        skewed = np.arange(bound) + 3.0 * bound
        assert_does_not_follow(counts.tolist(), (skewed / skewed.sum()).tolist())


def test_uniform_array_rejects_rather_than_wraps() -> None:
    top = 1 << 62
    assert uniform_array(3, 2, noise=Script(3 * top, top, 0)).tolist() == [0, 1]
    assert uniform_array(3, 0, noise=Script()).tolist() == []
    for bound in (0, -1, 2**63):
        with pytest.raises(ParameterError):
            uniform_array(bound, 1, noise=SystemNoise())


def test_uniform_below_a_bound_of_many_words() -> None:
    noise, bound = SeededNoise(24), 3**200
    drawn = [uniform_below(bound, noise=noise) for _ in range(20_000)]
    assert all(0 <= x < bound for x in drawn)
    assert_follows(np.bincount([10 * x // bound for x in drawn], minlength=10).tolist(), [0.1] * 10)
    assert_follows(np.bincount([x % 10 for x in drawn], minlength=10).tolist(), [0.1] * 10)


def test_uniform_below_rejects_rather_than_wraps() -> None:
    high = 3 << WORD - 2
    assert uniform_below(3, noise=Script(high, high, 2 << WORD - 2)) == 2


# ---------------------------------------------------------------------------------------- sources, parameters


def test_forked_processes_do_not_share_a_stream() -> None:
    source = SystemNoise()
    source.words(4)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks among threads
        child = os.fork()
    if child == 0:
        os.write(writer, source.words(4).tobytes())
        os._exit(0)
    os.close(writer)
    theirs = os.read(reader, 64)
    os.close(reader)
    os.waitpid(child, 0)
    assert len(theirs) == 32
    assert theirs != source.words(4).tobytes()


def test_system_noise_is_uniform() -> None:
    words = SystemNoise().words(100_000)
    assert words.dtype == np.uint64
    for shift in (0, 24, 56):
        counts = np.bincount((words >> np.uint64(shift) & np.uint64(255)).astype(int), minlength=256)
        assert_follows(counts.tolist(), [1 / 256] * 256)


def test_seeded_noise_repeats() -> None:
    def everything(seed: int) -> tuple[object, ...]:
        noise = SeededNoise(seed)
        return (
            discrete_laplace(Fraction(1000, 3), 100, noise=noise).tolist(),
            discrete_gaussian(Fraction(10**7), 100, noise=noise).tolist(),
            choose(np.arange(1000), Fraction(1, 100), noise=noise),
            bernoulli(Fraction(1, 3), 50, noise=noise).tolist(),
            uniform_below(10**30, noise=noise),
        )

    assert everything(25) == everything(25)
    assert everything(25) != everything(26)


def test_the_default_source_differs_each_time() -> None:
    a, b = (discrete_laplace(10**6, 10, noise=SystemNoise()).tolist() for _ in range(2))
    assert a != b


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("size", [0, 1, 2, 32_767, 32_769])
def test_sizes(sampler: Sampler, size: int) -> None:
    for parameter in (Fraction(1, 1000), Fraction(5), Fraction(10**6)):
        draws = sampler(parameter, size, noise=SeededNoise(27))
        assert draws.shape == (size,)
        assert draws.dtype == np.int64
    assert bernoulli(Fraction(1, 3), size, noise=SeededNoise(27)).shape == (size,)


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 2**61, "3", True, None])
def test_bad_parameters_are_refused(sampler: Sampler, bad: object) -> None:
    with pytest.raises(ParameterError):
        sampler(bad, 10, noise=SystemNoise())


def test_other_bad_parameters_are_refused() -> None:
    noise = SystemNoise()
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(ParameterError):
            bernoulli(p, 3, noise=noise)
    with pytest.raises(ParameterError):
        bernoulli_exp(-1, 3, noise=noise)
    with pytest.raises(ParameterError):
        uniform_below(0, noise=noise)
    for sampler in (discrete_laplace, discrete_gaussian):
        with pytest.raises(ParameterError):
            sampler(1, -1, noise=noise)
    with pytest.raises(TypeError):
        discrete_laplace(1, 2.5, noise=noise)  # pyright: ignore[reportArgumentType]


def test_tiny_scales_are_almost_always_zero() -> None:
    assert not discrete_laplace(Fraction(1, 1000), 1000, noise=SystemNoise()).any()
    assert not discrete_gaussian(Fraction(1, 1000), 1000, noise=SystemNoise()).any()
