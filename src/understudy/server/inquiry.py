"""A question as a door hands it to the gate, and what is checked of it before any parser reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

from understudy.privacy.noise_name import LISTED, NOISES
from understudy.server.problems import Problem

MOST_CHARACTERS = 10_000
MOST_WORDS = 2_000
MOST_REASON = 1_000
"""Characters of what an analyst tells the custodian about a question."""

AUTO = "auto"
"""The noise of a question that names none: the best one for its price."""

MOST_QUESTIONS = 50
"""Questions that are priced in one request."""

_REQUEST = re.compile(r"[A-Za-z0-9._:=+@-]{1,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A question to a table, with the terms on which it is asked.

    request      the name under which the question is asked once, however often it is sent; empty for none
    fresh        the request id that a question without one gets, where the door must know it; empty for any
    uncertified  whether an answer that nobody vouches for is welcome when the budget cannot pay
    epsilon      the price of a question that is measured by itself, outside the session; or
    rho          the same in rho; or
    error        the error that it must keep: in people for counts, else in the unit of the released numbers
    in_session   whether `error` is kept in the session, by what is known there, and not by a measurement by itself
    most         the most that the caller has agreed to be charged for it, in the table's currency; None for any
    noise        which noise a question gets that is measured by itself: `auto`, or one by name
    why          what the custodian is told, where the question needs an approval
    """

    table: str
    question: str
    request: str = ""
    fresh: str = ""
    uncertified: bool = True
    epsilon: float | None = None
    rho: float | None = None
    error: float | None = None
    in_session: bool = False
    most: float | None = None
    noise: str = AUTO
    why: str = ""

    @property
    def price(self) -> dict[str, float]:
        """The price or error that was given, by its name; empty for a question on the session's own terms."""
        given = {"epsilon": self.epsilon, "rho": self.rho, "error": self.error}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def is_direct(self) -> bool:
        """Whether the question is measured by itself, at a price of its own."""
        return bool(self.price) and not self.in_session

    @property
    def within(self) -> float | None:
        """The error of its own that a question to the session must keep; None where it has none."""
        return self.error if self.in_session else None

    @property
    def terms(self) -> dict[str, Any]:
        """What makes the same words another request: the price and the noise, or whether any answer is welcome.

        A question with an error of its own in the session is never answered uncertified. What was agreed to
        (`most`) is no part of it: an answer that was given is given again.
        """
        if self.within is not None:
            return {"error": self.within, "in_session": True}
        if not self.is_direct:
            return {"uncertified": self.uncertified}
        return self.price if self.noise == AUTO else {**self.price, "noise": self.noise}

    def is_same(self, other: Inquiry) -> bool:
        """Whether two inquiries of one request id are the same request."""
        return (self.question, self.terms) == (other.question, other.terms)

    def check(self) -> None:
        """Raise the `Problem` of what no parser should see: too long, too many words, unreadable characters."""
        check_question(self.question)
        if self.request and not _REQUEST.fullmatch(self.request):
            raise Problem(
                422,
                "request-id",
                "A request id has 1 to 128 letters, digits and the marks . _ : = + @ -",
                hint="Send a random one, such as a UUID, or none.",
            )
        if len(self.why) > MOST_REASON or not is_text(self.why):
            raise Problem(
                413, "too-long", f"A reason has at most {MOST_REASON:,} characters.", hint="Shorten it."
            )
        if len(self.price) > 1:
            raise Problem(
                422,
                "parameter",
                "A question has one price: epsilon, rho or error.",
                hint="Send one of them, or none to ask in the session.",
            )
        if self.in_session and not (self.epsilon is None and self.rho is None):
            raise Problem(
                422,
                "parameter",
                "In the session a question has no price of its own, only an error.",
                hint="Send error with in_session, or leave in_session out.",
            )
        if self.most is not None and not (isfinite(self.most) and self.most >= 0):
            raise Problem(422, "parameter", "most must be a number of at least 0.", hint="Leave it out.")
        self._check_noise()
        for name, value in self.price.items():
            if not isfinite(value) or value <= 0:
                raise Problem(
                    422, "parameter", f"{name} must be a positive number.", hint="Send a larger one."
                )

    def _check_noise(self) -> None:
        """Refuse a word that names no noise, and noise by name for a question to the session."""
        if self.noise not in NOISES:
            raise Problem(422, "parameter", f"noise is {LISTED}.", hint="Send one of them, or none.")
        if self.noise != AUTO and not self.is_direct:
            raise Problem(
                422,
                "parameter",
                "noise is for a question with a price of its own; the session has noise of its own.",
                hint="Send error or rho with it and no in_session, or leave noise out.",
            )


def check_question(question: str) -> None:
    """Refuse a text that is too long to be parsed, or that is no text."""
    if len(question) > MOST_CHARACTERS:
        raise Problem(
            413,
            "too-long",
            f"The question has {len(question):,} characters; at most {MOST_CHARACTERS:,} are read.",
            hint="Ask several shorter questions.",
        )
    if len(question.split(None, MOST_WORDS)) > MOST_WORDS:
        raise Problem(
            413,
            "too-long",
            f"The question has more than {MOST_WORDS:,} words.",
            hint="Ask several shorter questions.",
        )
    if not is_text(question) or not question.strip():
        raise Problem(
            422,
            "question",
            "The question is empty, or holds characters that no text has.",
            hint="Ask for instance: count",
        )


def is_text(text: str) -> bool:
    """Whether a string can be written down: no lone halves of characters, and no zero character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
