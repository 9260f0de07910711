"""Writers that are killed at any moment, and what must still be true of the ledger they shared.

Run as a program: ``python kill_writers.py FOLDER KILLS SEED [FILTER]``. The parent has everything imported,
forks writers, kills them with SIGKILL at random moments and forks others in their place. A writer reports
over a pipe what it was granted and, after each release, what it released.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

from sqlalchemy.engine import URL

from understudy.ledger import export
from understudy.ledger.interface import Debit
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.event import Selection, SparseVector

BUDGET = Budget.of(1000)
WRITERS = 3
KILLS_PER_LEDGER = 100
SHARED = 40
HANDLES = 4


def price(request: str) -> Selection:
    """The same request costs the same again."""
    return Selection(epsilon=Fraction(1 + sum(request.encode()) % 97, 10**6))


class Writer:
    """One process: asks new questions, repeats old ones, and moves handles on."""

    def __init__(self, url: URL, pipe: int, name: str) -> None:
        self.ledger = DurableLedger(url, "t", BUDGET)
        self.pipe = pipe
        self.name = name
        self.random = random.Random(name)

    def report(self, *words: object) -> None:
        os.write(self.pipe, (json.dumps(words) + "\n").encode())

    def run(self) -> None:
        for i in range(10**9):
            choice = self.random.random()
            if choice < 0.5:
                self.ask(f"{self.name} {i}")
            elif choice < 0.75:
                self.ask(f"shared {self.random.randrange(SHARED)}")
            else:
                self.move(f"handle {self.random.randrange(HANDLES)}")

    def charge(self, request: str, event) -> Debit:
        debit = self.ledger.charge(event, question="q " + request, request=request)
        self.report("charged", request, debit.cost.units)
        return debit

    def ask(self, request: str) -> None:
        debit = self.charge(request, price(request))
        kept = self.ledger.answered(debit) if debit.repeated else None
        if kept is None:
            kept = self.ledger.settle(debit, os.urandom(12))  # the look: fresh noise each time
        self.report("released", request, kept.hex())

    def move(self, request: str) -> None:
        debit = self.charge(request, SparseVector(epsilon=Fraction(1, 1000)))
        if not debit.repeated:
            self.ledger.settle(debit, b"opened", hidden=b"0")
        latest = self.ledger.hidden(debit)
        if latest is None:
            return  # its opener was killed, or is at it
        said = int(latest.state) + 1
        if self.ledger.advance(
            debit, step=latest.step, question="q", answer=b"%d" % said, state=b"%d" % said
        ):
            self.report("moved", request, said)


def forked(url: URL, pipe: int, name: str) -> int:
    child = os.fork()
    if child:
        return child
    try:
        Writer(url, pipe, name).run()
    except BaseException as error:
        os.write(pipe, (json.dumps(["failed", type(error).__name__, str(error)[:300]]) + "\n").encode())
    os._exit(1)


def round_of_kills(url: URL, kills: int, chance: random.Random) -> list[list]:
    """Reports of all writers of one ledger."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    said = b""
    DurableLedger(url, "t", BUDGET).close()
    serial = 0
    writers = []

    def drained() -> bytes:
        parts = []
        while True:
            try:
                parts.append(os.read(read, 1 << 16))
            except BlockingIOError:
                return b"".join(parts)

    def awaited() -> bytes:
        for _ in range(1000):
            if found := drained():
                return found
            time.sleep(0.01)
        return b""

    for _ in range(WRITERS):
        serial += 1
        writers.append(forked(url, write, f"w{serial}"))
    for _ in range(kills):
        said += awaited()  # on a machine that is busy elsewhere there would be nobody at work to kill
        time.sleep(chance.uniform(0, 0.03))
        said += drained()
        place = chance.randrange(WRITERS)
        os.kill(writers[place], signal.SIGKILL)
        os.waitpid(writers[place], 0)
        serial += 1
        writers[place] = forked(url, write, f"w{serial}")
    for writer in writers:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    said += drained()
    os.close(read)
    os.close(write)
    return [json.loads(line) for line in said.decode().splitlines()]


def check(url: URL, reports: list[list]) -> dict[str, int]:
    """No lost debit, no double spend, every released answer under its debit, every repetition the same bytes."""
    verdict = export.verify(url, "t")
    assert verdict["sound"], verdict["problems"][:3]
    entries = export.document(url, "t")["entries"]
    debits = {entry["request"]: entry for entry in entries if entry["kind"] == "debit"}
    steps = {(entry["debit"], entry["step"]) for entry in entries if entry["kind"] == "step"}
    assert len(debits) == sum(entry["kind"] == "debit" for entry in entries)
    assert sum(entry["cost"] for entry in debits.values()) == verdict["spent_units"] == entries[-1]["total"]
    released: dict[str, str] = {}
    moved: dict[str, list[int]] = defaultdict(list)
    for kind, request, what in reports:
        assert kind != "failed", (request, what)
        assert request in debits, f"the debit of {request} was lost"
        if kind == "charged":
            assert debits[request]["cost"] == what
        elif kind == "released":
            assert released.setdefault(request, what) == what, "a repetition gave other bytes"
        else:
            moved[request].append(what)
            assert (debits[request]["number"], what) in steps, "a released step was lost"
    for said in moved.values():
        assert len(set(said)) == len(said), "a handle gave one step twice"
    ledger = DurableLedger(url, "t", BUDGET)
    for request, what in released.items():
        debit = ledger.charge(price(request), question="q " + request, request=request)
        assert debit.repeated
        assert ledger.answered(debit) == bytes.fromhex(what), "a repetition gave other bytes"
    assert ledger.spent.units == verdict["spent_units"]
    ledger.close()
    answered = {entry["debit"] for entry in entries if entry["kind"] == "answer"}
    return {
        "debits": len(debits),
        "released": len(released),
        "moved": sum(map(len, moved.values())),
        "unanswered": len(debits) - len(answered),
    }


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    totals: dict[str, int] = defaultdict(int)
    for start in range(0, kills, KILLS_PER_LEDGER):
        url = URL.create("sqlite", database=str(folder / f"{start}.ledger"))
        reports = round_of_kills(url, min(KILLS_PER_LEDGER, kills - start), chance)
        for name, count in check(url, reports).items():
            totals[name] += count
        for ending in ("", "-wal", "-shm"):
            Path(url.database + ending).unlink(missing_ok=True)
    sys.stdout.write(json.dumps({"kills": kills, **totals}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 4:
        BUDGET = Budget.of(20, 1e-6, filter=sys.argv[4])
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
