"""`understudy ask --session`: questions within a session, for no more than the price that was told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from understudy.cli.answer_file import answers_for_machines, write_answer_file
from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import as_options, emit
from understudy.cli.prices import (
    UNPAID,
    VOUCHED_BY_NOBODY,
    confirm,
    end_dry_run,
    error_line,
    left_as_plain,
    left_told,
    not_paid,
    price_told,
    refusal_as_plain,
)
from understudy.cli.progress import busy, looking
from understudy.cli.terminal import say

if TYPE_CHECKING:
    from understudy.errors import UnderstudyError
    from understudy.privacy.cost import Cost
    from understudy.sessions.session import Session


def show_session_prices(
    entered: Session, questions: list[str], error: float | None, *, as_json: bool
) -> None:
    """Tell what each question costs if it is the next one, and what all cost one after the other; ask nothing.

    Where the budget cannot pay, a question with an error of its own would be refused, and so is the dry run of it;
    any other would be answered by a stand-in.
    """
    ledger, budget = entered.curator.ledger, entered.curator.ledger.budget
    with busy("Finding the price", quiet=as_json):
        costs = entered.dry_run(questions, error=error)
        together = entered.several(questions, error=error).prices() if len(questions) > 1 else costs
    told = [
        (entered.error(question), "people") if error is None else (error, entered.unit(question))
        for question in questions
    ]
    alone = [None if error is None else entered.unpaid(question, error=error) for question in questions]
    unpaid = [
        why or not_paid(so_far, ledger, entered.analyst) for why, so_far in zip(alone, together, strict=True)
    ]
    refused = None if error is None else next((one for one in unpaid if one is not None), None)
    if as_json:
        emit(
            [
                {
                    "question": q,
                    "cost": {c.currency: c.amount},
                    "share": budget.share(c),
                    "together": {so_far.currency: so_far.amount},
                    "error": off,
                    "unit": unit,
                    **({"payable": why is None} if error is None else refusal_as_plain(why)),
                }
                for q, c, so_far, (off, unit), why in zip(
                    questions, costs, together, told, unpaid, strict=True
                )
            ]
        )
        end_dry_run(refused, as_json=True)
        return
    for question, cost, (off, unit), why in zip(questions, costs, told, unpaid, strict=True):
        say(f"{question}\n{error_line(off, unit)}, for at most {price_told(cost, budget)}")
        if why is not None:
            say(VOUCHED_BY_NOBODY if error is None else UNPAID)
    if len(questions) > 1:
        say(
            "Each price is that of a question which is asked next. All of them, in one command: at most "
            f"{price_told(together[-1], budget)}"
        )
    end_dry_run(refused, as_json=False)


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
    """Find the price of all questions, ask before much is spent, put them one by one, and show the answers.

    They are charged no more than that price. Where others who buy in the session have made them dearer, or a
    question is refused, the command ends before it, with the answers that there are and the status of a refusal.
    """
    from understudy.cli.session import remarks
    from understudy.cli.show_answers import show
    from understudy.errors import UnderstudyError

    ledger, budget = entered.curator.ledger, entered.curator.ledger.budget
    with busy("Finding the price", quiet=as_json):
        several = entered.several(questions, error=error)  # finds every mistake before the first
    confirm(several.price, ledger, yes=yes, quiet=as_json, several=len(questions) > 1)
    given: list[dict[str, Any]] = []
    if_interrupted(
        f"what the session {entered.name!r} bought stays in the ledger: ask again in it, and pay nothing twice"
    )
    answers, stopped = several.ask(), None
    for question in questions:
        try:
            with busy(looking(question, len(given), len(questions)), quiet=as_json):
                answer = next(answers)
        except UnderstudyError as refusal:
            if not is_told_with_answers(refusal, given):
                raise
            stopped = refusal
            break
        given.append({"question": question, **answer.as_dict(), "share": budget.share(answer.cost)})
        if not as_json:
            show(question, answer, budget, everything=everything)
            for remark in remarks(entered, answer):
                say(f"  {remark}")
        if out is not None:
            write_answer_file(out, answer, overwrite=overwrite, quiet=as_json)
    left, unanswered = entered.remaining, questions[len(given) :]
    why = "" if stopped is None else why_stopped(stopped, several.price, len(given), len(questions))
    if as_json:
        told: dict[str, Any] = {**left_as_plain(left, budget), "contradicted": entered.contradicted}
        if stopped is not None:
            told |= stopped_as_plain(stopped, why, unanswered)
        emit(answers_for_machines(given, out, **told))
    else:
        say(left_told(left, budget))
    if stopped is not None:
        tell_stopped(why, unanswered, quiet=as_json)


def is_told_with_answers(refusal: UnderstudyError, given: list[dict[str, Any]]) -> bool:
    """Whether a refusal is told beside answers and what is left: nothing that was paid before it must be lost."""
    from understudy.errors import PriceRoseError, RefusedAfterChargeError

    return bool(given) or isinstance(refusal, (PriceRoseError, RefusedAfterChargeError))


def why_stopped(refusal: UnderstudyError, agreed: Cost, answered: int, of: int) -> str:
    """Why a command ended before its last question, what was answered, and how to go on."""
    from understudy.errors import PriceRoseError

    which = f"question {answered + 1} of {of}" if of > 1 else "the question"
    some = (
        f"{answered} of {of} questions were answered, and stay known" if answered else "nothing was answered"
    )
    if not isinstance(refusal, PriceRoseError):
        remedy = f". {refusal.remedy[0].upper()}{refusal.remedy[1:]}" if refusal.remedy else ""
        told = f"{which} was not answered: {refusal.problem or refusal}{remedy}"
        if not answered:
            return told
        return f"{told}. {some}; given again, the same command pays nothing for these"
    return (
        f"{which} costs {refusal.currency} {refusal.requested:.4g} now, and {refusal.agreed:.4g} is left of the "
        f"{agreed.amount:.4g} that was told: others have bought or spent meanwhile. {some}; nothing was bought "
        "for the rest. Give the same command again: the price is found anew, and what was answered costs nothing"
    )


def stopped_as_plain(refusal: UnderstudyError, why: str, unanswered: list[str]) -> dict[str, Any]:
    """The same for machines, beside the answers that there are; and what was charged for the question."""
    from understudy.errors import RefusedAfterChargeError

    error: dict[str, Any] = {"kind": type(refusal).__name__, "message": as_options(why)}
    if isinstance(refusal, RefusedAfterChargeError):
        error |= {"charged": {refusal.currency: refusal.charged}, "share": refusal.share}
    return {"unanswered": unanswered, "error": error}


def tell_stopped(why: str, unanswered: list[str], *, quiet: bool) -> None:
    """Say why the command ended, and leave with the status of a refusal; `quiet` where machines were told."""
    if not quiet:
        say(f"understudy: {as_options(why)}", err=True, hang=2)
        for question in unanswered:
            say(f"  not answered: {question}", err=True, hang=4)
    raise typer.Exit(1)
