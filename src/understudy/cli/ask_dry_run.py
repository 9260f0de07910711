"""`understudy ask --dry-run`: what questions at a price of their own would cost, and whether that is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from understudy.cli.options import emit
from understudy.cli.prices import UNPAID, end_dry_run, error_line, noise_told, price_told, refusal_as_plain
from understudy.cli.terminal import say

if TYPE_CHECKING:
    from understudy.curator.prepared_question import PreparedQuestion
    from understudy.errors import UnderstudyError
    from understudy.project import Project


def show_quotes(
    opened: Project,
    questions: list[str],
    prepared: list[PreparedQuestion[Any]],
    names: list[str],
    analyst: str,
    *,
    as_json: bool,
) -> None:
    """Prices and errors, in the unit of what is asked; the error of what depends on the table is a forecast.

    The questions are tried against the ledger one after the other, as they would be charged, and the command ends
    with the refusal of the first that would not be paid for.
    """
    quotes = [one.quote for one in prepared]
    orders = [one.order(name or None, analyst) for one, name in zip(prepared, names, strict=True)]
    tried = opened.curator.tried(orders)
    known = [bool(name) and opened.ledger.find(name) is not None for name in names]
    refusals = [
        _not_repeated(opened, one, name, analyst) if paid else one.refused(charge.refusal)
        for one, charge, name, paid in zip(prepared, tried, names, known, strict=True)
    ]
    first = next((refusal for refusal in refusals if refusal is not None), None)
    forecasts = [one.forecast() for one in prepared]
    if as_json:
        emit(
            [
                {
                    "question": q,
                    "cost": {w.cost.currency: w.cost.amount},
                    "error": w.error,
                    "unit": w.unit,
                    "beta": w.beta,
                    "share": w.share,
                    "epsilon": w.epsilon,
                    "noise": w.noise,
                    "forecast": [{"column": f.column, "unit": f.unit, "error": f.error} for f in told],
                    "repeated": paid,
                    **refusal_as_plain(refusal),
                }
                for q, w, told, refusal, paid in zip(
                    questions, quotes, forecasts, refusals, known, strict=True
                )
            ]
        )
        end_dry_run(first, as_json=True)
        return
    for question, quote, told, refusal, paid in zip(
        questions, quotes, forecasts, refusals, known, strict=True
    ):
        say(question)
        say(error_line(quote.error, quote.unit) + noise_told(quote.noise))
        for one in told if quote.unit == "people" else ():
            say(f"  {one}")
        price = price_told(quote.cost, opened.ledger.budget)
        if paid and refusal is None:
            say(f"  paid for under its request: takes nothing more (else {price})")
        else:
            say(f"  would take {price}")
        if refusal is not None and not paid:
            say(UNPAID)
    end_dry_run(first, as_json=False)


def _not_repeated(
    opened: Project, prepared: PreparedQuestion[Any], name: str, analyst: str
) -> UnderstudyError | None:
    """Why a request that was paid before is refused for a question; None where it is that question.

    An answer that the ledger keeps is read for it, which neither charges nor looks. A request that was charged and
    never answered is taken to be the same.
    """
    from understudy.errors import RequestConflictError

    debit = opened.ledger.find(name)
    if debit is None or opened.ledger.answered(debit) is None:
        return None
    try:
        prepared.run(request=name, analyst=analyst)
    except RequestConflictError as conflict:
        return conflict
    return None
