"""Durable debits per second, beside a bare loop of write and fsync on the same disk.

SQLite alone: one debit in each transaction. Grouped: 64 threads whose debits share transactions. Postgres: one
debit in each transaction over loopback with fsync on, where a server is installed or one is given.

Then a ledger after the worst that question strings can do (`bench.hostile_ledger`): opening, charging, verifying.

Run: python -m bench.ledger [--seconds 4] [--rounds 3] [--folder ON-THE-DISK] [--postgres URL] [--hostile 100000]
                            [--only-hostile]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from uuid import uuid4

import psycopg
from sqlalchemy.engine import URL, make_url

from bench import hostile_ledger
from bench.postgres import NoServer, server
from bench.verdict import Verdict, at_least, ended, not_run, shown, verdict
from understudy.ledger.interface import fresh_request
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise

SECONDS = 4.0
ROUNDS = 3
THREADS = 64
BUDGET = Budget.of(1000)
EVENT = LaplaceNoise(l1=Fraction(1), scale=Fraction(10**6))
ROW = "{:<26} {:>12} {:>14}"


def per_second(once: Callable[[], object], seconds: float) -> float:
    """How often something is done, by the clock on the wall: it waits for a disk."""
    done, started = 0, time.perf_counter()
    while time.perf_counter() < started + seconds:
        once()
        done += 1
    return done / (time.perf_counter() - started)


def fsyncs(folder: Path, seconds: float) -> float:
    """Appends of one 4 KiB page, each synced: what the disk gives to anybody."""
    handle = os.open(folder / "bare", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)

    def append() -> None:
        os.write(handle, b"\0" * 4096)
        os.fsync(handle)

    try:
        return per_second(append, seconds)
    finally:
        os.close(handle)


def debits(ledger: DurableLedger, threads: int, seconds: float) -> float:
    """Charges per second, each durable before the next of its thread."""
    rates = [0.0] * threads

    def charge() -> None:
        ledger.charge(EVENT, question="bench", request=fresh_request())

    def work(own: int) -> None:
        rates[own] = per_second(charge, seconds)

    crowd = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    return sum(rates)


def inserts(url: URL, seconds: float) -> float:
    """Commits of one bare row per second: what the server gives to anybody."""
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as opened:
        opened.execute("CREATE TABLE IF NOT EXISTS bare (x int)")
        return per_second(lambda: opened.execute("INSERT INTO bare VALUES (1)"), seconds)


@contextmanager
def postgres(given: str | None, folder: Path) -> Iterator[URL]:
    """The server that was given, or one of our own on the same disk."""
    if given:
        yield make_url(given).set(drivername="postgresql+psycopg")
        return
    folder.chmod(0o755)  # the server runs as somebody else where this runs as root
    with server({"fsync": "on"}, place=folder) as own:
        yield make_url(own.url).set(drivername="postgresql+psycopg")


@dataclass(frozen=True)
class Bench:
    """Where and how long."""

    folder: Path
    seconds: float
    rounds: int

    def show(self, title: str, bar: int, url: URL, threads: int) -> Verdict:
        """The rate, and its ratio to the bare loop, the two measured in turns."""
        ledger = DurableLedger(url, f"bench-{uuid4()}", BUDGET)
        pairs = [
            (debits(ledger, threads, self.seconds), fsyncs(self.folder, self.seconds))
            for _ in range(self.rounds)
        ]
        ledger.close()
        rate, ratio = median(rate for rate, _ in pairs), median(rate / bare for rate, bare in pairs)
        print(ROW.format(title, f"{rate:,.0f}", f"{ratio:.2f}"), flush=True)
        held = verdict(f"ledger, {title}", rate, at_least(bar, "{:,.0f} durable debits a second"))
        return held.of_full_size("seconds a round", int(self.seconds), int(SECONDS))

    def on_postgres(self, given: str | None) -> Verdict:
        try:
            with postgres(given, self.folder) as url:
                found = self.show("Postgres, alone", 300, url, 1)
                bare = inserts(url, self.seconds)
                print(f"the same server, bare one-row inserts: {bare:,.0f} per second")
                return found
        except NoServer as missing:
            return not_run("ledger, Postgres, alone", str(missing))


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a round, by the clock on the wall")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--folder", type=Path, help="on the disk to measure; default: that of temporary files"
    )
    parser.add_argument("--postgres", metavar="URL", help="a server to measure; default: one of our own")
    parser.add_argument("--hostile", type=int, default=hostile_ledger.ENTRIES, help="entries; 0 for none")
    parser.add_argument("--only-hostile", action="store_true", help="no rates of debits")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        found = [] if asked.only_hostile else rates(Path(name), asked)
        if asked.hostile:
            found += hostile_ledger.shown(Path(name), asked.hostile)
    return shown(*found)


def rates(folder: Path, asked: argparse.Namespace) -> list[Verdict]:
    """Durable debits per second."""
    print(ROW.format("durable debits", "per second", "x bare fsync"))
    bench = Bench(folder, asked.seconds, asked.rounds)
    found = []
    for title, threads, bar in (("SQLite, alone", 1, 150), (f"SQLite, {THREADS} threads", THREADS, 5000)):
        url = URL.create("sqlite", database=str(bench.folder / f"{threads}.ledger"))
        found.append(bench.show(title, bar, url, threads))
    found.append(bench.on_postgres(asked.postgres))
    bare = fsyncs(bench.folder, asked.seconds)
    print(f"a bare loop of 4 KiB appends, each with fsync: {bare:,.0f} per second")
    return found


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
