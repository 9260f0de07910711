"""Where a condition changes inside bins: edges at which a public grid has to be cut for it to be decided.

A comparison of expressions is decided on a cell from intervals (`predicate`). Where it is not, the bin is halved,
and both halves are tried again, down to single values: so the edges are found without solving anything, for every
function that the language has. They depend on the question and on the declared bins alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from itertools import pairwise
from math import inf, nextafter

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.domain.edge import Ordered
from understudy.domain.refinement import refined
from understudy.errors import UnderstudyError
from understudy.sql.grid import Bools, Truths

MOST_CHANGES = 64
"""Places at which one condition may change inside bins; one with more is refused."""

MOST_ROUNDS = 70
"""How often bins are halved at most: as often as 64 bits can be, and some more."""

MOST_MOVED, REACH = 16, 4
"""So many edges of a real attribute are moved to where 64-bit arithmetic changes, each by a few floats at most."""

Decided = Callable[[Domain], tuple[Truths, Bools]]
"""Where a condition holds over a domain and where it does not, and the cells in which it does both."""


def edges_of(
    domain: Domain, clique: Clique, undecided: Bools, decided: Decided
) -> tuple[str, tuple[Ordered, ...]] | None:
    """An ordered attribute and the edges at which it has to be cut for a condition to be decided.

    None where that is no single attribute, or where there are too many places.
    """
    for name in clique:
        if isinstance(domain[name], Bins) and is_alone(domain, clique, name):
            try:
                found = _along(domain, name, clique, undecided, decided)
            except UnderstudyError:  # a part of the expression is refused on smaller cells
                return None
            if found:
                return name, found
    return None


def is_alone(domain: Domain, clique: Clique, name: str) -> bool:
    """Whether no other attribute of the condition is one with bins of several values."""
    others = [domain[other] for other in clique if other != name]
    return not any(isinstance(other, Bins) and _has_wide_bins(other) for other in others)


def _has_wide_bins(attribute: Bins) -> bool:
    edges = (*attribute.starts, attribute.upper)
    return any(_middle(low, high, int(attribute.spacing)) is not None for low, high in pairwise(edges))


def _along(
    domain: Domain, name: str, clique: Clique, undecided: Bools, decided: Decided
) -> tuple[Ordered, ...]:
    """The edges along one attribute, in order; none where there are too many or no edges would do."""
    finest = domain
    holds: Truths | None = None
    for _ in range(MOST_ROUNDS):
        wide = np.flatnonzero(_axis(undecided, clique, name).any(axis=1)).tolist()
        if not wide:
            break
        found = [edge for cell in wide if (edge := _middle_of(_bins(finest, name), cell)) is not None]
        if not found or len(wide) > 2 * MOST_CHANGES:
            return ()
        finest = refined(finest, name, found)
        holds, undecided = decided(finest)
        clique = holds.clique
    if holds is None or undecided.any():
        return ()
    every, known = _bins(finest, name).starts, set(_bins(domain, name).starts)
    edges = _exact(domain, name, _changes(holds, finest, name, known), decided)
    edges = _settled(domain, name, edges, every, decided)
    return edges if len(edges) <= MOST_CHANGES else ()


def _changes(holds: Truths, domain: Domain, name: str, known: set[Ordered]) -> tuple[Ordered, ...]:
    """The starts of bins, those that are known left out, at which a condition becomes another one."""
    true, false = (_axis(part, holds.clique, name) for part in (holds.true, holds.false))
    changes = ((true[1:] != true[:-1]) | (false[1:] != false[:-1])).any(axis=1)
    starts = _bins(domain, name).starts
    return tuple(
        start for cell, start in enumerate(starts) if cell and changes[cell - 1] and start not in known
    )


def _exact(domain: Domain, name: str, edges: tuple[Ordered, ...], decided: Decided) -> tuple[Ordered, ...]:
    """Edges of a real attribute, each moved by a few floats to where the condition changes in 64-bit arithmetic.

    The intervals of bins are followed in exact arithmetic: ``pay / 3 < 41.1`` is then true of a number whose third
    is rounded to 41.1. At single numbers the arithmetic is that of databases.
    """
    if _bins(domain, name).discrete or not edges or len(edges) > MOST_MOVED:
        return edges
    near: set[float] = set()
    bins = _bins(domain, name)
    for edge in edges:
        at = edge
        for _ in range(REACH):
            at = nextafter(at, -inf)
        for _ in range(2 * REACH + 1):
            near |= {at} if bins.starts[0] < at <= bins.upper else set()
            at = nextafter(at, inf)
    finer = refined(domain, name, near)
    holds, undecided = decided(finer)
    if undecided.any() and not _decided_at(undecided, holds.clique, finer, name, near):
        return edges
    moved = tuple(edge for edge in _changes(holds, finer, name, set(bins.starts)) if edge in near)
    return moved if len(moved) == len(edges) else edges


def _decided_at(undecided: Bools, clique: Clique, domain: Domain, name: str, at: set[float]) -> bool:
    """Whether a condition is decided in the bins that begin at certain numbers."""
    open_cells = np.flatnonzero(_axis(undecided, clique, name).any(axis=1)).tolist()
    starts = _bins(domain, name).starts
    return all(cell < len(starts) and starts[cell] not in at for cell in open_cells)


def _settled(
    domain: Domain, name: str, edges: tuple[Ordered, ...], every: tuple[Ordered, ...], decided: Decided
) -> tuple[Ordered, ...]:
    """The edges, and as many of `every` as it takes for the condition to be decided between them.

    Whether it is the same on both sides of an edge cannot always be told from the interval of the two together.
    """
    for _ in range(MOST_ROUNDS):
        finer = refined(domain, name, edges)
        holds, undecided = decided(finer)
        wide = np.flatnonzero(_axis(undecided, holds.clique, name).any(axis=1)).tolist()
        if not wide:
            return edges
        more: set[Ordered] = set()
        bins = _bins(finer, name)
        for cell in wide:
            is_last = cell + 1 >= bins.proper_size
            end = bins.upper if is_last else bins.starts[cell + 1]
            inside = [edge for edge in every if bins.starts[cell] < edge < end or (is_last and edge == end)]
            if inside:
                more |= {inside[len(inside) // 2], inside[-1]}
        if not more or len(edges) + len(more) > MOST_CHANGES:
            return ()
        edges = tuple(sorted({*edges, *more}))
    return ()


def _bins(domain: Domain, name: str) -> Bins:
    attribute = domain[name]
    assert isinstance(attribute, Bins)
    return attribute


def _axis(table: Bools, clique: Clique, name: str) -> NDArray[np.bool_]:
    """A table over a clique with one attribute first and the others in one axis."""
    moved = np.moveaxis(np.asarray(table), clique.index(name), 0)
    return moved.reshape(len(moved), -1)


def _middle_of(attribute: Bins, cell: int) -> Ordered | None:
    if cell >= attribute.proper_size:
        return None
    is_last = cell + 1 == attribute.proper_size
    high = attribute.upper if is_last else attribute.starts[cell + 1]
    return _middle(attribute.starts[cell], high, int(attribute.spacing), is_last)


def _middle(low: Ordered, high: Ordered, step: int, is_last: bool = False) -> Ordered | None:  # noqa: FBT001, FBT002
    """A value between the ends of a bin, at which it can be cut in two; None where it holds one value alone.

    `step` is how many seconds the values of a timestamp are apart.
    """
    if isinstance(low, float):
        after = nextafter(low, inf)
        if after > high or (after == high and not is_last):
            return None
        return min(max(low / 2 + high / 2, after), high)
    if isinstance(low, dt.datetime):
        values = (high - low) // dt.timedelta(seconds=step) + is_last
        return low + dt.timedelta(seconds=values // 2 * step) if values > 1 else None
    if isinstance(low, dt.date):
        days = (high - low).days + is_last
        return low + dt.timedelta(days=days // 2) if days > 1 else None
    values = high - low + is_last
    return low + values // 2 if values > 1 else None
