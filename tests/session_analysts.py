"""Small tables, what can be bought about them, and analysts who know them and steer to what came out worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counted import ROUNDING, Cells, curator_of
from understudy.curator.curator import Curator
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.marginals_class import ReleasedMarginals
from understudy.sessions.one_way import OneWay
from understudy.sessions.product_class import ReleasedProduct
from understudy.sessions.session import Session

Mask = NDArray[np.bool_]


def table_of(domain: Domain, rows: int, seed: int) -> Cells:
    """Rows whose attributes all follow a hidden one."""
    draw = np.random.default_rng(seed)
    hidden = draw.random(rows)
    codes = [
        np.minimum(
            ((0.6 * hidden + 0.4 * draw.random(rows)) ** (1 + i % 2) * size).astype(np.int64), size - 1
        )
        for i, size in enumerate(domain.shape(domain.names))
    ]
    flat = np.bincount(np.ravel_multi_index(codes, domain.shape(domain.names)), minlength=domain.size())
    return Cells(domain, flat.reshape(domain.shape(domain.names)))


def attributes(ordered: dict[str, int], others: dict[str, int]) -> Domain:
    """Bins, and categories, the last of which stands for all others."""
    return Domain(
        (
            *(Bins.integers(name, 0, size - 1) for name, size in ordered.items()),
            *(Categories(name=n, values=tuple(f"v{i}" for i in range(s - 1))) for n, s in others.items()),
        )
    )


WIDE = table_of(attributes({"age": 12, "hours": 8}, {"sex": 3, "town": 6, "job": 4}), 3000, 1)
"""6,912 cells: too many to be bought as one class."""

SMALL = table_of(attributes({"age": 6}, {"sex": 3, "town": 4}), 2000, 2)
"""72 cells."""


def curator(
    truth: Cells = WIDE,
    *,
    seed: int,
    epsilon: float = 1000.0,
    delta: float = 1e-6,
    neighbours: Neighbours = Neighbours.REPLACE,
    budget: Budget | None = None,
) -> Curator:
    """A Curator of a table; under add-remove the number of rows is between half and twice of what it is.

    A budget takes the place of epsilon and delta.
    """
    private = neighbours is Neighbours.ADD_REMOVE
    bounds = {"rows_at_least": truth.rows // 2, "rows_at_most": 2 * truth.rows} if private else {}
    spent = {"epsilon": epsilon, "delta": delta, "budget": budget}
    return curator_of(truth, seed=seed, neighbours=neighbours, **spent, **bounds)


def conjunction(domain: Domain, sides: dict[str, Any]) -> Marginal:
    return Marginal.of(LinearQuery.conjunction(domain, sides))


# ---- questions


def condition(draw: np.random.Generator, domain: Domain, name: str) -> Mask:
    """A range of an ordered attribute, a set of cells of another."""
    size = domain[name].size
    if isinstance(domain[name], Bins):
        low, high = np.sort(draw.integers(0, size, 2))
        return (np.arange(size) >= low) & (np.arange(size) <= high)
    cells = draw.random(size) < 0.5
    cells[draw.integers(size)] = True
    return cells


def random_conjunction(draw: np.random.Generator, domain: Domain, names: Sequence[str] = ()) -> Marginal:
    """Conditions on the given attributes, or on one to three of any."""
    chosen = names or [str(n) for n in draw.choice(domain.names, draw.integers(1, 4), replace=False)]
    return conjunction(domain, {name: condition(draw, domain, name) for name in chosen})


def random_group_by(draw: np.random.Generator, domain: Domain, most: int = 2) -> Marginal:
    """A marginal of one attribute or a few."""
    names = draw.choice(domain.names, draw.integers(1, most + 1), replace=False)
    return Marginal(domain, domain.clique(str(name) for name in names))


# ---- what came out worst, to an analyst who knows the table


def worst_of_histogram(known: OneWay, off: NDArray[np.float64]) -> Mask:
    """The set of cells (the range of ordered ones) whose noise passes its band most, or comes nearest."""
    best, found = -np.inf, np.ones(off.size, bool)
    for cells in _extremes(known, off):
        excess = abs(float(off[cells].sum())) - known._width(cells)
        if excess > best:
            best, found = excess, cells
    return found


def _extremes(known: OneWay, off: NDArray[np.float64]) -> Iterator[Mask]:
    size, at = off.size, np.arange(off.size)
    if known.ordered:
        prefix = np.r_[0.0, np.cumsum(off)]
        for length in range(1, size):
            moved = prefix[length:] - prefix[:-length]
            for start in (int(moved.argmax()), int(moved.argmin())):
                yield (at >= start) & (at < start + length)
        return
    order = np.argsort(off)
    for count in range(1, size):
        yield np.isin(at, order[:count])
        yield np.isin(at, order[-count:])


def worst_of_class(known: ReleasedProduct, off: NDArray[np.float64]) -> dict[str, Mask]:
    """The member of a class, of all of them, that is furthest off."""
    families = known.product.families
    for axis, family in enumerate(families):
        off = np.moveaxis(np.tensordot(family.sets, off, axes=(1, axis)), 0, axis)
    places = np.unravel_index(int(np.abs(off).argmax()), off.shape)
    return {
        name: family.sets[place] > 0 for name, family, place in zip(known.by, families, places, strict=True)
    }


def worst_of_marginals(known: ReleasedMarginals, truth: Cells) -> Iterator[Marginal]:
    """Of the marginals of each number of attributes, the one with the cell that is furthest off."""
    domain = known.domain
    for order in range(1, known.parts.order + 1):
        best, found = -np.inf, None
        for by in combinations(domain.names, order):
            table = known.table(by, Box(domain, {}))
            if table is not None:
                wide = np.isfinite(table.low)  # the others were known well enough before
                far = np.where(wide, np.abs(table.low + known.width - truth.count(by)), 0.0)
                if far.max() > best:
                    best, found = float(far.max()), Marginal(domain, by)
        if found is not None:
            yield found


def steered(session: Session, truth: Cells) -> Iterator[Marginal]:
    """For everything that was released, the question about it that is answered worst."""
    knowledge, domain = session._known.knowledge, truth.domain
    worst: dict[str, Mask] = {}
    for name, known in knowledge.one_ways.items():
        worst[name] = worst_of_histogram(known, known.counts - truth.count((name,)))
        yield conjunction(domain, {name: worst[name]})
    for one, other in combinations(worst, 2):  # at the ends of both bands: Fréchet bounds
        yield conjunction(domain, {one: worst[one], other: worst[other]})
    for by, held in knowledge._grids.items():
        for place, known in held.items():
            assert isinstance(known, ReleasedProduct)
            where = {n: np.unpackbits(np.frombuffer(b, np.uint8), count=domain[n].size) > 0 for n, b in place}
            inside = truth.sums(Marginal(domain, by, LinearQuery.conjunction(domain, where)))
            yield conjunction(domain, {**where, **worst_of_class(known, known.counts - inside)})
    for known in knowledge.marginals:
        assert isinstance(known, ReleasedMarginals)
        yield from worst_of_marginals(known, truth)


def worst_of_boxes(session: Session, truth: Cells, most: int = 8) -> Iterator[Marginal]:
    """What follows from bought answers that are far off: their complements, boxes just around or inside them."""
    far: list[tuple[float, Marginal, Box]] = []
    for answer in session._buyer.memory.paid.values():
        box = None if answer.query.by else Box.of(answer.query.where)
        if box is not None:
            far.append((float(answer.value) - float(truth.exact(answer.query)), answer.query, box))
    for off, _, box in sorted(far, key=lambda one: -abs(one[0]))[:most]:
        other = box.complement()
        if other is not None:
            yield Marginal.of(other.query)
        for name, cells in box.sides.items():  # a smaller box is at most as large as this one is said to be
            changed = np.flatnonzero(cells if off < 0 else ~cells)
            counts = truth.count((name,))[changed]
            if changed.size > (off < 0):
                moved = cells.copy()
                moved[changed[counts.argmin()]] ^= True
                yield conjunction(truth.domain, {**box.sides, name: moved})


# ---- sessions


@dataclass
class Heard:
    """What became of one session."""

    missed: bool = False
    """Some answer was further off than its error."""
    asked: int = 0
    bought: int = 0
    uncertified: int = 0
    nearest: float = 0.0
    """The largest part of its error that an answer was off by."""


class Interview:
    """Puts questions to a session, and checks every answer against the table and the promise."""

    def __init__(self, session: Session, truth: Cells) -> None:
        self.session, self.truth, self.heard = session, truth, Heard()

    def ask(self, question: Marginal) -> None:
        heard, answer = self.heard, self.session.ask_marginal(question)
        heard.asked += 1
        if answer.source == "uncertified":
            heard.uncertified += 1
            return
        off, error = np.abs(answer.value - self.truth.exact(question)), answer.error
        assert (error <= self.session.width + ROUNDING).all(), (
            "an answer is promised within alpha of all rows"
        )
        heard.missed |= bool((off > error + ROUNDING).any())
        heard.bought += answer.source == "measured"
        heard.nearest = max(heard.nearest, float((off / np.maximum(error, 1.0)).max()))

    def ask_if_free(self, question: Marginal) -> None:
        """Ask what follows from what is known; buy nothing."""
        if self.session._known.intervals(question) is not None:
            self.ask(question)

    def steer(self) -> None:
        """Ask for the worst of everything that was released."""
        for question in steered(self.session, self.truth):
            self.ask_if_free(question)
        for question in worst_of_boxes(self.session, self.truth):
            self.ask_if_free(question)
