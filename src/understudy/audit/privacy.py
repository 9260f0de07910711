"""The black-box audit: draw on two neighbouring tables, find an event, certify a lower bound on epsilon.

    pilot: which neighbours look worst → half of the draws: learn an event → the other half: count it → exact bound

A bound above the promise is a proof, up to the stated error, that the promise is broken. A bound below it is no
proof that it holds; `detectable` says how large an epsilon would have been noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf

import numpy as np

from understudy.audit.claim import Claim
from understudy.audit.confidence import certified_epsilon, estimated_epsilon
from understudy.audit.events import Draws, learn
from understudy.errors import ParameterError
from understudy.noise import NoiseSource

Draw = Callable[[int, NoiseSource], Draws]
"""So many runs of a mechanism on one table, with coins from a source."""

FAMILY_ERROR = 1e-6
"""The chance that an audit of correct mechanisms finds anything at all."""

MOST_LEARNT = 500_000
"""An event needs no more draws than this to be learnt from; the others are better spent on counting it."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A mechanism on two neighbouring tables, and what was promised about it."""

    name: str
    first: Draw
    second: Draw
    claim: Claim


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism under audit: where its code is, and neighbouring tables on which it may be at its worst."""

    name: str
    path: str
    size: str
    """`vector` draws millions a second; `single` tens of thousands; `run` hundreds."""
    pairs: Callable[[], Sequence[Pair]]


@dataclass(frozen=True)
class Finding:
    """One event counted on fresh draws of both tables."""

    pair: str
    order: str
    delta: float
    claimed: float
    certified: float
    estimated: float
    event: str
    hits: tuple[int, int]
    trials: tuple[int, int]
    error: float

    @property
    def excess(self) -> bool:
        """Whether more than the promise was certified; float rounding of the promise is let pass."""
        return self.certified > self.claimed * (1 + 1e-9) + 1e-12

    @property
    def detectable(self) -> float:
        """The least ε that these many draws would have certified as an excess, were this the worst of pairs.

        The worst is randomised response, of which no ε-DP mechanism is more revealing. Infinite where no ε would.
        """
        low, high = self.claimed, self.claimed + 40.0
        if not self._would_show(high):
            return inf
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (low, middle) if self._would_show(middle) else (middle, high)
        return high

    def _would_show(self, truth: float) -> bool:
        share = (1 + self.delta * exp(-truth)) / (1 + exp(-truth))
        hits = round(self.trials[0] * share), round(self.trials[1] * (1 - share))
        bound = certified_epsilon(hits, self.trials, delta=self.delta, error=self.error)
        return bound > self.claimed


@dataclass(frozen=True)
class Verdict:
    """What an audit of one subject tested, and what it found."""

    subject: str
    path: str
    samples: int
    error: float
    candidates: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        return not any(finding.excess for finding in self.findings)

    @property
    def worst(self) -> Finding:
        """The finding that came nearest to its promise, or went furthest beyond it."""
        return max(self.findings, key=lambda finding: finding.certified - finding.claimed)


def tests_of(pairs: Sequence[Pair]) -> int:
    """How many bounds an audit of these pairs will state: both orders, each delta."""
    return sum(2 * len(pair.claim.deltas) for pair in pairs)


def audit(
    subject: Subject,
    *,
    samples: int,
    noise: NoiseSource,
    error: float = FAMILY_ERROR,
    keep: int | None = None,
    pilot: int = 0,
) -> Verdict:
    """All pairs of a subject, or the `keep` that look worst in `pilot` draws; together wrong with chance `error`.

    The pilot's draws are not used again, so that choosing by them costs no confidence.
    """
    if samples < 4:
        raise ParameterError(
            "an audit needs at least 4 draws on each table: half to learn from, half to count"
        )
    candidates = list(subject.pairs())
    chosen = candidates
    if keep is not None and keep < len(candidates):
        scored = [(_pilot(pair, max(pilot, 4), noise), i) for i, pair in enumerate(candidates)]
        chosen = [candidates[i] for _, i in sorted(scored, reverse=True)[:keep]]
    each = error / tests_of(chosen)
    findings = [f for pair in chosen for f in audit_pair(pair, samples=samples, error=each, noise=noise)]
    return Verdict(subject.name, subject.path, samples, error, len(candidates), tuple(findings))


def audit_pair(pair: Pair, *, samples: int, error: float, noise: NoiseSource) -> list[Finding]:
    """Both orders, every delta of the claim; each bound is wrong with chance `error`."""
    first, second = pair.first(samples, noise), pair.second(samples, noise)
    half = min(samples // 2, MOST_LEARNT)
    findings = []
    for order, one, two in (("first", first, second), ("second", second, first)):
        for delta in pair.claim.deltas:
            event = learn(one[:half], two[:half], delta=delta, error=error)
            hits = event.count(one[half:]), event.count(two[half:])
            trials = len(one) - half, len(two) - half
            findings.append(
                Finding(
                    pair.name,
                    order,
                    delta,
                    pair.claim.epsilon(delta),
                    certified_epsilon(hits, trials, delta=delta, error=error),
                    estimated_epsilon(hits, trials, delta=delta),
                    str(event),
                    hits,
                    trials,
                    error,
                )
            )
    return findings


def _pilot(pair: Pair, samples: int, noise: NoiseSource) -> float:
    """How near a pair comes to its promise, roughly."""
    found = audit_pair(pair, samples=samples, error=0.1, noise=noise)
    return max(finding.certified - finding.claimed for finding in found)


def stacked(runs: Sequence[Sequence[int]], width: int) -> Draws:
    """Runs of different lengths as rows; what a shorter run did not say is a number that no run says."""
    table = np.full((len(runs), width), -(2**40), np.int64)
    for row, run in zip(table, runs, strict=True):
        told = run[:width]
        row[: len(told)] = told
    return table
