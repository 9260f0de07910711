"""Group commit: who waits for what."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from understudy.errors import LedgerError
from understudy.ledger.group import GroupCommit


class Disk:
    """A commit that can be held up, and that notes its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.durable: set[str] = set()
        self.failure: BaseException | None = None

    def commit(self, tickets) -> None:
        self.entered.release()
        self.go_on.acquire()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self.batches.append([ticket.work for ticket in tickets])
        for ticket in tickets:
            self.durable.add(ticket.work)
            ticket.result = ticket.work.upper()


class Client(threading.Thread):
    def __init__(self, group, disk, work) -> None:
        super().__init__(daemon=True)
        self.group, self.disk, self.work = group, disk, work
        self.result = self.error = None
        self.was_durable = False
        self.start()

    def run(self) -> None:
        try:
            self.result = self.group.submit(self.work)
            self.was_durable = self.work in self.disk.durable
        except BaseException as error:  # the test looks at it
            self.error = error


def waiting(group, count) -> None:
    for _ in range(10_000):
        with group._lock:
            if len(group._queue) == count:
                return
        threading.Event().wait(0.001)
    raise AssertionError("the clients did not queue up")


def test_those_who_wait_share_the_next_commit():
    disk = Disk()
    group = GroupCommit(disk.commit)
    first = Client(group, disk, "a")
    disk.entered.acquire()
    others = [Client(group, disk, name) for name in "bcdef"]
    waiting(group, 5)
    assert all(client.is_alive() for client in others)  # nobody is released before its own commit
    disk.go_on.release()
    first.join(10)
    disk.entered.acquire()
    assert all(client.is_alive() for client in others)
    disk.go_on.release()
    for client in others:
        client.join(10)
    assert disk.batches[0] == ["a"]
    assert sorted(disk.batches[1]) == list("bcdef")
    for client in (first, *others):
        assert client.was_durable
        assert client.result == client.work.upper()


@pytest.mark.parametrize("failure", [OSError("disk"), KeyboardInterrupt()])
def test_a_failed_commit_fails_its_batch_and_no_other(failure):
    disk = Disk()
    group = GroupCommit(disk.commit)
    first = Client(group, disk, "a")
    disk.entered.acquire()
    others = [Client(group, disk, name) for name in "bc"]
    waiting(group, 2)
    disk.go_on.release()
    first.join(10)
    disk.entered.acquire()
    last = Client(group, disk, "d")
    waiting(group, 1)
    disk.failure = failure
    disk.go_on.release()
    for client in others:
        client.join(10)
    disk.entered.acquire()
    disk.go_on.release()
    last.join(10)
    assert last.result == "D"
    kinds = sorted(type(client.error).__name__ for client in others)
    if isinstance(failure, KeyboardInterrupt):  # it is the leader's alone
        assert kinds == ["KeyboardInterrupt", "LedgerError"]
        assert all(isinstance(c.error, LedgerError | KeyboardInterrupt) for c in others)
    else:
        assert kinds == ["OSError", "OSError"]


def test_a_refusal_in_a_batch_is_its_own():
    def commit(tickets) -> None:
        for ticket in tickets:
            if ticket.work == "bad":
                ticket.error = ValueError("refused")
            else:
                ticket.result = "ok"

    group = GroupCommit(commit)
    assert group.submit("good") == "ok"
    with pytest.raises(ValueError, match="refused"):
        group.submit("bad")
    assert group.submit("good") == "ok"


def test_what_one_thread_submits_at_once_is_one_batch_in_its_order():
    disk = Disk()
    group = GroupCommit(disk.commit)
    first = Client(group, disk, "a")
    disk.entered.acquire()
    found: list[str] = []
    many = threading.Thread(
        target=lambda: found.extend(ticket.result for ticket in group.submit_all(["b", "c", "d"]))
    )
    many.start()
    waiting(group, 3)
    last = Client(group, disk, "e")
    waiting(group, 4)
    for _ in range(2):
        disk.go_on.release()
    disk.entered.acquire()
    for thread in (first, many, last):
        thread.join(10)
    assert disk.batches == [["a"], ["b", "c", "d", "e"]]
    assert (found, last.result) == (["B", "C", "D"], "E")
    assert group.submit_all([]) == []


def test_a_failed_commit_marks_all_tickets_of_it_and_a_refusal_one():
    def commit(tickets) -> None:
        for ticket in tickets:
            if ticket.work == "gone":
                raise OSError("disk")
            ticket.error = ValueError("refused") if ticket.work == "bad" else None

    group = GroupCommit(commit)
    assert [ticket.is_lost for ticket in group.submit_all(["good", "bad"])] == [False, False]
    lost = group.submit_all(["good", "gone"])
    assert [(ticket.is_lost, type(ticket.error)) for ticket in lost] == [(True, OSError)] * 2


def test_a_child_forked_while_somebody_leads_leads_for_itself():
    disk = Disk()
    group = GroupCommit(disk.commit)
    leader = Client(group, disk, "a")
    assert disk.entered.acquire(timeout=10)
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)  # the one way out for who waits for a thread that lives in the parent
            disk.go_on.release()
            os._exit(0 if group.submit("b") == "B" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    disk.go_on.release()
    leader.join(10)
    assert (leader.result, disk.batches) == ("A", [["a"]])
