"""What a mechanism owes the Curator that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.noise.samplers import NoiseSource
from understudy.privacy.event import Event
from understudy.query.marginal import Marginal


class Look(Protocol):
    """One private look at exact counts: what it reads, what it costs, what it releases.

    The proof obligation of every look: with the declared neighbours, the law of `release` is as private as
    `event` says. Whatever could make it fail, or take long, is decided by public values in its constructor,
    before anything is charged.
    """

    @property
    def marginals(self) -> Sequence[Marginal]:
        """What is read: counting queries on the declared domain, each in whole people."""
        ...

    @property
    def event(self) -> Event: ...

    @property
    def key(self) -> str:
        """A name for the look and all its public parameters: equal keys ask the same of the same counts."""
        ...

    def release(self, counts: Sequence[NDArray[np.int64]], *, noise: NoiseSource) -> Any:
        """What is released, given the exact counts of `marginals`: whole numbers, or (nested) lists of them."""
        ...


def decided(*parts: object) -> None:
    """For a look's constructor: `parts` are what its release will need, and making them was what checked them.

    They are cached properties of the look. One that cannot be made raises its error here, before anything is
    charged; afterwards they are there.
    """
    del parts
