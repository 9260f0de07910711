"""Group commit: requests that arrive together share one durable transaction."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from understudy.errors import LedgerError

Work = TypeVar("Work")

PATIENCE = 0.001
"""Seconds that a leader waits for a crowd like the last one; nothing beside a sync of a disk."""


class Ticket(Generic[Work]):
    """One request's place in the queue, and later its outcome; it `is_lost` where the whole commit failed."""

    __slots__ = ("done", "error", "is_lost", "leads", "result", "wake", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.is_lost = False
        self.leads = False
        self.wake = Lock()
        self.wake.acquire()


class GroupCommit(Generic[Work]):
    """Leader and followers: who finds no leader leads, commits everything that waits, and hands the lead on.

    `commit` gets the tickets of one batch; it fills in each `result` or `error`, and returns after the batch is
    durable. If it raises, every ticket of the batch fails. A follower returns only after the commit that holds its
    own work. What one thread submits at once is in one batch, whoever leads it.
    """

    def __init__(self, commit: Callable[[list[Ticket[Work]]], None]) -> None:
        self._commit = commit
        self.start_anew()
        _GROUPS.add(self)

    def start_anew(self) -> None:
        """Nobody waits, nobody leads: so it is again in a forked child, where no other thread lives on."""
        self._lock = Lock()
        self._queue: list[Ticket[Work]] = []
        self._parties = 0  # threads whose tickets are in the queue
        self._led = False
        self._crowd = 1
        self._gathering: Lock | None = None

    def submit(self, work: Work) -> Any:
        """What the work came to, once it is durable; raises its error."""
        (ticket,) = self.submit_all([work])
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def submit_all(self, works: Sequence[Work]) -> list[Ticket[Work]]:
        """Several pieces of work in one batch, in their order: their tickets, each with its result or error."""
        tickets = [Ticket(work) for work in works]
        if not tickets:
            return tickets
        first = tickets[0]  # at which this thread waits; the others are done when it is
        with self._lock:
            self._queue.extend(tickets)
            self._parties += 1
            first.leads = not self._led
            self._led = True
            if self._gathering is not None and self._parties >= self._crowd:
                self._gathering.release()
                self._gathering = None
        if not first.leads:
            self._wait(tickets)
        if not first.done:
            self._lead()
        return tickets

    def _wait(self, tickets: list[Ticket[Work]]) -> None:
        first = tickets[0]
        try:
            first.wake.acquire()
        except BaseException:  # an interrupt: nobody waits at these tickets any more
            with self._lock:
                if first in self._queue:
                    self._queue = [ticket for ticket in self._queue if ticket not in tickets]
                    self._parties -= 1
                if first.leads and not first.done:
                    self._hand_on()
            raise

    def _lead(self) -> None:
        if self._crowd > 1:
            self._gather()
        with self._lock:
            self._gathering = None
            batch, self._queue = self._queue, []
            self._crowd, self._parties = self._parties, 0
        try:
            self._commit(batch)
        except Exception as error:
            for ticket in batch:
                ticket.error, ticket.is_lost = error, True
        except BaseException:
            remedy = "Try again with the same request id"
            for ticket in batch:
                ticket.error = LedgerError("the commit was interrupted", remedy=remedy)
                ticket.is_lost = True
            raise
        finally:
            for ticket in batch:
                ticket.done = True
                if ticket.wake.locked():
                    ticket.wake.release()
            with self._lock:
                self._hand_on()

    def _gather(self) -> None:
        """Give those whom the last commit has just released a moment to come back: larger batches, fewer syncs.

        Whoever is alone never waits. The last of the crowd to come wakes the leader, who does not poll: each turn
        of a poll would take the interpreter from a thread that is on its way here.
        """
        with self._lock:
            if self._parties >= self._crowd:
                return
            gathering = self._gathering = Lock()
            gathering.acquire()
        gathering.acquire(timeout=PATIENCE)

    def _hand_on(self) -> None:
        """Wake the first who waits as the next leader; the caller holds the lock."""
        if self._queue:
            self._queue[0].leads = True
            self._queue[0].wake.release()
        else:
            self._led = False


_GROUPS: WeakSet[GroupCommit[Any]] = WeakSet()


def _start_all_anew() -> None:
    for group in list(_GROUPS):
        group.start_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_anew)
