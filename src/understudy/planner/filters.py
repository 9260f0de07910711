"""Which privacy filter suits what will be asked: the same events, priced by each of them.

A filter is fixed by the first charge to a ledger (`privacy.filter`), so it has to be chosen by what is going
to be asked. Nothing is promised here beyond arithmetic: events that would take all of a budget under `zcdp`
take a smaller part of it under a filter that suits them, and what is left over buys more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Literal

from understudy.errors import RefusedError
from understudy.planner.capacity import declared_budget
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Event, RandomizedReport, RoundedNormal, Selection
from understudy.privacy.filter import FILTERS, FilterName
from understudy.rational import Number

Kind = Literal["normal", "pure", "release"]
"""Normal noise alone; events that are known by their ε alone; normal noise and a sixth of the price in
selections."""

WORDS: dict[Kind, str] = {
    "normal": "answers with normal noise",
    "pure": "answers that are priced by a pure epsilon",
    "release": "a release by normal noise and selections",
}

CLEAR = 0.995
"""Another filter than zcdp is recommended where it takes less than this of what zcdp does."""

PICKS = 16
"""Selections of a release."""

PICKED = Fraction(16, 100)
"""The part of a release's price that selections take."""


@dataclass(frozen=True)
class FilterAdvice:
    """Which filter suits a budget for events that would take all of it under zCDP.

    `budget`  the budget as it would be declared, kept by zCDP
    `filter`  the one that takes least; `zcdp` where none takes clearly less
    `asked`   the events in words
    `shares`  by filter, the part of its own cap that the events take; 1 for zcdp, and None where it has no price
              for one of them
    `fixed`   the filter of a ledger that was charged already, which no declaration changes; empty where there is
              none
    """

    budget: Budget
    filter: FilterName
    asked: str
    shares: dict[str, float | None]
    fixed: str = ""

    @property
    def declared(self) -> str:
        """The line of the declaration."""
        told = self.budget
        kept = Budget.of(told.epsilon, told.delta, key_delta=told.key_delta, filter=self.filter)
        return declared_budget(kept)

    def line(self) -> str:
        """The advice in words."""
        best = self.shares[self.filter]
        if self.fixed:
            told = f"filter: {self.fixed}, which the first charge to the ledger has fixed"
            if self.fixed == self.filter or best is None:
                return told
            return f"{told}; for {self.asked} a new ledger would do better with {self.filter}"
        if self.filter == "zcdp" or best is None:
            return f"filter: zcdp, the usual one, for {self.asked}; no other takes less for them"
        others = ", ".join(
            f"{name} no price" if share is None else f"{name} {share:.1%}"
            for name, share in self.shares.items()
            if name != self.filter
        )
        return (
            f"filter: {self.filter} takes {best:.1%} of the budget for {self.asked} that would take all of it "
            f"under zcdp ({others}). Declare it before the first charge: {self.declared}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The advice in plain values."""
        return {
            "recommended": self.filter,
            "asked": self.asked,
            "shares": self.shares,
            "declare": self.declared,
            **({"fixed": self.fixed} if self.fixed else {}),
        }


def filter_advice(
    epsilon: Number,
    delta: Number,
    events: Sequence[tuple[Event, int]],
    asked: str,
    *,
    key_delta: Number = 0,
    fixed: str = "",
) -> FilterAdvice:
    """The filter that takes the smallest part of a budget (ε, δ) for events, each so many times. δ is not 0.

    `key_delta` is the part of δ that is set aside for keys and bounded noise, and `fixed` the filter of a ledger
    that was charged already.
    """
    budgets = {name: Budget.of(epsilon, delta, key_delta=key_delta, filter=name) for name in FILTERS}
    shares: dict[str, float | None] = {}
    for name, budget in budgets.items():
        try:
            units = sum(times * budget.price(event).units for event, times in events)
        except RefusedError:
            shares[name] = None
        else:
            shares[name] = units / budget.cap.units
    priced = {name: share for name, share in shares.items() if share is not None}
    known: list[FilterName] = [name for name in FILTERS if name in priced]
    least: FilterName = min(known, key=lambda name: priced[name]) if known else "zcdp"
    usual, best = shares["zcdp"], shares[least]
    clear = best is not None and (usual is None or best < CLEAR * usual)
    return FilterAdvice(budgets["zcdp"], least if clear else "zcdp", asked, shares, fixed)


def advice_for(
    kind: Kind, epsilon: Number, delta: Number, queries: int, *, key_delta: Number = 0, fixed: str = ""
) -> FilterAdvice:
    """The advice for so many events of a kind that would together take all of the budget under zCDP.

    `key_delta` and `fixed` are those of `filter_advice`.
    """
    whole = Fraction(Budget.of(epsilon, delta, key_delta=key_delta).cap.units, UNITS)
    times = max(int(queries), 1)
    events: list[tuple[Event, int]] = []
    if kind == "pure":
        each = Fraction(sqrt(2 * whole / times)).limit_denominator(10**15)
        events.append((RandomizedReport(epsilon=each), times))
    else:
        share = PICKED if kind == "release" else Fraction(0)
        variance = times / (2 * whole * (1 - share))
        events.append((RoundedNormal(l2_squared=Fraction(1), variance=variance), times))
        if share:
            picked = Fraction(sqrt(8 * whole * share / PICKS)).limit_denominator(10**15)
            events.append((Selection(epsilon=picked), PICKS))
    many = "" if kind == "release" else f"{times:,} "
    words = f"{many}{WORDS[kind]}"
    return filter_advice(epsilon, delta, events, words, key_delta=key_delta, fixed=fixed)
