"""The problems that a server tells, as the errors that the library raises where it runs on one's own machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from understudy.errors import (
    AccessError,
    ApprovalNeededError,
    ClosedError,
    DomainError,
    HandleClosedError,
    InsufficientBudgetError,
    LedgerError,
    OvertakenError,
    ParameterError,
    PriceRoseError,
    ProtectionError,
    QueryError,
    RefusedAfterChargeError,
    RefusedError,
    RequestConflictError,
    ServerError,
    SourceChangedError,
    SourceError,
    StatementError,
    StoreError,
    TooLargeError,
    TooLongError,
    UnderstudyError,
    UnreadableError,
)
from understudy.percent import percent_of

CLASSES: dict[str, type[UnderstudyError]] = {
    kind.code: kind
    for kind in (
        ClosedError,
        DomainError,
        HandleClosedError,
        LedgerError,
        OvertakenError,
        ParameterError,
        PriceRoseError,
        ProtectionError,
        QueryError,
        RefusedAfterChargeError,
        RefusedError,
        RequestConflictError,
        SourceChangedError,
        SourceError,
        StatementError,
        StoreError,
        TooLargeError,
        TooLongError,
        UnreadableError,
    )
}
"""The errors that are made by their code; the codes are the same in every version."""

FIELDS: dict[type[UnderstudyError], dict[str, Any]] = {
    PriceRoseError: {"requested": 0.0, "agreed": 0.0, "currency": ""},
    RefusedAfterChargeError: {"charged": 0.0, "share": 0.0, "remaining": 0.0, "currency": ""},
    RequestConflictError: {"request": "", "question": "", "analyst": ""},
    StatementError: {"reason": "failed"},
    TooLargeError: {"cells": 0, "limit": 0},
    TooLongError: {"limit": 0},
    UnreadableError: {"attributes": (), "when": ""},
}
"""What these carry beside their words, and what they carry where a server does not say it."""

BY_STATUS: dict[int, type[UnderstudyError]] = {
    400: ParameterError,
    401: AccessError,
    413: TooLongError,
    422: QueryError,
}
"""The errors of codes that the library has not, such as `token`; of any other status a `RefusedError`."""

ACCESS = ("role", "read-only", "revoked", "cross-site")
"""Codes of 403 that are about the token. Others, such as `denied`, are about the question."""


def refusal(problem: Mapping[str, Any], *, request: str = "") -> UnderstudyError:
    """The error that a problem document tells about. `request` is the id of the question that was sent, if any."""
    code, status = str(problem.get("code", "")), problem.get("status")
    detail = str(problem.get("detail", "")).rstrip(".") or "the server refused"
    hint = str(problem.get("hint", "")).rstrip(".")
    if code == InsufficientBudgetError.code:
        return _budget(problem, hint)
    if code == "token":
        return AccessError(
            "the server does not know this token: it is none, has expired, was revoked, or is for another door",
            remedy="Ask the custodian for a new one",
        )
    if code == "failed" or status == 500:
        return ServerError(detail, remedy=hint or "Tell the custodian", request=request)
    if code == "too-large" and "cells" not in problem:  # of a body, not of a question
        return _made(TooLongError, problem, detail, hint)
    kind = CLASSES.get(code)
    if kind is None and status == 403 and code in ACCESS:
        kind = AccessError
    if kind is None:
        kind = BY_STATUS.get(status if isinstance(status, int) else 0, RefusedError)
    return _made(kind, problem, detail, hint)


def waiting(document: Mapping[str, Any]) -> ApprovalNeededError:
    """The error of a question that a custodian has to approve first, from the document that says so."""
    told: Mapping[str, Any] = document.get("approval") or {}
    id, share = str(document["id"]), float(told.get("share") or 0.0)
    return ApprovalNeededError(
        f"this question would take {percent_of(share)} of the whole budget, and waits for a custodian's approval",
        remedy=f"Fetch its answer later with `answer({id!r})`, or ask with `wait=True` or a number of seconds",
        id=id,
        request=str(document.get("request", "")),
        currency=str(told.get("currency", "")),
        price=float(told.get("price") or 0.0),
        share=share,
        expires=str(told.get("expires") or ""),
    )


def undecided(approval: Mapping[str, Any]) -> RefusedError | None:
    """The refusal of a question that was denied, or that nobody decided about; None where it may yet be asked."""
    if approval.get("state") == "denied":
        return RefusedError(
            f"the custodian denied this question: {approval.get('reason', '')}".rstrip(". "),
            remedy="Ask another question, or talk to the custodian",
        )
    if approval.get("state") == "expired":
        return RefusedError("nobody decided about this question in time", remedy="Ask it again")
    return None


def _budget(problem: Mapping[str, Any], hint: str) -> InsufficientBudgetError:
    return InsufficientBudgetError(
        requested=float(problem.get("requested") or 0.0),
        remaining=float(problem.get("remaining") or 0.0),
        currency=str(problem.get("currency", "")),
        limit=str(problem.get("limit") or ""),
        remedy=hint,
    )


def _made(kind: type[UnderstudyError], problem: Mapping[str, Any], detail: str, hint: str) -> UnderstudyError:
    """An error of a class with the server's words: classes that compose theirs are not asked to do it again."""
    error = kind.__new__(kind)
    suggestions = problem.get("suggestions")
    UnderstudyError.__init__(
        error, detail, remedy=hint, suggestions=map(str, suggestions) if isinstance(suggestions, list) else ()
    )
    for name, absent in FIELDS.get(kind, {}).items():
        value = problem.get(name, absent)
        setattr(error, name, tuple(value) if isinstance(value, list) else value)
    return error
