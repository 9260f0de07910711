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
    analyst     whose share of the budget pays; empty for none
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
        self.max_cells = max_cells
        self.rows = curator.rows_at_least
        self.width = floor(terms.alpha * self.rows)
        if self.width < 1:
            raise ParameterError(
                f"alpha {float(terms.alpha):g} of {self.rows} rows is less than one person: ask for a wider error"
            )
        self._lock = AskingLock("session")
        self._asked = 0
        self._words = ""  # of the question that is being answered
        self._memory = AnswerMemory()
        # Of the number of rows a session knows as much as it needs, so that a share needs no count of everyone.
        self._reader = QuestionReader.of(curator.declaration, counts_everyone=False)
        self._calibrator = Calibrator(curator, self.width)
        self._funds = Funds(self._calibrator, analyst)
        self._charged = self._funds.nothing
        self._knowledge = Knowledge(Grid(curator.domain), self._public_rows())
        self._standin: tuple[int, FittedStandin] | None = None
        self._policy = PurchasePolicy(self._calibrator, terms)
        self._forecast = Forecast(self._policy, self._funds, self._knowledge)
        self._journal = curator.recorded(
            terms.text(),
            lambda text: PurchaseJournal(
                curator.ledger, text, name=self.name, analyst=analyst, lazily=lazily
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
    def ask(self, question: Marginal | LinearQuery, *, uncertified: bool = True) -> Answer: ...

    @overload
    def ask(self, question: str, *, uncertified: bool = True) -> Answer | SqlAnswer: ...

    def ask(self, question: Asked, *, uncertified: bool = True) -> Answer | SqlAnswer:
        """Answer ``count age < 30 by sex``, ``share …``, a SELECT statement, a marginal or a linear query.

        Returns a `SqlAnswer` for a SELECT statement, else an `Answer`: counts in people, or shares of all rows.
        Every count that it is made of is within α of all rows. When the budget cannot pay for all counts, nothing
        is bought, and a stand-in that is fitted to what was released so far answers, with the source
        `uncertified` and an infinite error; where the argument `uncertified` is false, an
        `InsufficientBudgetError` is raised instead. Raises a `QueryError` where the question is not understood,
        and a `RefusedError` where other processes keep spending what it needs.
        """
        asked = self._reader.read(question)
        with self._lock:
            self._words = asked.words
            return asked.answer(self.counts(asked.marginals, uncertified=uncertified))

    def counts(self, marginals: Sequence[Marginal], *, uncertified: bool = True) -> SourceCounts:
        """Counts of marginals, in people, each within α of all rows: all are bought that have to be, or none.

        What cannot be paid for is answered uncertified, or refused, as by `ask`. More cells than the session's
        `max_cells` are refused with a `QueryError`, and what the custodian's reading found to be unreadable with
        an `UnreadableError`.
        """
        check_cells(marginals, self.max_cells)
        self.curator.check_readable(marginals)
        with self._lock:
            whole = len(marginals) == 1 or self._is_affordable(marginals, refuse=not uncertified)
            answers = [self._answered(part, uncertified=uncertified, buy=whole) for part in marginals]
            least, most = self._knowledge.total
        known = most - least <= 2 * rows_error(self.width)  # else shares can be further from the population's
        reach = self.population.half_width if known else None
        return SourceCounts(
            tuple(CellCounts(answer, answer.value, answer.error) for answer in answers),
            RowBounds(least, inf if most >= UNBOUNDED else most, share_population_error=reach),
            float(self.terms.beta),
            self._funds.nothing,
        )

    def price(self, question: Asked) -> Cost:
        """The most that a question can cost, in the ledger's currency (ε or ρ), if it is asked now.

        Reads no data, and spends nothing. The question costs less where a histogram that it buys first tells
        enough, or where the parts of a SELECT statement tell something about each other. Raises a `QueryError`
        where the question is not understood.
        """
        needed = self._reader.read(question).marginals
        check_cells(needed, self.max_cells)
        self.curator.check_readable(needed)
        with self._lock:
            return self._funds.quote(self._needed(needed))

    def dry_run(self, questions: Sequence[Asked]) -> list[Cost]:
        """The `price` of each of several questions, each as if it were the next one. Asks and spends nothing."""
        return [self.price(question) for question in questions]

    def ask_marginal(self, marginal: Marginal, *, uncertified: bool = True) -> Answer:
        """Counts of a marginal's cells, in people, each within α of all rows: `ask` for a marginal alone.

        Raises as `ask` does, but refuses no marginal for its number of cells.
        """
        self.curator.check_readable([marginal])
        return self._answered(marginal, uncertified=uncertified)

    def _answered(self, marginal: Marginal, *, uncertified: bool, buy: bool = True) -> Answer:
        if marginal.domain != self.curator.domain:
            raise QueryError("the question is about another domain")
        with self._lock:
            self._asked += 1
            self._charged = self._funds.nothing
            known = self._memory.find(marginal)
            if known is not None:
                return replace(known, source="repeat", cost=self._charged)
            answer = self._deduced(marginal) or (self._bought(marginal) if buy else None)
            if answer is not None:
                return answer
            if not uncertified:
                self._is_affordable([marginal], refuse=True)
                raise RefusedError("others spent what this needed; ask again")
            return self._uncertified(marginal)

    def _is_affordable(self, marginals: Sequence[Marginal], *, refuse: bool) -> bool:
        """Whether all that questions may buy can be paid now; where `refuse`, what cannot raises an error."""
        try:
            self._funds.check(self._needed(marginals))
        except InsufficientBudgetError:
            if refuse:
                raise
            return False
        return True

    # ---- deducing

    def _deduce(self, marginal: Marginal) -> IntervalTable | None:
        """Intervals for a question's counts, if what was released makes them narrow enough to answer it."""
        table = intervals(self._knowledge, marginal)
        most = 0 if self.terms.is_direct else 2 * self.width
        return None if table is None or bool((table.high - table.low > most).any()) else table

    def _deduced(self, marginal: Marginal) -> Answer | None:
        """An answer from what was released, if that is enough; None else."""
        table = self._deduce(marginal)
        if table is None:
            return None
        source = "implied" if len(marginal.clique) <= 1 else "pinned"
        if self._charged.units:
            source = "measured"
        else:
            self._policy.served(self._knowledge, marginal)
        box = boxes_of(marginal)
        estimate = None if box is None else self._knowledge.estimate(marginal.by, box)
        value, error = nearest(table, estimate, self.width)
        noisy, beta = value if estimate is None else estimate, float(self.terms.beta)
        answer = self._certified(Answer(marginal, value, error, noisy, self._charged, beta, source))
        self._memory.keep_free(marginal, answer)
        return answer

    def _uncertified(self, marginal: Marginal) -> Answer:
        """An answer by the stand-in, which is fitted again after each purchase, from where it was."""
        if self._standin is None or self._standin[0] != self._step:
            before = None if self._standin is None else self._standin[1].model
            self._standin = self._step, FittedStandin.of(self._knowledge, start=before)
        value = self._standin[1].counts(self._knowledge, marginal)
        beta, unbounded = float(self.terms.beta), np.full(value.shape, inf)
        return Answer(marginal, value, unbounded, value, self._charged, beta, "uncertified")

    # ---- buying

    def _bought(self, marginal: Marginal) -> Answer | None:
        """An answer that is bought, or follows from what another process bought; None if the budget cannot pay.

        Raises a `RefusedError` where other processes buy something each time before this one can.
        """
        for _ in range(TRIES):
            if self._catch_up():
                known = self._memory.find(marginal)
                if known is not None:
                    return replace(known, source="repeat", cost=self._charged)
                if (answer := self._deduced(marginal)) is not None:  # another process bought what tells it
                    return answer
            try:
                return self._buy(marginal)
            except OvertakenError:
                continue
            except InsufficientBudgetError:
                return None
        raise RefusedError("other processes are asking in this session all the time; ask again")

    def _buy(self, marginal: Marginal) -> Answer:
        """Make the purchases that are forecast for a question, until what was released answers it."""
        *before, last = self._forecast.of(marginal, asked=self._asked)
        for purchase in before:
            self._make(purchase)
        answer = self._deduced(marginal) if before else None
        while answer is None:
            if before:  # more is known than when the last purchase was planned
                last = self._forecast.last(marginal, asked=self._asked)
            if self._make(last).answer is not None:
                bought = self._memory.find(marginal)
                assert bought is not None
                return replace(bought, cost=self._charged)
            before, answer = [last], self._deduced(marginal)
        return answer

    def _open(self) -> None:
        """Buy the classes that were announced, those that another process bought left out."""
        while (purchase := self._policy.opening(self._knowledge)) is not None:
            try:
                self._make(purchase)
            except OvertakenError:
                self._catch_up()

    def _needed(self, marginals: Sequence[Marginal]) -> list[Purchase]:
        """All purchases that questions may need if they are asked now, one after the other."""
        unknown = [m for m in marginals if self._memory.find(m) is None and self._deduce(m) is None]
        return self._forecast.of_all(unknown, asked=self._asked + 1)

    def _make(self, purchase: Purchase) -> PurchaseResult:
        """Make the next purchase: write it and its debit into the ledger in one transaction, then look.

        Raises an `InsufficientBudgetError` where it cannot be paid and an `OvertakenError` where another process
        bought something first: then nothing is written or charged.
        """
        self._funds.check([purchase])
        try:
            result = self._carry_out(
                purchase, self._journal.plan(purchase.kind, purchase.plain(), self._words)
            )
        except RequestConflictError as conflict:
            raise self._journal.taken(conflict) from None
        self._charged = self._charged + result.cost  # type: ignore[operator]  # one currency
        return result

    def _carry_out(self, purchase: Purchase, step: JournalStep | None = None) -> PurchaseResult:
        """Carry out the purchase of the journal's next step; `step` writes it where it is not in the journal yet.

        Under the request of the step, a purchase that was made before is read back for nothing.
        """
        request = PurchaseRequest(self._journal.request, self.analyst, step)
        result = purchase.make(self._calibrator, self._knowledge, request)
        self._finish(purchase)
        self._policy.made(purchase, result.cost)
        if result.answer is not None and result.marginal is not None:
            answer = self._certified(replace(result.answer, beta=float(self.terms.beta)))
            self._memory.keep_paid(result.marginal, answer)
        return result

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
            purchase = self._policy.read(plan)
            try:
                self._carry_out(purchase)
            except (InsufficientBudgetError, RequestConflictError):
                # It was never paid, or was paid on another version of the table and never answered: its share of
                # β is gone all the same.
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
    analyst    whose share of the budget pays
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
    """The terms of this analyst's session that the ledger holds under the name; None where there is none."""
    known = ledger.find(name) if name else None
    if known is None or known.analyst not in ("", analyst):
        return None
    return Terms.read(known.question)
