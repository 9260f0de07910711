"""Which marginals to measure next: greedy, by what the workload gains for the budget. Public numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.mechanism.matrix.one_marginal import MAX_WEIGHT
from understudy.query.workload import Workload
from understudy.standin.graphical.compile import compiled

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
    def holders(self) -> tuple[Indices, Indices]:
        """The triples (by their place among triples) that hold each pair, one pair after the other, and where the
        list of each begins, with the end of the last.
        """
        order = np.argsort(self.inside, axis=None, kind="stable")
        return order // 3, np.searchsorted(self.inside.ravel()[order], np.arange(self.pairs + 1))

    def useful(self, domain: Domain) -> NDArray[np.bool_]:
        """Candidates of which at least two attributes have more than one cell left, and whose residuals have
        weights that can be held (`JointStrategy`).
        """
        wide = {attribute.name for attribute in domain if attribute.size > 1}
        found = [len(wide.intersection(c)) > 1 and domain.size(c) <= MAX_WEIGHT for c in self.cliques]
        return np.array(found, np.bool_)


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
    def members(self) -> Indices:
        """The attributes of each candidate; a pair has -1 for its third."""
        place = self.domain.position
        found = [[*map(place, c), *(-1,) * (3 - len(c))] for c in self.candidates.cliques]
        return np.array(found, np.int64).reshape(-1, 3)

    @cached_property
    def useful(self) -> NDArray[np.bool_]:
        """Candidates that can be measured, and tell more than single attributes do."""
        return self.candidates.useful(self.domain)

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
        pairs = candidates.pairs
        self._situation, self._std = situation, std
        self._own = forecast.error(np.arange(len(candidates)), std)
        inside, threes = candidates.inside, std[pairs:]
        others = situation.sizes[pairs:, None] / situation.sizes[inside]
        self._within = forecast.error(inside.ravel(), (threes[:, None] * np.sqrt(others)).ravel()).reshape(
            inside.shape
        )

    def run(self, precision: float, most: int) -> Picks | None:
        """What is picked while a budget of so much 1/σ² lasts, at most so many candidates."""
        situation, candidates = self._situation, self._situation.candidates
        which, gain = _picked(
            candidates.weight,
            candidates.inside,
            *candidates.holders,
            situation.members,
            len(situation.domain),
            situation.gaps.copy(),
            self._own,
            self._within,
            self._std**-2,
            self._std ** (2 * PRICE_POWER),
            ~situation.useful,
            not situation.sweeps_all,
            precision,
            most,
        )
        if not which.size:
            return None
        prices = 1 / self._std[which] ** 2
        return Picks(tuple(which.tolist()), tuple((prices / prices.sum()).tolist()), float(gain))


@compiled
def _worth(i, pairs, weight, inside, error, own, within, per_price, alone):
    """Of a candidate, the workload's gain over the price's power; of a triple that is `alone`, on itself."""
    gain = weight[i] * (error[i] - own[i])
    if i >= pairs:
        t = i - pairs
        gain *= TRIPLE_WORTH
        if not alone:
            saved = 0.0
            for k in range(3):
                pair = inside[t, k]
                saved += (weight[pair] - weight[i]) * max(error[pair] - within[t, k], 0.0)
            gain += saved
    return gain * per_price[i]


@compiled
def _root_of(a, root):
    """The attribute that `root` leads to from one of those connected with it."""
    while root[a] != a:
        a = root[a]
    return a


@compiled
def _connects(members, root):
    """Whether attributes are not all connected yet, `root` leading from each to one of those it is with; now they
    are.
    """
    least = root.size
    parts = 0
    for k in range(members.size):
        if members[k] >= 0:
            a = _root_of(members[k], root)
            if a != least:
                parts += 1
            least = min(least, a)
    if parts < 2:
        return False
    for k in range(members.size):
        if members[k] >= 0:
            root[_root_of(members[k], root)] = least
    return True


@compiled
def _picked(
    weight,
    inside,
    holds,
    ends,
    members,
    attributes,
    error,
    own,
    within,
    price,
    per_price,
    dead,
    takes_alone,
    left,
    most,
):
    """The picks of `_Greedy` in order, and their gain; `error` and `dead` are worked on.

    A pick changes the worth of few others: of the pairs that it tells of, and of the triples that hold those.
    """
    n = weight.size
    pairs = n - inside.shape[0]
    alone = np.zeros(n, np.bool_)
    root = np.arange(attributes)
    worth = np.empty(n)
    for i in range(n):
        worth[i] = (
            -1.0 if dead[i] else _worth(i, pairs, weight, inside, error, own, within, per_price, alone[i])
        )
    which = np.empty(n, np.int64)
    count, gain = 0, 0.0
    while n > 0 and left > 0 and count < most:
        i = np.argmax(worth)
        if worth[i] <= 0:
            break
        if price[i] > left * 1.001:
            dead[i], worth[i] = True, -1.0
            continue
        if not alone[i] and not _connects(members[i], root):
            if takes_alone and i >= pairs:  # worth less than it seemed
                alone[i] = True
                worth[i] = _worth(i, pairs, weight, inside, error, own, within, per_price, alone[i])
            else:
                dead[i], worth[i] = True, -1.0
            continue
        gain += worth[i] * price[i] ** PRICE_POWER
        left -= price[i]
        which[count] = i
        count += 1
        dead[i], worth[i] = True, -1.0
        # Its error, and that of its pairs, is now what the noise leaves.
        if i >= pairs:
            error[i] = min(error[i], own[i])
        for k in range(3 if i >= pairs else 1):
            pair, leaves = (inside[i - pairs, k], within[i - pairs, k]) if i >= pairs else (i, own[i])
            better = error[pair] - leaves
            if better > 0:
                error[pair] -= better
                for h in range(ends[pair], ends[pair + 1]):
                    error[pairs + holds[h]] -= better
        for k in range(3 if i >= pairs else 1):
            pair = inside[i - pairs, k] if i >= pairs else i
            if not dead[pair]:
                worth[pair] = _worth(pair, pairs, weight, inside, error, own, within, per_price, alone[pair])
            for h in range(ends[pair], ends[pair + 1]):
                j = pairs + holds[h]
                if not dead[j]:
                    worth[j] = _worth(j, pairs, weight, inside, error, own, within, per_price, alone[j])
    return which[:count], gain
