"""Questions within a session, for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.answer import Answer
    from understudy.interactive.session import Session
    from understudy.project import Project
    from understudy.sql_answer import SqlAnswer


def open_named(
    project: Project,
    name: str,
    *,
    alpha: float | None,
    beta: float,
    queries: int,
    analyst: str,
    price: dict[str, Any],
    request: str,
) -> Session:
    """The session of a name; it sets its own prices, so that none may be given."""
    from understudy.interactive.session import session

    if alpha is None:
        raise ParameterError("a session needs --alpha, the error of every answer as a part of all rows")
    given = [f"--{key}" for key in ("epsilon", "rho", "error") if price.get(key) is not None]
    given += ["--request"] if request else []
    if given:
        raise ParameterError(f"a session finds its own prices and requests: leave out {' and '.join(given)}")
    return session(project, alpha=alpha, beta=beta, queries=queries, name=name, analyst=analyst)


def answers(opened: Session, questions: list[str]) -> Iterator[Answer | SqlAnswer]:
    """The answers, one after the other; every mistake is found before the first."""
    for question in questions:
        opened.price(question)
    return (opened.ask(question) for question in questions)


def without_infinity(value: Any) -> Any:
    """Plain values for machines: what has no bound is null."""
    if isinstance(value, dict):
        return {key: without_infinity(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_infinity(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
