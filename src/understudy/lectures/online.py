"""Online iterative construction: the analyst asks, the stand-in answers, the sparse vector says when it is wrong.

    ask the stand-in → is it within the threshold of the truth, privately? → if not, buy one answer and update it

With multiplicative weights as the update this is private multiplicative weights (PMW); any database update
algorithm will do [Lecture 7]. Each run of the sparse vector ends at its first question above the threshold; the
answer to that one is bought on its own, so that pure ε and ρ are charged by the same two events.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, log
from typing import Any

import numpy as np

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.curator.sparse_handle import SparseHandle, counting_query
from understudy.errors import HandleClosedError, ParameterError, RefusedError, RequestConflictError
from understudy.lectures.asking import Asked, QueryReader, RepeatMemory, curator_of
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.journal import Journal
from understudy.mechanism.additive import noise_for
from understudy.privacy.budget import Budget
from understudy.privacy.calibrate import cheapest
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.event import Pure
from understudy.privacy.filter import ZCDP_FILTER
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Sensitivity
from understudy.project import Project
from understudy.query.box import from_plain, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact, positive, probability
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.protocol import DatabaseUpdate
from understudy.theory.guess_and_check import step_grid

RUN_SHARE = Fraction(8, 9)
"""Of the price of a run, the part for comparing; the rest buys the answer. As NumericSparse shares."""


@dataclass(frozen=True)
class OnlineTerms:
    """What an online construction promises and what it pays; `theorem_terms` and `practical_terms` work them out.

    queries       the number of questions that may be asked
    beta          the probability that some answer is further off than its error
    gap           how far off, in people, the stand-in is at least when it is updated, and a bought answer at most
    slack         how far from the threshold, in people, a comparison can be wrong
    updates       the number of runs of the sparse vector, each of which ends with an update, that are paid for
    run_epsilon   the ε of the comparisons of one run
    answer_price  the price of the answer that ends a run

    The stand-in is compared with the `threshold`, gap + slack, and the promised `error` is gap + 2·slack.
    """

    queries: int
    beta: Fraction
    gap: int
    slack: int
    updates: int
    run_epsilon: Fraction
    answer_price: Price
    is_bounded: bool = False
    """A theorem says that there are no more updates than these, whatever is asked."""

    @property
    def threshold(self) -> int:
        """The threshold that gaps are compared with, in people."""
        return self.gap + self.slack

    @property
    def error(self) -> int:
        """How far an answer can be off, in people."""
        return self.gap + 2 * self.slack

    def text(self) -> str:
        """The terms as one line, which names them wherever they are kept."""
        return (
            f"online construction: {self.queries} queries within {self.error} except with {self.beta}, "
            f"{self.updates} updates on gaps of {self.gap} at {self.run_epsilon} and {self.answer_price}"
        )


def slack_of(run_epsilon: Fraction, queries: int, updates: int, beta: Fraction, *, moved: int = 1) -> int:
    """⌈8Δ(ln k + ln(4B/β))/ε₀⌉ + 1: all comparisons of all B runs are right beyond this, except with β/2.

    Δ = `moved` is what one person moves a count by. One more, since the stand-in's count is rounded to a whole one
    before it is compared.

    [DworkRoth14, Theorem 3.24]
    """
    return ceil(float(8 * moved / run_epsilon) * (log(queries) + log(4 * updates / beta))) + 1


def calibrated_slack(
    run_epsilon: Fraction, queries: int, updates: int, beta: Fraction, *, moved: int = 1
) -> int:
    """⌈(4Δ ln(4k/β) + 2Δ ln(4B/β))/ε₀⌉ + 1: as `slack_of`, about half of it.

    There are k comparisons in all the runs together, each with noise of scale 4Δ/ε₀, and B thresholds, each with
    noise of scale 2Δ/ε₀. A discrete Laplace number of scale s is beyond t with probability exp(-t/s) at most, so
    all of the first are within 4Δ ln(4k/β)/ε₀ except with β/4, and all of the second within 2Δ ln(4B/β)/ε₀.
    """
    noise = 4 * log(4 * queries / beta) + 2 * log(4 * updates / beta)
    return ceil(float(moved / run_epsilon) * noise) + 1


def answer_error(price: Price, updates: int, beta: Fraction, *, moved: Sensitivity) -> int:
    """How far any of B bought answers is off, except with β/2; `moved` is the sensitivity of one count."""
    return noise_for(price, moved).error(beta / 2, cells=updates)


def theorem_terms(
    curator: Curator,
    update_for: Callable[[Fraction], DatabaseUpdate[Any]],
    *,
    queries: int,
    epsilon: Number | None = None,
    rho: Number | None = None,
    beta: Number = 0.05,
) -> OnlineTerms:
    """The terms of the smallest error that the theorem allows for a price, in `epsilon` or in `rho`.

    The update algorithm makes at most B(α) updates on gaps of α, whatever is asked [Lecture 7, Definition 2],
    so B runs are enough for ever: `update_for(α)` gives the algorithm for a gap of α of the rows, and α is chosen
    best. Raises a `ParameterError` for an algorithm whose number of updates is no theorem, and a `RefusedError`
    where no error below all of the rows can be promised at the price.
    """
    rows, failure, moved = curator.rows_at_least, probability(beta), curator.relation.moves(ONE_COUNT)
    price = Price.of(epsilon=epsilon, rho=rho)
    best: OnlineTerms | None = None
    for step in step_grid(1.0, 120):
        gap = floor(step * rows)
        if gap < 1 or (best is not None and gap >= best.error):
            continue
        alpha = Fraction(gap, rows)
        update = update_for(alpha)
        if not getattr(update, "is_proven", True):
            raise ParameterError("nothing bounds the updates of this algorithm: take practical terms")
        try:
            updates = max(update.most_updates(alpha), 1)
            run, answer = _split(price / updates, curator.ledger.budget)
            fits = answer_error(answer, updates, failure, moved=moved) <= _tolerance(update, gap, rows)
        except ParameterError:  # no bound at this gap, or prices too small to mean anything
            continue
        slack = slack_of(run, queries, updates, failure, moved=moved.l1)
        found = OnlineTerms(queries, failure, gap, slack, updates, run, answer, is_bounded=True)
        if fits and found.error <= rows and (best is None or found.error < best.error):
            best = found
    if best is None:
        raise RefusedError(
            "no error below all of the rows can be promised at this price: ask with a session, which needs no "
            "bound on updates, or with practical terms"
        )
    return best


def _tolerance(update: DatabaseUpdate[Any], gap: int, rows: int) -> int:
    """How far off the answer may be that an update is made with: its own margin, else anything below the gap."""
    margin = getattr(update, "margin", None)
    return gap - 1 if margin is None else floor(exact(margin) * rows)


def _split(each: Price, budget: Budget) -> tuple[Fraction, Price]:
    """The ε of a run's comparing and the price of its answer, which together cost what is paid for each run."""
    run, answer = each * RUN_SHARE, each * (1 - RUN_SHARE)
    if run.currency == "rho" and budget.filter == ZCDP_FILTER:
        comparing = exact(float(2 * run.amount) ** 0.5)  # to the last digit as ever: journals hold it
    else:
        comparing = budget.epsilon_within(run, Pure(epsilon=Fraction(1)))
    return _rounded(comparing), Price(answer.currency, _rounded(answer.amount))


def _rounded(price: Fraction) -> Fraction:
    """Rounded down to six digits."""
    return exact(float(f"{float(price) * 0.9999995:.6g}"))


def practical_terms(
    curator: Curator,
    *,
    alpha: Number,
    queries: int,
    updates: int,
    beta: Number = 0.05,
    gap_share: Number = Fraction(1, 2),
) -> OnlineTerms:
    """Terms with noise calibrated to α, for a number of updates that is an expectation and no theorem.

    `alpha` is the error of every answer, as a part of all rows (of the declared least number where that is
    private). `gap_share` of α is what a bought answer may be off by; the rest is slack on both sides of the
    threshold, and the more of it the cheaper is a run. The promise holds for every answer that is given; after
    `updates` updates nothing more is certified. Raises a `ParameterError` where α is less than a few people.
    """
    failure, people = probability(beta), floor(positive(alpha, "alpha", at_most=1) * curator.rows_at_least)
    gap = floor(people * positive(gap_share, "gap_share", at_most=1))
    slack, moved = (people - gap) // 2, curator.relation.moves(ONE_COUNT)
    if slack < 1 or gap < 1:
        raise ParameterError(f"alpha {alpha} of the rows is {people} people: ask for a wider error")
    currency = curator.ledger.budget.currency
    run, answer = _cheapest_terms(calibrated_slack, queries, updates, failure, gap, slack, currency, moved)
    return OnlineTerms(queries, failure, gap, slack, updates, run, answer)


@lru_cache(maxsize=64)
def _cheapest_terms(
    slack_of_run: Callable[..., int],
    queries: int,
    updates: int,
    failure: Fraction,
    gap: int,
    slack: int,
    currency: Currency,
    moved: Sensitivity,
) -> tuple[Fraction, Price]:
    """The least ε of a run whose noise stays within `slack`, and the least price of an answer within `gap`."""
    run = cheapest(lambda price: slack_of_run(price, queries, updates, failure, moved=moved.l1) <= slack)
    answer = cheapest(
        lambda amount: answer_error(Price(currency, amount), updates, failure, moved=moved) < gap
    )
    return run, Price(currency, answer)


def warm_start(
    curator: Curator,
    *,
    error: Number,
    beta: Number = 0.05,
    request: str | None = None,
    analyst: str = "",
) -> DenseWeights:
    """A stand-in to begin with: the attributes independent, with their marginals as measured.

    Privacy     One count of every attribute's marginal, charged together before any is looked at; the same
                `request` gives the same start again, for nothing.
    Accuracy    Each count is within `error` people except with β for each attribute. Nothing is promised of the
                start: what it answers is checked like any other guess. It saves the updates that a uniform one
                would take to learn as much.
    """
    ways = [Marginal(curator.domain, (name,)) for name in curator.domain.names]
    prices = [curator.calibration.price_of(way, error=error, beta=beta) for way in ways]
    answers = curator.measure_all(ways, prices, beta=beta, request=request, analyst=analyst)
    # Half a person for a cell that seems empty: a product with a zero could never learn otherwise.
    rates = {way.by[0]: np.maximum(answer.value, 0.5) for way, answer in zip(ways, answers, strict=True)}
    return DenseWeights.product(curator.domain, rates)


class OnlineConstruction:
    """Counts from a stand-in that is checked by the sparse vector, and updated where it is wrong.

    `table` is the project, or its Curator; `update` is any database update algorithm, `terms` what is promised
    and paid. `start` is a stand-in to begin with, such as that of `warm_start`; by default it is the algorithm's
    own. Under the same `name` the construction goes on where it was, in any process, since its updates are kept
    in the ledger; `analyst` is whose share of the budget pays. `updates` and `asked` are how many updates were
    made and how many questions were asked so far.

    Privacy     Each run costs its AboveThreshold's ε₀ and its answer, charged before they look; how many runs
                there are, and which question ended each, the sparse vector itself releases. The stand-in is made
                of released answers.
    Accuracy    Every answer is within `error` people of the table's, with probability 1 - β over the session:
                below the threshold the stand-in is within threshold + slack; above, the bought answer is within
                gap.
    """

    def __init__(
        self,
        table: Curator | Project,
        update: DatabaseUpdate[Any],
        terms: OnlineTerms,
        *,
        start: Any = None,
        name: str = "",
        analyst: str = "",
    ) -> None:
        curator = curator_of(table)
        self.curator = curator
        self._reader = QueryReader(curator)
        self._repeats: RepeatMemory[Answer] = RepeatMemory()
        self.update = update
        # The theorem counts updates from the uniform stand-in: another start may need more of them.
        self.terms = terms if start is None else replace(terms, is_bounded=False)
        self.analyst = analyst
        self.rows = curator.rows
        self.hypothesis = update.start() if start is None else deepcopy(start)
        self.updates = 0
        self.asked = 0
        self._lock = AskingLock("mechanism")
        self._journal = curator.recorded(
            terms.text(), lambda text: Journal(curator.ledger, text, name=name, analyst=analyst)
        )
        self._run: SparseHandle | None = None
        self._lost = 0
        self._catch_up()

    @property
    def updates_left(self) -> int:
        """How many updates may still be paid for."""
        return self.terms.updates - self.updates

    def ask(self, question: Asked) -> Answer:
        """The count of a question, in people: the stand-in's where it is found right, else a bought one.

        What was asked before is answered again for nothing, and is not counted. After the last update the answer
        is the stand-in's: `implied` where a theorem bounds the updates, else `uncertified`, with an infinite
        error. Raises a `QueryError` where the question is not one of one number, has weights other than 0 and 1,
        or is about another domain, a `HandleClosedError` where all questions were asked, an
        `InsufficientBudgetError` where a run or an answer cannot be paid, and a `RefusedError` where another
        process is asking at this moment.
        """
        query = self._reader.read(question)
        counting_query(query, self.curator.domain)
        with self._lock:
            told = self._repeats.find(query.key)
            if told is not None:
                return replace(told, source="repeat", cost=self.curator.ledger.budget.total([]))
            return self._repeats.keep(query.key, self._asked_anew(query))

    def _asked_anew(self, query: LinearQuery) -> Answer:
        """The answer to a question that was not asked before here."""
        self._catch_up()
        if self.asked >= self.terms.queries:
            raise HandleClosedError(f"all {self.terms.queries} questions were asked: open another")
        before = self.curator.ledger.spent
        self._count()
        guess = self.hypothesis.answer(query) * self.rows
        if self.updates_left < 1:
            return self._unchecked(query, guess, before)
        if not self._is_wrong(query, guess):
            return self._answer(query, guess, self.terms.error, "checked", before)
        updates = self.updates
        while not self._journal.add(f"update {updates + 1}", {"query": plain(Marginal.of(query))}):
            self._catch_up()
            if self.updates != updates:
                raise RefusedError("another process is asking in this session at this moment; ask again")
        bought = self._learn(query)
        return self._answer(query, bought, self.terms.gap, "measured", before)

    def _unchecked(self, query: LinearQuery, guess: float, before: Any) -> Answer:
        """After the last update: right by the theorem where there is one, else uncertified."""
        if self.terms.is_bounded:
            return self._answer(query, guess, self.terms.gap, "implied", before)
        return self._answer(query, guess, inf, "uncertified", before)

    def _is_wrong(self, query: LinearQuery, guess: float) -> bool:
        """What the run under way says; one whose hit was lost with its process is followed by another."""
        while True:
            if self._run is None:
                self._run = self.curator.sparse(
                    threshold=self.terms.threshold,
                    epsilon=self.terms.run_epsilon,
                    request=f"{self._journal.name} run {self.updates + 1}.{self._lost}",
                    analyst=self.analyst,
                )
            try:
                return bool(self._run.ask(query, guess=round(guess)))
            except HandleClosedError:
                self._run, self._lost = None, self._lost + 1

    def _catch_up(self) -> None:
        """Take every update that was written down here or elsewhere; one that was not bought yet is bought."""
        for step in self._journal.later():
            if step is None:
                self.asked += 1
            else:
                self._learn(from_plain(self.curator.domain, step["query"]).where)

    def _count(self) -> None:
        """Write down that a question is asked: the promise is for so many of them, in all processes together."""
        while not self._journal.add(f"question {self.asked + 1}", None):
            self._catch_up()
        self.asked += 1

    def _learn(self, query: LinearQuery) -> float:
        """Buy the answer of the next update, or find it bought, and mend the stand-in."""
        value = self._bought(Marginal.of(query))
        self.hypothesis = self.update.update(self.hypothesis, query, value / self.rows)
        self.updates += 1
        self._run, self._lost = None, 0
        return value

    def _bought(self, marginal: Marginal) -> float:
        """One that was paid by a process that did not live to see it, of a frame that is now another, is lost."""
        request, lost = f"{self._journal.name} answer {self.updates + 1}", 0
        while True:
            try:
                [answer] = self.curator.measure_all(
                    [marginal],
                    self.terms.answer_price,
                    request=f"{request}.{lost}" if lost else request,
                    analyst=self.analyst,
                )
                return float(answer.value)
            except RequestConflictError:
                lost += 1

    def _answer(self, query: LinearQuery, value: float, error: float, source: str, before: Any) -> Answer:
        marginal = Marginal.of(query)
        spent = self.curator.ledger.spent
        return Answer(
            query=marginal,
            value=value,  # type: ignore[arg-type]  # becomes an array
            error=float(error),  # type: ignore[arg-type]
            noisy=value,  # type: ignore[arg-type]
            cost=type(spent)(spent.units - before.units),
            beta=float(self.terms.beta),
            source=source,
        )
