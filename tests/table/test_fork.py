"""A table in processes that fork."""

from __future__ import annotations

import os
import signal
import warnings
from threading import Event, Thread

import pyarrow as pa
import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.table.file_view import connect_in_memory
from understudy.table.source import in_memory
from understudy.table.truth import Truth

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

DOMAIN = Domain((Bins.integers("age", 0, 9),))


def forked(work) -> int:
    """The status of a child that does the work, and is killed when it takes longer than a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks among threads
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1]


def test_a_fork_waits_for_a_look_and_the_child_can_look():
    truth = Truth(in_memory(pa.table({"age": [1, 2, 2]})), DOMAIN)
    inside, done = Event(), Event()

    def look():
        with truth._look() as view:
            inside.set()
            done.wait(0.5)
            list(view.batches(DOMAIN, ("age",)))

    thread = Thread(target=look)
    thread.start()
    inside.wait()
    assert forked(lambda: truth.count(("age",)).tolist() == [0, 1, 2, *[0] * 7]) == 0
    done.set()
    thread.join()
    assert truth.count(("age",))[2] == 2


def test_a_child_starts_an_engine_and_leaves_its_parents_alone():
    """To end an engine whose threads were left behind by the fork would take for ever."""
    connect_in_memory().con.execute("SELECT sum(hash(range)) FROM range(5000000)").fetchall()
    assert forked(lambda: connect_in_memory().con.execute("SELECT 1").fetchall() == [(1,)]) == 0


def test_children_of_a_process_whose_threads_ask_without_end_can_look():
    truth = Truth(in_memory(pa.table({"age": [i % 10 for i in range(10_000)]})), DOMAIN)
    stop = Event()

    def ask():
        while not stop.is_set():
            truth.count(("age",))
            truth._counted.forget()  # so that the next one has to look

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        found = [forked(lambda: truth.count(("age",))[3] == 1000) for _ in range(5)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert found == [0] * 5
