"""What every Curator owes, as tests of any object that claims to be one: order, repetition, restart, counting.

Each function runs a Curator and lists what it did wrong; an empty list is what one wants to see.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from audit.replay import Difference
from understudy.curator.curator import Curator
from understudy.ledger.interface import Ledger
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

Open = Callable[[Ledger], Curator]
"""A Curator over one table, with the given ledger: as another process would open it."""


class Watched:
    """A truth that notes how much had been spent whenever it was looked at."""

    def __init__(self, truth: Any, ledger: Ledger) -> None:
        self._truth = truth
        self._ledger = ledger
        self.spent_at_looks: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._truth, name)

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> Any:
        return self.sums_of([marginal], resolution=resolution)[0]

    def sums_of(self, marginals: Any, *, resolution: int = 1) -> Any:
        self.spent_at_looks.append(self._ledger.spent.units)
        return self._truth.sums_of(marginals, resolution=resolution)


def charges_first(curator: Curator, act: Callable[[Curator], Any]) -> list[Difference]:
    """Every look comes after a charge: the first look must find something spent."""
    watched = Watched(curator._truth, curator.ledger)
    curator._truth = watched  # type: ignore[assignment]
    before = curator.ledger.spent.units
    act(curator)
    late = [spent for spent in watched.spent_at_looks if spent <= before]
    return [Difference("order", f"{len(late)} looks before the first charge")] if late else []


def keeps_the_charge(curator: Curator, act: Callable[[Curator], Any]) -> list[Difference]:
    """An act that fails after its charge leaves the charge where it is: a refund would tell that it failed."""
    totals = [curator.ledger.spent.units]
    charge = curator.ledger.charge

    def noting(*arguments: Any, **named: Any) -> Any:
        debit = charge(*arguments, **named)
        totals.append(curator.ledger.spent.units)
        return debit

    curator.ledger.charge = noting  # type: ignore[method-assign]
    try:
        act(curator)
    except Exception as error:
        failed = type(error).__name__
    else:
        failed = "nothing"
    totals.append(curator.ledger.spent.units)
    if any(after < before for before, after in pairwise(totals)):
        return [Difference("refund", f"the total fell after {failed}")]
    return []


def answers_again(open_: Open, ledger: Ledger, marginal: Marginal, price: Any) -> list[Difference]:
    """The same request gets the same answer, for one payment, also from a Curator that was opened later."""
    first = open_(ledger).measure(marginal, epsilon=price, request="again")
    spent = ledger.spent.units
    second = open_(ledger).measure(marginal, epsilon=price, request="again")
    found = []
    if not np.array_equal(first.noisy, second.noisy):
        found.append(Difference("repeat", "one request was answered in two ways"))
    if ledger.spent.units != spent:
        found.append(Difference("repeat", "one request was charged twice"))
    return found


def handle_survives(
    open_: Open, ledger: Ledger, query: LinearQuery, *, restarts: int = 20
) -> list[Difference]:
    """A sparse vector's noisy threshold is drawn once, however often its handle is opened again.

    The query is far from the threshold on both sides of no restart, so it says no each time and the state's
    threshold can be compared through the ledger.
    """
    states = set()
    for _ in range(restarts):
        handle = open_(ledger).sparse(threshold=10**6, epsilon=1, request="handle")
        handle.ask(query)
        debit = ledger.find("handle")
        kept = None if debit is None else ledger.hidden(debit)
        states.add(None if kept is None else kept.state.split()[0])
    return (
        []
        if len(states) == 1
        else [Difference("restart", f"{len(states)} thresholds in {restarts} openings")]
    )


def counts_hits(mechanism: Any, *, hits: int, noise: Any, tries: int = 50) -> list[Difference]:
    """A sparse vector gives at most `hits` answers above its threshold, whatever it is asked."""
    state, given = mechanism.open(noise=noise), 0
    for _ in range(tries):
        try:
            answer, state = mechanism.ask(state, 10**9, noise=noise)
        except Exception:
            break
        given += answer is not None and answer is not False
    return [] if given <= hits else [Difference("count", f"{given} answers for {hits}")]
