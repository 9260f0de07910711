"""The stand-in of an adaptive release: a tree over groups of values, and measurements that did not fit into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.query.merging import Merging
from understudy.standin.graphical.compile import compiled
from understudy.standin.graphical.model import GraphicalStandIn
from understudy.standin.graphical.projected import projected
from understudy.standin.local_fit import Observation, locally_fitted
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]
Codes = dict[str, NDArray[np.int64]]

SWEEPS = 4

SEEN_CELLS = 1 << 24
"""Weights that are held at once while factors are fitted; of longer tables a part of the rows is looked at."""


@dataclass(frozen=True, eq=False)
class AdaptiveStandIn:
    """A graphical stand-in over groups of values, answering about the values themselves.

    Measurements outside of its tree are fitted into the answers that hold them, and weigh the rows that are drawn.
    """

    merging: Merging
    model: GraphicalStandIn
    outside: tuple[Measurement, ...] = ()

    @property
    def domain(self) -> Domain:
        return self.merging.domain

    @property
    def total(self) -> float:
        return self.model.total

    def project(self, clique: Clique) -> Values:
        """Rates that sum to 1, shaped in domain order."""
        return self.project_many([clique])[0]

    def project_many(self, cliques: Iterable[Clique]) -> list[Values]:
        """The projections on many cliques; what they have in common is worked out once."""
        named = [self.domain.clique(clique) for clique in cliques]
        for clique in named:
            self.domain.allocatable_shape(clique)
        return [
            self.merging.expand(clique, table / max(self.total, 1.0))
            for clique, table in zip(named, self.grouped(named), strict=True)
        ]

    def grouped(self, cliques: list[Clique]) -> list[Values]:
        """Counts of groups."""
        total = max(self.total, 1.0)
        return [
            locally_fitted(clique, total * rates, self._observed(clique), total)
            for clique, rates in zip(cliques, projected(self.model, cliques), strict=True)
        ]

    def _observed(self, clique: Clique) -> list[Observation]:
        """What was measured inside of a clique, and is not in the tree."""
        inside = [m for m in self.outside if set(m.clique) <= set(clique)]
        return [Observation(m.clique, m.counts, m.variance) for m in inside]

    def sample_codes(self, rows: int, *, rng: np.random.Generator) -> Codes:
        """Synthetic rows: groups from the model, values dealt to the rows of a group by their shares.

        Where measurements lie outside of the tree, attributes are dealt one after another, each given those of its
        clique that come before, scaled so that the rows also agree with those measurements.
        """
        if self.outside and rows:
            drawn = self._dealt(rows, rng)
        else:
            drawn = {a: c.astype(np.int64) for a, c in self.model.sample_codes(rows, rng=rng).items()}
        return {name: self._values(i, drawn[name], rng) for i, name in enumerate(self.domain.names)}

    def _dealt(self, rows: int, rng: np.random.Generator) -> Codes:
        """Cliques come in an order in which what each shares with those before it is a separator of the tree."""
        codes: Codes = {}
        for clique in self.model.cliques:
            for name in clique:
                if name in codes:
                    continue
                given = tuple(a for a in clique if a in codes)
                told = [m.clique for m in self.outside if name in m.clique]
                told = [c for c in told if all(a == name or a in codes for a in c)]
                codes[name] = self._deal(name, given, told, codes, rows, rng)
        return codes

    def _deal(
        self,
        name: str,
        given: Clique,
        told: list[Clique],
        codes: Codes,
        rows: int,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """One attribute of every row, given others, so that its tables with the attributes of `told` agree too."""
        coarse = self.merging.coarse
        size = coarse[name].size
        cell = _cells(coarse, given, codes, rows)
        joint = self._with_last(self.model.project(coarse.clique((*given, name))), (*given, name))
        mass = joint.sum(axis=1, keepdims=True)
        rates = np.divide(joint, mass, out=np.full(joint.shape, 1 / size), where=mass > 0)
        keys = np.empty((len(told) + 1, rows), np.int64)
        targets = []
        for i, clique in enumerate(told):
            others = tuple(a for a in clique if a != name)
            keys[i] = _cells(coarse, others, codes, rows)
            table = self.grouped([clique])[0] * (rows / max(self.total, 1.0))
            targets.append(self._with_last(table, (*others, name)))
        keys[-1] = cell
        seen = np.sort(rng.permutation(rows)[: max(SEEN_CELLS // size, 1)])
        held = np.bincount(cell, minlength=len(rates))[:, None]
        targets.append(rates * held)
        factors = _factors(
            rates, np.ascontiguousarray(keys[:, seen]), targets, len(seen) / rows, SWEEPS if told else 0
        )
        starts = np.cumsum([0, *(t.size for t in targets[:-1])], dtype=np.int64)
        order = np.lexsort((rng.permutation(rows), *keys))
        out = np.empty(rows, np.int64)
        _place(order, rates, keys, starts, factors, float(rng.random()), out)
        return out

    def _with_last(self, table: Values, names: Clique) -> Values:
        """A table in domain order, flat over all but the last of `names`, which becomes its columns."""
        ordered = self.domain.clique(names)
        turned = table.transpose([ordered.index(a) for a in names])
        return np.ascontiguousarray(turned).reshape(-1, turned.shape[-1])

    def _values(self, i: int, group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows of a group stand at equal distances along its values' shares, in random order."""
        starts, shares = self.merging.starts[i], self.merging.shares[i]
        codes = starts[group]
        for g in np.flatnonzero(self.merging.widths[i] > 1):
            own = np.flatnonzero(group == g)
            first = int(starts[g])
            ends = np.cumsum(shares[first : first + int(self.merging.widths[i][g])])
            places = (rng.permutation(own.size) + rng.random()) / max(own.size, 1) * ends[-1]
            codes[own] = first + np.minimum(np.searchsorted(ends, places, side="right"), ends.size - 1)
        return codes


def _cells(domain: Domain, clique: Clique, codes: Codes, rows: int) -> NDArray[np.int64]:
    flat = np.zeros(rows, np.int64)
    for name in clique:
        flat = flat * domain[name].size + codes[name]
    return flat


def _factors(
    rates: Values, keys: NDArray[np.int64], targets: list[Values], share: float, sweeps: int
) -> Values:
    """Factors, flat over all targets, by which the rows' rates must be multiplied to agree with each target."""
    starts = np.cumsum([0, *(t.size for t in targets[:-1])], dtype=np.int64)
    wanted = np.concatenate([t.ravel() for t in targets]) * share
    factors = np.ones(wanted.size)
    for _ in range(sweeps):
        for i in range(len(targets)):
            _agree(rates, keys, starts, factors, wanted, i)
    return factors


@compiled
def _weigh(rates, keys, starts, factors, i, weight):
    """The rates of row i: those of its cell times all factors, normalised."""
    size = rates.shape[1]
    cell = keys[keys.shape[0] - 1, i]
    total = 0.0
    for b in range(size):
        w = rates[cell, b]
        for e in range(keys.shape[0]):
            w *= factors[starts[e] + keys[e, i] * size + b]
        weight[b] = w
        total += w
    for b in range(size):
        weight[b] = weight[b] / total if total > 0 else rates[cell, b]


@compiled
def _agree(rates, keys, starts, factors, wanted, e):
    """Multiply the factors of target e by what is wanted over what the rows give."""
    size = rates.shape[1]
    begin = starts[e]
    end = starts[e + 1] if e + 1 < starts.size else factors.size
    held = np.zeros(end - begin)
    weight = np.empty(size)
    for i in range(keys.shape[1]):
        _weigh(rates, keys, starts, factors, i, weight)
        place = keys[e, i] * size
        for b in range(size):
            held[place + b] += weight[b]
    for k in range(held.size):
        if held[k] > 1e-9:
            factors[begin + k] *= min(max(wanted[begin + k] / held[k], 0.02), 50.0)


@compiled
def _place(order, rates, keys, starts, factors, offset, out):
    """The value of each row: at points spaced by the golden ratio along its weights, rows being in order."""
    size = rates.shape[1]
    weight = np.empty(size)
    for k in range(order.size):
        i = order[k]
        _weigh(rates, keys, starts, factors, i, weight)
        offset = (offset + 0.6180339887498949) % 1.0
        left, b = offset, 0
        while b < size - 1 and left >= weight[b]:
            left -= weight[b]
            b += 1
        out[i] = b
