"""Curators that charge too little, too late or twice, or answer a request anew."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from audit.contract import (
    answers_again,
    charges_first,
    handle_survives,
    keeps_the_charge,
)
from audit.mutants.mutant import ERROR, ONE, Mutant
from audit.mutants.noise import laplace
from audit.mutants.sensitivity import HalfCounts
from audit.mutants.tables import ROWS, SETTING
from understudy.curator.charged_access import Paid
from understudy.curator.curator import Curator
from understudy.curator.open_sparse_vector import OpenSparseVector
from understudy.ledger.journal import Journal
from understudy.mechanism.sparse_vector import AboveThreshold
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import UNITS
from understudy.privacy.event import LaplaceNoise, Selection
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy_audit.acts import AB, CELLS, ONE_CELL, A
from understudy_audit.claim import PureClaim
from understudy_audit.neighbours import TellingLedger, table_pairs
from understudy_audit.privacy import Pair, audit_pair, stacked


class Forgetful(Curator):
    """Draws a new threshold whenever a handle is opened again."""

    def sparse(self, *, threshold, epsilon, hits=1, numeric=False, request=None, analyst=""):
        mechanism = AboveThreshold(epsilon=Fraction(epsilon), sensitivity=1, threshold=threshold, hits=hits)
        debit = self.ledger.charge(mechanism.event, question="sparse", request=request or "r")
        fresh = mechanism.open(noise=self._noise).as_bytes()
        if debit.repeated:
            self.ledger._page.hidden[debit.number] = replace(self.ledger.hidden(debit), state=fresh)
        else:
            self.ledger.settle(debit, b"opened", hidden=fresh)
        journal = Journal(self.ledger, "sparse", name=request or "r", event=mechanism.event)
        return OpenSparseVector(self._truth, journal, mechanism, self._noise)


class Redrawing(Curator):
    """Answers a repeated request with new noise."""

    def _paid(self, event, question, terms, look):
        return Paid(self.ledger.charge(event, question=question, request=terms.request or "r"), look())


class Hasty(Curator):
    """Looks, then charges."""

    def _paid(self, event, question, terms, look):
        found = look()
        return super()._paid(event, question, terms, lambda: found)


class Free(Curator):
    """Charges nothing."""

    def _paid(self, event, question, terms, look):
        return super()._paid(LaplaceNoise(l1=Fraction(0), scale=ONE), question, terms, look)


class HalfPrice(Curator):
    """Charges half of what it does."""

    def _paid(self, event, question, terms, look):
        half = Selection(epsilon=Fraction(1, 2))
        return super()._paid(half, question, terms, look)


class Refunding(Curator):
    """Gives the price back when a look fails."""

    def _paid(self, event, question, terms, look):
        state = self.ledger._page.recorded.books.copy()
        try:
            return super()._paid(event, question, terms, look)
        except Exception:
            self.ledger._page.recorded.books = state
            raise


def curator_of(kind, *, ledger=None, rows=ROWS, noise=None):
    plain = SETTING.curator(
        rows, noise=noise or SeededNoise(9), ledger=ledger or TellingLedger(SETTING.budget)
    )
    return kind(plain._truth, plain.ledger, plain.declaration, noise=plain._noise)


class Failing(HalfCounts):
    def values(self, counts):
        raise RuntimeError("the engine went away")


def charged_caught(kind) -> bool:
    """What the ledger says was spent, held against what the answers show."""

    def draw(rows):
        def told(count, noise):
            found = []
            for _ in range(count):
                curator = curator_of(kind, rows=rows, noise=noise)
                curator.measure(Marginal.of(CELLS[0]), epsilon=1)
                found.append(curator.ledger.told)
            return stacked(found, 1)

        return told

    spent = curator_of(kind)
    spent.measure(Marginal.of(CELLS[0]), epsilon=1)
    pair = next(p for p in table_pairs(Neighbours.REPLACE) if "tips" in p.name)
    claim = PureClaim(Fraction(spent.ledger.spent.units, UNITS))
    found = audit_pair(
        Pair("charged", draw(pair.first), draw(pair.second), claim), samples=2500, error=ERROR,
        noise=SeededNoise(4),
    )  # fmt: skip
    return any(finding.excess for finding in found)


NOISE = SeededNoise(21)

CURATOR = [
    Mutant("budget not charged", "statistical against the ledger", lambda: charged_caught(Free)),
    Mutant("half of the price charged", "statistical against the ledger", lambda: charged_caught(HalfPrice)),
    Mutant("looks before it charges", "contract",
           lambda: bool(charges_first(curator_of(Hasty), lambda c: c.measure(A, epsilon=1)))),
    Mutant("refund on failure", "contract",
           lambda: bool(keeps_the_charge(curator_of(Refunding), lambda c: c._buy(Failing(A, 2))))),
    Mutant("state redrawn on restart", "contract",
           lambda: bool(handle_survives(lambda ledger: curator_of(Forgetful, ledger=ledger, noise=NOISE),
                                        TellingLedger(SETTING.budget), ONE_CELL))),
    Mutant("a repeated request answered anew", "contract",
           lambda: bool(answers_again(lambda ledger: curator_of(Redrawing, ledger=ledger, noise=NOISE),
                                      TellingLedger(SETTING.budget), AB, 1))),
    Mutant("seeded noise", "contract",
           lambda: repeats_itself(lambda: SeededNoise(42))),
]  # fmt: skip


def repeats_itself(source) -> bool:
    """Whether two processes that open the same thing draw the same noise."""
    draws = [laplace().release(np.zeros(64, np.int64), noise=source()) for _ in range(2)]
    return bool((draws[0] == draws[1]).all())
