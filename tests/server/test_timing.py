"""How long an answer takes tells nothing about one person: two tables that differ in one row, asked in turns.

Both tables stand behind one server. Each pair of requests puts one question to both, in an order that a coin
decides, over connections that are kept open, and with a grid of times of one millisecond: far finer than what a
server is configured with, so that the work itself is compared. Where the row makes no difference, either of a pair
is the slower one with probability 1/2, however the machine's load changes: the number of pairs in which the second
table is slower is binomial. The area under the curve (AUC) compares all times of one table with all of the other.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from scipy.stats import binom, rankdata

import served
from statistical import FALSE_ALARM
from understudy.server.config import ServerConfig

TABLES = ("left", "right")
KINDS = {
    "free": (200, {"question": "count by sex"}),
    "paid": (200, {"question": "count age < 18 and sex = F", "rho": 1e-7}),
    "refused": (402, {"question": "count age < 18 and sex = F", "rho": 900.0}),
}

PROGRAM = """
import sys
from pathlib import Path
import served
from server.test_timing import two_tables
from understudy.server.run import serve
serve(two_tables(Path(sys.argv[1])), announce=lambda words: print(words, flush=True))
"""

Times = list[tuple[float, float]]


def neighbours(folder: Path, rows: int) -> None:
    """Two projects whose tables differ in one row, which is in every count that is asked for in one of them."""
    for name in TABLES:
        project = served.people(folder / name, rows=rows, budget="{epsilon: 1000, delta: 1e-9}")
        declared = project / "understudy.yml"
        declared.write_text(declared.read_text().replace("name: people", f"name: {name}"))
        if name == "right":
            table = project / "people.csv"
            head, first, rest = table.read_text().split("\n", 2)
            assert first.startswith("0,F,")
            table.write_text(f"{head}\n99,M,w,true\n{rest}")


def two_tables(folder: Path) -> ServerConfig:
    return served.config(folder, tables={name: folder / name / "understudy.yml" for name in TABLES})


@contextmanager
def apart(folder: Path) -> Iterator[int]:
    """The server in a process of its own: its port."""
    tests = Path(__file__).parent.parent
    places = os.pathsep.join([str(tests.parent / "src"), str(tests)])
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)],
        env={**os.environ, "PYTHONPATH": places},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    try:
        yield int(child.stdout.readline().rsplit(":", 1)[1])
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(60)
        child.stdout.close()


class Asker:
    """One connection that is kept open."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def seconds(self, kind: str, table: str) -> float:
        status, asked = KINDS[kind]
        body = json.dumps({**asked, "request": str(uuid4())}).encode()
        began = time.perf_counter()
        self._connection.request("POST", f"/v1/tables/{table}/ask", body, self._headers)
        reply = self._connection.getresponse()
        content = reply.read()
        taken = time.perf_counter() - began
        assert reply.status == status, content
        return taken

    def close(self) -> None:
        self._connection.close()


def pairs(port: int, token: str, kind: str, total: int, *, warm: int = 5) -> Times:
    """The times of `total` pairs of one kind of request."""
    asker, found = Asker(port, token), Times()
    coin = random.Random(kind)
    try:
        for number in range(total + warm):
            first = coin.randrange(2)
            taken = {place: asker.seconds(kind, TABLES[place]) for place in (first, 1 - first)}
            if number >= warm:
                found.append((taken[0], taken[1]))
    finally:
        asker.close()
    return found


def p_value(times: Times) -> float:
    """The probability of such a majority of pairs, to either side, where the row makes no difference."""
    apart = [later - earlier for earlier, later in times if later != earlier]
    slower = sum(difference > 0 for difference in apart)
    most = max(slower, len(apart) - slower)
    return min(1.0, 2 * float(binom.sf(most - 1, len(apart), 0.5)))


def auc(times: Times) -> tuple[float, float]:
    """How often the second table is slower, over all pairs of times, and the standard error of that by chance."""
    both = np.array(times)
    count = len(both)
    ranks = rankdata(np.concatenate([both[:, 0], both[:, 1]]))[count:]
    area = (float(ranks.sum()) - count * (count + 1) / 2) / count**2
    return area, float(np.sqrt((2 * count + 1) / (12 * count**2)))


def told(kind: str, times: Times) -> str:
    area, error = auc(times)
    return f"{kind}: AUC {area:.4f} ± {1.96 * error:.4f} over {len(times):,} pairs, p {p_value(times):.2g}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_of_an_answer_does_not_tell_neighbouring_tables_apart(tmp_path: Path, kind: str) -> None:
    neighbours(tmp_path, rows=500)
    configured = two_tables(tmp_path)
    (token,) = served.tokens(configured, "ada")
    with served.serving(configured) as service:
        times = pairs(service.addresses["http"].port, token, kind, 50)
    assert p_value(times) >= FALSE_ALARM, told(kind, times)


def test_a_difference_of_a_tenth_of_the_work_is_noticed() -> None:
    draw = np.random.default_rng(5)
    load = draw.gamma(4.0, 1.0, (5000, 1))
    same, slower = load + draw.normal(0, 0.3, (5000, 2)), load + draw.normal([0.0, 0.1], 0.3, (5000, 2))
    assert p_value([(a, b) for a, b in same]) >= FALSE_ALARM > p_value([(a, b) for a, b in slower])
    assert p_value([(0.001, 0.002)] * 50) < FALSE_ALARM


def of_all(port: int, tokens: Sequence[str], kind: str, each: int) -> Times:
    """Pairs by several clients at once."""
    found, threads = Times(), list[threading.Thread]()
    for token in tokens:
        threads.append(
            threading.Thread(target=lambda token=token: found.extend(pairs(port, token, kind, each)))
        )
        threads[-1].start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.slow("6,000 pairs of free, paid and refused answers of neighbouring tables")
def test_neighbouring_tables_have_an_auc_of_at_most_53_percent(tmp_path: Path) -> None:
    total, clients = int(os.environ.get("UNDERSTUDY_TIMING_PAIRS", "6000")), 4
    neighbours(tmp_path, rows=100_000)
    tokens = served.tokens(two_tables(tmp_path), *(f"analyst {i}" for i in range(clients)))
    with apart(tmp_path) as port:
        measured = {kind: of_all(port, tokens, kind, total // clients) for kind in KINDS}
    for kind, times in measured.items():
        sys.stdout.write(f"{told(kind, times)}\n")
    for kind, times in measured.items():
        assert len(times) == total // clients * clients, "a client failed"
        area, error = auc(times)
        assert abs(area - 0.5) <= max(0.03, 6 * error), told(kind, times)
