"""A clock for tests of a server: it goes only when it is told to, forward or back."""

from __future__ import annotations

DAY = 86400.0


class Clock:
    def __init__(self, seconds: float = 1_800_000_000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds

    def days(self, number: float) -> None:
        self.seconds += number * DAY
