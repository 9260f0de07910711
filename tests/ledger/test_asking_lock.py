"""A fork while a thread asks: the child is told, and does not wait for a thread that is not there."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ledger.durable import in_child
from understudy.ledger.asking_lock import AskingLock
from understudy.validity.holdout import Holdout


def entered(lock: AskingLock) -> str:
    with lock, lock:  # again by the same thread
        return "entered"


def test_a_child_of_a_fork_while_another_thread_held_the_lock_is_told():
    lock, inside, leave = AskingLock("session"), threading.Event(), threading.Event()

    def hold():
        with lock:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    said = in_child(lambda: entered(lock))
    leave.set()
    thread.join()
    assert said["error"] == "RefusedError"
    assert "forked while another thread used the session" in said["words"]
    assert entered(lock) == "entered"  # the parent goes on
    assert in_child(lambda: entered(lock)) == "entered"


def test_who_does_not_want_to_wait_goes_on_without_the_lock():
    lock, inside, leave = AskingLock("session"), threading.Event(), threading.Event()

    def hold():
        with lock:
            inside.set()
            assert leave.wait(60)

    with lock.if_free() as entered, lock.if_free() as again:  # by the same thread
        assert (entered, again) == (True, True)
    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(60)
    with lock.if_free() as entered:
        assert not entered
    leave.set()
    thread.join()
    with lock.if_free() as entered:
        assert entered


def test_the_thread_that_forks_keeps_its_lock_in_the_child():
    lock = AskingLock("session")
    with lock:
        assert in_child(lambda: entered(lock)) == "entered"


def by_another_thread(job) -> None:
    other = threading.Thread(target=job)
    other.start()
    other.join(10)
    assert not other.is_alive()


def test_a_job_outside_lets_others_in_and_tells_whether_any_came():
    lock = AskingLock("session")

    def if_free():
        with lock.if_free() as inside:
            assert inside

    with lock:
        assert lock.without(lambda: None)
        assert not lock.without(lambda: by_another_thread(lambda: entered(lock)))
        assert not lock.without(lambda: by_another_thread(if_free))
        assert lock.without(lambda: None)


def test_who_does_not_get_in_changes_nothing():
    """An addition is a read and a write: one from outside could undo the one of who got in meanwhile."""
    lock, changed = Watched("session"), []

    def refused():
        lock.changed = changed
        with lock.if_free() as inside:
            assert not inside

    with lock:
        by_another_thread(refused)
    assert not changed


class Watched(AskingLock):
    """A lock that says which of its attributes were set since it has `changed`."""

    def __setattr__(self, name, value):
        if "changed" in vars(self):
            self.changed.append(name)
        super().__setattr__(name, value)


def test_a_job_outside_that_fails_ends_inside():
    lock = AskingLock("session")
    with lock:
        with pytest.raises(ZeroDivisionError):
            lock.without(lambda: 1 / 0)

        def refused():
            with lock.if_free() as inside:
                assert not inside

        by_another_thread(refused)
    by_another_thread(lambda: entered(lock))


def test_a_holdout_that_is_asked_by_threads_does_not_hang_a_child():
    labels = np.arange(400) % 3 == 0
    holdout = Holdout(None, labels, queries=1000, beta=0.05)
    stop = threading.Event()

    def ask():
        while not stop.is_set() and holdout.left > 5:
            holdout.score_predictions(labels)

    crowd = [threading.Thread(target=ask) for _ in range(3)]
    for thread in crowd:
        thread.start()
    try:
        for _ in range(5):
            said = in_child(lambda: holdout.score_predictions(labels).value)
            assert isinstance(said, float) or said["error"] == "RefusedError"
    finally:
        stop.set()
        for thread in crowd:
            thread.join()
    holdout.close()
