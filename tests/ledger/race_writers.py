"""Processes that race for the last units of a budget, and the sequential model that their history must follow.

Run as a program: ``python race_writers.py URL PROCESSES THREADS DEBITS``.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
import time
from bisect import bisect_left, bisect_right
from fractions import Fraction
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from understudy.errors import InsufficientBudgetError
from understudy.ledger import export
from understudy.ledger.interface import fresh_request
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Selection

LARGEST = 999


def race(url: URL, budget: Budget, threads: int, seed: int) -> list[list[int]]:
    """Spend until nothing is left: [start, end, units asked, entry number or 0, units that remained or -1]."""
    ledger = DurableLedger(url, "race", budget)
    history: list[list[int]] = []

    def spend(own: int) -> None:
        chance = random.Random(f"{seed} {own}")
        largest = LARGEST
        while largest:
            units = chance.randint(1, largest)
            event = Selection(epsilon=Fraction(units, UNITS))
            start = time.monotonic_ns()
            try:
                debit = ledger.charge(event, question="race", request=fresh_request())
                history.append([start, time.monotonic_ns(), units, debit.number, -1])
            except InsufficientBudgetError as refused:
                left = round(refused.remaining * UNITS)
                history.append([start, time.monotonic_ns(), units, 0, left])
                largest = min(largest, left)

    crowd = [threading.Thread(target=spend, args=(i,)) for i in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    ledger.close()
    return history


def check(url: URL, budget: Budget, history: list[list[int]]) -> dict[str, int]:
    """The history is that of one ledger that serves one request at a time, in an order that time allows."""
    cap = budget.cap.units
    verdict = export.verify(url, "race")
    assert verdict["sound"], verdict["problems"][:3]
    entries = export.document(url, "race")["entries"]
    totals = [entry["total"] for entry in entries]
    granted = sorted((line for line in history if line[3]), key=lambda line: line[3])
    debits = [entry for entry in entries if entry["kind"] == "debit"]
    assert {entry["kind"] for entry in entries} <= {"open", "debit", "snapshot"}
    assert [line[3] for line in granted] == [entry["number"] for entry in debits]
    assert sum(line[2] for line in granted) == cap == totals[-1] == verdict["spent_units"]
    running = 0
    for line, entry in zip(granted, debits, strict=True):
        running += line[2]
        assert (entry["cost"], entry["total"]) == (line[2], running)
    # Whatever had ended before a request began comes before it in the ledger.
    by_end = sorted(granted, key=lambda line: line[1])
    ends = [line[1] for line in by_end]
    latest = [0]
    for line in by_end:
        latest.append(max(latest[-1], line[3]))
    starts = sorted((line[0], line[3]) for line in granted)
    begun = [start for start, _ in starts]
    highest = [1]
    for _, number in starts:
        highest.append(max(highest[-1], number))
    for start, end, units, number, left in history:
        before = latest[bisect_left(ends, start)]
        if number:
            assert before < number
            continue
        possible = totals[max(before, 1) - 1 : highest[bisect_right(begun, end)]]
        assert cap - left in possible, "a refusal told of a balance that never was at that time"
        assert units > left
    return {"granted": len(granted), "refused": len(history) - len(granted)}


def main(url: URL, processes: int, threads: int, debits: int) -> None:
    budget = Budget.of(Fraction(debits * (LARGEST + 1) // 2, UNITS))
    DurableLedger(url, "race", budget).close()
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for i in range(processes):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    Path(folder, str(i)).write_text(json.dumps(race(url, budget, threads, i)))
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
        history = [line for i in range(processes) for line in json.loads(Path(folder, str(i)).read_text())]
    sys.stdout.write(json.dumps(check(url, budget, history)) + "\n")


if __name__ == "__main__":
    main(make_url(sys.argv[1]), *map(int, sys.argv[2:5]))
