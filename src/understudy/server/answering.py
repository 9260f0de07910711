"""A question on the server's threads: what is free, what needs an approval, what is bought and what is kept.

The order is the promise. The ledger charges before the library looks, under the request id of the question; the
answer is kept before it is sent. Where the process dies in between, the same request finds how far it came: an
answer that was kept is sent again, and a question that was charged is asked again under the same name in the
ledger, which charges nothing twice, refuses another question under it, and tells what was charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from understudy.answer.around_answer import AroundAnswer
from understudy.curator.prepared_question import PreparedQuestion, QuestionPurchase
from understudy.errors import (
    LedgerError,
    PriceRoseError,
    RequestConflictError,
    SourceError,
    StoreError,
    UnderstudyError,
)
from understudy.privacy.cost import Cost
from understudy.server.answer_cache import AnswerCache, Key, KnownAnswer
from understudy.server.approvals import Approval, Approvals
from understudy.server.asked import ANSWERED, Asked, AskedQuestion, KeptReply
from understudy.server.config import ServerConfig
from understudy.server.gate_reply import (
    AskedBy,
    GateReply,
    answered,
    passing_problem,
    reply_of,
    reply_of_approval,
    sent_reply,
)
from understudy.server.inquiry import Inquiry
from understudy.server.prices import agreed
from understudy.server.problems import Problem, problem_of
from understudy.server.replies import Told, answer_as_plain, as_repeat, encoded
from understudy.server.served_tables import OpenTable, ServedTable
from understudy.server.tokens import Caller

PRICE_RISE = 1.1
"""What an approved question may cost when it is asked, as a multiple of the price that was approved."""

Given = TypeVar("Given")

Portions = Iterator[list[tuple[int, Given]]]
"""Outcomes of some questions as they come: the place of each among them, and its own."""


class Answering:
    """The steps of a question that work with tables and the store; safe for threads."""

    def __init__(self, config: ServerConfig, asked: Asked, approvals: Approvals) -> None:
        self._config = config
        self._asked = asked
        self._approvals = approvals
        self._cache = AnswerCache()

    def threshold(self, caller: Caller) -> float:
        """The part of the whole budget above which this caller's question needs an approval."""
        above = self._config.approve_above
        return float(above.agents if caller.agent else above.people)

    def whose(self, caller: Caller) -> str:
        """Whose session a caller asks in: everybody's, or their own."""
        return caller.analyst if self._config.own_sessions else ""

    def known(self, asked: AskedBy) -> KnownAnswer | None:
        """The answer of somebody's earlier question in the session, which may be sent again without a look."""
        if asked.inquiry.is_direct or asked.inquiry.within is not None:
            return None
        return self._cache.find(self._key(asked, asked.table.generation))

    def noted(self, asked: AskedBy, known: KnownAnswer) -> GateReply:
        """A known answer for a caller who gave no request id: written down soon, and sent at once."""
        inquiry = asked.inquiry
        id = self._asked.note(
            inquiry.table,
            asked.caller.analyst,
            inquiry.question,
            asked.request,
            inquiry.terms,
            answer=known.text,
            source="repeat",
            currency=known.nothing.currency,
        )
        return answered(id, asked, known.text, known.plain)

    def kept_known(self, given: list[tuple[AskedBy, KnownAnswer]]) -> Portions[GateReply | None]:
        """Known answers for callers who gave request ids: kept, in one transaction, before they are sent.

        So the same request gets the same bytes even after a kill. None where something is known of the request
        already: then the question goes the way of all others.
        """
        ids = self._asked.keep_new(
            [
                KeptReply(
                    table=asked.inquiry.table,
                    analyst=asked.caller.analyst,
                    question=asked.inquiry.question,
                    request=asked.request,
                    terms=asked.inquiry.terms,
                    answer=known.text,
                    price=known.nothing,
                    share=0.0,
                    source="repeat",
                )
                for asked, known in given
            ]
        )
        yield [
            (place, answered(id, asked, known.text, known.plain) if id else None)
            for place, (id, (asked, known)) in enumerate(zip(ids, given, strict=True))
        ]

    def free_or_none(self, asked: AskedBy) -> GateReply | None:
        """The reply that costs nothing: one that was sent before, or a free answer. None where there is none.

        What the question costs then is found in its turn (`bought`), when the questions before it are answered.
        """
        sent = self.sent_before(asked)
        if sent is not None:
            return sent
        caller, question = asked.caller, asked.inquiry.question
        with asked.table.use() as opened:
            session = opened.session(caller.analyst)
            answer = session.known(
                question,
                error=asked.inquiry.within,
                analyst=caller.analyst,
                request=asked.ledger_request,
            )
            if answer is not None:
                return self._keep(opened, asked, answer, session.name)
            _check_pays(caller)
            return None

    def bought(self, asked: AskedBy, approved: Approval | None = None) -> GateReply:
        """Ask in the session, which buys what is missing; the answer is kept before it is sent.

        Where the price needs an approval that the question does not have, nothing is bought, and it waits.
        """
        caller, inquiry = asked.caller, asked.inquiry
        with asked.table.use() as opened:
            session = opened.session(caller.analyst)
            price = session.price(inquiry.question, caller.analyst, error=inquiry.within)
            if approved is not None:
                _check_price(price, approved)
            elif (waiting := self._waiting(opened, asked, price)) is not None:
                return waiting
            answer = self._noted(
                asked,
                lambda: session.ask(
                    inquiry.question,
                    error=inquiry.within,
                    most=agreed(inquiry, price),
                    uncertified=inquiry.uncertified,
                    analyst=caller.analyst,
                    request=asked.ledger_request,
                ),
                lambda: session.charged_under(asked.ledger_request),
            )
            return self._keep(opened, asked, answer, session.name)

    def direct(self, asked: AskedBy, approved: Approval) -> GateReply:
        """Measure an approved question by itself, at its own price."""
        _check_pays(asked.caller)
        analyst, name = asked.caller.analyst, asked.ledger_request
        with asked.table.use() as opened:
            prepared = self._prepared(opened, asked)
            _check_price(prepared.due(request=name, analyst=analyst).cost, approved)
            _check_agreed(asked, prepared)
            answer = self._noted(asked, lambda: prepared.run(request=name, analyst=analyst))
            return self._keep(opened, asked, answer, name)

    def direct_all(self, table: ServedTable, asked: list[AskedBy]) -> Portions[GateReply | Exception]:
        """Measure questions to one table, each by itself and at its own price; debits and replies share commits.

        Yields portions of outcomes: a reply, or what is raised for its question.
        """
        with table.use() as opened:
            told: list[tuple[int, GateReply | Exception]] = []
            bought: list[tuple[int, QuestionPurchase]] = []
            for place, one in enumerate(asked):
                try:
                    _check_pays(one.caller)
                    prepared = self._prepared(opened, one)
                    _check_agreed(one, prepared)
                    waiting = self._direct_waiting(opened, one, prepared)
                    if waiting is None:
                        bought.append(
                            (place, QuestionPurchase(prepared, one.ledger_request, one.caller.analyst))
                        )
                    else:
                        told.append((place, waiting))
                except Exception as error:
                    told.append((place, error))
            if told:
                yield told
            failure: Exception | None = None
            for portion in opened.project.run_all([purchase for _, purchase in bought]):
                outcomes = [(bought[i][0], asked[bought[i][0]], outcome) for i, outcome in portion]
                yield self._kept_all(opened, outcomes)
                for _, _, outcome in outcomes:
                    failure = outcome if isinstance(outcome, (LedgerError, SourceError)) else failure
            if failure is not None:
                raise failure  # has the table opened anew, as where a question fails by itself

    def _kept_all(
        self, opened: OpenTable, outcomes: list[tuple[int, AskedBy, Told | Exception]]
    ) -> list[tuple[int, GateReply | Exception]]:
        """Keep the answers of direct questions, in one transaction, and note why others were refused."""
        budget = opened.project.ledger.budget
        told: list[tuple[int, GateReply | Exception]] = []
        answers: list[tuple[int, AskedBy, KeptReply]] = []
        for place, asked, outcome in outcomes:
            if (
                not isinstance(outcome, Exception)
                and (passing := passing_problem(asked, outcome)) is not None
            ):
                told.append((place, passing))
            elif isinstance(outcome, Exception):
                told.append((place, outcome))
                self._note_refusal(asked, outcome)
            else:
                answers.append((place, asked, reply_of(asked, outcome, asked.ledger_request, budget)))
        kept = self._asked.keep_all([reply for _, _, reply in answers]) if answers else []
        for (place, asked, reply), found in zip(answers, kept, strict=True):
            told.append((place, found if isinstance(found, Exception) else sent_reply(found, asked, reply)))
        return told

    def _prepared(self, opened: OpenTable, asked: AskedBy) -> PreparedQuestion[Told]:
        inquiry = asked.inquiry
        ((name, amount),) = inquiry.price.items()
        return opened.prepared(inquiry.question, name, amount, inquiry.noise)

    # ---- what is known of a request

    def _found(self, asked: AskedBy) -> AskedQuestion | None:
        """What the store knows of a request id; a `Problem` 409 where it is another question's."""
        inquiry = asked.inquiry
        if not inquiry.request:
            return None
        found = self._asked.find(inquiry.table, asked.caller.analyst, asked.request)
        if found is not None and (found.question, found.terms) != (inquiry.question, inquiry.terms):
            raise taken(asked.request)
        return found

    def sent_before(self, asked: AskedBy) -> GateReply | None:
        """The reply that this request got before, or that it waits for an approval; None where it got none."""
        found = self._found(asked)
        if found is None:
            return None
        if found.state == ANSWERED and found.answer_text:
            return answered(found.id, asked, found.answer_text, found.answer)
        kept = self._approvals.find(asked.inquiry.table, asked.caller.analyst, asked.request)
        return None if kept is None else reply_of_approval(found, kept)

    def _direct_waiting(
        self, opened: OpenTable, asked: AskedBy, prepared: PreparedQuestion[Told]
    ) -> GateReply | None:
        """As `_waiting`, for a question that is measured by itself, by what it would be charged now.

        Jointly with what was charged before that may be up to twice the quote; for a request that was charged
        before, by a server that did not live to answer, it is nothing. Most questions are far below the
        threshold, and the ledger is not asked for them.
        """
        cost = prepared.quote.cost
        most = type(cost)(2 * cost.units)
        if opened.project.ledger.budget.share(most) <= self.threshold(asked.caller):
            return None
        due = prepared.due(request=asked.ledger_request, analyst=asked.caller.analyst)
        return self._waiting(opened, asked, due.cost)

    def _waiting(self, opened: OpenTable, asked: AskedBy, price: Cost) -> GateReply | None:
        """Keep a question for approval where its price is above the threshold; None where it is not.

        What the caller cannot pay needs no approval: the ledger refuses it, or the session answers uncertified.
        A question that waits already, because the same analyst asked the same before, is not put before the
        custodian again where it came without a request id or from an agent: these ask again of their own accord.
        """
        caller, inquiry, ledger = asked.caller, asked.inquiry, opened.project.ledger
        share = ledger.budget.share(price)
        if share <= self.threshold(caller) or price.units > ledger.available(caller.analyst).units:
            return None
        is_repeated = caller.agent or not inquiry.request
        if is_repeated and (before := self._waits_already(asked)) is not None:
            return before
        _check_most(inquiry, price)
        found = self._noted_question(asked, asked.ledger_request)
        self._asked.wait(found.id)  # before anybody can decide, which ends it
        self._approvals.ask(
            caller, inquiry.table, inquiry.question, asked.request, inquiry.terms, price, share, inquiry.why,
            inquiry.most,
        )  # fmt: skip
        kept = self._approvals.find(inquiry.table, caller.analyst, asked.request)
        return None if kept is None else reply_of_approval(found, kept)

    def _waits_already(self, asked: AskedBy) -> GateReply | None:
        analyst, inquiry = asked.caller.analyst, asked.inquiry
        kept = self._approvals.same(inquiry.table, analyst, inquiry.question, inquiry.terms)
        found = None if kept is None else self._asked.find(inquiry.table, analyst, kept.request)
        return None if kept is None or found is None else reply_of_approval(found, kept)

    def _noted_question(self, asked: AskedBy, name: str) -> AskedQuestion:
        inquiry = asked.inquiry
        return self._asked.begin(
            inquiry.table,
            asked.caller.analyst,
            inquiry.question,
            asked.request,
            inquiry.terms,
            ledger_request=name,
        )

    def _noted(
        self, asked: AskedBy, ask: Callable[[], Given], charged: Callable[[], Cost] | None = None
    ) -> Given:
        """Ask; where that is refused, the history tells why, and what was `charged` under its request before."""
        try:
            return ask()
        except UnderstudyError as error:
            self._note_refusal(asked, error, None if charged is None else charged())
            raise

    def _note_refusal(self, asked: AskedBy, error: Exception, charged: Cost | None = None) -> None:
        """Keep why a question was refused, for the history; not of one that may be debited and is asked again."""
        if not isinstance(error, UnderstudyError) or isinstance(
            error, (LedgerError, SourceError, StoreError)
        ):
            return
        found, problem = self._noted_question(asked, ""), problem_of(error).as_plain()
        if charged is None or not charged.units:
            self._asked.refused(found.id, problem)
            return
        with asked.table.use() as opened:
            share = opened.project.ledger.budget.share(charged)
        self._asked.refused(found.id, problem, price=charged, share=share)

    def _keep(self, opened: OpenTable, asked: AskedBy, answer: Told, name: str) -> GateReply:
        """Keep an answer under its request and, where it may be repeated to everybody, in the cache.

        An answer that has a problem in the place of rows is told to its own request alone: whoever asks next has
        the outer statement run again, on rows that are known by then.
        """
        budget = opened.project.ledger.budget
        if (passing := passing_problem(asked, answer)) is not None:
            raise passing
        failed = isinstance(answer, AroundAnswer) and bool(answer.problem)
        in_general = not asked.inquiry.is_direct and asked.inquiry.within is None
        if in_general and answer.source != "uncertified" and not failed:
            again = as_repeat(answer)
            plain = answer_as_plain(again, budget)
            known = KnownAnswer(plain, encoded(plain).decode(), again.cost)
            self._cache.keep(self._key(asked, opened.generation), known)
        reply = reply_of(asked, answer, name, budget)
        return sent_reply(self._asked.keep(reply), asked, reply)

    def _key(self, asked: AskedBy, generation: int) -> Key:
        return asked.inquiry.table, generation, self.whose(asked.caller), asked.inquiry.question


def plainly(work: Callable[[], Given]) -> Callable[[], Given]:
    """The work with every error of the library as a `Problem`; others pass, to be logged."""

    def done() -> Given:
        try:
            return work()
        except UnderstudyError as error:
            raise as_problem(error) from error

    return done


def as_problem(error: Exception) -> Exception:
    """An error of the library as a `Problem` that it caused; another error as it is."""
    if not isinstance(error, UnderstudyError):
        return error
    problem = problem_of(error)
    problem.__cause__ = error
    return problem


def taken(request: str) -> Problem:
    """The refusal of a request id that belongs to another question."""
    return problem_of(
        RequestConflictError(
            f"the request id {request!r} was used for another question; take a new one", request=request
        )
    )


def _check_pays(caller: Caller) -> None:
    if caller.read_only:
        raise Problem(
            403,
            "read-only",
            "This question is not free, and a read-only token never pays.",
            hint="Ask what is known already, or ask with a token that may pay.",
        )


def _check_agreed(asked: AskedBy, prepared: PreparedQuestion[Told]) -> None:
    """Refuse a question that is measured by itself where it costs more now than its caller has agreed to."""
    if asked.inquiry.most is None:
        return
    _check_most(asked.inquiry, prepared.due(request=asked.ledger_request, analyst=asked.caller.analyst).cost)


def _check_most(inquiry: Inquiry, price: Cost) -> None:
    """Refuse a price that is above what the caller has agreed to."""
    most = agreed(inquiry, price)
    if most is not None and price.units > most.units:
        raise PriceRoseError(requested=price.amount, agreed=most.amount, currency=price.currency)


def _check_price(price: Cost, approved: Approval) -> None:
    """Refuse to ask what has become clearly dearer than what the custodian approved."""
    if price.amount > PRICE_RISE * approved.price:
        now, then = f"{price.amount:.4g}", f"{approved.currency} {approved.price:.4g}"
        raise Problem(
            422,
            "price-rose",
            f"The question was approved at {then} and costs {now} now.",
            hint="Ask it again under a new request id.",
        )
