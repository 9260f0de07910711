"""Tables of something that stands still, remembered: questions on the same few attributes share one pass."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain

BLOCK = 16
"""Cells of a block: neighbouring attributes are taken together up to here."""

WIDE = 2**12
"""Cells of the largest table that is remembered: it stays in the nearest caches."""

ROOM = 2**21
"""Cells of all tables that are remembered."""

AnyArray = NDArray[Any]


@dataclass(eq=False)
class RememberedTables:
    """Tables over cliques, made once by `make` over all blocks that a clique touches, and summed down from there.

    A pass that counts twelve binary attributes costs little more than one that counts three of them, and serves
    every other question on the same blocks.
    """

    domain: Domain
    make: Callable[[Clique], AnyArray]
    _kept: OrderedDict[Clique, AnyArray] = field(default_factory=OrderedDict[Clique, AnyArray], init=False)
    _cells: int = field(default=0, init=False)

    def over(self, clique: Clique) -> AnyArray | None:
        """The table over a clique, given in domain order; None where it is too wide to be remembered."""
        known = self._kept.get(clique)
        if known is not None:
            self._kept.move_to_end(clique)
            return known
        if self.domain.size(clique) > WIDE:
            return None
        wide = self._widened(clique)
        table = self._kept.get(wide)
        if table is None:
            table = self.make(wide)
            self._keep(wide, table)
        if wide != clique:
            table = table.sum(axis=tuple(i for i, name in enumerate(wide) if name not in clique))
            self._keep(clique, table)
        return table

    def forget(self) -> None:
        """What was tabled has changed."""
        self._kept.clear()
        self._cells = 0

    def _keep(self, clique: Clique, table: AnyArray) -> None:
        self._kept[clique] = table
        self._cells += table.size
        while self._cells > ROOM:
            self._cells -= self._kept.popitem(last=False)[1].size

    def _widened(self, clique: Clique) -> Clique:
        """The clique and, where that is not too wide, all attributes in the blocks that it touches."""
        blocks = {self._block[name] for name in clique}
        wide = tuple(name for name in self.domain.names if self._block[name] in blocks)
        return wide if self.domain.size(wide) <= WIDE else clique

    @cached_property
    def _block(self) -> dict[str, int]:
        found: dict[str, int] = {}
        number, cells = 0, 1
        for attribute in self.domain:
            cells *= attribute.size
            if found and cells > BLOCK:
                number, cells = number + 1, attribute.size
            found[attribute.name] = number
        return found
