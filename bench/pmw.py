"""Private multiplicative weights: checked answers a second, and what 10,000 questions cost with them.

Speed: an online construction on 2^20 cells answers conjunctions on three attributes, and dense 0/1 vectors over
all cells, almost all from its hypothesis through the sparse vector, in one process with the ledger in memory.
Beside it the textbook in numpy, in the same run: for each question a 0/1 vector over all cells, its products with
the table's histogram and with the hypothesis, and Laplace noise. The textbook keeps the logarithms of the weights,
and exponentiates and normalises them for each answer; the tuned one keeps the histogram normalised between
updates, and finds the cells of a conjunction with bits. For dense vectors no factor of 20 is to be had: to read
the question once takes a tenth of the textbook's time. CPU seconds, one thread each.

Cost: see `bench.pmw_cost`.

Run: python -m bench.pmw
UNDERSTUDY_BENCH_BITS (default 20), UNDERSTUDY_BENCH_ROWS (default 100000) make another size;
UNDERSTUDY_BENCH_PARTS (default speed,cost) leaves one part out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import process_time

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench import pmw_cost
from bench.weights import domain_of
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.domain import Domain
from understudy.interactive.online import OnlineConstruction, practical_terms
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.linear import LinearQuery
from understudy.standin.multiplicative import ProjectedWeights
from understudy.table.source import in_memory
from understudy.table.truth import Truth

BITS = int(os.environ.get("UNDERSTUDY_BENCH_BITS", 20))
ROWS = int(os.environ.get("UNDERSTUDY_BENCH_ROWS", 100_000))
PARTS = os.environ.get("UNDERSTUDY_BENCH_PARTS", "speed,cost").split(",")
BAR_RATE = 300
"""Checked answers a CPU second."""

BAR_PEER = 20
"""Times as many as the textbook in numpy, for conjunctions."""


def table(domain: Domain) -> NDArray[np.uint8]:
    """Rows whose attributes are uneven, and depend on the one before."""
    draw = np.random.default_rng(12)
    rows = (draw.random((ROWS, len(domain))) < np.linspace(0.45, 0.6, len(domain))).astype(np.uint8)
    again = draw.random((ROWS, len(domain) - 1)) < 0.1
    rows[:, 1:] = np.where(again, rows[:, :-1], rows[:, 1:])
    return rows


def conjunctions(domain: Domain, count: int) -> list[LinearQuery]:
    draw = np.random.default_rng(13)
    return [
        LinearQuery.conjunction(
            domain,
            {
                domain.names[i]: np.arange(2) == draw.integers(2)
                for i in draw.choice(len(domain), 3, replace=False)
            },
        )
        for _ in range(count)
    ]


def vectors(domain: Domain, count: int) -> list[LinearQuery]:
    draw = np.random.default_rng(14)
    return [
        LinearQuery.table(domain, domain.names, draw.integers(0, 2, domain.shape()).astype(np.float64))
        for _ in range(count)
    ]


def construction(domain: Domain, rows: NDArray[np.uint8]) -> OnlineConstruction:
    declared = Declaration(
        name="pmw",
        source=SourceSpec("-"),
        domain=domain,
        budget=Budget.of(1000, 1e-9),
        neighbours=Neighbours.REPLACE,
    )
    truth = Truth(in_memory(pa.table(dict(zip(domain.names, rows.T, strict=True)))), domain)
    curator = Curator(truth, MemoryLedger(declared.budget), declared)
    terms = practical_terms(curator, alpha=0.05, queries=10**6, updates=1000)
    return OnlineConstruction(curator, ProjectedWeights(domain=domain, margin=0.01, threads=1), terms)


class Textbook:
    """The loop of the textbook, in numpy; floating-point noise, no ledger."""

    def __init__(self, domain: Domain, rows: NDArray[np.uint8], *, tuned: bool) -> None:
        self.cells = domain.size()
        self.tuned = tuned
        flat = np.ravel_multi_index(tuple(rows.T.astype(np.intp)), domain.shape())
        self.truth = np.bincount(flat, minlength=self.cells).astype(np.float64)
        self.codes = {
            name: np.broadcast_to(
                np.arange(2, dtype=np.uint8).reshape([2 if i == j else 1 for j in range(len(domain))]),
                domain.shape(),
            ).reshape(-1)
            for i, name in enumerate(domain.names)
        }
        self.logs = np.zeros(self.cells)
        self.rates = np.full(self.cells, 1 / self.cells)
        self.draw = np.random.default_rng(15)
        self.updates = 0

    def ask(self, query: LinearQuery) -> float:
        weights = self._vector(query)
        if not self.tuned:
            self._normalise()
        guess = ROWS * float(weights @ self.rates)
        gap = float(weights @ self.truth) - guess
        if abs(gap) + self.draw.laplace(scale=150) < 0.04 * ROWS:
            return guess
        self.updates += 1
        self.logs += np.sign(gap) * 0.1 * weights
        self._normalise()
        return guess + gap + float(self.draw.laplace(scale=150))

    def _vector(self, query: LinearQuery) -> NDArray[np.float64]:
        if len(query.factors) == 1 and query.factors[0].weights.size == self.cells:
            return query.factors[0].weights.reshape(-1)
        if self.tuned:
            held = np.ones(self.cells, np.bool_)
            for factor in query.factors:
                held &= self.codes[factor.clique[0]] == int(factor.weights.argmax())
            return held.astype(np.float64)
        weights = np.ones(self.cells)
        for factor in query.factors:
            weights *= factor.weights[self.codes[factor.clique[0]]]
        return weights

    def _normalise(self) -> None:
        self.rates = np.exp(self.logs - self.logs.max())
        self.rates /= self.rates.sum()


def rate(ask: Callable[[LinearQuery], object], queries: Sequence[LinearQuery]) -> float:
    start = process_time()
    for query in queries:
        ask(query)
    return len(queries) / (process_time() - start)


def speed() -> None:
    domain = domain_of(BITS)
    rows = table(domain)
    print(f"2^{BITS} cells, {ROWS:,} rows; checked answers a CPU second, one thread")
    for kind, queries, peers, factor in (
        ("conjunctions on 3 attributes", conjunctions(domain, 4000), 150, BAR_PEER),
        ("dense 0/1 vectors", vectors(domain, 48), 48, 0),
    ):
        ours = construction(domain, rows)
        for query in queries[:8]:
            ours.ask(query)
        paid = ours.updates
        found = rate(ours.ask, queries[8:])
        books = {
            name: rate(Textbook(domain, rows, tuned=tuned).ask, queries[:peers])
            for name, tuned in (("textbook", False), ("tuned numpy", True))
        }
        beside = "; ".join(f"{name} {per:.0f}, {found / per:.1f} times" for name, per in books.items())
        met = found >= BAR_RATE and found >= factor * books["textbook"]
        bar = f"{'met' if met else 'MISSED'}: {BAR_RATE}" + (
            f" and {factor} times the textbook" if factor else ""
        )
        print(
            f"  {kind:30} {found:7.0f}   {beside}   {ours.updates - paid} of {len(queries) - 8} measured   {bar}",
            flush=True,
        )


def main() -> None:
    if "speed" in PARTS:
        speed()
    if "cost" in PARTS:
        pmw_cost.main()


if __name__ == "__main__":
    main()
