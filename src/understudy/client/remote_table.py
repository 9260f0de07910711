"""A table on a server, of which one holds nothing but the address: questions, prices and the budget."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, TypedDict, Unpack

from understudy.answer.answer import Answer
from understudy.answer.reader import is_sql
from understudy.answer.sql_answer import SqlAnswer
from understudy.client.decode import AnotherDomain, answer_from_plain, is_of_sql, sql_answer_from_plain
from understudy.client.given import sent_number, sent_question, sent_questions, sent_request
from understudy.client.many import Progress, answered, batches
from understudy.client.refusals import refusal, undecided, waiting
from understudy.client.remote_session import RemoteSession
from understudy.client.told import ServerBudget, ServerQuote
from understudy.client.transport import Transport, not_understood
from understudy.domain.domain import Domain, attribute_table
from understudy.domain.plain import domain_from_plain
from understudy.errors import (
    DomainError,
    ParameterError,
    QueryError,
    RefusedError,
    ServerError,
    UnderstudyError,
)
from understudy.ledger.interface import fresh_request
from understudy.pages import notebook
from understudy.privacy.noise_name import Noise

FIRST_LOOK, LONGEST_LOOK = 0.5, 10.0
"""Seconds between two looks at whether a question was approved: at first, and at most."""

Told = Answer | SqlAnswer


def _price(
    epsilon: float | None,
    rho: float | None,
    error: float | None,
    noise: Noise,
    in_session: bool,  # noqa: FBT001
) -> dict[str, float | str]:
    """The price of a question and its noise, as far as they are given, as the server takes them."""
    given = {"epsilon": epsilon, "rho": rho, "error": error}
    price: dict[str, float | str] = {
        name: sent_number(value, name) for name, value in given.items() if value is not None
    }
    price |= {"in_session": True} if in_session else {}
    return price if noise == "auto" else {**price, "noise": noise}


class AskTerms(TypedDict, total=False):
    """How a question is asked: the keywords `terms`, which `RemoteTable.ask` explains.

    epsilon, rho, error  at most one: the price of the question, or the half-width that its answer must keep
    noise        which noise it gets then: `auto`, `laplace`, `gaussian` or `bounded`
    uncertified  whether an answer that nobody vouches for is welcome where the budget cannot pay
    why          what a custodian reads where the question needs an approval
    request      the caller's name for the question, under which it is paid once; None for a fresh one
    wait         how many seconds to wait for an approval; True for as long as it takes
    """

    epsilon: float | None
    rho: float | None
    error: float | None
    in_session: bool
    most: float | None
    noise: Noise
    uncertified: bool
    why: str
    request: str | None
    wait: bool | float


class RemoteTable:
    """A table that a server holds, by its `name`. Questions go to the server; no row ever comes back.

    `Connection.table` gives one; `transport` sends its requests. Every call that asks the server raises an
    `AccessError` where the token may not do this, and a `ServerError` where the server cannot be reached or its
    reply cannot be read.

    Without a price a question is asked in the server's session of the table: free where it follows from what
    anybody bought, within the promise of the session, and no dearer than `quote` says. With `epsilon`, `rho` or
    `error` it is measured by itself.
    """

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name
        self._known: Mapping[str, Any] | None = None
        self._domain: Domain | None = None

    def __repr__(self) -> str:
        return f"RemoteTable({self.name!r} at {self._transport.address.text})"

    def ask(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        error: float | None = None,
        in_session: bool = False,
        most: float | None = None,
        noise: Noise = "auto",
        uncertified: bool = True,
        why: str = "",
        request: str | None = None,
        wait: bool | float = False,
    ) -> Told:
        """Answer a `question` such as ``count age < 30 by district``, or a SELECT statement.

        Returns a `SqlAnswer` for a SELECT statement, else an `Answer`. Its `cost` is what the server's ledger
        charged.

        At most one of `epsilon`, `rho` and `error` (in people, or in the unit of the numbers where they are no
        counts) gives the question a price of its own; `noise` is then the noise that it gets, the best one unless
        it is named (`bounded`: a certain error). With `in_session` the `error` is kept in the session, by what is
        known there, at the price and with the promise of a session's own `ask(…, error=…)`. `most`, in the table's
        currency, is what may be charged at most: where the question costs more now, a `PriceRoseError` says so.
        Where the budget cannot pay, the session answers with what nobody vouches for, unless `uncertified` is
        False. `why` is what a custodian reads where the question needs an approval; `wait` says how many seconds
        to wait for that, or, as True, to wait until somebody has decided. The question has a fresh request id
        unless `request` names one; under the same id it gets the same answer, and is paid once.

        Raises what the library raises for a table of one's own: a `QueryError`, an `InsufficientBudgetError` and
        other `RefusedError`s. Raises an `ApprovalNeededError` with an `id` for `answer` where the question
        waits, an `AccessError` where the token may not ask, and a `ServerError` where the server cannot be
        reached, whose `request` asks again without paying twice.
        """
        name = sent_request(request) or fresh_request()
        body: dict[str, Any] = {"question": sent_question(question), "request": name}
        body |= _price(epsilon, rho, error, noise, in_session)
        body |= {} if most is None else {"most": sent_number(most, "most")}
        body |= {} if uncertified else {"uncertified": False}
        body |= {"why": why} if why else {}
        status, document = self._transport.post("tables", self.name, "ask", body=body, request=name)
        if status == 202:
            return self.awaited(document, wait=wait)
        return self.decoded(document)

    def sql(self, text: str, **terms: Unpack[AskTerms]) -> SqlAnswer:
        """Answer a SELECT statement, `text`; any other text is refused with a `QueryError`, and not sent.

        `terms` are the keywords of `ask`, and everything else is as there. Returns a `SqlAnswer`.
        """
        if not isinstance(text, str) or not is_sql(text):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise QueryError("this is no SELECT statement", remedy="`ask` takes other questions")
        answer = self.ask(text, **terms)
        assert isinstance(answer, SqlAnswer)
        return answer

    def quote(
        self,
        question: str,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        error: float | None = None,
        in_session: bool = False,
        noise: Noise = "auto",
    ) -> ServerQuote:
        """The most that a `question` would cost at this moment, its error, and whether it needs an approval.

        `epsilon`, `rho`, `error`, `in_session` and `noise` are those of `ask`. Costs nothing, and the server looks
        at nothing. Returns a `ServerQuote`. Raises what `ask` would, except that what cannot be paid is told by
        `is_payable`.
        """
        body = {"question": sent_question(question), **_price(epsilon, rho, error, noise, in_session)}
        return ServerQuote.from_plain(self._transport.post("tables", self.name, "price", body=body)[1])

    def quote_all(
        self,
        questions: Sequence[str],
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        error: float | None = None,
        in_session: bool = False,
        noise: Noise = "auto",
    ) -> list[ServerQuote]:
        """The price of each of `questions` as the next one, in their order, in as few requests as needed.

        Costs nothing. `together` is the most that a question and those before it in its request (of up to 50)
        cost.

        `epsilon`, `rho`, `error`, `in_session` and `noise` are those of `ask`, for all of them. Returns a
        `ServerQuote` for each. Raises the refusal of the first question that would be refused, such as a
        `QueryError`, which is also raised where `questions` are no list of texts.
        """
        terms = _price(epsilon, rho, error, noise, in_session)
        quotes: list[ServerQuote] = []
        for part in batches(sent_questions(questions)):
            body = {"questions": list(part), **terms}
            found = self._transport.post("tables", self.name, "price", body=body)[1]["prices"]
            for plain in found:
                if "problem" in plain:
                    raise refusal(plain["problem"])
                quotes.append(ServerQuote.from_plain(plain))
        return quotes

    def ask_all(
        self,
        questions: Sequence[str],
        *,
        at_once: int = 4,
        progress: bool | Progress = False,
        **terms: Unpack[AskTerms],
    ) -> list[Told]:
        """Answer many `questions`, `at_once` of them at a time; the answers come in the order of the questions.

        `terms` are the keywords of `ask`, for all of them. All are priced first, so that a mistake in the last of
        them costs nothing. `progress` is True for a line on the error stream, or a function of how many of how
        many are answered. Where a question fails, its error is raised when those under way are finished; what was
        answered is free when it is asked again in the session, and paid once under `request`, which here names the
        whole list. Raises as `ask` does, and a `ParameterError` where `at_once` is less than 1.
        """
        listed = sent_questions(questions)
        price = {name: terms.get(name) for name in ("epsilon", "rho", "error")}
        in_session = terms.get("in_session", False)
        self.quote_all(listed, **price, noise=terms.get("noise", "auto"), in_session=in_session)
        name = sent_request(terms.pop("request", None))

        def ask(place: int) -> Told:
            own: AskTerms = {**terms, "request": f"{name}.{place}" if name else None}
            return self.ask(listed[place], **own)

        return answered(listed, ask, at_once=at_once, progress=progress)

    def session(self, *, own: bool = False) -> RemoteSession:
        """The session in which questions without a price are asked: its promise, and how far it has come.

        With `own`, a session of one's own is opened. Returns a `RemoteSession`. Raises a `RefusedError` where the
        server has but the one that all share and `own` is asked for, and where no session is open yet: an
        analyst's first question opens one. Costs nothing.
        """
        if own:
            found = self._transport.post("tables", self.name, "sessions", body=None)[1]
        else:
            found = self._transport.get("tables", self.name, "sessions")
        if not found["sessions"]:
            raise RefusedError("no session of this table is open", remedy="An analyst's question opens one")
        return RemoteSession.from_plain(self, found["sessions"][0])

    def budget(self) -> ServerBudget:
        """What is left of the table's budget, of all and for you, and about how many more counts it pays for.

        Returns a `ServerBudget`. Asks about no data, and costs nothing.
        """
        return ServerBudget.from_plain(self._transport.get("tables", self.name, "budget"))

    @property
    def domain(self) -> Domain:
        """The declared attributes and their cells, which are public. They are asked of the server once."""
        if self._domain is None:
            try:
                self._domain = domain_from_plain(self.about["attributes"])
            except (LookupError, TypeError, ValueError, DomainError):
                raise not_understood() from None
        return self._domain

    @property
    def about(self) -> Mapping[str, Any]:
        """What is declared about the table, as plain values, with a few questions to begin with (`examples`).

        It is public, and asked of the server once.
        """
        known = self._known
        if known is None:
            known = self._known = self._transport.get("tables", self.name)
        return known

    def _repr_html_(self) -> str:
        about = self.about
        rows = about.get("rows")
        known = {
            "server": self._transport.address.text,
            "protects": f"{about['protect']}, neighbours {about['neighbours']}",
            "rows": "private" if rows is None else f"{rows:,}",
        }
        note = f"Ask for instance: {'; '.join(about.get('examples', ())[:2])}"
        return notebook.panel(
            f"Table {self.name}", notebook.facts(known), attribute_table(self.domain), note=note
        )

    # ---- replies

    def decoded(self, document: Mapping[str, Any]) -> Told:
        """The answer in a reply, `document`. Where the table was declared anew since, its domain is read again.

        Raises a `ServerError` where the reply cannot be read as an answer.
        """
        plain, question = document["answer"], document["question"]
        request = document.get("request", "")
        if is_of_sql(plain):
            read = partial(sql_answer_from_plain, plain, question)
        else:
            read = partial(self._cells_answer, plain, question)
        try:
            return read()
        except ServerError as error:  # the domain could not be fetched; the answer is there, and paid for
            error.request = error.request or request
            raise
        except RefusedError:
            raise
        except (LookupError, TypeError, ValueError, UnderstudyError) as error:
            raise not_understood(request) from error

    def _cells_answer(self, plain: Mapping[str, Any], question: str) -> Answer:
        try:
            return answer_from_plain(plain, question, self.domain)
        except (AnotherDomain, QueryError, DomainError):
            self._known = self._domain = None
            return answer_from_plain(plain, question, self.domain)

    def awaited(self, document: Mapping[str, Any], *, wait: bool | float) -> Told:
        """The answer of a question that waited for approval, or that was found under its id.

        `document` is what the server said of the question. `wait` is for how many seconds it is looked up again;
        True is for as long as it takes. Raises a `ParameterError` for a negative number of seconds, an
        `ApprovalNeededError` where nobody has decided by then, and a `RefusedError` where it was denied.
        """
        seconds = inf if wait is True else float(wait)
        if not seconds >= 0:
            raise ParameterError("`wait` is a number of seconds of at least 0, or True")
        began, pause = time.monotonic(), FIRST_LOOK
        while True:
            told = self._outcome(document)
            if told is not None:
                return told
            left = began + seconds - time.monotonic()
            if left <= 0:
                raise waiting(document)
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, LONGEST_LOOK)
            document = self._transport.get("asks", document["id"])

    def _outcome(self, document: Mapping[str, Any]) -> Told | None:
        """The answer of a question; None where it waits for an approval, or was approved and has its turn yet."""
        state, approval = document["state"], document.get("approval")
        if state == "answered":
            return self.decoded(document)
        refused = undecided(approval) if approval else None
        if refused is not None:
            raise refused
        if state == "refused":
            raise refusal(document.get("problem") or {})
        if state == "asking":
            raise RefusedError(
                "this question was begun and is not answered yet",
                remedy=f"Ask it again with `request={document['request']!r}`: it is paid once",
            )
        return None
