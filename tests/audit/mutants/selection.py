"""Selections that are too sharp, read the data, or take their time from it: caught by their exact law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np

from audit.coins import FixedCoin, RecordingNoise, exact_choice_law, largest_ratio
from audit.mutants.mutant import ERROR, ONE, Mutant
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax, one_sided
from understudy.noise.samplers import SeededNoise, uniform_below
from understudy_audit.claim import PureClaim
from understudy_audit.privacy import Pair, audit_pair
from understudy_audit.selection import score_pairs


@dataclass(frozen=True)
class Choosing:
    how: Callable

    def choose(self, scores, *, noise):
        return self.how(scores, noise)


def chosen(mechanism, scores):
    """Runs of a selection on one vector of scores, one after the other: a mutant has no vector of its own."""
    array = np.array(scores, np.int64)

    def draw(count, noise):
        return np.array([[mechanism.choose(array, noise=noise)] for _ in range(count)], np.int64)

    return draw


def exactly_caught(mechanism, *, pairs=None, claim=1.0) -> bool:
    """Whether the law found by bisection of the coin breaks the claim on any pair of score vectors."""
    for _, one, two in pairs or score_pairs(2):
        laws = [
            exact_choice_law(lambda noise, s=s: mechanism.choose(np.array(s), noise=noise), len(s))
            for s in (one, two)
        ]
        if largest_ratio(*laws) > claim * (1 + 1e-9):
            return True
    return False


def scaled(factor, sensitivity=2):
    return ExponentialMechanism(epsilon=ONE * factor, sensitivity=sensitivity)


def narrow_scores(scores, noise):
    """Scores as they come out of a table of small integers."""
    small = scores.astype(np.int8)
    return scaled(1).choose(small - small.max(), noise=noise)  # wraps around


def positive_scores(scores, noise):
    """Candidates without support are left out."""
    kept = np.flatnonzero(scores > 0)
    return int(kept[scaled(1).choose(scores[kept], noise=noise)]) if kept.size else 0


def underflowing(scores, noise):
    weights = np.exp(scores / 4 - scores.max() / 4)
    uniform = float(noise.words(1)[0]) * 2.0**-64 * weights.sum()
    return int(min(np.searchsorted(np.cumsum(weights), uniform, side="right"), len(scores) - 1))


def impossible_candidate(choose) -> bool:
    """A candidate with a score 8,000 below the best has weight e^-2000: rare, never impossible.

    Coins that are all 0 stand for the first candidate of the cumulative law, whatever its weight.
    """
    return choose(np.array([0, 8000]), noise=FixedCoin(0, rest=0)) != 0


def sampled_choice_caught(mechanism, one, two, *, claim=ONE, samples=15_000) -> bool:
    pair = Pair("mutant", chosen(mechanism, one), chosen(mechanism, two), PureClaim(claim))
    return any(f.excess for f in audit_pair(pair, samples=samples, error=ERROR, noise=SeededNoise(5)))


def leaky_max(scores, noise):
    """Tells how large the winner was as well."""
    sums = scores + one_sided(Fraction(4), scores.size, noise=noise)
    return int(sums.max()) * 8 + int(sums.argmax())


def coin_path_differs(choose) -> bool:
    """Whether how many coins are asked for depends on the scores: a clock would show it."""
    paths = []
    for scores in (np.array([0, 0]), np.array([0, 60])):
        tape = RecordingNoise(SeededNoise(3))
        for _ in range(50):
            choose(scores, noise=tape)
        paths.append(tape.calls)
    return paths[0] != paths[1]


def permute_and_flip(scores, noise):
    """Rejection: the further the others are behind, the longer it takes."""
    while True:
        i = uniform_below(scores.size, noise=noise)
        if float(noise.words(1)[0]) * 2.0**-64 < exp((int(scores[i]) - int(scores.max())) / 4):
            return i


SELECTION = [
    Mutant("selection without the factor 2", "exact law", lambda: exactly_caught(scaled(2))),
    Mutant("selection 5% too sharp", "exact law", lambda: exactly_caught(scaled(Fraction(105, 100)))),
    Mutant("selection with sensitivity halved", "exact law", lambda: exactly_caught(scaled(1, sensitivity=1))),
    Mutant("the best score, without noise", "exact law",
           lambda: exactly_caught(Choosing(lambda s, noise: int(np.argmax(s))))),
    Mutant("scores that wrap around in 8 bits", "exact law",
           lambda: exactly_caught(Choosing(narrow_scores), pairs=[("wide", [-64, 63], [-66, 65])])),
    Mutant("candidates taken from the data", "exact law", lambda: exactly_caught(Choosing(positive_scores))),
    Mutant("weights that underflow to 0", "coins",
           lambda: impossible_candidate(Choosing(underflowing).choose)),
    Mutant("a selection whose time depends on the scores", "coins",
           lambda: coin_path_differs(Choosing(permute_and_flip).choose)),
    Mutant("noisy max with half of the noise", "statistical",
           lambda: sampled_choice_caught(ReportNoisyMax(epsilon=ONE, sensitivity=1), [0, 0], [2, -2])),
    Mutant("noisy max that also tells the maximum", "statistical",
           lambda: sampled_choice_caught(Choosing(leaky_max), [0, 0], [2, 2], claim=Fraction(1, 2))),
]  # fmt: skip
