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
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.noise.samplers import NoiseSource
from understudy_audit.claim import Claim
from understudy_audit.confidence import certified_epsilon, estimated_epsilon
from understudy_audit.events import UNSAID, Draws, OutputEvent, count_all, learn_all

Draw = Callable[[int, NoiseSource], Draws]
"""So many runs of a mechanism on one table, with coins from a source."""

FAMILY_ERROR = 1e-6
"""The chance that an audit of correct mechanisms finds anything at all."""

MOST_LEARNT = 500_000
"""An event needs no more draws than this to be learnt from; the others are better spent on counting it."""

BATCH = 250_000
"""Draws that are counted at a time: as many as are held in memory."""


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
    """`vector` draws millions a second; `run` hundreds to tens of thousands; `slow` tens to hundreds."""
    pairs: Callable[[], Sequence[Pair]]


@dataclass(frozen=True)
class PairFinding:
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
    findings: tuple[PairFinding, ...]
    planned: int = 0
    """Pairs that were to be tested; 0 where those that were are all."""

    @property
    def tested(self) -> int:
        """Pairs of which something was counted."""
        return len({finding.pair for finding in self.findings})

    @property
    def is_complete(self) -> bool:
        """Whether all planned pairs got all their draws."""
        trials = self.samples - learnt_from(self.samples)
        return self.tested >= self.planned and all(f.trials[0] == trials for f in self.findings)

    @property
    def sound(self) -> bool:
        return not any(finding.excess for finding in self.findings)

    @property
    def worst(self) -> PairFinding:
        """The finding that went furthest beyond its promise, or came nearest to it.

        A promise of 0 (noise so large that δ covers it) is met by whatever certifies nothing: it comes last.
        """
        return max(self.findings, key=lambda f: (f.excess, f.claimed > 0, f.certified - f.claimed))


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
    chosen = [candidates[i] for i in worst_looking(candidates, keep=keep, pilot=pilot, noise=noise)]
    each = error / tests_of(chosen)
    findings = [f for pair in chosen for f in audit_pair(pair, samples=samples, error=each, noise=noise)]
    return Verdict(subject.name, subject.path, samples, error, len(candidates), tuple(findings))


def audit_pair(pair: Pair, *, samples: int, error: float, noise: NoiseSource) -> list[PairFinding]:
    """Both orders, every delta of the claim; each bound is wrong with chance `error`."""
    learnt = learnt_from(samples)
    events = learn_events(pair, draws=learnt, error=error, noise=noise)
    hits = count_events(pair, events, draws=samples - learnt, noise=noise)
    return findings_of(pair, events, hits, trials=samples - learnt, error=error)


def learnt_from(samples: int) -> int:
    """How many of these draws go into finding events."""
    return min(samples // 2, MOST_LEARNT)


def tests_on(pair: Pair) -> list[tuple[str, float]]:
    """The bounds that are stated about a pair: which table comes first, at which delta."""
    return [(order, delta) for order in ("first", "second") for delta in pair.claim.deltas]


def learn_events(pair: Pair, *, draws: int, error: float, noise: NoiseSource) -> list[OutputEvent]:
    """An event for each of a pair's tests. Draws that are counted later must be others."""
    first, second = pair.first(draws, noise), pair.second(draws, noise)
    return learn_all(first, second, tests_on(pair), error=error)


def count_events(
    pair: Pair, events: Sequence[OutputEvent], *, draws: int, noise: NoiseSource
) -> NDArray[np.int64]:
    """How often each event comes up in fresh draws of both tables: a row for each, first and second table."""
    hits = np.zeros((len(events), 2), np.int64)
    for start in range(0, draws, BATCH):
        count = min(BATCH, draws - start)
        for side, draw in enumerate((pair.first, pair.second)):
            drawn = draw(count, noise)
            hits[:, side] += count_all(events, drawn)
    return hits


def findings_of(
    pair: Pair, events: Sequence[OutputEvent], hits: NDArray[np.int64], *, trials: int, error: float
) -> list[PairFinding]:
    """What the counts of a pair's events say; each bound is wrong with chance `error`."""
    found = []
    for (order, delta), event, (first, second) in zip(tests_on(pair), events, hits.tolist(), strict=True):
        counted = (first, second) if order == "first" else (second, first)
        found.append(
            PairFinding(
                pair.name,
                order,
                delta,
                pair.claim.epsilon(delta),
                certified_epsilon(counted, (trials, trials), delta=delta, error=error),
                estimated_epsilon(counted, (trials, trials), delta=delta),
                str(event),
                counted,
                (trials, trials),
                error,
            )
        )
    return found


def worst_looking(
    candidates: Sequence[Pair], *, keep: int | None, pilot: int, noise: NoiseSource
) -> list[int]:
    """The places of the `keep` pairs that look worst in `pilot` draws, or of all."""
    if keep is None or keep >= len(candidates):
        return list(range(len(candidates)))
    scored = [(_pilot(pair, max(pilot, 4), noise), i) for i, pair in enumerate(candidates)]
    return [i for _, i in sorted(scored, reverse=True)[:keep]]


def _pilot(pair: Pair, samples: int, noise: NoiseSource) -> float:
    """How near a pair comes to its promise, roughly."""
    found = audit_pair(pair, samples=samples, error=0.1, noise=noise)
    return max(finding.certified - finding.claimed for finding in found)


def stacked(runs: Sequence[Sequence[int]], width: int) -> Draws:
    """Runs of different lengths as rows; what a shorter run did not say is a number that no run says."""
    table = np.full((len(runs), width), UNSAID, np.int64)
    for row, run in zip(table, runs, strict=True):
        told = run[:width]
        row[: len(told)] = told
    return table
