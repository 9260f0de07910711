"""What is certain of numbers whose conditions cut bins that a source knows as a whole only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CutBins:
    """The certified ends of each cell's interval, and the part of its half-width that comes from cut bins.

    low             the least that the table can have, in the unit of the answer: no row of a cut bin counts
    high            the most: all rows of the cut bins count. Where nobody vouches for the bins it is infinite, and
                    1 for shares and rates: there `low` and `high` are what any table can have
    discretisation  half of the interval, less what it would be if rows were spread evenly in their bins: no budget
                    makes it smaller, and only the table itself can. Infinite where nobody vouches for the bins
    """

    low: Floats
    high: Floats
    discretisation: Floats

    @classmethod
    def beyond(cls, low: Floats, high: Floats, own: Floats) -> CutBins:
        """Intervals from `low` to `high` of which the half-widths `own` are not due to bins.

        `own` is infinite where nobody vouches for the bins.
        """
        known = np.isfinite(own) & np.isfinite(high) & np.isfinite(low)
        half = (np.where(known, high, 0.0) - np.where(known, low, 0.0)) / 2
        part = np.maximum(half - np.where(known, own, 0.0), 0.0)
        return cls(*map(_fixed, (low, high, np.where(known, part, np.inf))))

    @property
    def own(self) -> Floats:
        """The half-widths without what comes from bins; infinite where nobody vouches for the bins."""
        low, high, part = (
            np.where(self.vouched, told, 0.0) for told in (self.low, self.high, self.discretisation)
        )
        return np.where(self.vouched, (high - low) / 2 - part, np.inf)

    @property
    def vouched(self) -> NDArray[np.bool_]:
        """Where the ends are certified."""
        return np.isfinite(self.discretisation)

    def divided(self, rows: float) -> CutBins:
        """The same as shares of a number of `rows`."""
        low, high = (np.minimum(end / rows, 1.0) for end in (self.low, self.high))
        return CutBins(*map(_fixed, (low, high, self.discretisation / rows)))

    def told(self, *, unit: str, beta: float) -> list[str]:
        """What is certain, in sentences without a full stop, for terminals and pages.

        `unit` is that of the answer, and `beta` the probability with which it does not hold.
        """
        said = ["uncertified: rows are taken to be spread evenly in the bins that are cut"]
        digits, sure = 0 if unit == "people" else 5, f"with probability {1 - beta:g}"
        if not self.vouched.any():
            return [*said, "nothing is proved of the error"]
        part = f"{float(self.discretisation[self.vouched].max()):,.{digits}f}"
        most = "at most " if self.high.ndim else ""
        return [*said, f"all within their bounds {sure}; bins are {most}± {part} of that"]

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CutBins:
        """What `plain`, made by `as_dict`, stands for; None, which JSON has for what is infinite, is no number."""
        return cls(*(_fixed(np.asarray(plain[name], float)) for name in ("low", "high", "discretisation")))

    def as_dict(self) -> dict[str, Any]:
        """The three fields as lists of numbers, in the shape of the answer."""
        return {
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "discretisation": self.discretisation.tolist(),
        }


def _fixed(values: Floats) -> Floats:
    kept = np.array(values, dtype=np.float64)
    kept.flags.writeable = False
    return kept
