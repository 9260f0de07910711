"""Questions within a session, for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.answer.answer import Answer
    from understudy.answer.sql_answer import SqlAnswer
    from understudy.project import Project
    from understudy.sessions.session import Session


def open_named(
    project: Project,
    name: str,
    *,
    alpha: float | None,
    beta: float | None,
    queries: int | None,
    analyst: str,
    price: dict[str, Any],
    request: str,
    max_cells: int,
) -> Session:
    """The session of a name; it sets its own prices, so that none may be given, but for an error.

    A new one is written down with its first purchase: a question that is refused, or only priced, takes no
    name. One that the ledger knows goes on with the terms that it was opened with, where others are not
    given.
    """
    from understudy.sessions.opening import session

    given = [f"--{key}" for key in ("epsilon", "rho") if price.get(key) is not None]
    given += ["--request"] if request else []
    if given:
        raise ParameterError(f"a session finds its own prices and requests: leave out {' and '.join(given)}")
    noise = None if price["noise"] == "auto" else price["noise"]  # one that goes on keeps its own
    terms = {"alpha": alpha, "beta": beta, "queries": queries, "noise": noise}
    return session(project, **terms, name=name, analyst=analyst, lazily=True, max_cells=max_cells)


def remarks(opened: Session, answer: Answer | SqlAnswer) -> Iterator[str]:
    """What is told of an answer beside its values, for people."""
    alone = ": the budget cannot pay for this; a stand-in answers, and nobody vouches for it"
    yield f"source: {answer.source}{alone if answer.source == 'uncertified' else ''}"
    if answer.population_beta is not None and (shown := _reach(answer)):
        probability = 1 - answer.population_beta
        said = f"within {shown} of what the population behind the table has, with probability {probability:g}"
        yield f"{said}, by {answer.population_theorem}"
    if opened.contradicted:
        yield "what was released contradicts itself: a band failed, and answers may be off by more than they say"


def _reach(answer: Answer | SqlAnswer) -> str:
    """How far an answer can be from the population's, at its worst: in words, by column where it has several.

    Numbers that are missing are left out; empty where all are.
    """
    from understudy.answer.sql_answer import SqlAnswer

    if isinstance(answer, SqlAnswer):
        from understudy.pages.notebook import number
        from understudy.sql.estimate import Estimate

        reach = answer.population_error or ()
        worst: list[tuple[str, float | None]] = []
        for place, column in enumerate(answer.columns):
            cells = ((off[place], row[place]) for off, row in zip(reach, answer.cells, strict=True))
            each = [off for off, cell in cells if isinstance(cell, Estimate) and cell.value is not None]
            if each:
                known = [off for off in each if off is not None]
                worst.append((column.name, max(known) if len(known) == len(each) else None))
        return ", ".join(
            f"{'an unknown distance' if off is None else number(off)} ({name})" for name, off in worst
        )
    widest = float(answer.population_error.max())  # type: ignore[union-attr]
    return f"{widest:.4g} of the rows" if widest < 1 else f"{widest:,.0f} people"
