"""`understudy ask`: questions on the command line, one by one or in a session."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.options import Json, ProjectFile, busy, emit, tell_unread

if TYPE_CHECKING:
    from understudy.answer.answer import Answer
    from understudy.answer.sql_answer import SqlAnswer
    from understudy.sessions.session import Session


def ask(
    questions: Annotated[
        list[str],
        typer.Argument(help="Such as: count age<30 and sex=F by district; or: SELECT avg(age) FROM town"),
    ],
    project: ProjectFile = Path("understudy.yml"),
    epsilon: Annotated[float | None, typer.Option(help="Price of each question, Laplace noise.")] = None,
    rho: Annotated[float | None, typer.Option(help="Price of each question, Gaussian noise.")] = None,
    error: Annotated[
        float | None, typer.Option(help="Ask for this error, in people, and pay what it takes.")
    ] = None,
    beta: Annotated[float, typer.Option(help="Chance that an answer's error bar does not hold.")] = 0.05,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show price and error; ask nothing.")] = False,
    analyst: Annotated[str, typer.Option(help="Who asks, where analysts have limits.")] = "",
    request: Annotated[
        str,
        typer.Option(help="A name for this request: asked again under it, it is answered from the ledger."),
    ] = "",
    session: Annotated[
        str | None, typer.Option(help="Ask in the session of this name: one promise for all of its answers.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="A session's error, as a part of all rows, such as 0.02.")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Questions that are expected in the session; 10000 if nothing is said.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer questions privately; without a price each costs a hundredth of the budget."""
    from understudy.errors import ParameterError
    from understudy.project import open_project

    if session is None and (alpha is not None or queries is not None):
        raise ParameterError("--alpha and --queries belong to a session: add --session NAME")
    if session == "":
        raise ParameterError("a session's name must not be empty: write --session NAME")
    opened = open_project(project)
    tell_unread(opened)
    price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "error": error, "beta": beta}
    if session is not None:
        from understudy.cli.session import open_named

        terms = {"alpha": alpha, "beta": beta, "queries": queries, "analyst": analyst}
        entered = open_named(opened, session, **terms, price=price, request=request)
        _ask_in_session(entered, questions, dry_run=dry_run, as_json=as_json)
        return
    prepared = [
        opened.prepare(question, **price) for question in questions
    ]  # finds every mistake before any look
    if dry_run:
        _show_quotes(questions, [one.quote for one in prepared], as_json=as_json)
        return
    answers = []
    names = [f"{request} {i}" if len(questions) > 1 else request for i in range(1, len(questions) + 1)]
    for question, one, name in zip(questions, prepared, names, strict=True):
        with busy(f"Looking: {question}", quiet=as_json):
            answers.append(one.run(request=name if request else None, analyst=analyst))
        if not as_json:
            _show_answer(question, answers[-1])
    left = opened.ledger.remaining
    if as_json:
        rows = [{"question": q, **a.as_dict()} for q, a in zip(questions, answers, strict=True)]
        emit({"answers": rows, "remaining": {left.currency: left.amount}})
        return
    typer.echo(f"{left.currency} left: {left.amount:.6g} of {opened.ledger.budget.cap.amount:.6g}")


def _ask_in_session(entered: Session, questions: list[str], *, dry_run: bool, as_json: bool) -> None:
    from understudy.cli.session import answers, remarks, without_infinity

    if dry_run:
        costs = entered.dry_run(questions)
        found = [
            {"question": q, "cost": {c.currency: c.amount}} for q, c in zip(questions, costs, strict=True)
        ]
        if as_json:
            emit(found)
        for question, cost in [] if as_json else zip(questions, costs, strict=True):
            typer.echo(f"{question}\n  ± {entered.width:,} people at most {cost.currency} {cost.amount:.4g}")
        return
    given = []
    for question, answer in zip(questions, answers(entered, questions), strict=True):
        given.append({"question": question, **answer.as_dict()})
        if not as_json:
            _show_answer(question, answer)
            for remark in remarks(entered, answer):
                typer.echo(f"  {remark}")
    left = entered.remaining
    if as_json:
        remaining = {left.currency: left.amount}
        emit(
            {"answers": without_infinity(given), "remaining": remaining, "contradicted": entered.contradicted}
        )
        return
    typer.echo(f"{left.currency} left: {left.amount:.6g}")


def _show_answer(question: str, answer: Answer | SqlAnswer) -> None:
    from understudy.answer.sql_answer import SqlAnswer

    if isinstance(answer, SqlAnswer):
        _show_rows(answer)
        return
    digits = 0 if "share" not in question.split()[0].lower() else 5
    price = f"{answer.cost.currency} {answer.cost.amount:.4g}"
    typer.echo(question)
    rows = answer.rows()
    width = max(len(", ".join(labels)) for labels, _, _ in rows)
    for labels, value, error in rows:
        name = f"{', '.join(labels):<{width}}  " if width else ""
        off = f"{error:,.{digits}f}" if isfinite(error) else "∞"
        typer.echo(f"  {name}{value:>12,.{digits}f} ± {off}")
    if answer.source == "uncertified":  # there is no error to be within
        typer.echo(f"  price {price}")
        return
    typer.echo(f"  all within the error with probability {1 - answer.beta:g}; price {price}")


def _show_rows(answer: SqlAnswer) -> None:
    from understudy.answer.sql_answer import shown

    typer.echo(answer.text)
    table = [
        [column.name for column in answer.columns],
        *([shown(cell) for cell in row] for row in answer.cells),
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        typer.echo("  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)))
    price = f"{answer.cost.currency} {answer.cost.amount:.4g}"
    typer.echo(f"  all within their bounds with probability {1 - answer.beta:g}; price {price}")


def _show_quotes(questions: list[str], quotes: list[Any], *, as_json: bool) -> None:
    if as_json:
        emit(
            [
                {"question": q, "cost": {w.cost.currency: w.cost.amount}, "error": w.error, "beta": w.beta}
                for q, w in zip(questions, quotes, strict=True)
            ]
        )
        return
    for question, quote in zip(questions, quotes, strict=True):
        typer.echo(
            f"{question}\n  ± {quote.error:,.0f} people at {quote.cost.currency} {quote.cost.amount:.4g}"
        )
