"""Private multiplicative weights: checked answers a second, and what 10,000 questions cost with them.

Speed: an online construction on 2^20 cells answers conjunctions on three attributes, and dense 0/1 vectors over
all cells, almost all from its hypothesis through the sparse vector, in one process with the ledger in memory.
Beside it the textbook in numpy, in the same run: for each question a 0/1 vector over all cells, its products with
the table's histogram and with the hypothesis, and Laplace noise. The textbook keeps the logarithms of the weights,
and exponentiates and normalises them for each answer; the tuned one keeps the histogram normalised between
updates, and finds the cells of a conjunction with bits. For dense vectors no factor of 20 is to be had: to read
the question once takes a tenth of the textbook's time. CPU seconds, one thread each.

Cost: see `bench.pmw_cost`.

Run: python -m bench.pmw [--parts speed cost] [--bits 20] [--rows 100000]
                         [--questions 10000] [--alphas .05 .02 .01] [--ways direct session]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench import pmw_cost
from bench.clock import rate
from bench.curating import curator_over
from bench.interaction import ALPHAS, QUESTIONS
from bench.verdict import Verdict, at_least, ended, shown, verdict
from bench.weights import domain_of
from understudy.domain.domain import Domain
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import practical_terms
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.standin.multiplicative import ProjectedWeights
from understudy.table.source import in_memory
from understudy.table.truth import Truth

BITS, ROWS = 20, 100_000
BAR_RATE = 300
"""Checked answers a CPU second."""

BAR_PEER = 20
"""Times as many as the textbook in numpy, for conjunctions."""


def table(domain: Domain, people: int) -> NDArray[np.uint8]:
    """Rows whose attributes are uneven, and depend on the one before."""
    draw = np.random.default_rng(12)
    rows = (draw.random((people, len(domain))) < np.linspace(0.45, 0.6, len(domain))).astype(np.uint8)
    again = draw.random((people, len(domain) - 1)) < 0.1
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
    truth = Truth(in_memory(pa.table(dict(zip(domain.names, rows.T, strict=True)))), domain)
    budget = Budget.of(1000, 1e-9)
    curator = curator_over(truth, domain, budget, neighbours=Neighbours.REPLACE, seed=None)
    terms = practical_terms(curator, alpha=0.05, queries=10**6, updates=1000)
    return OnlineConstruction(curator, ProjectedWeights(domain=domain, margin=0.01, threads=1), terms)


class Textbook:
    """The loop of the textbook, in numpy; floating-point noise, no ledger."""

    def __init__(self, domain: Domain, rows: NDArray[np.uint8], *, tuned: bool) -> None:
        self.people = len(rows)
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
        guess = self.people * float(weights @ self.rates)
        gap = float(weights @ self.truth) - guess
        if abs(gap) + self.draw.laplace(scale=150) < 0.04 * self.people:
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


def speed(bits: int, people: int) -> list[Verdict]:
    domain = domain_of(bits)
    rows = table(domain, people)
    print(f"2^{bits} cells, {people:,} rows; checked answers a CPU second, one thread")
    verdicts = []
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
        measured = f"{ours.updates - paid} of {len(queries) - 8} measured"
        print(f"  {kind:30} {found:7.0f}   {beside}   {measured}", flush=True)
        verdicts.append(verdict(f"pmw, {kind}", found, at_least(BAR_RATE, "{:.0f} a CPU second")))
        if factor:
            times = found / books["textbook"]
            verdicts.append(verdict(f"pmw, {kind}", times, at_least(factor, "{:.1f} times the textbook")))
    return [v.of_full_size("cells", 2**bits, 2**BITS).of_full_size("rows", people, ROWS) for v in verdicts]


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=["speed", "cost"], default=["speed", "cost"])
    parser.add_argument("--bits", type=int, default=BITS, help="speed: the table has 2^bits cells")
    parser.add_argument("--rows", type=int, default=ROWS, help="speed: rows of the table")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="cost: questions asked")
    parser.add_argument("--alphas", nargs="+", type=float, default=list(ALPHAS), help="cost: errors promised")
    parser.add_argument("--ways", nargs="+", choices=list(pmw_cost.WAYS), default=list(pmw_cost.WAYS))
    asked = parser.parse_args(arguments)
    found = shown(*speed(asked.bits, asked.rows)) if "speed" in asked.parts else []
    if "cost" in asked.parts:
        found += pmw_cost.report(asked.questions, asked.alphas, asked.ways)
    return found


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
