"""A session: any number of questions, each chosen after seeing the answers before, under one promise.

    For every table and every analyst: with probability 1 - β, every answer of the session is within its error,
    which is at most α of the rows unless the answer says `uncertified`.

How it is kept: measure, band, freeze. A purchase measures a class of counts once, with noise. Its band is an error
that holds for all members of the class at once, except with the purchase's share of β; it is fixed before anyone
chooses a member. The noise is frozen: never topped up, never drawn again. An answer is deduced from bands, which
costs nothing. If the deduced interval is no wider than 2α, the answer is a value in it that is within α of both
ends; else something is bought.

Why it holds. The share of each purchase is a fraction of what is left of β, so that the shares add up to at most β
on every path. The noise of purchase j is independent of the history H_j that decided it, so that
P[some band fails] ≤ E Σ_j P[band j fails | H_j] ≤ β, whatever the analyst does.

Privacy. Decisions read public values and released values only, and each purchase is charged to the ledger before
the table is looked at: the whole session costs what the ledger says.

The purchases are written into the ledger (`purchase_journal`), so that another process goes on where this one
stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import floor, inf
from typing import overload

import numpy as np

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.limits import MAX_CELLS, check_cells
from understudy.answer.reader import Asked, QuestionReader
from understudy.answer.sql_answer import SqlAnswer
from understudy.curator.curator import Curator
from understudy.errors import (
    InsufficientBudgetError,
    OvertakenError,
    ParameterError,
    QueryError,
    RefusedError,
    RequestConflictError,
)
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.interface import JournalStep, Ledger, fresh_request
from understudy.ledger.view import spent_of
from understudy.pages import notebook
from understudy.privacy.cost import Cost
from understudy.project import Project
from understudy.query.box import Grid
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number
from understudy.sessions.answer_memory import AnswerMemory
from understudy.sessions.asking import Asking, RequestRecord, digest
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.direct import intervals
from understudy.sessions.fitted_standin import FittedStandin
from understudy.sessions.forecast import Forecast
from understudy.sessions.funds import Funds
from understudy.sessions.histogram import rows_error
from understudy.sessions.knowledge import UNBOUNDED, Interval, IntervalTable, Knowledge, boxes_of, nearest
from understudy.sessions.policy import PurchasePolicy
from understudy.sessions.population import Population, population
from understudy.sessions.purchase import Purchase, PurchaseRequest, PurchaseResult
from understudy.sessions.purchase_journal import PurchaseJournal
from understudy.sessions.terms import Announced, Terms

TRIES = 100
"""How often a process starts over because another one bought something in between."""


class Session:
    """Answers any number of questions about one table under one promise; made by `understudy.session`.

    Promise     With probability 1 - β every answer is within its error, which is at most α of all rows unless the
                answer's `source` is `uncertified`; however the questions are chosen. [this module]
    Privacy     All that is released is charged to the Curator's ledger, before the table is looked at.
    Cost        What `price` says for a question, and nothing for a repetition or for what follows from earlier
                answers. Time: milliseconds for a deduction, a pass over the table for a purchase.

    curator     the Curator of the table
    terms       α, β, the number of questions expected, and the classes that were announced
    name        under which the session stands in the ledger
    analyst     whose share of the budget pays for a question that names nobody else; empty for nobody's
    owner       the only analyst who may ask; empty where the session is shared, and a question may name anybody
    rows        the public number of rows, or the declared least one where the number is private
    width       α of these rows in people, rounded down: the error of every count
    max_cells   the most cells that one question may have

    Safe for threads, and for processes that share a durable ledger.
    """

    def __init__(
        self,
        curator: Curator,
        terms: Terms,
        *,
        name: str = "",
        analyst: str = "",
        lazily: bool = False,
        max_cells: int = MAX_CELLS,
    ) -> None:
        """Open a session, or go on with the one of this name; announced classes are bought here.

        One that is opened `lazily` and announces no classes writes nothing before its first purchase. Raises as
        `session` does.
        """
        self.curator = curator
        self.terms = terms
        self.name = name or fresh_request()
        self.analyst = analyst
        self.owner = "" if is_shared(curator.ledger, name) else analyst
        self.max_cells = max_cells
        self.rows = curator.rows_at_least
        self.width = floor(terms.alpha * self.rows)
        if self.width < 1:
            raise ParameterError(
                f"alpha {float(terms.alpha):g} of {self.rows} rows is less than one person: ask for a wider error"
            )
        self._lock = AskingLock("session")
        self._asked = 0
        self._requests: dict[str, RequestRecord] = {}
        self._memory = AnswerMemory()
        # Of the number of rows a session knows as much as it needs, so that a share needs no count of everyone.
        self._reader = QuestionReader.of(curator.declaration, counts_everyone=False)
        self._calibrator = Calibrator(curator, self.width)
        self._nothing = curator.ledger.budget.total([])
        self._knowledge = Knowledge(Grid(curator.domain), self._public_rows())
        self._standin: tuple[int, FittedStandin] | None = None
        self._policy = PurchasePolicy(self._calibrator, terms)
        self._journal = curator.recorded(
            terms.text(),
            lambda text: PurchaseJournal(
                curator.ledger, text, name=self.name, analyst=self.owner, lazily=lazily
            ),
        )
        self._catch_up()
        if terms.classes:
            self._open()

    @property
    def _step(self) -> int:
        """How many purchases of the journal this process knows."""
        return self._journal.length

    @property
    def remaining(self) -> Cost:
        """What is left of the table's budget, in its currency (ε or ρ), for everybody who spends from it."""
        return self.curator.ledger.remaining

    @cached_property
    def population(self) -> Population:
        """How far shares of rows can be from those of the population behind the table, or why nobody can tell."""
        public = self.curator.relation.rows_are_public
        share_error = None if public else (self.width + rows_error(self.width)) / self.rows
        return population(self.curator, self.terms, share_error=share_error)

    @property
    def contradicted(self) -> bool:
        """Whether two released numbers cannot both be within their bands: then a band failed, which β allows for.

        What they say is not used from then on; answers that were given before may rest on it.
        """
        return self._knowledge.contradicted

    # ---- what the analyst sees

    @overload
    def ask(
        self,
        question: Marginal | LinearQuery,
        *,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer: ...

    @overload
    def ask(
        self,
        question: str,
        *,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer | SqlAnswer: ...

    def ask(
        self,
        question: Asked,
        *,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer | SqlAnswer:
        """Answer ``count age < 30 by sex``, ``share …``, a SELECT statement, a marginal or a linear query.

        Returns a `SqlAnswer` for a SELECT statement, else an `Answer`: counts in people, or shares of all rows.
        Every count that it is made of is within α of all rows. When the budget cannot pay for all counts, nothing
        is bought, and a stand-in that is fitted to what was released so far answers, with the source
        `uncertified` and an infinite error; where the argument `uncertified` is false, an
        `InsufficientBudgetError` is raised instead.

        `analyst` is whose share of the budget pays for what the question buys: the session's own `analyst` where
        none is named. What anybody bought answers everybody, for nothing.

        `request` is the caller's name for the question, kept with what it buys. Asked again under the same
        request, also by another process after a crash, the question buys only what is still missing, and the
        answer's `cost` is what was charged under the request in all. Its value is the same as long as the session
        remembers the answer, which is for ever where the question's own counts were bought; an answer that was
        deduced, from a class or from earlier answers, is deduced again after a restart, from no less than before,
        and is then within its error again, not the same number. Whoever promises the same bytes to a repeated
        request keeps the answer. A request under which nothing was bought is not written down.

        Raises a `QueryError` where the question is not understood, a `RequestConflictError` where something was
        bought under the request for another question or analyst, a `ParameterError` where the session belongs to
        another analyst, and a `RefusedError` where other processes keep spending what it needs.
        """
        asked = self._reader.read(question)
        asking = self._asking(analyst, request, asked.marginals, asked.words)
        return asked.answer(self._counts(asked.marginals, asking, uncertified=uncertified))

    def counts(
        self,
        marginals: Sequence[Marginal],
        *,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> SourceCounts:
        """Counts of marginals, in people, each within α of all rows: all are bought that have to be, or none.

        What cannot be paid for is answered uncertified, or refused, as by `ask`, whose `analyst` and `request`
        these are. More cells than the session's `max_cells` are refused with a `QueryError`, and what the
        custodian's reading found to be unreadable with an `UnreadableError`.
        """
        asking = self._asking(analyst, request, marginals)
        return self._counts(marginals, asking, uncertified=uncertified)

    def _counts(self, marginals: Sequence[Marginal], asking: Asking, *, uncertified: bool) -> SourceCounts:
        check_cells(marginals, self.max_cells)
        self.curator.check_readable(marginals)
        with self._lock:
            self._check_request(asking)
            whole = len(marginals) == 1 or self._is_affordable(
                marginals, asking.analyst, refuse=not uncertified
            )
            answers = [self._answered(part, asking, uncertified=uncertified, buy=whole) for part in marginals]
            answers = self._with_cost(answers, asking)
            least, most = self._knowledge.total
        known = most - least <= 2 * rows_error(self.width)  # else shares can be further from the population's
        reach = self.population.half_width if known else None
        return SourceCounts(
            tuple(CellCounts(answer, answer.value, answer.error) for answer in answers),
            RowBounds(least, inf if most >= UNBOUNDED else most, share_population_error=reach),
            float(self.terms.beta),
            self._nothing,
        )

    def price(self, question: Asked, analyst: str | None = None) -> Cost:
        """The most that a question can cost, in the ledger's currency (ε or ρ), if it is asked now.

        `analyst` is who would pay, as for `ask`: where their share of the budget cannot pay for a class of
        questions that is due, the price is that of the question's own counts.

        Reads no data, and spends nothing. The question costs less where a histogram that it buys first tells
        enough, or where the parts of a SELECT statement tell something about each other. Raises a `QueryError`
        where the question is not understood, and a `ParameterError` where the session belongs to another analyst.
        """
        needed = self._reader.read(question).marginals
        check_cells(needed, self.max_cells)
        self.curator.check_readable(needed)
        payer = self._payer(analyst)
        with self._lock:
            return self._funds(payer).quote(self._needed(needed, payer))

    def dry_run(self, questions: Sequence[Asked], analyst: str | None = None) -> list[Cost]:
        """The `price` of each of several questions, each as if it were the next one. Asks and spends nothing."""
        return [self.price(question, analyst) for question in questions]

    def ask_marginal(
        self,
        marginal: Marginal,
        *,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer:
        """Counts of a marginal's cells, in people, each within α of all rows: `ask` for a marginal alone.

        Raises as `ask` does, but refuses no marginal for its number of cells.
        """
        self.curator.check_readable([marginal])
        asking = self._asking(analyst, request, [marginal])
        with self._lock:
            self._check_request(asking)
            [answer] = self._with_cost([self._answered(marginal, asking, uncertified=uncertified)], asking)
            return answer

    def _payer(self, analyst: str | None) -> str:
        """Whose share of the budget pays for a question that names this analyst, or nobody."""
        payer = self.analyst if analyst is None else analyst
        if self.owner not in ("", payer):
            raise ParameterError(
                f"session {self.name!r} is {self.owner!r}'s own, and {payer!r} cannot ask in it: open a session "
                "without an analyst, which several can share, or one with another name"
            )
        return payer

    def _asking(
        self, analyst: str | None, request: str | None, marginals: Sequence[Marginal], words: str = ""
    ) -> Asking:
        question = "" if request is None else digest(words or "; ".join(m.key for m in marginals))
        return Asking(self._payer(analyst), self._nothing, words, request, question)

    def _check_request(self, asking: Asking) -> None:
        if asking.request is not None:
            asking.check(self._requests.get(asking.request))

    def _with_cost(self, answers: list[Answer], asking: Asking) -> list[Answer]:
        """The answers of a question; what earlier attempts under its request were charged is told with the first.

        Nothing else changes: the same request tells the same cost, however often it was interrupted.
        """
        known = None if asking.request is None else self._requests.get(asking.request)
        if known is None or not answers:
            return answers
        now = sum(answer.cost.units for answer in answers)
        first = type(known.cost)(answers[0].cost.units + known.cost.units - now)
        return [replace(answers[0], cost=first), *answers[1:]]

    def _answered(self, marginal: Marginal, asking: Asking, *, uncertified: bool, buy: bool = True) -> Answer:
        if marginal.domain != self.curator.domain:
            raise QueryError("the question is about another domain")
        with self._lock:
            self._asked += 1
            asking.charged = self._nothing
            known = self._memory.find(marginal)
            if known is not None:
                return replace(known, source="repeat", cost=self._nothing)
            answer = self._deduced(marginal, asking.charged)
            answer = answer or (self._bought(marginal, asking) if buy else None)
            if answer is not None:
                return answer
            if not uncertified:
                self._is_affordable([marginal], asking.analyst, refuse=True)
                raise RefusedError("others spent what this needed; ask again")
            return self._uncertified(marginal, asking.charged)

    def _is_affordable(self, marginals: Sequence[Marginal], analyst: str, *, refuse: bool) -> bool:
        """Whether the analyst can pay for all that questions may buy; where `refuse`, an error says why not."""
        try:
            self._funds(analyst).check(self._needed(marginals, analyst))
        except InsufficientBudgetError:
            if refuse:
                raise
            return False
        return True

    def _funds(self, analyst: str) -> Funds:
        """What this analyst may still spend."""
        return Funds(self._calibrator, analyst)

    def _forecast(self, analyst: str) -> Forecast:
        """What questions buy if this analyst asks them now: what the policy wants and their limits allow."""
        return Forecast(self._policy, self._funds(analyst), self._knowledge)

    # ---- deducing

    def _deduce(self, marginal: Marginal) -> IntervalTable | None:
        """Intervals for a question's counts, if what was released makes them narrow enough to answer it."""
        table = intervals(self._knowledge, marginal)
        most = 0 if self.terms.is_direct else 2 * self.width
        return None if table is None or bool((table.high - table.low > most).any()) else table

    def _deduced(self, marginal: Marginal, charged: Cost) -> Answer | None:
        """An answer from what was released, if that is enough; None else. `charged` was paid for that just now."""
        table = self._deduce(marginal)
        if table is None:
            return None
        source = "implied" if len(marginal.clique) <= 1 else "pinned"
        if charged.units:
            source = "measured"
        else:
            self._policy.served(self._knowledge, marginal)
        box = boxes_of(marginal)
        estimate = None if box is None else self._knowledge.estimate(marginal.by, box)
        value, error = nearest(table, estimate, self.width)
        noisy, beta = value if estimate is None else estimate, float(self.terms.beta)
        answer = self._certified(Answer(marginal, value, error, noisy, charged, beta, source))
        self._memory.keep_free(marginal, answer)
        return answer

    def _uncertified(self, marginal: Marginal, charged: Cost) -> Answer:
        """An answer by the stand-in, which is fitted again after each purchase, from where it was.

        `charged` was paid for what did not suffice.
        """
        if self._standin is None or self._standin[0] != self._step:
            before = None if self._standin is None else self._standin[1].model
            self._standin = self._step, FittedStandin.of(self._knowledge, start=before)
        value = self._standin[1].counts(self._knowledge, marginal)
        beta, unbounded = float(self.terms.beta), np.full(value.shape, inf)
        return Answer(marginal, value, unbounded, value, charged, beta, "uncertified")

    # ---- buying

    def _bought(self, marginal: Marginal, asking: Asking) -> Answer | None:
        """An answer that is bought, or follows from what another process bought; None if the budget cannot pay.

        Raises a `RefusedError` where other processes buy something each time before this one can.
        """
        for _ in range(TRIES):
            if self._catch_up():
                self._check_request(asking)
                known = self._memory.find(marginal)
                if known is not None:
                    return replace(known, source="repeat", cost=asking.charged)
                answer = self._deduced(marginal, asking.charged)
                if answer is not None:  # another process bought what tells it
                    return answer
            try:
                return self._buy(marginal, asking)
            except OvertakenError:
                continue
            except InsufficientBudgetError:
                return None
        raise RefusedError("other processes are asking in this session all the time; ask again")

    def _buy(self, marginal: Marginal, asking: Asking) -> Answer:
        """Make the purchases that are forecast for a question, until what was released answers it."""
        forecast = self._forecast(asking.analyst)
        *before, last = forecast.of(marginal, asked=self._asked)
        for purchase in before:
            self._make(purchase, asking)
        answer = self._deduced(marginal, asking.charged) if before else None
        while answer is None:
            if before:  # more is known than when the last purchase was planned
                last = forecast.last(marginal, asked=self._asked)
            if self._make(last, asking).answer is not None:
                bought = self._memory.find(marginal)
                assert bought is not None
                return replace(bought, cost=asking.charged)
            before, answer = [last], self._deduced(marginal, asking.charged)
        return answer

    def _open(self) -> None:
        """Buy the classes that were announced, those that another process bought left out."""
        while (purchase := self._policy.opening(self._knowledge)) is not None:
            try:
                self._make(purchase, Asking(self.analyst, self._nothing))
            except OvertakenError:
                self._catch_up()

    def _needed(self, marginals: Sequence[Marginal], analyst: str) -> list[Purchase]:
        """All purchases that questions may need if this analyst asks them now, one after the other."""
        unknown = [m for m in marginals if self._memory.find(m) is None and self._deduce(m) is None]
        return self._forecast(analyst).of_all(unknown, asked=self._asked + 1)

    def _make(self, purchase: Purchase, asking: Asking) -> PurchaseResult:
        """Make the next purchase: write it and its debit into the ledger in one transaction, then look.

        Raises an `InsufficientBudgetError` where it cannot be paid and an `OvertakenError` where another process
        bought something first: then nothing is written or charged.
        """
        self._funds(asking.analyst).check([purchase])
        plan = {**purchase.plain(), **asking.plain(self.owner)}
        try:
            result = self._carry_out(purchase, asking, self._journal.plan(purchase.kind, plan, asking.words))
        except RequestConflictError as conflict:
            raise self._journal.taken(conflict) from None
        asking.charged = asking.charged + result.cost  # type: ignore[operator]  # one currency
        return result

    def _carry_out(
        self, purchase: Purchase, asking: Asking, step: JournalStep | None = None
    ) -> PurchaseResult:
        """Carry out the purchase of the journal's next step; `step` writes it where it is not in the journal yet.

        Under the request of the step, a purchase that was made before is read back for nothing.
        """
        request = PurchaseRequest(self._journal.request, asking.analyst, step)
        result = purchase.make(self._calibrator, self._knowledge, request)
        self._finish(purchase)
        self._policy.made(purchase, result.cost)
        self._record(asking, result.cost)
        if result.answer is not None and result.marginal is not None:
            answer = self._certified(replace(result.answer, beta=float(self.terms.beta)))
            self._memory.keep_paid(result.marginal, answer)
        return result

    def _record(self, asking: Asking, cost: Cost) -> None:
        """Remember what was charged under a question's request, where it has one."""
        if asking.request is not None:
            self._requests[asking.request] = asking.after(self._requests.get(asking.request), cost)

    def _finish(self, purchase: Purchase) -> None:
        """Go on to the journal's next step, and take the share of the purchase from β.

        A purchase that failed between its debit and its answer is not finished: it stays the next step of the
        journal, and the next process that catches up with the journal carries it out.
        """
        self._journal.length += 1
        self._policy.note(purchase)

    def _catch_up(self) -> bool:
        """Carry out, or read back, every purchase of the journal that this process does not know.

        Returns whether there were any.
        """
        before = self._step
        for plan in self._journal.later():
            purchase, asking = self._policy.read(plan), Asking.read(plan, self.owner, self._nothing)
            try:
                self._carry_out(purchase, asking)
            except (InsufficientBudgetError, RequestConflictError):
                # It was never paid, or was paid on another version of the table and never answered: its share of
                # β is gone all the same.
                paid = self.curator.ledger.find(self._journal.request)
                self._record(asking, self._nothing if paid is None else paid.cost)
                self._finish(purchase)
        return self._step > before

    # ---- answers

    def __repr__(self) -> str:
        promise = f"±{self.width:,} people, beta {float(self.terms.beta):g}"
        return f"Session({self.name!r}, {promise}, {self._asked:,} questions, {self._step:,} purchases)"

    def _repr_html_(self) -> str:
        sure = notebook.certainty(float(self.terms.beta))
        known = {
            "promise": f"every answer within {self.width:,} people, all with probability {sure}",
            "asked here": f"{self._asked:,} questions, {self._step:,} purchases",
            "budget": spent_of(self.curator.ledger),
        }
        contradiction = "What was released contradicts itself: a band failed, which beta allows for."
        parts = [notebook.warning(contradiction)] if self.contradicted else []
        return notebook.panel(f"Session {self.name}", notebook.facts(known), *parts)

    def _public_rows(self) -> Interval:
        most = self.curator.rows_at_most
        return float(self.rows), UNBOUNDED if most is None else float(most)

    def _certified(self, answer: Answer) -> Answer:
        """The answer with its error against the population, where a theorem gives one."""
        most = self._knowledge.total[1]
        reach = None if most >= UNBOUNDED else self.population.of_counts(answer, self.width, most)
        return (
            answer
            if reach is None
            else replace(answer, population_error=reach, population_beta=self.population.beta)
        )


def session(
    table: Project | Curator,
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    queries: int | None = None,
    classes: Sequence[Announced] = (),
    mechanism: str | None = None,
    name: str = "",
    analyst: str = "",
    lazily: bool = False,
    max_cells: int = MAX_CELLS,
) -> Session:
    """Open a session over a project: with probability 1 - `beta` every answer is within `alpha` of all rows.

    table      a project, or the Curator of one
    alpha      the error of every count, as a part of all rows (of the declared least number of rows where that is
               private), such as 0.02; a session that the ledger knows by its name remembers it
    beta       the probability that some answer of the whole session is further off than its error: 0.05, or what
               a session that goes on remembers
    queries    how many questions are expected: more may come, at a higher price; 10,000, or what a session that
               goes on remembers
    classes    what will be asked, to be bought at once: made by `ranges`, `conjunctions`, `pool` and `marginals`
    mechanism  `auto`, or `direct`: every new question is bought by itself, with noise of its own
    name       under the same name a session goes on where it was, in any process; without one it gets a new name
    analyst    whose share of the budget pays for questions that name nobody else. A session that is opened with
               one is this analyst's own; one that is opened without is shared: anybody may go on with it, and each
               question may name who pays
    lazily     a session with a new name is written into the ledger with its first purchase, and not at all if it
               only tells prices
    max_cells  the most cells that one question may have; a larger one is refused before anything is bought

    Returns a `Session`. Raises a `ParameterError` where the terms make no sense or a new session has no
    alpha, a `RequestConflictError` where the name belongs to something else, a `QueryError` where a class is
    too large to be bought at once, and an `InsufficientBudgetError` where the classes cannot be paid.
    """
    curator = table.curator if isinstance(table, Project) else table
    known = remembered(curator.ledger, name, analyst)
    if known is None and alpha is None:
        raise ParameterError("a new session needs `alpha`, the error of every answer as a part of all rows")
    if known is not None:
        alpha = known.alpha if alpha is None else alpha
        beta = known.beta if beta is None else beta
        queries = known.queries if queries is None else queries
        mechanism = known.mechanism if mechanism is None else mechanism
        classes = classes or known.classes
    terms = Terms.of(
        alpha=0 if alpha is None else alpha,
        beta=0.05 if beta is None else beta,
        queries=10_000 if queries is None else queries,
        classes=classes,
        mechanism="auto" if mechanism is None else mechanism,
    )
    return Session(curator, terms, name=name, analyst=analyst, lazily=lazily, max_cells=max_cells)


def remembered(ledger: Ledger, name: str, analyst: str) -> Terms | None:
    """The terms of the session that the ledger holds under the name, if it is shared or this analyst's own.

    None where there is none.
    """
    known = ledger.find(name) if name else None
    if known is None or known.analyst not in ("", analyst):
        return None
    return Terms.read(known.question)


def is_shared(ledger: Ledger, name: str) -> bool:
    """Whether the ledger holds something under the name that belongs to no analyst: if a session, a shared one."""
    known = ledger.find(name) if name else None
    return known is not None and known.analyst == ""
