"""Questions within a session, for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.cli.answer_file import answers_for_machines, write_answer_file
from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import emit
from understudy.cli.prices import confirm, error_line, left_as_plain, left_told, price_told
from understudy.cli.progress import busy
from understudy.cli.terminal import say
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


def show_session_prices(
    entered: Session, questions: list[str], error: float | None, *, as_json: bool
) -> None:
    """What each question could cost at most if it were the next one, and how far off it could be; asks nothing."""
    costs, budget = entered.dry_run(questions, error=error), entered.curator.ledger.budget
    told = [
        (entered.error(question), "people") if error is None else (error, entered.unit(question))
        for question in questions
    ]
    if as_json:
        emit(
            [
                {
                    "question": q,
                    "cost": {c.currency: c.amount},
                    "share": budget.share(c),
                    "error": off,
                    "unit": unit,
                }
                for q, c, (off, unit) in zip(questions, costs, told, strict=True)
            ]
        )
        return
    for question, cost, (off, unit) in zip(questions, costs, told, strict=True):
        say(f"{question}\n{error_line(off, unit)}, for at most {price_told(cost, budget)}")
    if len(questions) > 1:
        say("Each price is that of a question which is asked next: after the others it can cost more.")


def ask_in_session(
    entered: Session,
    questions: list[str],
    error: float | None,
    *,
    yes: bool,
    everything: bool,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Price the questions, ask before much is spent, put them one by one, and show the answers with remarks."""
    ledger, budget = entered.curator.ledger, entered.curator.ledger.budget
    asked = sum(
        cost.units for cost in entered.dry_run(questions, error=error)
    )  # finds every mistake before the first
    confirm(type(budget.cap)(asked), ledger, yes=yes, quiet=as_json)
    given: list[dict[str, Any]] = []
    if_interrupted(
        f"what the session {entered.name!r} bought stays in the ledger: ask again in it, and pay nothing twice"
    )
    for question in questions:
        with busy(f"Looking: {question}", quiet=as_json):
            answer = entered.ask(question, error=error)
        given.append({"question": question, **answer.as_dict(), "share": budget.share(answer.cost)})
        if not as_json:
            from understudy.cli.show_answers import show

            show(question, answer, budget, everything=everything)
            for remark in remarks(entered, answer):
                say(f"  {remark}")
        write_answer_file(out, answer, overwrite=overwrite, quiet=as_json)
    left = entered.remaining
    if as_json:
        told = {**left_as_plain(left, budget), "contradicted": entered.contradicted}
        emit(answers_for_machines(given, out, **told))
        return
    say(left_told(left, budget))


def remarks(opened: Session, answer: Answer | SqlAnswer) -> Iterator[str]:
    """What is told of an answer beside its values, for people."""
    alone = ": the budget cannot pay for this; a stand-in answers, and nobody vouches for it"
    yield f"source: {answer.source}{alone if answer.source == 'uncertified' else ''}"
    if answer.population_beta is not None:
        shown, probability = _reach(answer), 1 - answer.population_beta
        said = f"within {shown} of what the population behind the table has, with probability {probability:g}"
        yield f"{said}, by {answer.population_theorem}"
    if opened.contradicted:
        yield "what was released contradicts itself: a band failed, and answers may be off by more than they say"


def _reach(answer: Answer | SqlAnswer) -> str:
    """How far an answer can be from the population's, at its worst: in words, by column where it has several."""
    if isinstance(answer.population_error, tuple):
        columns = zip(answer.columns, zip(*answer.population_error, strict=True), strict=True)  # type: ignore[union-attr]
        released = [(column.name, reach) for column, reach in columns if column.kind == "value"]
        worst = [(name, None if None in reach else max(reach)) for name, reach in released]
        return ", ".join(
            f"{'an unknown distance' if off is None else f'{off:,.4g}'} ({name})" for name, off in worst
        )
    widest = float(answer.population_error.max())  # type: ignore[union-attr]
    return f"{widest:.4g} of the rows" if widest < 1 else f"{widest:,.0f} people"
