"""Questions within a session, for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.answer.answer import Answer
    from understudy.project import Project
    from understudy.sessions.session import Session
    from understudy.sql_answer import SqlAnswer

QUERIES = 10_000
"""Questions that are expected in a session when nothing is said."""


def open_named(
    project: Project,
    name: str,
    *,
    alpha: float | None,
    beta: float,
    queries: int | None,
    analyst: str,
    price: dict[str, Any],
    request: str,
) -> Session:
    """The session of a name; it sets its own prices, so that none may be given.

    A new one is written down with its first purchase: a question that is refused, or only priced, takes no name.
    """
    from understudy.sessions.session import session

    if alpha is None:
        raise ParameterError("a session needs --alpha, the error of every answer as a part of all rows")
    given = [f"--{key}" for key in ("epsilon", "rho", "error") if price.get(key) is not None]
    given += ["--request"] if request else []
    if given:
        raise ParameterError(f"a session finds its own prices and requests: leave out {' and '.join(given)}")
    terms = {"alpha": alpha, "beta": beta, "queries": QUERIES if queries is None else queries}
    return session(project, **terms, name=name, analyst=analyst, lazily=True)


def answers(opened: Session, questions: list[str]) -> Iterator[Answer | SqlAnswer]:
    """The answers, one after the other; every mistake is found before the first."""
    for question in questions:
        opened.price(question)
    return (opened.ask(question) for question in questions)


def remarks(opened: Session, answer: Answer | SqlAnswer) -> Iterator[str]:
    """What is told of an answer beside its values, for people."""
    alone = ": the budget cannot pay for this; a stand-in answers, and nobody vouches for it"
    yield f"source: {answer.source}{alone if answer.source == 'uncertified' else ''}"
    reach, beta = getattr(answer, "population_error", None), getattr(answer, "population_beta", None)
    if reach is not None and beta is not None:
        widest = float(reach.max())
        shown = f"{widest:.4g} of the rows" if widest < 1 else f"{widest:,.0f} people"
        yield f"within {shown} of what the population behind the table has, with probability {1 - beta:g}"
    if opened.contradicted:
        yield "what was released contradicts itself: a band failed, and answers may be off by more than they say"


def without_infinity(value: Any) -> Any:
    """Plain values for machines: what has no bound is null."""
    if isinstance(value, dict):
        return {key: without_infinity(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_infinity(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
