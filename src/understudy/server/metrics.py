"""What the custodian can watch: requests by route, their durations, the queues, and what is left of each budget.

Labels are routes, statuses and names of tables: nothing of a question, an answer or an analyst is in them.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6)


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "understudy_requests", "Requests that were answered.", ("door", "method", "route", "status"),
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "understudy_request_seconds", "Seconds from a request's head to its reply's end.", ("door", "route"),
            buckets=BUCKETS, registry=self.registry,
        )  # fmt: skip
        self._queue = Gauge(
            "understudy_queue", "Pieces of work that run or wait.", ("queue", "state"), registry=self.registry
        )
        self._left = Gauge(
            "understudy_budget_left",
            "The part of a table's budget that is left.",
            ("table",),
            registry=self.registry,
        )
        self._counted: dict[
            tuple[str, str, str, int], tuple[Callable[[], None], Callable[[float], None]]
        ] = {}

    def note_request(self, door: str, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. A method that no door knows (those of HTTP, and `SQL`) is counted as `other`."""
        key = (door, method, route, status)
        found = self._counted.get(key)
        if found is None:
            shown = (
                method
                if method in {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "SQL"}
                else "other"
            )
            count = self._requests.labels(door, shown, route, str(status)).inc
            found = self._counted[key] = count, self._seconds.labels(door, route).observe
        found[0]()
        found[1](seconds)

    def note_queue(self, name: str, *, active: int, waiting: int) -> None:
        self._queue.labels(name, "active").set(active)
        self._queue.labels(name, "waiting").set(waiting)

    def note_left(self, table: str, share: float) -> None:
        self._left.labels(table).set(share)

    def page(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
