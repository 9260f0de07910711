"""Sessions and constructions that begin anew after a restart: what was drawn is drawn again, or paid for twice."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np

from audit.mutants.mutant import Mutant
from understudy.curator.curator import Curator
from understudy.ledger.interface import Ledger, fresh_request
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.sessions.purchase_journal import PurchaseJournal
from understudy.sessions.session import Session
from understudy.sessions.terms import Terms
from understudy_audit.acts import AB, CELLS, ONE_CELL
from understudy_audit.neighbours import Setting, TellingLedger, table_pairs

SETTING = Setting(Budget.of(8), rows_at_least=1, rows_at_most=4096)
ROWS = next(iter(table_pairs(Neighbours.REPLACE, rows=100))).first
TERMS = Terms.of(alpha=0.3, beta=0.05, queries=8, classes=(), mechanism="auto")

Open = Callable[[Curator], Session]


def begins_anew(open_: Open) -> bool:
    """Whether a session that is opened again under its name says something else, or pays again."""
    ledger: Ledger = TellingLedger(SETTING.budget)
    told, spent = [], []
    for seed in (1, 2):
        curator = SETTING.curator(ROWS, noise=SeededNoise(seed), ledger=ledger)  # type: ignore[arg-type]
        session = open_(curator)
        answers = [session.ask_marginal(AB).value, session.ask(ONE_CELL).value, session.ask(CELLS[0]).value]
        told.append(np.concatenate([np.ravel(answer) for answer in answers]))
        spent.append(ledger.spent.units)
    return not np.array_equal(told[0], told[1]) or spent[0] != spent[1]


class Nameless(PurchaseJournal):
    """Buys every step under a name that nobody knows again."""

    @property
    def request(self) -> str:
        return f"{super().request} {fresh_request()}"


class Blank(PurchaseJournal):
    """Does not read what was written down before."""

    def later(self):
        return iter(())

    def plan(self, kind, purchase, words=""):
        return None

    @property
    def request(self) -> str:
        return f"{super().request} {fresh_request()}"


def with_journal(kind: type[PurchaseJournal]) -> Open:
    """A session whose journal is of that kind from before its first purchase."""

    def opened(curator: Curator) -> Session:
        with patch("understudy.sessions.buyer.PurchaseJournal", kind):
            return Session(curator, TERMS, name="again")

    return opened


RESTART = [
    Mutant("a session that buys its steps again after a restart", "contract",
           lambda: begins_anew(with_journal(Nameless))),
    Mutant("a session that begins anew after a restart", "contract", lambda: begins_anew(with_journal(Blank))),
]  # fmt: skip

RESTART_HONEST = [
    Mutant("a session opened again", "contract",
           lambda: begins_anew(lambda curator: Session(curator, TERMS, name="again"))),
]  # fmt: skip
