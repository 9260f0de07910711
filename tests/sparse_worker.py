"""A process that asks a sparse vector, or an online construction, over a durable ledger, and dies where told.

Run as a program: ``python sparse_worker.py LEDGER WHAT WHERE NUMBER``. WHAT is `handle` or `online`. WHERE is
`charged` (right after a charge, which opens a run with its state), `settle` (charged, before an answer is kept),
`drawn` (an answer was drawn, before it is kept), `kept` (after that, before anybody sees it) or `never`; there it
dies at the NUMBER-th call. It writes what it was told to the standard output.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy.engine import URL

from counted import curator_of
from dying import dying
from understudy.curator.curator import Curator
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import practical_terms
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.query.linear import LinearQuery
from understudy.standin.multiplicative import ProjectedWeights
from understudy.table.source import in_memory
from understudy.table.truth import Truth

CELLS = 8
ROWS = 4000
QUESTIONS = 24
HITS = 3
THRESHOLD = 1200
EPSILON = 40
DOMAIN = Domain((Bins.integers("x", 0, CELLS - 1),))
CODES = np.minimum(np.random.default_rng(1).geometric(0.4, ROWS) - 1, CELLS - 1)
BUDGET = Budget.of(900)


def ledger_at(path: str) -> DurableLedger:
    return DurableLedger(URL.create("sqlite", database=path), "t", BUDGET)


def curator(ledger: DurableLedger) -> Curator:
    truth = Truth(in_memory(pa.table({"x": CODES})), DOMAIN)
    return curator_of(truth, epsilon=BUDGET.epsilon, ledger=ledger, seed=None)


def questions() -> list[LinearQuery]:
    draw = np.random.default_rng(2)
    return [LinearQuery.conjunction(DOMAIN, {"x": draw.random(CELLS) < 0.5}) for _ in range(QUESTIONS)]


def exact(query: LinearQuery) -> int:
    return int(query.weights(("x",))[CODES].sum())


def opened(ledger: DurableLedger) -> Any:
    return curator(ledger).sparse(threshold=THRESHOLD, epsilon=EPSILON, hits=HITS, request="mine")


def construction(ledger: DurableLedger) -> OnlineConstruction:
    one = curator(ledger)
    terms = practical_terms(one, alpha=0.2, queries=10 * QUESTIONS, updates=12, beta=1e-9)
    update = ProjectedWeights(domain=DOMAIN, margin=0.02, threads=1)
    return OnlineConstruction(one, update, terms, name="mine")


def main() -> None:
    path, what, where, number = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    ledger = ledger_at(path)
    if where == "charged":
        ledger.charge = dying(ledger.charge, number, after=True)  # type: ignore[method-assign]
    elif where == "settle":
        ledger.settle = dying(ledger.settle, number)  # type: ignore[method-assign]
    elif where in ("drawn", "kept"):
        ledger.advance = dying(ledger.advance, number, after=where == "kept")  # type: ignore[method-assign]
    if what == "handle":
        handle = opened(ledger)
        told: list[Any] = []
        for query in questions():
            if handle.hits_left:
                told.append(handle.ask(query))
    else:
        mechanism = construction(ledger)
        told = [[(a := mechanism.ask(q)).source, float(a.value), float(a.error)] for q in questions()]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
