"""What a caller hands to a client, checked before it is sent: with the errors of a table of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from understudy.errors import ParameterError, QueryError
from understudy.rational import exact


def sent_number(value: Any, name: str) -> float:
    """A price, an error or a limit, by its `name`, as a request holds it; the server decides what it may be.

    Raises a `ParameterError` where it is no number, or not finite.
    """
    try:
        return float(exact(value, name))
    except OverflowError:
        raise ParameterError(f"{name} must be a smaller number") from None


def sent_question(question: Any) -> str:
    """A question as it is sent; a `QueryError` where it is no text."""
    if not isinstance(question, str):
        raise QueryError(
            "a question to a server is text", remedy="write it as `count age < 30 by sex`, or as SQL"
        )
    return question


def sent_questions(questions: Sequence[Any]) -> list[str]:
    """Several questions as they are sent; a `QueryError` where they are no list of texts."""
    if isinstance(questions, str | bytes) or not hasattr(questions, "__iter__"):
        raise QueryError(
            "several questions to a server are a list of texts", remedy="write ['count', 'count by sex']"
        )
    return [sent_question(question) for question in questions]


def sent_request(request: Any) -> str | None:
    """The name of a request as it is sent, or None; a `ParameterError` where it is no text."""
    if request is not None and not isinstance(request, str):
        raise ParameterError(f"a request's name is text, not {request!r}")
    return request
