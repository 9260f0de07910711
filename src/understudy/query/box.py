"""Conjunctions as bits: which cells of each attribute a counting query admits.

A counting query that is a product of conditions on single attributes is a box of the grid. Boxes are compared in
one vector operation: each attribute has its own words of 64 bits, all ones where it is not mentioned.
"""

from __future__ import annotations

import datetime as dt
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from zlib import compress, decompress

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.domain.edge import Ordered
from understudy.domain.refinement import RefinedDomain, refined
from understudy.errors import DomainError
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment

Words = NDArray[np.uint64]
Cells = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Box:
    """The admitted cells of each attribute that is constrained, none of them empty or full."""

    domain: Domain
    sides: Mapping[str, Cells]

    @classmethod
    def of(cls, query: LinearQuery) -> Box | None:
        """The box of a query; None where it is no product of conditions, or admits nothing."""
        return None if query.sides is None else cls(query.domain, query.sides)

    @property
    def query(self) -> LinearQuery:
        return LinearQuery.conjunction(self.domain, self.sides)

    @cached_property
    def key(self) -> tuple[tuple[str, bytes], ...]:
        """A name for the box: equal boxes, equal keys."""
        return tuple(
            (name, np.packbits(self.sides[name]).tobytes()) for name in self.domain.clique(self.sides)
        )

    @classmethod
    def from_key(cls, domain: Domain, key: Iterable[tuple[str, bytes]]) -> Box:
        """The inverse of `key`."""
        sides = {name: unpacked(held, (domain[name].size,)) for name, held in key}
        return cls(domain, sides)

    def complement(self) -> Box | None:
        """The other rows, where they are a box as well: the condition is on one attribute."""
        if len(self.sides) != 1:
            return None
        [(name, cells)] = self.sides.items()
        return Box(self.domain, {name: ~cells})

    @property
    def is_canonical(self) -> bool:
        """Of a box and its complement, one: the one with fewer cells, or with the first cell."""
        if len(self.sides) != 1:
            return True
        [cells] = self.sides.values()
        held, size = int(cells.sum()), cells.size
        return 2 * held < size or (2 * held == size and bool(cells[0]))

    def within(self, name: str, cells: Cells) -> Box:
        """The box with one more condition, on an attribute that is free so far."""
        return Box(self.domain, {**self.sides, name: cells})

    def at(self, by: Clique, place: Iterable[int]) -> Box:
        """The rows of the box in one cell of attributes, which it has no conditions on."""
        cells = {n: np.arange(self.domain[n].size) == i for n, i in zip(by, place, strict=True)}
        return Box(self.domain, {**self.sides, **cells})


@dataclass(frozen=True, eq=False)
class Grid:
    """The layout of a domain's attributes in words."""

    domain: Domain

    @cached_property
    def starts(self) -> dict[str, int]:
        found, at = {}, 0
        for attribute in self.domain:
            found[attribute.name] = at
            at += -(-attribute.size // 64)
        return found

    @cached_property
    def everyone(self) -> Words:
        return np.concatenate([_packed(np.ones(attribute.size, bool)) for attribute in self.domain])

    @cached_property
    def _bits(self) -> dict[str, np.uint64]:
        return {name: np.uint64(1 << i % 64) for i, name in enumerate(self.domain.names)}

    def mask(self, box: Box) -> np.uint64:
        """The attributes with a condition, as bits; with more than 64 attributes some share one."""
        found = np.uint64(0)
        for name in box.sides:
            found |= self._bits[name]
        return found

    def words(self, box: Box) -> Words:
        found = self.everyone.copy()
        for name, cells in box.sides.items():
            part = _packed(cells)
            found[self.starts[name] : self.starts[name] + part.size] = part
        return found


def _packed(cells: Cells) -> Words:
    padded = np.zeros(-(-cells.size // 64) * 64, bool)
    padded[: cells.size] = cells
    return np.packbits(padded, bitorder="little").view(np.uint64)


def unpacked(held: bytes, shape: tuple[int, ...]) -> Cells:
    """Cells of a table from their bits, as `np.packbits` makes them."""
    bits = np.unpackbits(np.frombuffer(held, np.uint8), count=prod(shape))
    return bits.astype(bool).reshape(shape)


def as_text(cells: Cells) -> str:
    """Which cells of a table, as short text."""
    return b64encode(compress(np.packbits(cells).tobytes())).decode()


def from_text(text: str, shape: tuple[int, ...]) -> Cells:
    """The inverse of `as_text`."""
    return unpacked(decompress(b64decode(text)), shape)


def plain(marginal: Marginal) -> dict[str, object]:
    """A question as plain values, to be written down; with the edges that are not declared, where it has some."""
    factors = [[list(f.clique), f.weights.ravel().tolist()] for f in marginal.where.factors]
    moment = marginal.moment
    summed = {} if moment is None else {"moment": [moment.kind, list(moment.names)]}
    if isinstance(marginal.domain, RefinedDomain):
        added = marginal.domain.new_edges
        summed |= {"edges": {name: [_written(edge) for edge in edges] for name, edges in added.items()}}
    return {"by": list(marginal.by), "where": factors, **summed}


def _written(edge: Ordered) -> object:
    return edge.isoformat() if isinstance(edge, dt.date) else edge


def _read(domain: Domain, name: str, edges: Iterable[object]) -> list[Ordered]:
    """Edges in the type of those of the attribute."""
    attribute = domain[name]
    if not isinstance(attribute, Bins):
        raise DomainError(f"{name} has no bins")
    if attribute.kind == "timestamp":
        return [dt.datetime.fromisoformat(str(edge)) for edge in edges]
    if attribute.kind == "date":
        return [dt.date.fromisoformat(str(edge)) for edge in edges]
    return [type(attribute.starts[0])(edge) for edge in edges]


def from_plain(domain: Domain, written: Mapping[str, object]) -> Marginal:
    """The inverse of `plain`; raises a `DomainError` where the edges do not fit the declared domain."""
    for name, edges in written.get("edges", {}).items():  # type: ignore[attr-defined]
        domain = refined(domain, name, _read(domain, name, edges))
    where = LinearQuery.everyone(domain)
    for names, weights in written["where"]:  # type: ignore[union-attr]
        table = np.array(weights).reshape(domain.shape(domain.clique(names)))
        where = where & LinearQuery.table(domain, domain.clique(names), table)
    kind, names = written.get("moment", ("", ()))  # type: ignore[misc]
    moment = Moment(kind, tuple(names)) if kind else None  # type: ignore[arg-type]
    return Marginal(domain, tuple(written["by"]), where, moment)  # type: ignore[arg-type]
