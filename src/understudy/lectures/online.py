"""Online iterative construction: the analyst asks, the stand-in answers, the sparse vector says when it is wrong.

    ask the stand-in → is it within the threshold of the truth, privately? → if not, buy one answer and update it

With multiplicative weights as the update this is private multiplicative weights (PMW); any database update
algorithm will do [Lecture 7]. Each run of the sparse vector ends at its first question above the threshold; the
answer to that one is bought on its own, so that pure ε and ρ are charged by the same two events.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.curator.of_table import curator_of
from understudy.curator.open_sparse_vector import OpenSparseVector, counting_query
from understudy.errors import HandleClosedError, RefusedError, RequestConflictError
from understudy.lectures.asking import Asked, QueryReader, RepeatMemory
from understudy.lectures.online_terms import OnlineTerms
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.journal import Journal
from understudy.project import Project
from understudy.query.box import from_plain, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.protocol import DatabaseUpdate


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


@dataclass(frozen=True)
class _ToldCount:
    """A count that was told, in people, and its source: `checked`, `measured`, `implied` or `uncertified`."""

    value: float
    source: str


class OnlineConstruction:
    """Counts from a stand-in that is checked by the sparse vector, and updated where it is wrong.

    `table` is the project, or its Curator; `update` is any database update algorithm, `terms` what is promised and
    paid. `start` is a stand-in to begin with, such as that of `warm_start`; by default it is the algorithm's own.
    Under the same `name` the construction goes on where it was, in any process, since its updates and answers are
    kept in the ledger before they are told; `analyst` is whose share of the budget pays. `updates` and `asked` are
    how many updates were made and how many questions were asked so far. Opening it charges nothing; it raises a
    `RequestConflictError` where the name belongs to something else.

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
        self._repeats: RepeatMemory[_ToldCount] = RepeatMemory()
        self.update = update
        before = terms.resumed(curator, name)
        terms = before if before.gap == terms.gap else terms  # the update algorithm is made for a gap
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
        self._run: OpenSparseVector | None = None
        self._lost = 0
        self._catch_up()

    @property
    def updates_left(self) -> int:
        """How many updates may still be paid for."""
        return self.terms.updates - self.updates

    def ask(self, question: Asked) -> Answer:
        """The count of a `question`, in people: the stand-in's where it is found right, else a bought one.

        A run of the sparse vector is charged when it begins, and the answer that ends it before it is drawn.
        Returns an `Answer`. What was answered before under this name is answered again for nothing, and is not
        counted. After the last update the answer is the stand-in's: `implied` where a theorem bounds the updates,
        else `uncertified`, with an infinite error. Raises a `QueryError` where the question is not one of one
        number, has weights other than 0 and 1, or is about another domain, a `HandleClosedError` where all
        questions were asked, an `InsufficientBudgetError` where a run or an answer cannot be paid, and a
        `RefusedError` where another process is asking at this moment.
        """
        query = self._reader.read(question)
        counting_query(query, self.curator.domain)
        marginal = Marginal.of(query)
        with self._lock:
            if (told := self._repeats.find(marginal.key)) is None:
                self._catch_up()
                told = self._repeats.find(marginal.key)
            if told is not None:
                return self._repeated(marginal, told)
            return self._asked_anew(marginal)

    def _asked_anew(self, marginal: Marginal) -> Answer:
        """The answer to a question that was not answered before."""
        query = marginal.where
        if self.asked >= self.terms.queries:
            raise HandleClosedError(f"all {self.terms.queries} questions were asked: open another")
        before = self.curator.ledger.spent
        self._count()
        guess = self.hypothesis.answer(query) * self.rows
        if self.updates_left < 1:
            # Right by the theorem where there is one.
            source = "implied" if self.terms.is_bounded else "uncertified"
            return self._tell(marginal, _ToldCount(guess, source), before)
        if not self._is_wrong(query, guess):
            return self._tell(marginal, _ToldCount(guess, "checked"), before)
        updates = self.updates
        while not self._journal.add(f"update {updates + 1}", {"query": plain(marginal)}):
            self._catch_up()
            if self.updates != updates:
                raise RefusedError("another process is asking in this session at this moment; ask again")
        return self._answer(marginal, self._learn(marginal), self._spent_since(before))

    def _tell(self, marginal: Marginal, told: _ToldCount, before: Any) -> Answer:
        """Write down an answer of the stand-in and tell it, unless the question was answered elsewhere by now."""
        step = {"asked": marginal.key, "value": told.value, "source": told.source}
        while not self._journal.add(f"answer to question {self.asked}", step):
            self._catch_up()
            if (elsewhere := self._repeats.find(marginal.key)) is not None:
                return replace(self._repeated(marginal, elsewhere), cost=self._spent_since(before))
        self._repeats.keep(marginal.key, told)
        return self._answer(marginal, told, self._spent_since(before))

    def _repeated(self, marginal: Marginal, told: _ToldCount) -> Answer:
        """What was told before, once more: it was released already, so that nothing is charged."""
        return replace(self._answer(marginal, told, self.curator.ledger.budget.total([])), source="repeat")

    def _spent_since(self, before: Any) -> Any:
        spent = self.curator.ledger.spent
        return type(spent)(spent.units - before.units)

    def _is_wrong(self, query: LinearQuery, guess: float) -> bool:
        """What the run under way says; one whose hit was lost with its process is followed by another."""
        while True:
            if self._run is None:
                self._run = self.curator.sparse(
                    threshold=self.terms.threshold,
                    epsilon=self.terms.run_epsilon,
                    share=self.terms.share,
                    request=f"{self._journal.name} run {self.updates + 1}.{self._lost}",
                    analyst=self.analyst,
                )
            try:
                return bool(self._run.ask(query, guess=round(guess)))
            except HandleClosedError:
                self._run, self._lost = None, self._lost + 1

    def _catch_up(self) -> None:
        """Take all that was written down here or elsewhere; an update that was not bought yet is bought."""
        for step in self._journal.later():
            if step is None:
                self.asked += 1
            elif "asked" in step:
                self._repeats.keep(step["asked"], _ToldCount(step["value"], step["source"]))
            else:
                self._learn(from_plain(self.curator.domain, step["query"]))

    def _count(self) -> None:
        """Write down that a question is asked: the promise is for so many of them, in all processes together."""
        while not self._journal.add(f"question {self.asked + 1}", None):
            self._catch_up()
        self.asked += 1

    def _learn(self, marginal: Marginal) -> _ToldCount:
        """Buy the answer of the next update, or find it bought, and mend the stand-in."""
        value = self._bought(marginal)
        self.hypothesis = self.update.update(self.hypothesis, marginal.where, value / self.rows)
        self.updates += 1
        self._run, self._lost = None, 0
        return self._repeats.keep(marginal.key, _ToldCount(value, "measured"))

    def _bought(self, marginal: Marginal) -> float:
        """The answer of the next update, which whoever paid for it last may not have lived to see.

        One that was paid for rows that are others now is lost, and bought once more under a name of its own; the
        ledger knows how many there are.
        """
        request = f"{self._journal.name} answer {self.updates + 1}"
        names = [debit.request for debit in self.curator.ledger.debits(request)]
        lost = max(len([name for name in names if name == request or name.startswith(f"{request}.")]) - 1, 0)
        try:
            return self._measured(marginal, request, lost)
        except RequestConflictError:
            return self._measured(marginal, request, lost + 1)

    def _measured(self, marginal: Marginal, request: str, lost: int) -> float:
        [answer] = self.curator.measure_all(
            [marginal],
            self.terms.answer_price,
            request=f"{request}.{lost}" if lost else request,
            analyst=self.analyst,
        )
        return float(answer.value)

    def _answer(self, marginal: Marginal, told: _ToldCount, cost: Any) -> Answer:
        wide = self.terms.error if told.source == "checked" else self.terms.gap
        return Answer(
            query=marginal,
            value=told.value,  # type: ignore[arg-type]  # becomes an array
            error=inf if told.source == "uncertified" else float(wide),  # type: ignore[arg-type]
            noisy=told.value,  # type: ignore[arg-type]
            cost=cost,
            beta=float(self.terms.beta),
            source=told.source,
        )
