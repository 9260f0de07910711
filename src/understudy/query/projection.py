"""The one protocol that truth and stand-ins share."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain


class Projection(Protocol):
    """Anything that can be projected onto a clique can answer every linear query on it."""

    @property
    def domain(self) -> Domain: ...

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """Rates that sum to 1, shaped by the clique's attributes in domain order."""
        ...
