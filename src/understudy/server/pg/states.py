"""SQLSTATE codes: how the gate's refusals, and those of this door, are told in Postgres' terms.

The words are the gate's own: what is wrong is the MESSAGE, what to do the HINT, and what could have been written,
or numbers about money, the DETAIL.
"""

from __future__ import annotations

from understudy.server.pg import wire
from understudy.server.problems import Problem


class Refusal(Exception):
    """An error at this door. `state` is its SQLSTATE; `fatal` ends the connection."""

    def __init__(
        self,
        state: str,
        words: str,
        *,
        hint: str = "",
        detail: str = "",
        position: int = 0,
        fatal: bool = False,
    ) -> None:
        super().__init__(words)
        self.state = state
        self.words = words
        self.hint = hint
        self.detail = detail
        self.position = position
        self.fatal = fatal

    def encoded(self) -> bytes:
        severity = "FATAL" if self.fatal else "ERROR"
        return wire.error(
            self.state,
            self.words,
            hint=self.hint,
            detail=self.detail,
            severity=severity,
            position=self.position,
        )


_BY_CODE = {
    "budget": "53400",
    "rate": "53000",
    "queue": "53000",
    "too-large": "54000",
    "too-long": "54000",
    "no-table": "42P01",
    "request-conflict": "23505",
    "request-id": "22023",
    "parameter": "22023",
    "paused": "55000",
    "denied": "55000",
    "expired": "55000",
    "stopping": "57P01",
    "failed": "XX000",
    "unreadable": "55000",
    "syntax": "42601",
    "no-attribute": "42703",
    "no-function": "42883",
    "time": "57014",
    "memory": "53200",
}
"""By the code of a problem, which is the same at every door."""

_BY_REASON = {
    "syntax": "42601",
    "not-select": "25006",
    "undefined-table": "42P01",
    "undefined-column": "42703",
    "undefined-function": "42883",
    "undefined-type": "42704",
    "ambiguous": "42702",
    "grouping": "42803",
    "types": "42804",
    "value": "22000",
    "time": "57014",
    "size": "54000",
    "busy": "53000",
    "unavailable": "58000",
}
"""By the reason why a statement on public rows was not run to its end."""

_BY_STATUS = {
    401: "28P01",
    402: "53400",
    403: "42501",
    404: "42P01",
    409: "23505",
    413: "54000",
    429: "53000",
}

REFUSED = "0A000"
"""A question that this server does not answer, and all that has no better code."""

_MONEY = ("requested", "remaining", "currency", "limit", "cells", "request")


def state_of(problem: Problem) -> str:
    """The SQLSTATE of a problem of the gate."""
    if problem.code == "statement":
        return _BY_REASON.get(problem.more.get("reason", ""), REFUSED)
    if problem.code == "question":
        return _of_question(problem.detail)
    found = _BY_CODE.get(problem.code) or _BY_STATUS.get(problem.status)
    return found or ("58000" if problem.status >= 500 else REFUSED)


def _of_question(detail: str) -> str:
    """Names that do not exist have codes of their own, by which programs tell a misspelling from a refusal."""
    if detail.startswith("there is no attribute"):
        return "42703"
    if detail.startswith(("there is no function", "no function")):
        return "42883"
    if detail.startswith(("there is no table", "there is one table")):
        return "42P01"
    if detail.startswith(("cannot read the words", "cannot read the statement", "cannot parse")):
        return "42601"
    return REFUSED


def refusal_of(problem: Problem) -> Refusal:
    """The error that tells a client of a problem of the gate."""
    parts = [f"{name} {problem.more[name]}" for name in _MONEY if problem.more.get(name) not in (None, "")]
    if problem.suggestions:
        parts.append("could be written: " + ", ".join(problem.suggestions[:20]))
    return Refusal(state_of(problem), problem.detail, hint=problem.hint, detail="; ".join(parts))


def read_only(what: str) -> Refusal:
    """The refusal of a statement that would write."""
    return Refusal(
        "25006",
        f"cannot execute {what}: this server answers questions and stores nothing",
        hint="Write SELECT with aggregates, or EXPLAIN SELECT for its price.",
    )


def ended(words: str, request: str) -> Refusal:
    """The end of a statement that was cancelled, or took too long; `request` is empty where it asked nothing."""
    if not request:
        return Refusal("57014", words, hint="The statement had asked nothing of a private table.")
    return Refusal(
        "57014",
        words,
        detail=f"request {request}",
        hint=f"What was debited for it is finished and kept: SET understudy.request = '{request}' and give the "
        "same statement again, which pays nothing more.",
    )


def stopping() -> Refusal:
    """What a client is told where the server is told to stop."""
    return Refusal(
        "57P01",
        "terminating connection due to administrator command",
        hint="Connect again when the server is back: a question is paid once in a session, or under a request id.",
        fatal=True,
    )
