"""A process that asks in a session with a durable ledger, and dies where it is told to.

Run as a program: ``python session_worker.py LEDGER WHERE NUMBER``. WHERE is `plan` (before the NUMBER-th purchase
is written down and charged, which is one transaction), `debit` (right after that), `answer` (after the look, and
before its answer is kept), `kept` (right after that) or `never`. It writes its answers to the standard output.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy.engine import URL

from dying import dying
from session_table import conjunction, curator, random_question
from understudy.declaration.declaration import SourceSpec
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.sessions.opening import session
from understudy.sessions.session import Session
from understudy.table.source import open_source

QUESTIONS = 12
BUDGET = Budget.of(500, 1e-6)


def ledger_at(path: str) -> DurableLedger:
    return DurableLedger(URL.create("sqlite", database=path), "t", BUDGET)


def opened(ledger: DurableLedger, seed: int) -> Session:
    """The session, over a file beside the ledger: every process sees the same version of the table.

    Each process draws other noise, and what holds is asserted: so the promise is one that hardly ever fails.
    """
    path = Path(ledger.place).with_name("table.parquet")
    source = open_source(SourceSpec(path.name), base=path.parent)
    one = curator(ledger=ledger, seed=seed, source=source)
    return session(one, alpha=0.02, beta=1e-9, queries=100, name="mine")


def questions() -> list[Any]:
    generator = np.random.default_rng(11)
    first = conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2)
    return [first, *(random_question(generator) for _ in range(QUESTIONS - 1))]


def main() -> None:
    path, where, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ledger = ledger_at(path)
    asked = opened(ledger, seed=os.getpid())
    if where == "plan":
        ledger.charge = dying(ledger.charge, number)  # type: ignore[method-assign]
    elif where == "debit":
        ledger.charge = dying(ledger.charge, number, after=True)  # type: ignore[method-assign]
    elif where in ("answer", "kept"):
        ledger.settle = dying(ledger.settle, number, after=where == "kept")  # type: ignore[method-assign]
    answers = [asked.ask_marginal(question) for question in questions()]
    plain = [[answer.source, answer.value.tolist(), answer.error.tolist()] for answer in answers]
    sys.stdout.write(json.dumps(plain))


if __name__ == "__main__":
    main()
