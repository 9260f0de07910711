"""Refusals as every door tells them: a status, a code, what is wrong, and what to do instead.

A `Problem` is what HTTP sends as `application/problem+json`, and what other doors translate. It is made of public
words alone: the errors of the library name no private value, and where an error is about the ledger or the source
of a table, which only the custodian can mend, its own words (which may hold a path, a statement of the engine or
a driver's message) go to the server's log and a fixed sentence goes to the analyst.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from understudy.errors import (
    ClosedError,
    DeclarationError,
    HandleClosedError,
    InsufficientBudgetError,
    LedgerError,
    OvertakenError,
    PriceRoseError,
    RefusedAfterChargeError,
    RequestConflictError,
    SourceError,
    StatementError,
    StoreError,
    TooLargeError,
    TooLongError,
    UnderstudyError,
    UnreadableError,
)

TITLES = {
    400: "The request cannot be read",
    401: "No valid token",
    402: "The budget cannot pay",
    403: "Not permitted",
    404: "There is no such thing",
    405: "No such method",
    408: "The request came too slowly",
    409: "The request id belongs to something else",
    413: "Too large",
    415: "Not the expected type of content",
    421: "Another host's request",
    422: "The question is refused",
    429: "Too many requests",
    431: "Too many headers",
    500: "The server failed",
    503: "Not available now",
}


class Problem(Exception):
    """A refusal at any door.

    status       the status of HTTP, by which other doors choose theirs
    code         a word for programs, such as `budget`, `rate` or `too-large`
    detail       what is wrong, in a sentence
    hint         what to do, or to write, instead
    suggestions  questions or names that would have worked
    more         further public fields, such as `requested`, `remaining`, `currency` and `limit` of money
    retry_after  seconds after which the same request may be granted; None where waiting does not help
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str = "",
        suggestions: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.suggestions = tuple(suggestions)
        self.more = dict(more or {})
        self.retry_after = retry_after

    def as_plain(self) -> dict[str, Any]:
        """The members of the problem document, in the order in which people read them."""
        told: dict[str, Any] = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Refused"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "hint": self.hint,
            "suggestions": list(self.suggestions),
        }
        return told | self.more

    def encoded(self) -> bytes:
        """The problem document as JSON."""
        return json.dumps(self.as_plain(), ensure_ascii=False, allow_nan=False).encode()


def problem_of(error: BaseException) -> Problem:
    """The problem that tells a door's user about an error, in public words alone.

    What is no error of the library becomes a 500 that says nothing but that the server failed.
    """
    if isinstance(error, Problem):
        return error
    if not isinstance(error, UnderstudyError):
        return Problem(
            500,
            "failed",
            "The server failed at this request; its log says how.",
            hint="Ask again under the same request id: nothing is paid twice. Tell the custodian if it stays so.",
        )
    if isinstance(error, LedgerError | SourceError | StoreError):
        return _told(error, 503, retry_after=5.0)
    if isinstance(error, DeclarationError):
        return away()
    if isinstance(error, InsufficientBudgetError):
        return _told(error, 402, more=_fields(error))
    if isinstance(error, RequestConflictError | HandleClosedError):
        return _told(error, 409, more=_fields(error))
    if isinstance(error, OvertakenError | ClosedError):
        return _told(error, 503, retry_after=1.0)
    if isinstance(error, TooLargeError) and "max_cells" in error.remedy:  # which no request to a server has
        fewer = "Nothing was spent. Ask about fewer attributes or fewer of their values"
        return Problem(422, error.code, error.problem, hint=fewer, more=_fields(error))
    return _told(error, 413 if isinstance(error, TooLongError) else 422, more=_fields(error))


def away() -> Problem:
    """What is said of a table that cannot be opened at the moment."""
    return Problem(
        503,
        SourceError.code,
        "the table cannot be read at the moment",
        hint="Try again later under the same request id; if it stays so, tell the custodian",
        retry_after=2.0,
    )


_FIELDS: dict[type[UnderstudyError], tuple[str, ...]] = {
    InsufficientBudgetError: ("requested", "remaining", "currency", "limit"),
    PriceRoseError: ("requested", "agreed", "currency"),
    RefusedAfterChargeError: ("charged", "share", "remaining", "currency"),
    RequestConflictError: ("request",),
    StatementError: ("reason",),
    TooLargeError: ("cells", "limit"),
    TooLongError: ("limit",),
    UnreadableError: ("attributes", "when"),
}
"""What errors carry beside their words, all of it public; a client makes the same error of it."""


def _fields(error: UnderstudyError) -> dict[str, Any]:
    return {name: getattr(error, name) for name in _FIELDS.get(type(error), ())}


def _told(
    error: UnderstudyError,
    status: int,
    *,
    more: Mapping[str, Any] | None = None,
    retry_after: float | None = None,
) -> Problem:
    """The library's own words, which are public: what only a custodian may read stands in the error's `detail`."""
    return Problem(
        status,
        error.code,
        error.problem,
        hint=error.remedy,
        suggestions=error.suggestions,
        more=more,
        retry_after=retry_after,
    )
