"""The server on loopback, over HTTP and at the Postgres door: answers for a CPU second, waiting times, its start.

    repeats   one question that is known, asked again by many clients: without and with a fresh request id
    paid      questions that are measured directly, each under a request id of its own, by 32 clients
    free      a known question's time (99th percentile) alone, and while another analyst's purchases run
    fairness  a new question's time (95th percentile) alone, and while another analyst floods the server
    start     CPU seconds until a server with 24,000 entries in its ledger answers: over a table with a coded copy,
              as `understudy init` drafts it; and without one, when the engine checks the table's columns first
    postgres  the Postgres door: a known question as a prepared statement, asked again by many clients, without and
              with a parameter; and CPU milliseconds of a connection with SCRAM

Run: python -m bench.server [--repeats 6000] [--paid 1600] [--entries 24000] [--rows 100000] [--only NAME …]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles
from typing import Any
from uuid import uuid4

import numpy as np

from bench.verdict import Verdict, at_least, at_most, ended, shown, verdict
from understudy.project import open_project
from understudy.server.store import ServerStore
from understudy.server.tokens import Tokens

NAMES = ("repeats", "paid", "free", "fairness", "start", "postgres")
CLIENTS = 32
KNOWN = "count by sex"
ROWS = 100_000

BLOCKS = 8
"""How often a measurement changes between alone and beside other work."""

DECLARATION = """\
understudy: 1
name: town
source: town.parquet
budget: {epsilon: 1000, delta: 1e-9}
coded_copy: true
attributes:
  age: {type: integer, edges: [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]}
  sex: {type: category, values: [F, M]}
  area: {type: category, values: [a, b, c, d, e, f, g, h]}
  job: {type: category, values: [k, l, m, n, o]}
  home: {type: category, values: [p, q, r, s]}
"""

SERVE = """
import sys
from fractions import Fraction
from pathlib import Path
from understudy.server.config import Address, ApproveAbove, Listen, Rates, ServerConfig
from understudy.server.run import serve
folder, at_once, grid, port = Path(sys.argv[1]), *map(int, sys.argv[2:5])
listen = Listen(http=Address("127.0.0.1", 0), admin=Address("127.0.0.1", 0), postgres=Address("127.0.0.1", port))
configured = ServerConfig(
    folder=folder, tables={"town": folder / "understudy.yml"}, listen=listen, response_grid_ms=grid,
    approve_above=ApproveAbove(people=Fraction(1), agents=Fraction(1)),
    rates=Rates(requests=1e6, at_once=at_once, waiting=100000),
)
serve(configured, announce=lambda words: print(words, flush=True))
"""


def town(folder: Path, rows: int) -> None:
    """A table of uniform people, and its declaration."""
    import pyarrow as pa
    from pyarrow import parquet

    draw = np.random.default_rng(1)
    table = pa.table(
        {
            "age": draw.integers(0, 100, rows),
            "sex": draw.choice(list("FM"), rows),
            "area": draw.choice(list("abcdefgh"), rows),
            "job": draw.choice(list("klmno"), rows),
            "home": draw.choice(list("pqrs"), rows),
        }
    )
    parquet.write_table(table, folder / "town.parquet")
    (folder / "understudy.yml").write_text(DECLARATION)


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


class Served:
    """A server in a process of its own, and tokens of some analysts."""

    def __init__(self, folder: Path, *, at_once: int = 64, grid: int = 25) -> None:
        with ServerStore(folder / "server.db") as store:
            self.tokens = [Tokens(store).make(f"analyst {i}")[1] for i in range(CLIENTS)]
        self.postgres = free_port()
        words = [sys.executable, "-c", SERVE, str(folder), str(at_once), str(grid), str(self.postgres)]
        self.child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.child.stdout is not None
        self.port = int(self.child.stdout.readline().rsplit(":", 1)[1])
        self.start_cpu = self.cpu()

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(60)
        assert self.child.stdout is not None
        self.child.stdout.close()


class Connection:
    """A connection that is kept open: one question after the other."""

    def __init__(self, served: Served, token: str) -> None:
        self._port = served.port
        self._head = (
            f"POST /v1/tables/town/ask HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
            "content-type: application/json\r\ncontent-length: "
        ).encode()

    async def __aenter__(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self, body: bytes) -> float:
        """Ask, and return the seconds until the answer was there."""
        began = time.perf_counter()
        self._writer.write(self._head + str(len(body)).encode() + b"\r\n\r\n" + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        content = await self._reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(content.decode())
        return time.perf_counter() - began


def body(question: str, **given: Any) -> bytes:
    return json.dumps({"question": question, **given}).encode()


async def asked_by(
    served: Served, clients: int, total: int, make: Callable[[int], bytes], *, own_token: bool = True
) -> list[float]:
    """The times of `total` questions, put by some clients at once."""
    numbers, times = iter(range(total)), list[float]()

    async def one(client: int) -> None:
        async with Connection(served, served.tokens[client % CLIENTS if own_token else 0]) as connection:
            for number in numbers:
                times.append(await connection.ask(make(number)))

    await asyncio.gather(*(one(client) for client in range(clients)))
    return times


def percentile(times: Sequence[float], part: int) -> float:
    return quantiles(times, n=100, method="inclusive")[part - 1]


def per_cpu(served: Served, clients: int, total: int, make: Callable[[int], bytes]) -> tuple[float, float]:
    """Answers for each CPU second of the server, and the 99th percentile of their times."""
    asyncio.run(asked_by(served, clients, 200, make))
    before = served.cpu()
    times = asyncio.run(asked_by(served, clients, total, lambda number: make(number + 200)))
    return total / (served.cpu() - before), percentile(times, 99)


def repeats(folder: Path, total: int) -> list[Verdict]:
    served = Served(folder)
    try:
        asyncio.run(asked_by(served, 1, 1, lambda _: body(KNOWN)))
        rate, slow = per_cpu(served, 96, total, lambda _: body(KNOWN))
        named, _ = per_cpu(served, 96, total, lambda _: body(KNOWN, request=str(uuid4())))
    finally:
        served.stop()
    print(
        f"repeats: {rate:,.0f} for each CPU second, p99 {1000 * slow:.0f} ms; with request ids {named:,.0f}"
    )
    return shown(
        verdict("repeats over HTTP", rate, at_least(3000, "{:,.0f} for each CPU second")),
        verdict("repeats over HTTP with request ids", named, at_least(2000, "{:,.0f} for each CPU second")),
    )


def paid(folder: Path, total: int) -> list[Verdict]:
    served = Served(folder)

    def make(number: int) -> bytes:
        return body(f"count age < {10 * (1 + number % 9)}", rho=1e-6, request=str(uuid4()))

    try:
        rate, slow = per_cpu(served, CLIENTS, total, make)
    finally:
        served.stop()
    print(f"paid: {rate:,.0f} for each CPU second, p99 {1000 * slow:.0f} ms")
    return shown(verdict("paid answers, 32 clients", rate, at_least(600, "{:,.0f} for each CPU second")))


def new_questions() -> Callable[[int], bytes]:
    """Questions of which no two are the same; each has to be bought."""
    names = {"age": range(10), "area": "abcdefgh", "job": "klmno", "home": "pqrs", "sex": "FM"}
    draw = np.random.default_rng(2)
    seen: set[str] = set()

    def make(_: int) -> bytes:
        while True:
            low, high = sorted(draw.choice(10, 2, replace=False))
            parts = [f"age >= {10 * low}", f"age < {10 * high}"]
            for name in draw.permutation(["area", "job", "home", "sex"])[: draw.integers(2, 5)]:
                some = [value for value in names[name] if draw.random() < 0.6] or [names[name][0]]
                parts.append(f"{name} in ({', '.join(some)})")
            text = "count " + " and ".join(parts)
            if text not in seen:
                seen.add(text)
                return body(text)

    return make


async def blocks(
    work: Callable[[], Awaitable[list[float]]], other: Callable[[], Awaitable[Any]]
) -> tuple[list[float], list[float]]:
    """The times of some work alone, and while other work goes on: in turns, so that both meet the same machine."""
    alone, beside = list[float](), list[float]()
    for _ in range(BLOCKS):
        alone += await work()
        task = asyncio.ensure_future(other())
        try:
            await asyncio.sleep(0.3)
            beside += await work()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.3)  # what was under way ends
    return alone, beside


async def times_of(
    served: Served, client: int, total: int, make: Callable[[int], bytes], pause: float
) -> list[float]:
    async with Connection(served, served.tokens[client]) as connection:
        found: list[float] = []
        for number in range(total):
            found.append(await connection.ask(make(number)))
            await asyncio.sleep(pause)
        return found


def free(folder: Path, total: int) -> list[Verdict]:
    """Of a free answer: until it is ready (no grid of times), and until it leaves on the usual grid."""
    found: list[Verdict] = []
    for grid, what in ((0, "ready"), (25, "on the grid")):
        served, new = Served(folder, grid=grid), new_questions()
        try:
            asyncio.run(asked_by(served, 1, 1, lambda _: body(KNOWN)))
            asyncio.run(asked_by(served, 1, 20, new))  # what is worked out once for a session

            def known(served: Served = served) -> Awaitable[list[float]]:
                return times_of(served, 0, total // BLOCKS, lambda _: body(KNOWN), 0.005)

            def looks(served: Served = served, new: Callable[[int], bytes] = new) -> Awaitable[Any]:
                return times_of(served, 1, 10**6, new, 0.0)

            alone, busy = asyncio.run(blocks(known, looks))
        finally:
            served.stop()
        more = 1000 * (percentile(busy, 99) - percentile(alone, 99))
        print(
            f"free, {what}: p99 {1000 * percentile(alone, 99):.1f} ms alone, {more:+.1f} ms while purchases run"
        )
        found.append(verdict(f"a free answer while looks run, {what}, p99", more, at_most(20, "{:+.1f} ms")))
    return shown(*found)


def fairness(folder: Path, total: int) -> list[Verdict]:
    """Of a new question in the session, while another analyst keeps 32 of them under way.

    Until it is ready, without the grid of times: there a delay of a millisecond can look like a doubling.
    """
    served, new = Served(folder, at_once=4, grid=0), new_questions()
    try:
        asyncio.run(asked_by(served, 1, 20, new))

        def one() -> Awaitable[list[float]]:
            return times_of(served, 0, total // BLOCKS, new, 0.02)

        async def flood() -> None:
            async def client() -> None:
                async with Connection(served, served.tokens[1]) as connection:
                    while True:
                        await connection.ask(new(0))

            await asyncio.gather(*(client() for _ in range(32)))

        quiet, flooded = asyncio.run(blocks(one, flood))
    finally:
        served.stop()
    ratio = percentile(flooded, 95) / percentile(quiet, 95)
    slow, fast = 1000 * percentile(flooded, 95), 1000 * percentile(quiet, 95)
    print(f"fairness: p95 {fast:.0f} ms quiet, {slow:.0f} ms flooded")
    return shown(
        verdict("a flood by one analyst, others' p95", ratio, at_most(2, "{:.2f} times the quiet one"))
    )


def _started(folder: Path) -> float:
    """CPU seconds of a start, the least of three: what the machine adds is no part of it."""
    least = 1e9
    for _ in range(3):
        served = Served(folder)
        served.stop()
        least = min(least, served.start_cpu)
    return least


def start(folder: Path, entries: int) -> list[Verdict]:
    project = open_project(folder)

    def ask(number: int) -> None:
        project.ask(f"count age < {10 * (1 + number % 9)}", rho=1e-7)

    with ThreadPoolExecutor(CLIENTS) as pool:  # a question makes two entries: the debit and its answer
        list(pool.map(ask, range(entries // 2)))
    project.close()
    copied = _started(folder)
    declared = (folder / "understudy.yml").read_text()
    (folder / "understudy.yml").write_text(declared.replace("coded_copy: true\n", ""))
    plain = _started(folder)
    print(f"start: {copied:.2f} CPU s with {entries:,} entries, and {plain:.2f} without a coded copy")
    found = verdict("start", copied, at_most(1.5, "{:.2f} CPU s"))
    return shown(found.of_full_size("entries", entries, 24_000))


async def selected(served: Served, total: int, sql: str, *values: Any) -> float:
    """Answers for each CPU second of the server to a prepared statement that many clients execute again."""
    import asyncpg

    async def connected(client: int) -> Any:
        return await asyncpg.connect(
            host="127.0.0.1", port=served.postgres, user=f"analyst {client}", password=served.tokens[client],
            database="understudy",
        )  # fmt: skip

    clients = [await connected(client) for client in range(CLIENTS)]
    prepared = [await client.prepare(sql) for client in clients]
    for statement in prepared:
        await statement.fetch(*values)
    numbers, before = iter(range(total)), served.cpu()

    async def one(statement: Any) -> None:
        for _ in numbers:
            await statement.fetch(*values)

    await asyncio.gather(*map(one, prepared))
    rate = total / (served.cpu() - before)
    await asyncio.gather(*(client.close() for client in clients))
    return rate


def postgres(folder: Path, total: int) -> list[Verdict]:
    import psycopg

    served = Served(folder)
    try:
        plain = asyncio.run(selected(served, total, "SELECT sex, count(*) AS n FROM town GROUP BY sex"))
        sql = "SELECT sex, count(*) AS n FROM town WHERE age < $1 GROUP BY sex"
        with_value = asyncio.run(selected(served, total, sql, 30))
        before, connections = served.cpu(), 200
        for _ in range(connections):
            psycopg.connect(
                host="127.0.0.1", port=served.postgres, user="analyst 0", password=served.tokens[0],
                dbname="understudy",
            ).close()  # fmt: skip
        connect = 1000 * (served.cpu() - before) / connections
    finally:
        served.stop()
    print(
        f"postgres: {plain:,.0f} for each CPU second prepared, {with_value:,.0f} with a parameter; "
        f"a connection takes {connect:.1f} CPU ms"
    )
    return shown(
        verdict("repeats over Postgres, prepared", plain, at_least(1500, "{:,.0f} for each CPU second")),
        verdict("a connection with SCRAM", connect, at_most(3, "{:.1f} CPU ms")),
    )


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(prog="bench.server", description=__doc__)
    parser.add_argument("--repeats", type=int, default=6000)
    parser.add_argument("--paid", type=int, default=1600)
    parser.add_argument("--times", type=int, default=400)
    parser.add_argument("--entries", type=int, default=24_000)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    given = parser.parse_args(arguments)
    sizes = {
        "repeats": given.repeats, "paid": given.paid, "free": given.times, "fairness": given.times,
        "start": given.entries, "postgres": given.repeats,
    }  # fmt: skip
    found: list[Verdict] = []
    for name in given.only:
        with tempfile.TemporaryDirectory() as folder:
            town(Path(folder), given.rows)
            found += globals()[name](Path(folder), sizes[name])
    return found


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
