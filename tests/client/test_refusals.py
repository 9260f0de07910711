"""A server's problem becomes the very error that the library raises on one's own machine."""

from __future__ import annotations

import json
import pickle

import pytest

from understudy import errors
from understudy.client.refusals import refusal, undecided, waiting
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
from understudy.server.problems import Problem, problem_of

RAISED = [
    ParameterError("epsilon is positive", remedy="give a larger one"),
    DomainError("there is no attribute 'agee'", remedy="the domain has: age", suggestions=("age",)),
    QueryError("20 is no edge of age", remedy="try age < 18", suggestions=("age < 18", "age < 65")),
    TooLargeError("the table over 9 attributes", cells=10**30, limit=1000),
    TooLongError("a question may have 10,000 characters", remedy="ask in several questions", limit=10_000),
    StatementError("there is no column 'agee'", reason="undefined-column", remedy="did you mean 'age'?"),
    SourceError("/secret/place is gone"),
    SourceChangedError("/secret/place changed"),
    LedgerError("/secret/ledger is locked"),
    StoreError("/secret/server.db is locked"),
    RefusedError("this project does not grant that", remedy="ask something else"),
    InsufficientBudgetError(requested=0.31, remaining=0.0147, currency="rho", limit="ada", remedy="Ask less"),
    InsufficientBudgetError(requested=0.31, remaining=0.0147, currency="epsilon"),
    PriceRoseError(requested=0.31, agreed=0.0147, currency="rho"),
    RefusedAfterChargeError(
        "the rows were counted", remedy="Ask again", charged=0.1, share=0.2, remaining=0.4, currency="rho"
    ),
    RequestConflictError("the request id 'a' was used", request="a", question="secret", analyst="eve"),
    OvertakenError("another process was first"),
    HandleClosedError("the handle has said its last word"),
    UnreadableError(("age", "sex"), when="2026-01-01"),
    ClosedError("the project was closed"),
    ProtectionError("exact comparisons are closed"),
]


def sent(problem: Problem):
    return json.loads(problem.encoded())


@pytest.mark.parametrize("raised", RAISED, ids=lambda error: type(error).__name__)
def test_the_same_error_comes_out(raised: UnderstudyError):
    found = refusal(sent(problem_of(raised)))
    assert type(found) is type(raised)
    assert (found.code, found.problem, found.suggestions) == (raised.code, raised.problem, raised.suggestions)
    assert found.remedy.rstrip(".") == raised.remedy.rstrip(".")
    assert "secret" not in str(found)
    fields = {name: value for name, value in vars(raised).items() if name not in ("detail", "remedy")}
    if isinstance(raised, RequestConflictError):
        fields |= {"question": "", "analyst": ""}
    assert {name: getattr(found, name) for name in fields} == fields
    assert str(pickle.loads(pickle.dumps(found))) == str(found) if type(found) is QueryError else True


def test_every_error_of_the_library_is_known():
    """What a door tells comes back as itself, except what no door tells."""
    told = {type(error) for error in RAISED}
    untold = {errors.UnderstudyError, errors.DeclarationError, ServerError, AccessError, ApprovalNeededError}
    listed = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__name__[0] != "_"]
    assert {kind for kind in listed if issubclass(kind, UnderstudyError)} == told | untold


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "token", AccessError),
        (403, "role", AccessError),
        (403, "read-only", AccessError),
        (403, "denied", RefusedError),
        (404, "no-question", RefusedError),
        (409, "shared", RefusedError),
        (413, "too-large", TooLongError),
        (413, "too-long", TooLongError),
        (422, "body", QueryError),
        (422, "parameter", ParameterError),
        (429, "rate", RefusedError),
        (503, "paused", RefusedError),
        (500, "failed", ServerError),
        (418, "of-another-version", RefusedError),
    ],
)
def test_other_problems_have_the_nearest_class_and_the_servers_words(status, code, kind):
    found = refusal(sent(Problem(status, code, "It is so.", hint="Do this.", suggestions=["x"])), request="r")
    assert type(found) is kind
    if code != "token":
        assert str(found) == "It is so. Do this"
    if isinstance(found, ServerError):
        assert found.request == "r"


@pytest.mark.parametrize(
    "document", [{}, {"code": None}, {"code": "budget"}, {"code": "question", "suggestions": 3}]
)
def test_a_problem_that_is_half_told_is_an_error_all_the_same(document):
    assert isinstance(refusal(document), RefusedError | QueryError)


def test_a_question_that_waits_carries_what_fetches_it():
    told = {
        "share": 0.021,
        "currency": "rho",
        "price": 0.0003,
        "expires": "2026-01-08T00:00:00Z",
        "state": "waiting",
    }
    found = waiting({"id": "abc", "request": "r1", "approval": told})
    assert (found.id, found.request, found.price, found.share, found.expires) == (
        "abc", "r1", 0.0003, 0.021, "2026-01-08T00:00:00Z"
    )  # fmt: skip
    assert "2.1% of the whole budget" in str(found)
    assert "answer('abc')" in str(found)
    assert undecided(told) is None
    assert "too fine" in str(undecided({"state": "denied", "reason": "too fine."}))
    assert "in time" in str(undecided({"state": "expired"}))
