"""Which marginals to measure next: greedy, by what the workload gains for the budget. Public numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.query.workload import Workload

Values = NDArray[np.float64]
Indices = NDArray[np.int64]

MEAN_ABSOLUTE = sqrt(2 / np.pi)
"""E|x| of a standard Gaussian."""

PRICE_POWER = 0.7
"""Picks are compared by gain over price to this power: between the gain for the budget, which would buy many small
tables with much noise, and the gain alone."""

TRIPLE_WORTH = 2.0
"""What a triple gains on itself counts so much: what is learnt about it also mends larger tables."""

MASS_LOST = 2.0
"""A cell's error after a fit is at most about this much of what the cell holds, however large its noise."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs, then triples, of attributes that the workload asks about together.

    `weight` is that of all marginals of the workload that hold the candidate, `inside` lists the three pairs of
    each triple.
    """

    cliques: tuple[Clique, ...]
    pairs: int
    inside: Indices
    weight: Values

    @classmethod
    def of(cls, workload: Workload, *, triples: bool) -> Candidates:
        weight: dict[Clique, float] = {}
        for clique, share in zip(workload.cliques, workload.weights, strict=True):
            for order in (2, 3) if triples else (2,):
                for part in combinations(clique, order):
                    weight[part] = weight.get(part, 0.0) + float(share)
        pairs = sorted(c for c in weight if len(c) == 2)
        threes = sorted(c for c in weight if len(c) == 3)
        place = {c: i for i, c in enumerate(pairs)}
        inside = np.array([[place[p] for p in combinations(t, 2)] for t in threes], np.int64).reshape(-1, 3)
        cliques = (*pairs, *threes)
        return cls(cliques, len(pairs), inside, np.array([weight[c] for c in cliques]))

    def __len__(self) -> int:
        return len(self.cliques)

    @cached_property
    def holders(self) -> list[Indices]:
        """For each pair, the triples (by their place among triples) that hold it."""
        order = np.argsort(self.inside, axis=None, kind="stable")
        ends = np.searchsorted(self.inside.ravel()[order], np.arange(self.pairs + 1))
        return [order[a:b] // 3 for a, b in pairwise(ends)]


class NoiseForecast:
    """The L1 error that noise of any size would leave in each candidate, after a fit that keeps counts positive.

    Cells are sorted into bins by the logarithm of what the stand-in says they hold. Those far above the noise keep
    it; those below lose at most what they hold.
    """

    STEPS = 2  # bins for each factor of two
    LOWEST, HIGHEST = -20, 44  # as powers of two

    def __init__(self, tables: Sequence[Values]) -> None:
        bins = (self.HIGHEST - self.LOWEST) * self.STEPS
        sizes = np.array([table.size for table in tables])
        counts = np.concatenate([table.ravel() for table in tables])
        place = np.clip(
            np.floor((np.log2(np.maximum(counts, 2.0**self.LOWEST)) - self.LOWEST) * self.STEPS), 0, bins - 1
        )
        flat = place.astype(np.int64) + np.repeat(np.arange(sizes.size) * bins, sizes)
        cells = np.bincount(flat, minlength=bins * sizes.size).reshape(sizes.size, bins)
        mass = np.bincount(flat, counts, minlength=bins * sizes.size).reshape(sizes.size, bins)
        zero = np.zeros((sizes.size, 1))
        self._cells = np.concatenate([zero, np.cumsum(cells, axis=1)], axis=1)
        self._mass = np.concatenate([zero, np.cumsum(mass, axis=1)], axis=1)
        self._bins = bins

    def error(self, which: Indices, std: Values) -> Values:
        """For candidates `which`, each under noise of its own standard deviation."""
        each = MEAN_ABSOLUTE * std
        at = np.ceil((np.log2(np.maximum(each / MASS_LOST, 1e-30)) - self.LOWEST) * self.STEPS)
        at = np.clip(at, 0, self._bins).astype(np.int64)
        below = self._mass[which, at]
        return MASS_LOST * below + each * (self._cells[which, -1] - self._cells[which, at])


@dataclass(frozen=True, eq=False)
class Picks:
    """Candidates to measure with the share of the price of each, and the gain that was forecast."""

    which: tuple[int, ...]
    share: tuple[float, ...]
    gain: float


@dataclass(frozen=True, eq=False)
class RoundSituation:
    """What a round knows: candidates, their gaps (noisy, in people), their sizes, and what noise would leave."""

    candidates: Candidates
    domain: Domain
    gaps: Values
    forecast: NoiseForecast
    sweeps_all: bool = False
    """Whether a last sweep will measure every marginal of the workload."""

    @cached_property
    def sizes(self) -> Values:
        return np.array([float(self.domain.size(c)) for c in self.candidates.cliques])

    @cached_property
    def members(self) -> list[list[int]]:
        return [[self.domain.position(name) for name in c] for c in self.candidates.cliques]

    @cached_property
    def useful(self) -> NDArray[np.bool_]:
        """Candidates of which at least two attributes have more than one cell left."""
        shape = self.domain.shape()
        return np.array([sum(shape[a] > 1 for a in members) > 1 for members in self.members], bool)

    def std(self, precision: float) -> Values:
        """Noise of each candidate if a typical one gets `precision`: larger tables get more of the budget."""
        relative = np.sqrt(self.sizes)
        relative = np.clip(relative / np.median(relative[: self.candidates.pairs]), 0.2, 5.0)
        return 1 / np.sqrt(precision * relative)


def pick(situation: RoundSituation, precision: float, *, most: int) -> Picks | None:
    """The best greedy choice over several numbers of picks; None where no measurement is worth its noise.

    `precision` is what the round's price buys, as the sum of 1/σ² over the measured marginals.
    """
    best: Picks | None = None
    for k in np.unique(np.round(np.geomspace(1, most, 10)).astype(int)):
        found = _Greedy(situation, situation.std(precision / k)).run(precision, 3 * int(k))
        if found is not None and (best is None or found.gain > best.gain):
            best = found
    return best


class _Greedy:
    """One pass of picks at fixed noise: each takes what gains most for its budget, given those before it.

    What lies along attributes that this round's picks have connected will be explained in part by them: the next
    round sees how much. So a pair between connected attributes is left to it. A triple of connected attributes has
    something of its own that no path of pairs explains: it may still be picked, but only what it gains on itself
    counts. Where a last sweep measures every triple anyhow, such triples are left to it.
    """

    def __init__(self, situation: RoundSituation, std: Values) -> None:
        candidates, forecast = situation.candidates, situation.forecast
        n, pairs = len(candidates), candidates.pairs
        self._candidates, self._members, self._std = candidates, situation.members, std
        self._per_price = std ** (2 * PRICE_POWER)
        self._own = forecast.error(np.arange(n), std)
        self._error = situation.gaps.copy()
        inside, threes = candidates.inside, std[pairs:]
        others = situation.sizes[pairs:, None] / situation.sizes[inside]
        self._within = forecast.error(inside.ravel(), (threes[:, None] * np.sqrt(others)).ravel()).reshape(
            inside.shape
        )
        self._beyond = candidates.weight[inside] - candidates.weight[pairs:, None]
        self._dead = ~situation.useful
        self._alone = np.zeros(n, bool)
        self._takes_alone = not situation.sweeps_all
        self._root = list(range(len(situation.domain)))

    def run(self, precision: float, most: int) -> Picks | None:
        which: list[int] = []
        gain, left = 0.0, precision
        while left > 0 and len(which) < most:
            worth = self._worth()
            i = int(np.argmax(worth))
            if worth[i] <= 0:
                break
            price = 1 / self._std[i] ** 2
            if price > left * 1.001:
                self._dead[i] = True
                continue
            if not self._alone[i] and not self._joins(i):
                kept = self._takes_alone and i >= self._candidates.pairs
                (self._alone if kept else self._dead)[i] = True  # worth less than it seemed, or nothing
                continue
            self._dead[i] = True
            which.append(i)
            gain += worth[i] * price**PRICE_POWER
            left -= price
            self._learn(i)
        if not which:
            return None
        prices = 1 / self._std[which] ** 2
        return Picks(tuple(which), tuple((prices / prices.sum()).tolist()), float(gain))

    def _worth(self) -> Values:
        """Of each candidate, the workload's gain over the price's power."""
        pairs, c = self._candidates.pairs, self._candidates
        gain = c.weight * (self._error - self._own)
        gain[pairs:] *= TRIPLE_WORTH
        if c.inside.size:
            saved = np.maximum(self._error[c.inside] - self._within, 0.0)
            gain[pairs:] += np.where(self._alone[pairs:], 0.0, (self._beyond * saved).sum(axis=1))
        return np.where(self._dead, -1.0, gain * self._per_price)

    def _joins(self, i: int) -> bool:
        """Whether the candidate connects attributes that no pick of this round has connected; then it does now."""
        roots = {self._find(a) for a in self._members[i]}
        if len(roots) < 2:
            return False
        target = min(roots)
        for root in roots:
            self._root[root] = target
        return True

    def _find(self, a: int) -> int:
        while self._root[a] != a:
            a = self._root[a]
        return a

    def _learn(self, i: int) -> None:
        """After measuring candidate i its error, and that of its pairs, is what the noise leaves."""
        c, pairs = self._candidates, self._candidates.pairs
        if i < pairs:
            known = [(i, self._own[i])]
        else:
            self._error[i] = min(self._error[i], self._own[i])
            known = list(zip(c.inside[i - pairs].tolist(), self._within[i - pairs].tolist(), strict=True))
        for pair, error in known:
            better = max(self._error[pair] - error, 0.0)
            self._error[pair] -= better
            self._error[pairs + c.holders[pair]] -= better
