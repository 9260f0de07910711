"""What debits were charged, by analyst, day and month: what limits go by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from understudy.privacy.limits import Limits

MAX_NAMES = 4096
"""So many names have a share each; whoever comes with a new name after them shares one with all others who do."""


@dataclass(eq=False)
class Shares:
    """Units charged to each analyst, and on the latest day and month. Time never runs backwards in a ledger.

    Every share is kept whatever limits are declared: they may be declared at any time. A share is the sum of what
    its debits were charged, so that the shares of all analysts add up to what was spent.
    """

    analysts: dict[str, int] = field(default_factory=dict[str, int])
    later: int = 0
    day: tuple[str, int] = ("", 0)
    month: tuple[str, int] = ("", 0)

    def copy(self) -> Shares:
        return replace(self, analysts=dict(self.analysts))

    def enter(self, units: int, *, analyst: str, at: str) -> None:
        """Add what a debit was charged."""
        if not units:
            return
        if analyst in self.analysts or len(self.analysts) < MAX_NAMES:
            self.analysts[analyst] = self.analysts.get(analyst, 0) + units
        else:
            self.later += units
        self.day = (at[:10], units + (self.day[1] if self.day[0] == at[:10] else 0))
        self.month = (at[:7], units + (self.month[1] if self.month[0] == at[:7] else 0))

    def bounds(self, limits: Limits, *, analyst: str, at: str) -> list[tuple[str, int, int]]:
        """For each limit that a request at the ISO time `at` draws on: its name, its size, and what is used."""
        binding = list(limits.binding(analyst=analyst, at=at))
        if not binding:
            return []
        own = self.later if len(self.analysts) >= MAX_NAMES else 0
        used = {
            "analyst": self.analysts.get(analyst, own),
            "day": self.day[1] if self.day[0] == at[:10] else 0,
            "month": self.month[1] if self.month[0] == at[:7] else 0,
        }
        return [(name, size, used[name.split(" ", 1)[0]]) for name, size in binding]
