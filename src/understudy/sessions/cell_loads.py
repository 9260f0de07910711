"""What events cost at each cell of a small domain: the sums of which joint accounting takes the largest.

The joint price of located events is at most F·maxₓ Φ(x) (`privacy.joint`). Here F·Φ(x) itself is kept for every
cell x, which says more: how much of the price of some events is paid by every cell, also by the one that pays
least.

In a domain of more than `MOST_CELLS` cells only what all cells pay is kept, in one number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.privacy.event import Event, Span
from understudy.privacy.joint import Joint

MOST_CELLS = 1 << 10
"""In a domain of more cells they are not told apart."""


class CellLoads:
    """F·Φ(x) of the events that were added, in units of the ledger, along the axes of `units`.

    Promise     `units` is never more than the joint accountant counts at a cell: exact up to the rounding of
                floats where cells are told apart, else what events add to every cell alike.
    Why         The loads and regions of an event are those of `Joint.loads`, by which the ledger accounts; what is
                left out in a large domain is not negative.
    Privacy     Events are public, and so are their sums. Nothing is charged by them: they decide what may be
                bought ahead, and the ledger charges by its own account.
    Cost        O(cells) for each part of an event, of at most `MOST_CELLS` cells.
    """

    def __init__(self, domain: Domain, joint: Joint) -> None:
        self._joint = joint
        known = domain.size() <= MOST_CELLS
        self._axes = tuple(attribute.identity for attribute in domain) if known else ()
        self.units: NDArray[np.float64] = np.zeros(domain.shape() if known else ())

    def add(self, event: Event) -> None:
        """Add what an event costs the cells that it reads."""
        for units, region in self._joint.loads(event):
            if not region:
                self.units = self.units + units
            elif self._axes:
                self.units = self.units + units * self._inside(region)

    def _inside(self, region: tuple[Span, ...]) -> NDArray[np.float64]:
        inside = np.ones(self.units.shape)
        for span in region:
            axis = self._axes.index(span.attribute)
            cells = np.array([span.mask >> cell & 1 for cell in range(span.size)], np.float64)
            inside = inside * cells.reshape([-1 if i == axis else 1 for i in range(inside.ndim)])
        return inside


def costs_no_cell_more(joint: Joint, event: Event, other: Event) -> bool:
    """Whether an event adds to F·Φ(x) no more than another one does, whatever the cell x is.

    Promise     Where it says yes, that is so. It may say no where it is so, too.
    Why         Each part of this event costs no more units than the part of the other in its place, and lies
                within its region; so at every cell each term is at most the other's. That needs no sum over cells,
                and is the whole comparison for the noise of one marginal, which has one part.
    Privacy     It reads events, which are public.
    Cost        O(parts · attributes), in any domain.
    """
    mine, others = joint.loads(event), joint.loads(other)
    return len(mine) == len(others) and all(
        units <= most and all(_is_inside(region, span) for span in around)
        for (units, region), (most, around) in zip(mine, others, strict=True)
    )


def _is_inside(region: tuple[Span, ...], span: Span) -> bool:
    """Whether all cells of a region are in a span of an attribute."""
    return any(own.attribute == span.attribute and not own.mask & ~span.mask for own in region)
