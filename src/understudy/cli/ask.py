"""`understudy ask`: questions on the command line, each at a price of its own.

Those in a session are asked by `cli.session`, those to a server by `cli.ask_server`, and those to a release by
`cli.ask_release`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from understudy.cli.answer_file import answers_for_machines, check_answer_file, write_answer_file
from understudy.cli.completion import complete_question
from understudy.cli.interrupt import UNCHARGED, if_interrupted
from understudy.cli.options import Json, Overwrite, ProjectFile, emit, tell_unread
from understudy.cli.prices import (
    Charged,
    confirm,
    left_as_plain,
    left_told,
)
from understudy.cli.progress import busy, looking
from understudy.cli.terminal import say

if TYPE_CHECKING:
    from understudy.answer.answer import Answer
    from understudy.answer.sql_answer import SqlAnswer
    from understudy.curator.prepared_question import PreparedQuestion
    from understudy.privacy.noise_name import Noise
    from understudy.project import Project


def ask(
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            help="Such as: count age<30 and sex=F by district; rate smoker=true within district; "
            "or: SELECT avg(age) FROM town",
            metavar="QUESTIONS",
            autocompletion=complete_question,
        ),
    ] = None,
    project: ProjectFile = Path("understudy.yml"),
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Price of each question: the epsilon that it alone has, with the delta of the budget."
        ),
    ] = None,
    rho: Annotated[float | None, typer.Option(help="Price of each question in rho, of zCDP.")] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="Ask for this error, and pay what it takes: in people for counts, else in the column's unit."
        ),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            help="auto (the best at the price), laplace (of pure epsilon), gaussian, or bounded: "
            "never off by more than the error, under a budget with filter renyi."
        ),
    ] = "auto",
    beta: Annotated[
        float | None,
        typer.Option(help="Chance that an answer's error bar does not hold; 0.05 if nothing is said."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show price and error; ask nothing.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Pay a large part of the budget without being asked.")
    ] = False,
    max_cells: Annotated[
        int | None, typer.Option(min=1, help="Cells that one question may have; 1000000 if nothing is said.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every row, not the first fifty.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the rows of the answer to a .parquet, .csv or .json file."),
    ] = None,
    overwrite: Overwrite = False,
    analyst: Annotated[str, typer.Option(help="Who asks, where analysts have limits.")] = "",
    request: Annotated[
        str,
        typer.Option(help="A name for this request: asked again under it, it is answered from the ledger."),
    ] = "",
    session: Annotated[
        str | None, typer.Option(help="Ask in the session of this name: one promise for all of its answers.")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="A session's error, as a part of all rows, such as 0.02; later it is remembered."),
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Questions that are expected in the session; 10000 if nothing is said.")
    ] = None,
    buy: Annotated[
        list[str] | None,
        typer.Option(
            help="Order a class of questions for the session, in a command without questions: ranges(age), "
            "conjunctions(sex, district) or marginals(2)."
        ),
    ] = None,
    url: Annotated[
        str,
        typer.Option(
            help="Ask a server at this address, such as https://data.example.org. Without a price a question is "
            "asked in the server's session. The token is that of UNDERSTUDY_TOKEN or ~/.config/understudy/tokens."
        ),
    ] = "",
    release: Annotated[
        str,
        typer.Option(
            help="Ask the release in this folder, for nothing: no table and no declaration is needed. With --url, "
            "the release of this name that the server shows."
        ),
    ] = "",
    in_session: Annotated[
        bool,
        typer.Option(
            "--in-session",
            help="With --url and --error: keep the error in the server's session, by what is known there.",
        ),
    ] = False,
    table: Annotated[
        str, typer.Option(help="With --url: which table of the server, where it has several.")
    ] = "",
    why: Annotated[
        str, typer.Option(help="With --url: what a custodian reads where the question needs an approval.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Answer questions privately; without a price each costs a hundredth of the budget.

    A command that would take more than a twentieth of the whole budget asks first at a terminal; in a script, one
    that would take more than a quarter needs --yes.
    """
    from understudy.errors import ParameterError
    from understudy.privacy.noise_name import check_noise_name

    questions = questions or []
    if not questions and not buy:
        raise typer.BadParameter(
            "name a question, such as 'count by sex', or a class with --session and --buy"
        )
    if release:
        from understudy.cli.ask_release import ask_release, check_free_of_terms

        check_free_of_terms(
            {
                "project": project != Path("understudy.yml"), "epsilon": epsilon is not None,
                "rho": rho is not None, "error": error is not None, "noise": noise != "auto",
                "beta": beta is not None, "dry_run": dry_run, "yes": yes, "max_cells": max_cells is not None,
                "analyst": analyst, "request": request,
                "session": session is not None, "alpha": alpha is not None, "queries": queries is not None,
                "buy": buy, "table": table, "why": why, "in_session": in_session,
            }
        )  # fmt: skip
        ask_release(
            questions, release, url=url, everything=everything, out=out, overwrite=overwrite, as_json=as_json
        )
        return
    if url:
        from understudy.cli.ask_server import ask_server, check_local

        check_local(
            {
                "project": project != Path("understudy.yml"), "beta": beta is not None, "analyst": analyst,
                "session": session is not None, "alpha": alpha is not None,
                "queries": queries is not None, "max_cells": max_cells is not None, "buy": buy,
            }
        )  # fmt: skip
        check_noise_name(noise)
        ask_server(
            questions, url, table=table, why=why,
            price={
                "epsilon": epsilon, "rho": rho, "error": error, "in_session": in_session,
                "noise": cast("Noise", noise),
            },
            request=request, dry_run=dry_run, yes=yes, everything=everything, out=out, overwrite=overwrite,
            as_json=as_json,
        )  # fmt: skip
        return
    if table or why or in_session:
        raise ParameterError("--table, --why and --in-session are for a server: add --url ADDRESS")
    from understudy.answer.limits import MAX_CELLS
    from understudy.ledger.interface import fresh_request
    from understudy.project import open_project

    if session is None and (alpha is not None or queries is not None or buy):
        raise ParameterError("--alpha, --queries and --buy belong to a session: add --session NAME")
    if session == "":
        raise ParameterError("a session's name must not be empty: write --session NAME")
    if buy:
        from understudy.cli.order import check_order

        check_order(buy, questions, given={"--error": error is not None, "--out": out is not None})
    opened = open_project(project)
    if out is not None:
        from understudy.declaration.file import located
        from understudy.ledger.declared import project_files

        own = project_files(opened.declaration, file=located(project))
        check_answer_file(out, questions, overwrite=overwrite, belonging=own)
    most = MAX_CELLS if max_cells is None else max_cells
    price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "error": error, "noise": noise}
    if session is not None:
        from understudy.cli.session import open_named
        from understudy.sessions.terms import read_class

        order = read_class(buy[0]) if buy else None
        terms = {"alpha": alpha, "beta": beta, "queries": queries, "analyst": analyst}
        entered = open_named(opened, session, **terms, price=price, request=request, max_cells=most)
        tell_unread(opened, project, quiet=as_json)
        if order is not None:
            from understudy.cli.order import order_class

            order_class(entered, order, dry_run=dry_run, yes=yes, as_json=as_json)
            return
        from understudy.cli.ask_session import ask_in_session, show_session_prices

        if dry_run:
            show_session_prices(entered, questions, error, as_json=as_json)
            return
        ask_in_session(
            entered,
            questions,
            error,
            yes=yes,
            everything=everything,
            out=out,
            overwrite=overwrite,
            as_json=as_json,
        )
        return
    price["beta"] = 0.05 if beta is None else beta
    prepared = [
        opened.prepare(question, **price, max_cells=most) for question in questions
    ]  # finds every mistake before any look
    tell_unread(opened, project, quiet=as_json)
    if dry_run:
        from understudy.cli.ask_dry_run import show_quotes

        show_quotes(opened, questions, prepared, _names(request, len(questions)), analyst, as_json=as_json)
        return
    called = request or fresh_request()  # so that what is cut off can be asked for again
    names = _names(called, len(questions))
    _confirm(opened, prepared, names, yes=yes, quiet=as_json)
    answers: list[Any] = []
    charges: list[Charged] = []
    shown = 0
    if_interrupted(lambda: _kept(opened, names, shown, f" with --request {called}" if not request else ""))
    for question, one, name in zip(questions, prepared, names, strict=True):
        paid = opened.ledger.find(name) is not None
        with busy(looking(question, len(answers), len(questions)), quiet=as_json):
            answers.append(one.run(request=name, analyst=analyst))
        public = answers[-1].source == "public"
        charges.append(Charged(answers[-1].cost, one.quote.cost, repeated=paid, public=public))
        _give(opened, question, answers[-1], charges[-1], out,
              everything=everything, overwrite=overwrite, quiet=as_json)  # fmt: skip
        shown += not as_json
    _tell_left(opened, questions, answers, charges, out, as_json=as_json)


def _names(request: str, questions: int) -> list[str]:
    """The name in the ledger of each question that is asked under a request."""
    return [f"{request} {i}" if questions > 1 else request for i in range(1, questions + 1)]


def _kept(opened: Project, names: list[str], shown: int, named: str) -> str:
    """What is safe where the command is interrupted: what was charged and not shown can be asked for again."""
    if any(opened.ledger.find(name) is not None for name in names[shown:]):
        return (
            f"what was charged stays in the ledger: give the same command{named} again, and pay nothing twice"
        )
    return "nothing was charged beside what is shown" if shown else UNCHARGED


def _confirm(
    opened: Project, prepared: list[PreparedQuestion[Any]], names: list[str], *, yes: bool, quiet: bool
) -> None:
    """Ask before a large price is paid. What a request has paid already costs nothing, and is not asked about."""
    ledger = opened.ledger
    new = [
        one.quote.cost.units for one, name in zip(prepared, names, strict=True) if ledger.find(name) is None
    ]
    confirm(type(ledger.budget.cap)(sum(new)), ledger, yes=yes, quiet=quiet, several=len(new) > 1)


def _give(
    opened: Project,
    question: str,
    answer: Answer | SqlAnswer,
    charged: Charged,
    out: Path | None,
    *,
    everything: bool,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Show an answer, and write it where a file is wanted."""
    from understudy.cli.show_answers import show

    if not quiet:
        show(question, answer, opened.ledger.budget, everything=everything, charged=charged)
    if out is not None:
        write_answer_file(out, answer, overwrite=overwrite, quiet=quiet)


def _tell_left(
    opened: Project,
    questions: list[str],
    answers: list[Any],
    charges: list[Charged],
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    left, budget = opened.ledger.remaining, opened.ledger.budget
    if not as_json:
        say(left_told(left, budget))
        return
    rows = [
        {"question": q, **a.as_dict(), **charged.as_plain(budget)}
        for q, a, charged in zip(questions, answers, charges, strict=True)
    ]
    emit(answers_for_machines(rows, out, **left_as_plain(left, budget)))
