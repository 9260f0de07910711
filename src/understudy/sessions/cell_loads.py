"""What events cost at each cell of a small domain: the sums of which joint accounting takes the largest.

The joint price of events is the largest sum over laws μ of rows of what they cost each of them (`joint.Load`).
Here that sum is kept for every cell x, the law that has no other row, which says more: how much of the price of
some events is paid by every cell, also by the one that pays least.

In a domain of more than `MOST_CELLS` cells only what all cells pay is kept, in one number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.privacy.event import Event, Span
from understudy.privacy.joint import Joint, Load

MOST_CELLS = 1 << 10
"""In a domain of more cells they are not told apart."""


class CellLoads:
    """What the events that were added cost each cell, in units of the ledger, along the axes of `units`.

    Promise     `units` is what the joint accountant counts at a cell, exact up to the rounding of floats, where
                cells are told apart, and else what events add to every cell alike. Of a count that may be divided
                it is the half that a cell alone pays, or all that a law of rows can (`whole`).
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

    def add(self, event: Event, *, whole: bool = False) -> None:
        """Add what an event costs the cells that it reads; `whole` takes divided counts as if they were not."""
        for load in self._joint.loads(event):
            self.add_load(load._replace(halved=load.halved and not whole))

    def add_load(self, load: Load) -> None:
        """Add what a part of an event costs the cells of its region: half of its units where it may be divided."""
        units = load.units / 2 if load.halved else load.units
        if not load.region:
            self.units = self.units + units
        elif self.tells_apart:
            self.units = self.units + units * self._inside(load.region)

    @property
    def tells_apart(self) -> bool:
        """Whether cells are told apart: else only what everybody pays is kept."""
        return bool(self._axes)

    def _inside(self, region: tuple[Span, ...]) -> NDArray[np.float64]:
        inside = np.ones(self.units.shape)
        for span in region:
            axis = self._axes.index(span.attribute)
            cells = np.array([span.mask >> cell & 1 for cell in range(span.size)], np.float64)
            inside = inside * cells.reshape([-1 if i == axis else 1 for i in range(inside.ndim)])
        return inside


def costs_no_cell_more(joint: Joint, event: Event, than: Event) -> bool:
    """Whether an event costs no law of rows more than another one does.

    Promise     Where it says yes, that is so. It may say no where it is so, too.
    Why         Each part of this event costs no more units than the part of the other in its place, and lies
                within its region; so for every law each term is at most the other's. Where the other costs a law
                at most half of its units, and this one may cost all of them, it has to have half as many. That
                needs no sum over cells, and is all that the noise of one marginal needs, which has one part.
    Privacy     It reads events, which are public.
    Cost        O(parts · attributes), in any domain.
    """
    mine, others = joint.loads(event), joint.loads(than)
    return len(mine) == len(others) and all(
        one.units * (2 if other.halved and not one.halved else 1) <= other.units
        and is_within(one.region, other.region)
        for one, other in zip(mine, others, strict=True)
    )


def is_within(region: tuple[Span, ...], other: tuple[Span, ...]) -> bool:
    """Whether all cells of a region are in another one."""
    return all(
        any(own.attribute == span.attribute and not own.mask & ~span.mask for own in region) for span in other
    )
