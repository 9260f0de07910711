"""A session: any number of questions, each chosen after seeing the answers before, under one promise.

    For every table and every analyst: with probability 1 - β, every answer of the session is within its error,
    which is at most α of the rows unless the answer says `uncertified`.

How it is kept: measure, band, freeze. A purchase measures a class of counts once, with noise. Its band is an error
that holds for all members of the class at once, except with the purchase's share of β; it is fixed before anyone
chooses a member. The noise is frozen: never drawn again, and what is added to it (a second look, or counts of
other rows) was planned before it was drawn. An answer is deduced from bands, which
costs nothing. If the deduced interval is no wider than 2α, the answer is a value in it that is within α of both
ends; else something is bought.

Why it holds. The share of each purchase is a fraction of what is left of β, so that the shares add up to at most β
on every path. The noise of purchase j is independent of the history H_j that decided it, so that
P[some band fails] ≤ E Σ_j P[band j fails | H_j] ≤ β, whatever the analyst does. Counts with bounded noise have
P[band j fails | H_j] = 0: the sum is over the draws that can fail alone, so that such a purchase has the share 0,
and leaves to later ones what another noise would have taken.

Privacy. Decisions read public values and released values only, and each purchase is charged to the ledger before
the table is looked at: the whole session costs what the ledger says.

The purchases are written into the ledger (`purchase_journal`), so that another process goes on where this one
stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import overload

from understudy.answer.answer import Answer
from understudy.answer.around_question import AroundQuestion
from understudy.answer.counts import CellCounts, SourceCounts
from understudy.answer.limits import MAX_CELLS, check_cells
from understudy.answer.reader import REMEMBERED, Asked, QuestionReader, ReadQuestion, ShareQuestion
from understudy.answer.select_question import SelectQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.answer.unit_error import unit_of
from understudy.curator.curator import Curator
from understudy.curator.pricing import check_noise
from understudy.domain.domain import Domain
from understudy.domain.refinement import refines
from understudy.errors import InsufficientBudgetError, ParameterError, QueryError
from understudy.ledger.interface import Ledger, fresh_request
from understudy.ledger.view import spent_of
from understudy.pages import notebook
from understudy.privacy.cost import Cost
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd
from understudy.query.refined import least_refined
from understudy.query.text_size import USUAL, TextSize
from understudy.rational import Number, positive
from understudy.sessions.asking import Asking, digest
from understudy.sessions.buyer import Buyer
from understudy.sessions.charge_limit import ChargeLimit
from understudy.sessions.charged_refusal import charges_told
from understudy.sessions.closer_answers import CloserAnswer
from understudy.sessions.deduction import Deduction, SessionPromise
from understudy.sessions.direct import running_sums
from understudy.sessions.knowledge import Values
from understudy.sessions.named_classes import check_class
from understudy.sessions.number_of_rows import NumberOfRows
from understudy.sessions.part_answers import PartAnswers
from understudy.sessions.population import Population
from understudy.sessions.quantile_buyer import Running
from understudy.sessions.question_answers import QuestionAnswers
from understudy.sessions.question_plan import QuestionPlan
from understudy.sessions.several import PutQuestion, SeveralQuestions, listed
from understudy.sessions.terms import Announced, Terms, checked_class, class_text


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

    It is opened by `understudy.session`, which says what is raised: a `ParameterError`, a `RefusedError`, a
    `RequestConflictError`, a `QueryError` or an `InsufficientBudgetError`.

    Safe for threads, and for processes that share a durable ledger. Threads buy one after the other; answers that
    cost nothing (`known`) and prices wait for no purchase and no look at the table.
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
        text_size: TextSize = USUAL,
    ) -> None:
        """Open a session, or go on with the one of this name; announced classes are bought here.

        One that is opened `lazily` and announces no classes writes nothing before its first purchase. `text_size`
        is how many characters and words a question may have. Raises as `session` does.
        """
        self.curator = curator
        self.terms = terms
        self.name = name or fresh_request()
        self.analyst = analyst
        self.owner = "" if is_shared(curator.ledger, name) else analyst
        self.max_cells = max_cells
        self._promise = SessionPromise.of(curator, terms)
        check_noise(curator.calibration, terms.noise)
        self.rows = self._promise.rows
        self._beta = float(terms.beta)
        self.width = self._promise.width
        # What a session knows of the number of rows is told with every answer: where that is private, who asks for
        # a share has it bought (`_put`), and nobody else.
        self._reader = QuestionReader.of(
            curator.declaration, counts_everyone=False, measured="positions", refines=True, size=text_size
        )
        rows = () if curator.relation.rows_are_public else (NumberOfRows(curator.domain, ()),)
        # No methods: whatever the session holds must not hold the session.
        self._put_anew = partial(_put_anew, self._reader, curator.domain, rows)
        self._put_text = lru_cache(maxsize=REMEMBERED)(self._put_anew)
        self._buyer = Buyer(self._promise, name=self.name, owner=self.owner, lazily=lazily)
        self._parts = PartAnswers(curator, self._buyer)
        self._answers = QuestionAnswers(self._parts)
        with self._buyer.lock:
            self._buyer.catch_up()
        for named in terms.expected:
            check_class(self._buyer.calibrator, named)
        if terms.classes:
            self._buyer.open_classes(analyst)

    @property
    def _known(self) -> Deduction:
        """What follows from the purchases that this process knows."""
        return self._buyer.known

    @property
    def remaining(self) -> Cost:
        """What is left of the table's budget, in its currency (ε or ρ), for everybody who spends from it."""
        return self.curator.ledger.remaining

    @property
    def purchases(self) -> int:
        """How many purchases of the session this process knows: its own, and those that it has read."""
        return self._known.step

    @property
    def population(self) -> Population:
        """How far shares of rows can be from those of the population behind the table, or why nobody can tell."""
        return self._promise.population

    @property
    def contradicted(self) -> bool:
        """Whether two released numbers cannot both be within their bands: then a band failed, which β allows for.

        What they say is not used from then on; answers that were given before may rest on it.
        """
        return self._known.knowledge.contradicted

    # ---- what the analyst sees

    @overload
    def ask(
        self,
        question: Marginal | LinearQuery,
        *,
        error: Number | None = None,
        most: Cost | None = None,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer: ...

    @overload
    def ask(
        self,
        question: str,
        *,
        error: Number | None = None,
        most: Cost | None = None,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer | SqlAnswer: ...

    def ask(
        self,
        question: Asked,
        *,
        error: Number | None = None,
        most: Cost | None = None,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer | SqlAnswer:
        """Answer ``count age < 30 by sex``, ``share …``, a SELECT statement, a marginal or a linear query.

        `question` is any of these. What has to be bought is charged before the table is read; what follows from
        earlier purchases is free. Returns a `SqlAnswer` for a SELECT statement, else an `Answer`: counts in
        people, or shares of all rows. Every count that it is made of is within α of all rows. When the budget
        cannot pay for all counts, nothing is bought, and a stand-in that is fitted to what was released so far
        answers, with the source `uncertified` and an infinite error; where the argument `uncertified` is false, an
        `InsufficientBudgetError` is raised instead.

        With an `error` the answer is within that, and not within α of all rows: in people for counts and for
        statements that tell some, else in the unit of the released numbers (`answer.unit_error`): of the column
        for sums and averages, a part of 1 for shares and rates. It is free where what is known is narrow enough,
        else bought with the noise that the error needs (`closer_answers`). Such an answer is never uncertified.
        Where that depends on how many rows there are, they are counted first, at the session's own width, if the
        budget can pay all that `price` tells; else nothing is bought, and asking without an `error` counts them.
        The rest can then turn out to cost more than `price` told, and is refused, with a `RefusedAfterChargeError`
        that says what was charged; what was counted stays known.

        `most` is what the caller has agreed to, in the ledger's currency: where the question would be charged
        more, a `PriceRoseError` says so, and nothing is bought. Nothing is bought ahead for it where only that is
        beyond it.

        `analyst` is whose share of the budget pays for what the question buys: the session's own `analyst` where
        none is named. What anybody bought answers everybody, for nothing.

        `request` is the caller's name for the question, kept with what it buys. Asked again under the same
        request, also by another process after a crash, the question buys only what is still missing, and the
        answer's `cost` is what was charged under the request in all. Its value is the same for ever where all that
        it is made of are the question's own counts, bought without an `error`. Else it may be another number,
        which is within its error again, and that error may be smaller: an answer with an `error` and a quantile
        are told from what is known now, which is more once others have asked; and what was deduced, from a class
        or from earlier answers, is deduced again once the session has forgotten it, after a restart for instance,
        from no less than before. What was bought under the request stays the same. Whoever promises the same
        bytes to a repeated request keeps the answer. A request under which nothing was bought is not written down.

        Raises a `QueryError` where the question is not understood, a `RequestConflictError` where something was
        bought under the request for another question or analyst, a `ParameterError` where the session belongs to
        another analyst, or `most` is in another currency than the ledger's, and a `RefusedError` where other
        processes keep spending what it needs, or an `error` cannot be kept. A refusal after something was charged
        for the question is a `RefusedAfterChargeError`.
        """
        put, payer = self._put(question, error), self._payer(analyst)
        if most is not None:
            self._check(put.marginals)
            limit = ChargeLimit.of(most, self._parts.buyer.calibrator.currency)
            one = SeveralQuestions([put], payer, self._parts, self._answers.quantiles, self._answered)
            return one.ask_one(0, limit, uncertified=uncertified, request=request)
        return self._answered(put, payer, request, uncertified=uncertified)

    def several(
        self, questions: Sequence[Asked], analyst: str | None = None, *, error: Number | None = None
    ) -> SeveralQuestions:
        """`questions` that are asked one after the other for no more than a price that is told before the first.

        `analyst` is who pays, as for `ask`. `several(questions).price` is that price, and `.ask()` the answers as
        they come (`several`). Each keeps to `error`, where one is given. Reads no data and spends nothing before
        an answer is fetched. Raises as `price` does, for whichever question is wrong.
        """
        put = [self._put(question, error) for question in listed(questions)]
        for one in put:
            self._check(one.marginals)
        payer = self._payer(analyst)
        return SeveralQuestions(put, payer, self._parts, self._answers.quantiles, self._answered)

    def _put(self, question: Asked, error: Number | None) -> PutQuestion:
        if error is None and isinstance(question, str):
            return self._put_text(question)
        return self._put_anew(question, None if error is None else float(positive(error, "error")))

    def _answered(
        self,
        put: PutQuestion,
        payer: str,
        request: str | None,
        *,
        uncertified: bool,
        limit: ChargeLimit | None = None,
        plan: QuestionPlan | None = None,
    ) -> Answer | SqlAnswer:
        """The answer to a question, under a limit where there is one, and by what was planned for its parts."""
        if put.error is not None:
            return put.asked.answer(self._within(put, put.error, payer, request, limit))
        asking = self._asking(payer, request, put.marginals, put.asked.words)
        asking.limit = limit
        counts = self._counts(put.marginals, asking, put.running, uncertified=uncertified, plan=plan)
        return put.asked.answer(counts)

    def _closer(
        self, put: PutQuestion, error: float, payer: str, request: str | None
    ) -> tuple[Asking, CloserAnswer]:
        """A question within an error of its own, which makes the same words another request."""
        asking = self._asking(payer, request, put.marginals, f"{put.asked.words} ± {error!r}")
        asking.words = put.asked.words
        self._buyer.check_request(asking)
        return asking, CloserAnswer(put.asked, put.marginals, error, self._parts)

    def _within(
        self, put: PutQuestion, error: float, payer: str, request: str | None, limit: ChargeLimit | None
    ) -> SourceCounts:
        """What a question is made of, so narrow that its answer is within an error of its own."""
        marginals = put.marginals
        self._check(marginals)
        asking, closer = self._closer(put, error, payer, request)
        asking.limit = limit
        answers = closer.free()
        if answers is None:
            with self._buyer.lock, self.curator.one_question(marginals), self._charges_told(asking):
                answers = closer.bought(asking)
        self._parts.count(1)
        return self._as_counts(self._parts.with_cost(answers, asking))

    def known(
        self,
        question: Asked,
        *,
        error: Number | None = None,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer | SqlAnswer | None:
        """The answer of `ask`, if it costs nothing by what this process knows; None where `ask` would have to buy.

        `question`, `error`, `analyst` and `request` are those of `ask`. It never waits for a purchase, or for
        other processes, and spends nothing. None says nothing of a purchase that is being made, and is never the
        answer to a question whose answer was bought here before. Raises as `ask` does where the question is not
        understood or may not be asked.
        """
        put = self._put(question, error)
        asked, marginals = put.asked, put.marginals
        self._check(marginals)
        if put.error is not None:
            asking, closer = self._closer(put, put.error, self._payer(analyst), request)
            answers = closer.free()
            if answers is None:
                return None
            self._parts.count(1)
            return asked.answer(self._as_counts(self._parts.with_cost(answers, asking)))
        asking = self._asking(self._payer(analyst), request, marginals, asked.words)
        self._buyer.check_request(asking)
        answers = self._answers.free(marginals, put.running, asking)
        return None if answers is None else asked.answer(self._as_counts(answers))

    def counts(
        self,
        marginals: Sequence[Marginal],
        *,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> SourceCounts:
        """Counts of `marginals`, in people, each within α of all rows: all are bought that have to be, or none.

        What cannot be paid for is answered uncertified, or refused, as by `ask`, whose `uncertified`, `analyst`
        and `request` these are. More cells than the session's `max_cells` are refused with a `QueryError`, and
        what the custodian's reading found to be unreadable with an `UnreadableError`.
        """
        marginals = _least_refined(self.curator.domain, marginals)
        asking = self._asking(self._payer(analyst), request, marginals)
        return self._counts(marginals, asking, {}, uncertified=uncertified)

    def _counts(
        self,
        marginals: Sequence[Marginal],
        asking: Asking,
        running: Running,
        *,
        uncertified: bool,
        plan: QuestionPlan | None = None,
    ) -> SourceCounts:
        """Counts of marginals; `running` are the quantiles for which running sums are enough, and `plan` is what
        was planned for the others.
        """
        self._check(marginals)
        with self._charges_told(asking):
            answers = self._answers.answers(marginals, running, asking, plan, uncertified=uncertified)
        return self._as_counts(answers)

    def _check(self, marginals: Sequence[Marginal]) -> None:
        for marginal in marginals:
            if isinstance(marginal.moment, QuantileEnd):
                raise QueryError(
                    "a session answers quantiles from bins", remedy="ask in SQL, or ask the project"
                )
        check_cells(marginals, self.max_cells)
        self.curator.check_readable(marginals)

    def _as_counts(self, answers: Sequence[Answer]) -> SourceCounts:
        cells = [CellCounts(one, one.value, one.error, through=self._through(one)) for one in answers]
        return SourceCounts(
            tuple(cells),
            self._known.rows,
            self._beta,
            self._buyer.nothing,
            is_measured=all(answer.source != "uncertified" for answer in answers),
        )

    def _through(self, answer: Answer) -> Callable[[str], tuple[Values, Values] | None] | None:
        """Who asks for it is told what is known of running sums, which is more than the cells tell."""
        if answer.source == "uncertified" or not answer.query.by:
            return None
        known = self._known
        return lambda name: running_sums(known.knowledge, answer.query, name)

    def price(self, question: Asked, analyst: str | None = None, *, error: Number | None = None) -> Cost:
        """The most that a `question` can cost, in the ledger's currency (ε or ρ), if it is asked now.

        With an `error` it is the price of an answer within that, as `ask` takes it. Where the number of rows
        behind an average is not known yet, it is what is spent if there are half as many as expected; with fewer,
        `ask` counts them and refuses the rest. Raises a `RefusedError` where the error cannot be kept.

        `analyst` is who would pay, as for `ask`: where their share of the budget cannot pay for a class of
        questions that is due, the price is that of the question's own counts.

        What is bought is planned before the first purchase, and kept to (`question_plan`): the price holds as long
        as nobody else buys in the session, and no two released numbers contradict each other (`contradicted`).

        Reads no data, spends nothing, and does not wait for anybody's look at the table. The question costs less
        where a histogram that it buys first tells enough, or where the parts of a SELECT statement tell something
        about each other. Raises a `QueryError` where the question is not understood, and a `ParameterError` where
        the session belongs to another analyst.
        """
        put, payer = self._put(question, error), self._payer(analyst)
        marginals = put.marginals
        self._check(marginals)
        if put.error is not None:
            return CloserAnswer(put.asked, marginals, put.error, self._parts).price(payer)
        return self._buyer.funds(payer).quote(self._answers.planned(marginals, put.running, payer).purchases)

    def unpaid(
        self, question: Asked, analyst: str | None = None, *, error: Number
    ) -> InsufficientBudgetError | None:
        """Why `ask` would refuse a `question` within an `error` for its price; None where it can be paid now.

        `analyst` is who would pay. Reads no data and spends nothing. Raises as `price` does.
        """
        put, payer = self._put(question, error), self._payer(analyst)
        self._check(put.marginals)
        assert put.error is not None
        return CloserAnswer(put.asked, put.marginals, put.error, self._parts).unpaid(payer)

    def charged_under(self, request: str) -> Cost:
        """What was charged in all under a `request` that `ask` was given, as far as this process knows.

        It is kept whatever became of the question. Reads no data and spends nothing.
        """
        known = self._buyer.requests.get(request)
        return self._buyer.nothing if known is None else known.cost

    def price_of_class(self, named: Announced, analyst: str | None = None) -> Cost:
        """The most that `buy` charges for a class of questions, `named`, now; `analyst` is who would pay.

        It is nothing where the class was bought before, or where all of its questions follow from a class on more
        attributes. It is the price of the next purchase. A class takes a part of what is left of β, so that
        another one, or a question, can cost more after it than its price was before.

        Reads no data and spends nothing. Raises as `buy` does, but for what cannot be paid.
        """
        return self._buyer.funds(self._payer(analyst)).quote(self._buyer.plans.of_order(checked_class(named)))

    def buy(self, named: Announced, *, analyst: str | None = None) -> Cost:
        """Buy a class of questions at once: `ranges`, `conjunctions`, `pool` or `marginals`.

        `named` is what one of these returns. From then on every question of the class costs nothing. It is an
        order, which questions are not: its price (`price_of_class`) is added to the most that the session costs
        beside direct answers. `analyst` pays.

        Returns what was charged. Raises a `QueryError` where the class is too large, an `InsufficientBudgetError`,
        with nothing bought, where it cannot be paid, and a `ParameterError` for what is no class, in a direct
        session, which buys none, or where the session belongs to another analyst.
        """
        if self.terms.is_direct:
            raise ParameterError("a direct session buys no classes; open one without a mechanism")
        asking = Asking(self._payer(analyst), self._buyer.nothing, f"buy {class_text(checked_class(named))}")
        self._buyer.order(named, asking)
        return asking.charged

    def error(self, question: Asked) -> float:
        """How many people a count in the answer to a `question` can be off, if the session's promise is kept.

        That is `width`, and for a group of a SELECT statement that is made of several declared cells, so many
        times `width`. Reads no data, and costs nothing. Raises a `QueryError` where it is not understood.
        """
        asked = self._reader.read(question)
        told = [float(self.width)] * len(asked.marginals)
        return asked.error(told) if isinstance(asked, SelectQuestion) else float(self.width)

    def unit(self, question: Asked) -> str:
        """The unit of an `error` of a `question`: `people`, or the released column whose unit it is.

        Reads no data, and costs nothing. Raises a `QueryError` where the question is not understood.
        """
        return unit_of(self._reader.read(question))

    def dry_run(
        self, questions: Sequence[Asked], analyst: str | None = None, *, error: Number | None = None
    ) -> list[Cost]:
        """The `price` of each of several `questions`, each as if it were the next one. Asks and spends nothing.

        `analyst` and `error` are those of `price`, which says what is raised. What all of them cost together is
        told by `several`.
        """
        return [self.price(question, analyst, error=error) for question in listed(questions)]

    def ask_marginal(
        self,
        marginal: Marginal,
        *,
        uncertified: bool = True,
        analyst: str | None = None,
        request: str | None = None,
    ) -> Answer:
        """Counts of the cells of a `marginal`, in people, each within α of all rows: `ask` for a marginal alone.

        `uncertified`, `analyst` and `request` are those of `ask`. Raises as `ask` does, but refuses no marginal
        for its number of cells.
        """
        [marginal] = _least_refined(self.curator.domain, [marginal])
        self.curator.check_readable([marginal])
        if request is None and (repeated := self._parts.repeated(marginal)) is not None:
            self._payer(analyst)
            self._parts.count(1)
            return repeated
        asking = self._asking(self._payer(analyst), request, [marginal])
        with self._charges_told(asking):
            return self._parts.answers([marginal], asking, None, uncertified=uncertified)[0]

    def _charges_told(self, asking: Asking) -> AbstractContextManager[None]:
        return charges_told(asking, self.curator.ledger)

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
        self, payer: str, request: str | None, marginals: Sequence[Marginal], words: str = ""
    ) -> Asking:
        question = "" if request is None else digest(words or "; ".join(m.key for m in marginals))
        return Asking(payer, self._buyer.nothing, words, request, question)

    def __repr__(self) -> str:
        promise = f"±{self.width:,} people, beta {float(self.terms.beta):g}"
        return f"Session({self.name!r}, {promise}, {self._parts.asked:,} questions, {self.purchases:,} purchases)"

    def _repr_html_(self) -> str:
        sure = notebook.certainty(float(self.terms.beta))
        known = {
            "promise": f"every answer within {self.width:,} people, all with probability {sure}",
            "asked here": f"{self._parts.asked:,} questions, {self.purchases:,} purchases",
            "budget": spent_of(self.curator.ledger),
        }
        contradiction = "What was released contradicts itself: a band failed, which beta allows for."
        parts = [notebook.warning(contradiction)] if self.contradicted else []
        return notebook.panel(f"Session {self.name}", notebook.facts(known), *parts)


def _put_anew(
    reader: QuestionReader,
    declared: Domain,
    rows: tuple[Marginal, ...],
    question: Asked,
    within: float | None = None,
) -> PutQuestion:
    """A question that is not remembered, with the number of `rows` beside what is a share of a private one.

    Within an error of its own it finds out itself what else it needs.
    """
    asked = reader.read(question)
    marginals = tuple(_least_refined(declared, asked.marginals))
    if within is None and isinstance(asked, ShareQuestion):
        marginals += rows
    return PutQuestion(asked, marginals, _running(asked), within)


def _least_refined(declared: Domain, marginals: Sequence[Marginal]) -> list[Marginal]:
    """The same questions with no more edges than they need: declared ones where they cut no declared cell."""
    for marginal in marginals:
        if not refines(marginal.domain, declared):
            raise QueryError("the question is about another domain")
    return [least_refined(marginal, declared) for marginal in marginals]


def _running(asked: ReadQuestion[Answer | SqlAnswer]) -> Running:
    """The quantiles of a question, by the places of their marginals."""
    return asked.running if isinstance(asked, (SelectQuestion, AroundQuestion)) else {}


def is_shared(ledger: Ledger, name: str) -> bool:
    """Whether the ledger holds something under the name that belongs to no analyst: if a session, a shared one."""
    known = ledger.find(name) if name else None
    return known is not None and known.analyst == ""
