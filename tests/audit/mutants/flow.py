"""Decisions that read exact counts: caught by forcing one run onto a neighbouring table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from audit.mutants.mutant import Mutant
from audit.mutants.sensitivity import HalfCounts
from audit.mutants.tables import ADD, SETTING
from audit.replay import control_flow
from understudy.curator.candidates import Candidate
from understudy.curator.curator import Curator
from understudy.errors import ParameterError
from understudy.noise.samplers import SeededNoise
from understudy.query.marginal import Marginal
from understudy_audit.acts import AB, CELLS, ONE_CELL, A
from understudy_audit.neighbours import table_pairs


def flow_caught(act, setting=SETTING) -> bool:
    return any(
        control_flow(setting, pair.first, pair.second, act, noise=SeededNoise(2))
        for pair in table_pairs(setting.neighbours, rows=12)
    )


def true_counts(curator: Curator):
    return curator._truth.sums_of([AB])[0]


def fails_on_empty(curator):
    curator.measure(A, epsilon=1)
    if (true_counts(curator) == 0).any():
        raise ZeroDivisionError("an empty cell")


def stops_by_truth(curator):
    for query in CELLS:
        curator.measure(Marginal.of(query), epsilon=Fraction(1, 2))
        if int(curator._truth.sums(Marginal.of(query))) < 2:
            return


def asks_non_empty(curator):
    for query, count in zip(CELLS, true_counts(curator).ravel(), strict=True):
        if count:
            curator.measure(Marginal.of(query), epsilon=1)


def pays_by_truth(curator):
    curator.measure(A, epsilon=1 if true_counts(curator)[0, 0] > 5 else 2)


def asks_largest_first(curator):
    order = np.argsort(-true_counts(curator).ravel(), kind="stable")
    for i in order[:2]:
        curator.measure(Marginal.of(CELLS[i]), epsilon=1)


def exact_rows(curator):
    """A threshold at half of the rows, where their number is private."""
    curator.sparse(threshold=curator._truth.rows // 2, epsilon=1).ask(ONE_CELL)


def tells_in_error(curator):
    raise ParameterError(f"the count {int(true_counts(curator)[0, 0])} is too small")


def refuses_by_truth(curator):
    if true_counts(curator).min() == 0:
        curator.measure(A, epsilon=100)  # more than the budget: refused
    curator.measure(A, epsilon=1)


def guesses_by_truth(curator):
    counts = true_counts(curator).ravel()
    curator.choose([Candidate(q, Fraction(int(c))) for q, c in zip(CELLS, counts, strict=True)], epsilon=1)


@dataclass(frozen=True, eq=False)
class GroupKeys(HalfCounts):
    """Only the groups that occur, as GROUP BY gives them."""

    def values(self, counts):
        found = counts[0].ravel()
        return found[found > 0]


FLOW = [
    Mutant("an error where a cell is empty", "replay", lambda: flow_caught(fails_on_empty)),
    Mutant("an error that quotes a count", "replay", lambda: flow_caught(tells_in_error)),
    Mutant("stops when the exact count is small", "replay", lambda: flow_caught(stops_by_truth)),
    Mutant("asks about the cells that are not empty", "replay", lambda: flow_caught(asks_non_empty)),
    Mutant("releases the groups that occur", "replay",
           lambda: flow_caught(lambda c: c._buy(GroupKeys(AB, 2)))),
    Mutant("a price chosen by the exact count", "replay", lambda: flow_caught(pays_by_truth)),
    Mutant("an order chosen by the exact counts", "replay", lambda: flow_caught(asks_largest_first)),
    Mutant("the exact number of rows under add-remove", "replay", lambda: flow_caught(exact_rows, ADD)),
    Mutant("a refusal that depends on the data", "replay", lambda: flow_caught(refuses_by_truth)),
    Mutant("guesses made of the exact counts", "replay", lambda: flow_caught(guesses_by_truth)),
]  # fmt: skip
