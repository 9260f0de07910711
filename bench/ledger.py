"""Durable debits per second, beside a bare loop of write and fsync on the same disk.

SQLite alone: one debit in each transaction. Grouped: 64 threads whose debits share transactions. Postgres: one
debit in each transaction over loopback with fsync on, where a server is installed (or one is given by
UNDERSTUDY_BENCH_POSTGRES).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from statistics import median
from uuid import uuid4

import psycopg
from sqlalchemy.engine import URL, make_url

from understudy.errors import LedgerError
from understudy.ledger.interface import fresh_request
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise

SECONDS = 4.0
ROUNDS = 3
THREADS = 64
BUDGET = Budget.of(1000)
EVENT = LaplaceNoise(l1=Fraction(1), scale=Fraction(10**6))
ROW = "{:<26} {:>12} {:>10} {:>14} {:>8}"


def fsyncs(folder: Path) -> float:
    """Appends of one 4 KiB page, each synced: what the disk gives to anybody."""
    done, stop = 0, time.perf_counter() + SECONDS
    started = time.perf_counter()
    handle = os.open(folder / "bare", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    try:
        while time.perf_counter() < stop:
            os.write(handle, b"\0" * 4096)
            os.fsync(handle)
            done += 1
    finally:
        os.close(handle)
    return done / (time.perf_counter() - started)


def debits(ledger: DurableLedger, threads: int) -> float:
    """Charges per second, each durable before the next of its thread."""
    counts = [0] * threads
    stop = time.perf_counter() + SECONDS

    def work(own: int) -> None:
        while time.perf_counter() < stop:
            ledger.charge(EVENT, question="bench", request=fresh_request())
            counts[own] += 1

    started = time.perf_counter()
    crowd = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def inserts(url: URL) -> float:
    """Commits of one bare row per second: what the server gives to anybody."""
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    done, stop = 0, time.perf_counter() + SECONDS
    with psycopg.connect(plain, autocommit=True) as server:
        server.execute("CREATE TABLE IF NOT EXISTS bare (x int)")
        started = time.perf_counter()
        while time.perf_counter() < stop:
            server.execute("INSERT INTO bare VALUES (1)")
            done += 1
        return done / (time.perf_counter() - started)


def _rates(run: Callable[[], float], folder: Path) -> tuple[float, float]:
    """Medians of the rate and of its ratio to the bare loop, the two measured in turns."""
    pairs = [(run(), fsyncs(folder)) for _ in range(ROUNDS)]
    return median(rate for rate, _ in pairs), median(rate / bare for rate, bare in pairs)


@contextmanager
def _postgres(folder: Path) -> Iterator[URL | None]:
    """A server of our own on loopback, or None where there is none."""
    given = os.environ.get("UNDERSTUDY_BENCH_POSTGRES")
    if given:
        yield make_url(given).set(drivername="postgresql+psycopg")
        return
    found = [Path(p) for p in [shutil.which("initdb") or ""] if p]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    if not found:
        yield None
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = folder / "postgres"
    own.mkdir()
    as_user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if as_user:
        folder.chmod(0o755)
        shutil.chown(own, "postgres", "postgres")
    subprocess.run(
        [found[0], "-D", own / "data", "-U", "bench", "-A", "trust"],
        check=True, capture_output=True, cwd=own, **as_user,
    )  # fmt: skip
    options = ("listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={own}", "fsync=on")
    server = subprocess.Popen(
        [found[0].with_name("postgres"), "-D", own / "data", *(part for o in options for part in ("-c", o))],
        cwd=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_user,
    )  # fmt: skip
    try:
        yield make_url(f"postgresql+psycopg://bench@127.0.0.1:{port}/postgres")
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(30)


def _opened(url: URL) -> DurableLedger:
    deadline = time.monotonic() + 60
    while True:
        try:
            return DurableLedger(url, f"bench-{uuid4()}", BUDGET)
        except LedgerError:  # a server that is still starting
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main() -> None:
    print(ROW.format("durable debits", "per second", "bar", "x bare fsync", ""))
    with tempfile.TemporaryDirectory(dir=os.environ.get("UNDERSTUDY_BENCH_FOLDER")) as name:
        folder = Path(name)
        for title, threads, bar in (("SQLite, alone", 1, 150), (f"SQLite, {THREADS} threads", THREADS, 5000)):
            url = URL.create("sqlite", database=str(folder / f"{threads}.ledger"))
            _show(title, bar, DurableLedger(url, "bench", BUDGET), threads, folder)
        with _postgres(folder) as url:
            if url is None:
                print("Postgres: no server is installed here")
            else:
                ledger = _opened(url)
                _show("Postgres, alone", 300, ledger, 1, folder)
                print(f"the same server, bare one-row inserts: {inserts(url):,.0f} per second")
        print(f"a bare loop of 4 KiB appends, each with fsync: {fsyncs(folder):,.0f} per second")


def _show(title: str, bar: int, ledger: DurableLedger, threads: int, folder: Path) -> None:
    rate, ratio = _rates(lambda: debits(ledger, threads), folder)
    ledger.close()
    print(ROW.format(title, f"{rate:,.0f}", f"{bar:,}", f"{ratio:.2f}", "ok" if rate >= bar else "BELOW"))


if __name__ == "__main__":
    main()
