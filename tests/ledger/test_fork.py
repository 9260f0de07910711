"""A durable ledger in processes that fork."""

from __future__ import annotations

import os
import threading

from ledger.durable import TINY, charge, in_child, opened, sound
from understudy.privacy.cost import UNITS


def test_a_forked_child_uses_connections_of_its_own(sqlite):
    ledger = opened(sqlite)
    charge(ledger)
    for _ in range(3):
        assert in_child(lambda: charge(ledger).cost.units) == UNITS // 10
    charge(ledger)
    assert ledger.spent.amount == 0.5
    ledger.close()
    sound(sqlite)


def test_a_child_keeps_its_debits_when_its_parent_lets_go(sqlite):
    """SQLite's locks do not cross a fork: no connection may be open while one happens."""
    ledger = opened(sqlite)
    charge(ledger)
    (asked, ask), (said, say) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            charge(ledger, request="child 1")
            os.write(say, b"x")
            os.read(asked, 1)
            charge(ledger, request="child 2")
        finally:
            os._exit(0)
    os.read(said, 1)
    charge(ledger)
    ledger.close()  # the last connection folds the log into the file and removes it
    os.write(ask, b"x")
    os.waitpid(child, 0)
    for handle in (asked, ask, said, say):
        os.close(handle)
    other = opened(sqlite)
    assert charge(other, request="child 1").repeated
    assert charge(other, request="child 2").repeated
    assert other.spent.amount == 0.4
    other.close()
    sound(sqlite)


def test_a_fork_waits_for_transactions_and_hinders_nobody(sqlite):
    ledger = opened(sqlite)
    stop = threading.Event()
    spent = []

    def spend():
        while not stop.is_set():
            spent.append(charge(ledger, TINY).cost.units)

    crowd = [threading.Thread(target=spend) for _ in range(4)]
    for thread in crowd:
        thread.start()
    for _ in range(10):
        spent.append(in_child(lambda: charge(ledger, TINY).cost.units))
    stop.set()
    for thread in crowd:
        thread.join()
    assert ledger.spent.units == sum(spent)
    ledger.close()
    sound(sqlite)
