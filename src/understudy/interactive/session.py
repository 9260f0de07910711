"""A session: any number of questions, each chosen after seeing the answers before, under one promise.

    For every table and every analyst: with probability 1 - β, every answer of the session is within its error,
    which is at most α of the rows unless the answer says `uncertified`.

Measure, band, freeze. Every purchase comes with a band that covers its whole class before anyone chooses from it;
its share of β is a fraction of what is left, so the shares add up to at most β on every path. An answer is a
deduction from bands, which costs nothing. If the deduced interval is no wider than 2α, its midpoint is the answer;
else fresh noise is bought, and frozen: never topped up, never drawn again. Decisions read public values and
released values only. [the joint promise: P[some band fails] ≤ E Σ P[band j fails | history] ≤ β]

The purchases are written into the ledger (`handle`), so that another process goes on where this one stopped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import floor, inf
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer import Answer
from understudy.curator import Curator
from understudy.errors import (
    InsufficientBudgetError,
    ParameterError,
    QueryError,
    RefusedError,
    RequestConflictError,
)
from understudy.interactive.choice import Chooser
from understudy.interactive.conjunction import Grid
from understudy.interactive.door import Door, described, parts, rows_of, share_of
from understudy.interactive.exhausted import uncertified as from_standin
from understudy.interactive.fresh import Fresh, intervals
from understudy.interactive.handle import Handle
from understudy.interactive.knowledge import Interval, Knowledge, Table
from understudy.interactive.population import Population, population
from understudy.interactive.purchase import Learnt, Purchase, Shop
from understudy.interactive.terms import Announced, Terms
from understudy.ledger.interface import fresh_request
from understudy.privacy.cost import Cost
from understudy.privacy.event import Together
from understudy.project import Project
from understudy.query.expression import Question
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number
from understudy.sql_answer import SqlAnswer

MOST_ANSWERS = 1 << 15
"""Free answers that are remembered; any other is deduced again. Answers that were paid for are all kept."""

TRIES = 100
"""How often a process starts over because another one bought something in between."""

Identity = tuple[Any, ...]


class _Overtaken(Exception):
    """Another process made a purchase first."""


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
        self._asked = 0
        self._step = 0
        self._paid: dict[Identity, Answer] = {}
        self._free: OrderedDict[Identity, Answer] = OrderedDict()
        self._door = Door(curator)
        self._shop = Shop(curator, self.width)
        self._knowledge = Knowledge(Grid(curator.domain), self._public_rows())
        self._chooser = Chooser(self._shop, terms)
        self._handle = Handle(
            curator.ledger, name=self.name, terms=terms.text() + curator.edition, analyst=analyst
        )
        self._catch_up()
        while (purchase := self._chooser.opening(self._knowledge)) is not None:
            self._try(purchase)

    @property
    def remaining(self) -> Cost:
        """What is left of the budget, whoever spends it."""
        return self.curator.ledger.remaining

    @cached_property
    def population(self) -> Population:
        """How far answers can be from the population behind the table, or why nobody can tell."""
        return population(self.curator, self.terms)

    # ---- what the analyst sees

    def ask(self, question: str | Marginal | LinearQuery, *, uncertified: bool = True) -> Answer | SqlAnswer:
        """Answer ``count age < 30 by sex``, ``share …``, a SELECT statement, a marginal or a linear query.

        Every count that the answer is made of is within α of all rows. When the budget cannot pay for that, what
        was released so far answers, as `uncertified`; or, where that is not wanted, the question is refused.
        """
        asked = self._door.read(question)
        if not uncertified and len(parts(asked)) > 1:
            self._check_affordable(question)  # all of a statement, or nothing
        answers = [self.ask_marginal(part, uncertified=uncertified) for part in parts(asked)]
        if isinstance(asked, Question):
            return answers[0] if asked.aggregate == "count" else share_of(answers[0], self._knowledge.total)
        return rows_of(
            str(question),
            asked,
            answers,
            most=self.curator.rows_at_most,
            nothing=self._nothing(),
            beta=float(self.terms.beta),
        )

    def price(self, question: str | Marginal | LinearQuery) -> Cost:
        """The most that a question can cost if it is asked now. Reads no data, and spends nothing.

        It costs less where it first buys a histogram and that, by luck, tells enough, and a statement whose parts
        tell something about each other may.
        """
        cost = self._nothing()
        for part in parts(self._door.read(question)):
            cost = cost + self._price(part)  # type: ignore[operator]  # one currency
        return cost

    def dry_run(self, questions: Sequence[str | Marginal | LinearQuery]) -> list[Cost]:
        """The price of each of several questions, if it were the next. Asks nothing."""
        return [self.price(question) for question in questions]

    def ask_marginal(self, marginal: Marginal, *, uncertified: bool = True) -> Answer:
        """Counts of a marginal's cells, each within α of all rows.

        When the budget cannot pay for that, what was released so far answers, as `uncertified`; or, where that is
        not wanted, nothing does.
        """
        if marginal.domain != self.curator.domain:
            raise QueryError("the question is about another domain")
        identity = _identity(marginal)
        with self._lock:
            self._asked += 1
            known = self._known(identity)
            if known is not None:
                return replace(known, source="repeat", cost=self._nothing())
            answer = self._deduced(marginal) or self._bought(marginal, identity)
            if answer is None and uncertified:
                value = from_standin(self._knowledge, marginal)
                return self._answer(
                    marginal, value, np.full(value.shape, inf), "uncertified", self._nothing()
                )
            if answer is None:
                self._check_affordable(marginal)
                raise RefusedError("the share of the budget that this analyst may use is used up for now")
            return answer

    def _price(self, marginal: Marginal) -> Cost:
        with self._lock:
            if self._known(_identity(marginal)) is not None or self._deduce(marginal) is not None:
                return self._nothing()
            self._asked += 1  # as if it had been asked
            try:
                return self._quote(self._plan(marginal))
            finally:
                self._asked -= 1

    # ---- deducing

    def _known(self, identity: Identity) -> Answer | None:
        known = self._paid.get(identity)
        if known is None and (known := self._free.get(identity)) is not None:
            self._free.move_to_end(identity)
        return known

    def _deduce(self, marginal: Marginal) -> Table | None:
        """What is known of a question, if that is narrow enough to answer it."""
        table = intervals(self._knowledge, marginal)
        most = 0 if self.terms.is_direct else 2 * self.width
        return None if table is None or bool((table.high - table.low > most).any()) else table

    def _deduced(self, marginal: Marginal, spent: Cost | None = None) -> Answer | None:
        """An answer from what is known, if that is enough; for nothing, unless `spent` tells otherwise."""
        table = self._deduce(marginal)
        if table is None:
            return None
        source = "implied" if len(marginal.clique) <= 1 else "pinned"
        if spent is not None and spent.units:
            source = "measured"
        else:
            self._chooser.served(self._knowledge, marginal)
        value, half = (table.low + table.high) / 2, (table.high - table.low) / 2
        found = self._answer(marginal, value, half, source, spent or self._nothing())
        self._remember(_identity(marginal), found)
        return found

    def _remember(self, identity: Identity, answer: Answer) -> None:
        self._free[identity] = answer
        while len(self._free) > MOST_ANSWERS:
            self._free.popitem(last=False)

    # ---- buying

    def _bought(self, marginal: Marginal, identity: Identity) -> Answer | None:
        """An answer that was paid for, or found paid; None if the budget cannot pay."""
        for _ in range(TRIES):
            if self._catch_up():
                known = self._known(identity)
                if known is not None:
                    return replace(known, source="repeat", cost=self._nothing())
            try:
                return self._buy(marginal)
            except _Overtaken:
                continue
            except InsufficientBudgetError:
                return None
        raise RefusedError("other processes are asking in this session all the time; ask again")

    def _buy(self, marginal: Marginal) -> Answer:
        spent = self._nothing()
        for purchase in self._plan(marginal)[:-1]:
            spent = spent + self._make(purchase).cost  # type: ignore[operator]  # one currency
        while (answer := self._deduced(marginal, spent)) is None:
            learnt = self._make(self._last(marginal))
            spent = spent + learnt.cost  # type: ignore[operator]
            if learnt.answer is not None:
                return replace(self._paid[_identity(marginal)], cost=spent)
        return answer

    def _plan(self, marginal: Marginal) -> list[Purchase]:
        """All that a question may buy; no histograms, where those would leave too little for the answer."""
        last = self._last(marginal)
        prepared = self._chooser.preparations(self._knowledge, marginal)
        return [*prepared, last] if prepared and self._payable([*prepared, last]) else [last]

    def _last(self, marginal: Marginal) -> Purchase:
        """What answers a question: a class, if there is one to buy and it can be paid, or fresh noise."""
        wanted = self._chooser.purchase(self._knowledge, marginal, asked=max(self._asked, 1))
        if isinstance(wanted, Fresh) or self._payable([wanted]):
            return wanted
        return self._chooser.fresh(self._knowledge, marginal, asked=max(self._asked, 1))

    def _quote(self, purchases: Sequence[Purchase]) -> Cost:
        events = tuple(self._shop.charged(purchase.event(self._shop)) for purchase in purchases)
        return self.curator.ledger.quote(events[0] if len(events) == 1 else Together(events))

    def _payable(self, purchases: Sequence[Purchase]) -> bool:
        return self._quote(purchases).units <= self.curator.ledger.remaining.units

    def _make(self, purchase: Purchase) -> Learnt:
        """Write a purchase down, make it, and learn from it; nothing is written that cannot be paid."""
        self._check_payable(purchase)
        if not self._handle.write(self._step, {"kind": purchase.kind, **purchase.plain()}):
            raise _Overtaken
        return self._carry_out(purchase)

    def _try(self, purchase: Purchase) -> None:
        try:
            self._make(purchase)
        except _Overtaken:
            self._catch_up()

    def _check_payable(self, purchase: Purchase) -> None:
        ledger, event = self.curator.ledger, self._shop.charged(purchase.event(self._shop))
        left = ledger.remaining
        if left.units < 4 * ledger.budget.price(event).units and (cost := ledger.quote(event)) > left:  # type: ignore[operator]
            raise InsufficientBudgetError(
                requested=cost.amount, remaining=left.amount, currency=left.currency
            )

    def _carry_out(self, purchase: Purchase) -> Learnt:
        """Make the purchase of the next step, or find it made."""
        try:
            learnt = purchase.make(
                self._shop,
                self._knowledge,
                request=self._handle.request(self._step + 1),
                analyst=self.analyst,
            )
        except (
            InsufficientBudgetError,
            RequestConflictError,
        ):  # never paid: its share of β is gone all the same
            self._noted(purchase)
            raise
        self._noted(purchase)
        self._chooser.made(purchase, learnt.cost)
        if learnt.answer is not None and learnt.marginal is not None:
            identity = _identity(learnt.marginal)
            self._free.pop(identity, None)
            self._paid[identity] = self._certified(learnt.answer)
        return learnt

    def _noted(self, purchase: Purchase) -> None:
        """The step is done. One that was interrupted is not: it is made, in its place, by whoever comes next."""
        self._step += 1
        self._chooser.note(purchase)

    def _catch_up(self) -> bool:
        """Make, or find made, every purchase that is written down and not known here; whether there were any."""
        found = self._handle.after(self._step)
        for plan in found:
            try:
                self._carry_out(self._chooser.read(plan))
            except (InsufficientBudgetError, RequestConflictError):
                continue  # it was never paid, or was paid on another version of the table and never answered
        return bool(found)

    def _check_affordable(self, question: str | Marginal | LinearQuery) -> None:
        left, cost = self.curator.ledger.remaining, self.price(question)
        if cost.units > left.units:
            raise InsufficientBudgetError(
                requested=cost.amount, remaining=left.amount, currency=left.currency
            )

    # ---- answers

    def _repr_html_(self) -> str:
        done = f"{self._asked:,} questions, {self._step:,} purchases"
        return described(self.name, self.width, float(self.terms.beta), done, self.curator.ledger)

    def _public_rows(self) -> Interval:
        most = self.curator.rows_at_most
        return float(self.rows), float(2**60 if most is None else most)

    def _nothing(self) -> Cost:
        return self.curator.ledger.budget.total([])

    def _certified(self, answer: Answer) -> Answer:
        return replace(
            answer, beta=float(self.terms.beta), population_error=self._population_error(answer.value.shape)
        )

    def _population_error(self, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
        half_width = self.population.half_width
        return None if half_width is None else np.full(shape, half_width * self.rows)

    def _answer(self, marginal: Marginal, value: Any, error: Any, source: str, cost: Cost) -> Answer:
        reach = None if source == "uncertified" else self._population_error(value.shape)
        return Answer(marginal, value, error, value, cost, float(self.terms.beta), source, reach)


def _identity(marginal: Marginal) -> Identity:
    """What a question of one domain is: equal for equal questions, and quickly made."""
    return (marginal.by, *((f.clique, f.weights.tobytes()) for f in marginal.where.factors))


def session(
    table: Project | Curator,
    *,
    alpha: Number,
    beta: Number = 0.05,
    queries: int = 10_000,
    classes: Sequence[Announced] = (),
    mechanism: str = "auto",
    name: str = "",
    analyst: str = "",
) -> Session:
    """A session over a project: with probability 1 - `beta` every answer is within `alpha` of all rows.

    `queries` is how many questions are expected: more may come, at a higher price. `classes` announces what will
    be asked, to be bought at once: `ranges`, `conjunctions`, `pool`. Under the same `name` a session goes on where
    it was, in any process; `analyst` is whose share of the budget pays.
    """
    curator = table.curator if isinstance(table, Project) else table
    terms = Terms.of(alpha=alpha, beta=beta, queries=queries, classes=classes, mechanism=mechanism)
    return Session(curator, terms, name=name, analyst=analyst)
