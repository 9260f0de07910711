"""A session: any number of questions, each chosen after seeing the answers before, under one promise.

    For every table and every analyst: with probability 1 - β, every answer of the session is within its error,
    which is at most α of the rows unless the answer says `uncertified`.

Measure, band, freeze. Every purchase comes with a band that covers its whole class before anyone chooses from it;
its share of β is a fraction of what is left, so the shares add up to at most β on every path. An answer is a
deduction from bands, which costs nothing. If the deduced interval is no wider than 2α, its midpoint is the answer;
else fresh noise is bought, and frozen: never topped up, never drawn again. Decisions read public values and
released values only. [the joint promise: P[some band fails] ≤ E Σ P[band j fails | history] ≤ β]

The session is a handle in the ledger and its steps are its purchases, so that another process goes on where
this one stopped: each purchase is written down before it is made, under a request of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import floor, nextafter
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer import Answer
from understudy.bins import Bins
from understudy.curator import Curator
from understudy.errors import InsufficientBudgetError, ParameterError, QueryError, RefusedError
from understudy.interactive.conjunction import Box, Grid, from_plain, plain
from understudy.interactive.design import Design
from understudy.interactive.knowledge import Interval, Knowledge, Table
from understudy.interactive.one_way import OneWay, half_widths, shape
from understudy.ledger.interface import Debit, fresh_request
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.strategy import Strategy
from understudy.privacy.calibrate import cheapest
from understudy.privacy.cost import Cost
from understudy.privacy.event import Together
from understudy.privacy.neighbours import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact, positive, probability

WARM_SHARE = 0.1
"""Part of β for the histograms of single attributes with which a session starts."""

WARM_PART = Fraction(1, 10)
"""They may cost together as much as this part of all questions asked directly."""

WARM_MOST = 15
"""And one of them no more than so many direct questions."""

WARM_WIDTH = 0.9
"""Their widest band, as a part of α, where that does not cost more."""

TOTAL_SHARE = 0.02
"""Part of β for the number of rows, where that is private."""


@dataclass(frozen=True)
class Terms:
    """What a session promises: fixed when it is opened, and written into the ledger."""

    alpha: Fraction
    beta: Fraction
    queries: int

    def text(self) -> str:
        return f"session alpha {self.alpha} beta {self.beta} queries {self.queries}"


class Session:
    """Meets the promise of its module; safe for threads, and for processes that share a durable ledger."""

    def __init__(self, curator: Curator, terms: Terms, *, name: str = "", analyst: str = "") -> None:
        self.curator = curator
        self.terms = terms
        self.name = name or fresh_request()
        self.analyst = analyst
        self.rows = curator.rows_at_least
        self.width = floor(terms.alpha * self.rows)
        if self.width < 1:
            raise ParameterError(
                f"alpha {float(terms.alpha):g} of {self.rows} rows is less than one person: ask for a wider error"
            )
        self._lock = RLock()
        self._left = float(terms.beta)
        self._asked = 0
        self._step = 0
        self._answers: dict[str, Answer] = {}
        self._debit = self._handle()
        self._knowledge = Knowledge(Grid(curator.domain), self._public_rows())
        self._catch_up()
        if not self._step:
            self._start()

    # ---- what the analyst sees

    def ask_marginal(self, marginal: Marginal) -> Answer:
        """Counts of a marginal's cells, each within α of all rows."""
        if marginal.domain != self.curator.domain:
            raise QueryError("the question is about another domain")
        with self._lock:
            self._catch_up()
            known = self._answers.get(marginal.key)
            if known is None:
                known = self._deduced(marginal) or self._bought(marginal)
                self._answers[marginal.key] = known
                self._asked += 1
                return known
            self._asked += 1
        return _repeat(known)

    def price(self, marginal: Marginal) -> Cost:
        """The most that a question can cost if it is asked now. Reads no data, and spends nothing."""
        with self._lock:
            if marginal.key in self._answers or self._deduced(marginal) is not None:
                return self.curator.ledger.budget.total([])
            _, price, _ = self._plan_fresh(marginal)
            return self.curator.quote(marginal, **price)

    # ---- deducing

    def _deduced(self, marginal: Marginal) -> Answer | None:
        """An answer for nothing, if what is known is narrow enough."""
        table = self._intervals(marginal)
        if table is None:
            return None
        half = (table.high - table.low) / 2
        if half.max(initial=0.0) > self.width:
            return None
        source = "implied" if len(marginal.clique) <= 1 else "pinned"
        return self._answer(marginal, (table.low + table.high) / 2, half, source, self._nothing())

    def _intervals(self, marginal: Marginal) -> Table | None:
        box = Box.of(marginal.where)
        if box is None or set(box.sides) & set(marginal.by):
            return None
        if marginal.by:
            return self._knowledge.table(marginal.by, box)
        low, high = self._knowledge.interval(box)
        return Table(np.array(low), np.array(high))

    # ---- buying

    def _bought(self, marginal: Marginal) -> Answer:
        share, price, cells = self._plan_fresh(marginal)
        plan = {"kind": "fresh", "question": plain(marginal), "share": share, "cells": cells}
        answer = self._make(plan | {key: str(value) for key, value in price.items()})
        assert answer is not None
        return answer

    def _plan_fresh(self, marginal: Marginal) -> tuple[float, dict[str, Fraction], int]:
        """The share of β, the price, and how many cells need the noise: all from public values."""
        expected = max(self.terms.queries - self._asked, self.terms.queries // 10, 1)
        share = _rounded(self._left / (expected + 1))
        table = self._intervals(marginal)
        cells = marginal.size if table is None else int((table.high - table.low > 2 * self.width).sum())
        return share, self._price(marginal, share, max(cells, 1)), cells

    def _price(self, marginal: Marginal, share: float, cells: int) -> dict[str, Fraction]:
        if not marginal.where.is_counting:
            return self.curator.price_of(marginal, error=self.width, beta=share)
        sensitivity = self.curator.sensitivity(marginal)
        if self.curator.ledger.budget.is_pure:
            return {"epsilon": _laplace_price(sensitivity.l1, self.width, share, cells)}
        return {"rho": _gaussian_price(sensitivity.l2_squared, self.width, share, cells)}

    def _make(self, plan: dict[str, Any]) -> Answer | None:
        """Write a purchase down, make it, and learn from it."""
        written = json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()
        ledger = self.curator.ledger
        question = f"session step {self._step + 1}: {plan['kind']}"
        if not ledger.advance(self._debit, step=self._step, question=question, answer=written, state=b"-"):
            self._catch_up()
            raise RefusedError("another process is asking in this session at this moment; ask again")
        return self._carry_out(plan)

    def _carry_out(self, plan: dict[str, Any]) -> Answer | None:
        """Make the purchase of the next step, or find it made; the answer, where it was for a question."""
        self._step += 1
        request = f"{self.name} {self._step}"
        self._left = max(nextafter(self._left - plan["share"], 0.0), 0.0)
        marginal = from_plain(self.curator.domain, plan["question"])
        price = {key: Fraction(plan[key]) for key in ("epsilon", "rho") if key in plan}
        if plan["kind"] == "one way":
            self._learn_one_way(marginal, price, plan, request)
            return None
        answer = self.curator.measure(marginal, **price, request=request, analyst=self.analyst)
        if plan["kind"] == "rows":
            self._learn_rows(answer, plan)
            return None
        return self._learn_fresh(marginal, answer)

    def _learn_fresh(self, marginal: Marginal, answer: Answer) -> Answer:
        table = self._intervals(marginal)
        low, high = answer.noisy - self.width, answer.noisy + self.width
        if table is None:
            low, high = np.maximum(low, 0), np.minimum(high, self._knowledge.total[1])
        else:
            pinned = table.high - table.low <= 2 * self.width
            low = np.where(pinned, table.low, np.maximum(low, table.low))
            high = np.where(pinned, table.high, np.minimum(high, table.high))
            high = np.maximum(low, high)
            self._learn(marginal, Table(low, high))
        half = (high - low) / 2
        return self._answer(marginal, (low + high) / 2, half, "measured", answer.cost)

    def _learn(self, marginal: Marginal, table: Table) -> None:
        box = Box.of(marginal.where)
        assert box is not None
        if marginal.by:
            self._knowledge.learn_table(marginal.by, box, table)
        else:
            self._knowledge.learn(box, (float(table.low), float(table.high)))

    # ---- starting

    def _start(self) -> None:
        if self._knowledge.total[0] != self._knowledge.total[1]:
            self._buy_rows()
        for plan in self._warm_plans():
            self._make(plan)

    def _public_rows(self) -> Interval:
        if self.curator.declaration.neighbours is Neighbours.REPLACE:
            return float(self.rows), float(self.rows)
        most = self.curator.rows_at_most
        return float(self.rows), float(2**60 if most is None else most)

    def _buy_rows(self) -> None:
        everyone = Marginal(self.curator.domain, ())
        share = float(self.terms.beta) * TOTAL_SHARE
        error = max(self.width // 8, 1)
        price = self.curator.price_of(everyone, error=error, beta=share)
        plan = {"kind": "rows", "question": plain(everyone), "share": share, "error": error}
        self._make(plan | {key: str(value) for key, value in price.items()})

    def _learn_rows(self, answer: Answer, plan: dict[str, Any]) -> None:
        low, high = float(answer.noisy) - plan["error"], float(answer.noisy) + plan["error"]
        known = self._knowledge.total
        self._knowledge.total = (max(low, known[0]), min(max(high, low), known[1]))

    def _warm_plans(self) -> list[dict[str, Any]]:
        """Histograms of single attributes, the cheapest first, while they cost little beside the questions."""
        domain = self.curator.domain
        share = float(self.terms.beta) * WARM_SHARE / len(domain)
        currency, unit = self._direct()
        plans = []
        for attribute in domain:
            if attribute.size > 1:
                marginal = Marginal(domain, (attribute.name,))
                mean, deviation, kappa = shape(self._design(marginal), share)
                price = self._one_way_price(marginal, WARM_WIDTH * self.width, mean + kappa * deviation)
                rounded = _digits(min(price, float(unit) * WARM_MOST))
                plans.append(
                    {"kind": "one way", "question": plain(marginal), "share": share, currency: str(rounded)}
                )
        plans.sort(key=lambda plan: Fraction(plan[currency]))
        kept, spent = [], Fraction(0)
        for plan in plans:
            spent += Fraction(plan[currency])
            if spent <= unit * self.terms.queries * WARM_PART:
                kept.append(plan)
        return kept

    def _direct(self) -> tuple[str, Fraction]:
        """The currency, and the price of one question asked directly."""
        first = self.curator.domain.names[0]
        one = LinearQuery.conjunction(
            self.curator.domain, {first: np.arange(self.curator.domain[first].size) == 0}
        )
        [found] = self._price(
            Marginal.of(one), _rounded(float(self.terms.beta) / self.terms.queries), 1
        ).items()
        return found

    def _design(self, marginal: Marginal) -> Design:
        attribute = self.curator.domain[marginal.by[0]]
        return Design(
            attribute.size,
            ordered=isinstance(attribute, Bins) and attribute.size > 2,
            centred=self._knowledge.total[0] == self._knowledge.total[1],
            laplace=self.curator.ledger.budget.is_pure,
        )

    def _strategy(self, marginal: Marginal, **price: Number) -> Strategy:
        declared = self.curator.declaration
        matrix = self._design(marginal).matrix
        return Strategy(marginal, (matrix,), declared.neighbours, declared.max_rows, **price)

    def _one_way_price(self, marginal: Marginal, width: float, bands: NDArray[np.float64]) -> float:
        """The price at which the widest of the bands, given for noise of deviation (or scale) 1, is `width`."""
        spread = width / float(bands.max())
        if self.curator.ledger.budget.is_pure:
            return self._strategy(marginal, epsilon=1).sensitivity.l1 / spread
        return self._strategy(marginal, rho=1).sensitivity.l2_squared / (2 * spread**2)

    def _learn_one_way(
        self, marginal: Marginal, price: dict[str, Fraction], plan: dict[str, Any], request: str
    ) -> None:
        design, strategy = self._design(marginal), self._strategy(marginal, **price)
        mechanism = strategy.mechanism
        spread = mechanism.scale if isinstance(mechanism, LaplaceMechanism) else mechanism.variance
        released = self.curator.run(strategy, request=request, analyst=self.analyst)
        counts = design.histogram(np.array(released, dtype=np.float64), self._knowledge.total[0])
        widths = half_widths(design, spread, plan["share"])
        self._knowledge.one_ways[marginal.by[0]] = OneWay(counts, widths, design.ordered)

    # ---- the handle

    def _handle(self) -> Debit:
        """The session in the ledger: a debit of nothing, whose steps are the purchases."""
        ledger = self.curator.ledger
        debit = ledger.charge(
            Together(()), question=self.terms.text(), request=self.name, analyst=self.analyst
        )
        if ledger.hidden(debit) is None:
            ledger.settle(debit, b"opened", hidden=b"-")
        return debit

    def _catch_up(self) -> None:
        """Make, or find made, every purchase that was written down and is not known here."""
        latest = self.curator.ledger.hidden(self._debit)
        if latest is None or latest.step == self._step:
            return
        for written in self.curator.ledger.steps(self._debit)[self._step :]:
            plan = json.loads(written)
            try:
                answer = self._carry_out(plan)
            except InsufficientBudgetError:
                continue
            if answer is not None:
                self._asked += 1
                self._answers[from_plain(self.curator.domain, plan["question"]).key] = answer

    # ---- answers

    def _nothing(self) -> Cost:
        return self.curator.ledger.budget.total([])

    def _answer(
        self,
        marginal: Marginal,
        value: NDArray[np.float64],
        error: NDArray[np.float64],
        source: str,
        cost: Cost,
    ) -> Answer:
        return Answer(
            query=marginal,
            value=value,
            error=error,
            noisy=value,
            cost=cost,
            beta=float(self.terms.beta),
            source=source,
        )


def _repeat(answer: Answer) -> Answer:
    return replace(answer, source="repeat", cost=type(answer.cost)(0))


def _rounded(share: float) -> float:
    """Rounded down to three digits, so that the same price is found again and again."""
    return float(f"{nextafter(share, 0.0) * 0.9995:.3g}")


def _digits(price: float) -> Fraction:
    """Rounded up to four digits."""
    return exact(float(f"{price * 1.0005:.4g}"))


@lru_cache(maxsize=1 << 14)
def _gaussian_price(l2_squared: int, width: int, share: float, cells: int) -> Fraction:
    return cheapest(
        lambda rho: (
            GaussianMechanism(rho=rho, l2_squared=l2_squared).error(exact(share), cells=cells) <= width
        )
    )


@lru_cache(maxsize=1 << 14)
def _laplace_price(l1: int, width: int, share: float, cells: int) -> Fraction:
    return cheapest(
        lambda epsilon: LaplaceMechanism(epsilon=epsilon, l1=l1).error(exact(share), cells=cells) <= width
    )


def open_session(
    curator: Curator,
    *,
    alpha: Number,
    beta: Number = 0.05,
    queries: int = 10_000,
    name: str = "",
    analyst: str = "",
) -> Session:
    """A session over a Curator; the same `name` continues the session of that name."""
    if queries < 1:
        raise ParameterError("a session needs at least one question")
    terms = Terms(positive(alpha, "alpha", at_most=1), probability(beta), queries)
    return Session(curator, terms, name=name, analyst=analyst)
