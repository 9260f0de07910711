"""How fast analysts may ask, and when replies leave.

Rates are token buckets, one for each analyst: a second's worth of requests may come at once, and then as many as
the rate says. Replies to questions leave on a grid of times after the request's arrival: g, 2g, 4g, … A reply
waits for the next of them, so that the time that it took tells a class (so much work, in powers of two) and
nothing finer.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from understudy.server.problems import Problem

MOST_ANALYSTS = 1 << 14
"""Buckets that are kept. The one that was used longest ago is full again by the time it is dropped."""


class RateLimiter:
    """A token bucket for each analyst: `per_second` requests a second, and as many at once."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._most = max(per_second, 1.0)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admit(self, analyst: str, *, requests: int = 1) -> None:
        """Count requests of an analyst, or raise the `Problem` 429 that says when there is room again."""
        now = self._clock()
        left, then = self._buckets.get(analyst, (self._most, now))
        left = min(self._most, left + (now - then) * self._per_second)
        if left < min(requests, self._most):
            wait = (min(requests, self._most) - left) / self._per_second
            raise Problem(
                429,
                "rate",
                f"Analyst {analyst} asks faster than {self._per_second:g} requests a second.",
                hint=f"Wait {wait:.2g} seconds, or put several questions into one request for prices.",
                retry_after=wait,
            )
        self._buckets[analyst] = (left - requests, now)
        self._buckets.move_to_end(analyst)
        if len(self._buckets) > MOST_ANALYSTS:
            self._buckets.popitem(last=False)


class ResponseGrid:
    """The times after a request's arrival at which its reply may leave: `first_ms`, twice that, four times, …"""

    def __init__(self, first_ms: float) -> None:
        self._first = first_ms / 1000

    def point(self, elapsed: float) -> float:
        """The first time of the grid that is not before `elapsed`, both in seconds after the arrival.

        >>> [ResponseGrid(25).point(t) for t in (0.0, 0.025, 0.026, 0.3)]
        [0.025, 0.025, 0.05, 0.4]
        """
        if self._first <= 0:
            return elapsed
        point = self._first
        while point < elapsed:
            point *= 2
        return point

    async def wait(self, arrived: float) -> None:
        """Sleep until the next time of the grid for a request that arrived at `arrived` on the loop's clock."""
        now = asyncio.get_running_loop().time()
        left = self.point(now - arrived) - (now - arrived)
        if left > 0:
            await asyncio.sleep(left)
