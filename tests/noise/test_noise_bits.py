"""Inversion and rejection word by word: what each bit decides, and that no guard or width changes the law."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np
import pytest

from scripted_noise import Script
from statistical import assert_does_not_follow, assert_follows
from understudy.noise import samplers
from understudy.noise.law import Coin, ExpCoin, Law, Magnitude
from understudy.noise.samplers import WORD, SeededNoise, _invert_exactly, _sampler, _table

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


def test_a_few_draws_are_inverted_as_many_are(monkeypatch):
    """With and without a list of all outcomes: the same numbers, from the same words."""
    for law in (*LAWS, Magnitude(Fraction(1, 1500), 2, folded=False)):
        heads = np.arange(1 << 16)
        table = _table(law)
        assert (table._found(heads) == table.guide[heads]).all()
        drawn = []
        for few in (0, 1 << 20):
            monkeypatch.setattr(samplers, "_FEW", few)
            drawn.append(table.invert(heads, SeededNoise(3)))
        assert (drawn[0] == drawn[1]).all()
