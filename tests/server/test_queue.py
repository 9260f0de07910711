"""The fair queue: turns, and work that one thread does for many."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from understudy.server.problems import Problem
from understudy.server.queue import FairQueue, SharedWork


def queue(**given) -> FairQueue:
    return FairQueue("test", **({"threads": 4, "at_once": 8, "waiting": 64} | given))


class Held:
    """Work on batches that waits until it is let go, and notes what it was given."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        self.go_on = threading.Semaphore(0)
        self.together = SharedWork(self.work)

    def work(self, items):
        self.batches.append(items)
        self.threads.add(threading.get_ident())
        assert self.go_on.acquire(timeout=20)
        yield [
            (place, ValueError(item) if item.startswith("bad") else item.upper())
            for place, item in enumerate(items)
        ]


def test_what_comes_while_a_thread_works_is_gathered_in_turns_for_the_next():
    held = Held()

    async def main():
        line = queue(at_once=2)
        first = asyncio.ensure_future(line.run_together(held.together, "first", analyst="ada"))
        await asyncio.sleep(0)
        others = [
            asyncio.ensure_future(line.run_together(held.together, f"{who}{i}", analyst=who))
            for who in ("ada", "bob")
            for i in range(3)
        ]
        await asyncio.sleep(0)
        assert (line.active, line.length) == (1, 6)
        for _ in range(4):
            held.go_on.release()
        found = await asyncio.gather(first, *others)
        assert await line.close(5)
        return found

    found = asyncio.run(main())
    assert found == [text.upper() for text in ("first", "ada0", "ada1", "ada2", "bob0", "bob1", "bob2")]
    assert held.batches[0] == ["first"]
    assert held.batches[1] == ["ada0", "bob0", "ada1", "bob1"]  # by turns, two of each at once
    assert held.batches[2] == ["ada2", "bob2"]


def test_outcomes_are_each_pieces_own_and_a_failure_is_everybodys_that_is_left():
    def work(items):
        yield [(0, "told"), (1, ValueError("its own"))]
        raise OSError("all others")

    async def main():
        line, told = queue(), []
        together = SharedWork(work)
        blocker = threading.Event()
        occupied = [asyncio.ensure_future(line.run(partial(blocker.wait, 20), analyst="x")) for _ in range(4)]
        await asyncio.sleep(0)
        pieces = [asyncio.ensure_future(line.run_together(together, i, analyst=f"a{i}")) for i in range(4)]
        await asyncio.sleep(0)
        blocker.set()
        for piece in pieces:
            try:
                told.append(await piece)
            except Exception as error:
                told.append(type(error))
        await asyncio.gather(*occupied)
        assert await line.run(lambda: "still there", analyst="a") == "still there"
        assert (line.active, line.length) == (0, 0)
        await line.close(5)
        return told

    assert asyncio.run(main()) == ["told", ValueError, OSError, OSError]


def test_work_that_forgets_a_piece_fails_it_and_holds_nobody():
    async def main():
        line = queue()
        with pytest.raises(RuntimeError, match="without an outcome"):
            await line.run_together(SharedWork(lambda items: iter(())), "x", analyst="ada")
        assert line.active == 0
        await line.close(5)

    asyncio.run(main())


def test_a_portion_is_told_while_the_rest_is_worked_on():
    rest = threading.Event()

    def work(items):
        yield [(0, "soon")]
        assert rest.wait(20)
        yield [(place, "later") for place in range(1, len(items))]

    async def main():
        line, together, blocker = queue(threads=1), SharedWork(work), threading.Event()
        occupied = asyncio.ensure_future(line.run(partial(blocker.wait, 20), analyst="x"))
        await asyncio.sleep(0)
        soon, later = (asyncio.ensure_future(line.run_together(together, i, analyst="ada")) for i in range(2))
        await asyncio.sleep(0)
        blocker.set()
        assert await asyncio.wait_for(soon, 20) == "soon"
        assert not later.done()
        rest.set()
        assert await later == "later"
        await occupied
        await line.close(5)

    asyncio.run(main())


def test_too_many_that_wait_are_refused_and_what_waits_at_the_end_as_well():
    held = Held()

    async def main():
        line = queue(waiting=1)
        running = asyncio.ensure_future(line.run_together(held.together, "running", analyst="ada"))
        await asyncio.sleep(0)
        waits = asyncio.ensure_future(line.run_together(held.together, "waits", analyst="ada"))
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await line.run_together(held.together, "third", analyst="ada")
        assert refused.value.status == 429
        held.go_on.release()
        assert await line.close(10)
        assert await running == "RUNNING"
        with pytest.raises(Problem) as stopped:
            await waits
        assert stopped.value.status == 503
        with pytest.raises(Problem):
            await line.run_together(held.together, "late", analyst="bob")

    asyncio.run(main())
    assert held.batches == [["running"]]
