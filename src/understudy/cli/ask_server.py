"""`understudy ask --url`: questions on the command line to a table that a server holds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from understudy.cli.answer_file import answers_for_machines, check_answer_file, write_answer_file
from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import emit
from understudy.cli.prices import confirm, error_line, left_as_plain, left_told, noise_told, price_told
from understudy.cli.progress import busy
from understudy.cli.terminal import say
from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.client.remote_table import RemoteTable
    from understudy.client.told import ServerQuote
    from understudy.privacy.budget import Budget
    from understudy.privacy.cost import Cost
    from understudy.privacy.noise_name import Noise


class ServerPrice(TypedDict):
    """What each question may cost, or how far off it may be; none of them for a question to the session."""

    epsilon: float | None
    rho: float | None
    error: float | None
    noise: Noise


LOCAL = ("project", "beta", "analyst", "session", "alpha", "queries", "max_cells", "buy")
"""Options of `ask` that are about a table of one's own: a server decides on each of them itself."""


@dataclass(frozen=True, slots=True)
class _ServedBudget:
    """What a served table's budget is as a whole, and what of it is left to whoever asks."""

    budget: Budget
    remaining: Cost


def check_local(given: dict[str, Any]) -> None:
    """Refuse options that only a table of one's own has, with a `ParameterError` that names them."""
    wrong = [f"--{name.replace('_', '-')}" for name in LOCAL if given[name]]
    if wrong:
        raise ParameterError(
            f"{' and '.join(wrong)} cannot be said to a server",
            remedy="leave it out: with --url the server's own terms hold, and who asks is told by the token",
        )


def ask_server(
    questions: list[str],
    url: str,
    *,
    table: str,
    price: ServerPrice,
    why: str,
    request: str,
    dry_run: bool,
    yes: bool,
    everything: bool,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Price the questions at the server, ask before much is spent, put them one by one, and show the answers.

    The token is that of the environment or of the user's file of tokens (`client.token_file`). A question that
    needs an approval raises an `ApprovalNeededError`, whose message says how to come back for the answer.
    """
    from understudy.client.connect import connect
    from understudy.ledger.interface import fresh_request

    check_answer_file(out, questions, overwrite=overwrite)
    with connect(url) as server:
        asked = server.table(table or None)
        quotes = [asked.quote(question, **price) for question in questions]  # finds every mistake first
        purse = _purse(asked)
        if dry_run:
            _show_quotes(quotes, purse.budget, as_json=as_json)
            return
        most = type(purse.remaining)(sum(quote.cost.units for quote in quotes))
        confirm(most, purse, yes=yes, quiet=as_json)
        called = request or fresh_request()
        names = [f"{called}.{i}" if len(questions) > 1 else called for i in range(1, len(questions) + 1)]
        again = "" if request else f" with --request {called}"
        if_interrupted(
            f"what was charged stays in the ledger: give the same command{again} again, and pay nothing twice"
        )
        given: list[dict[str, Any]] = []
        for question, name in zip(questions, names, strict=True):
            with busy(f"Asking: {question}", quiet=as_json):
                answer = asked.ask(question, **price, why=why, request=name)
            if not as_json:
                from understudy.cli.show_answers import show

                show(question, answer, purse.budget, everything=everything)
            share = purse.budget.share(answer.cost)
            given.append({"question": question, **answer.as_dict(), "share": share, "request": name})
            write_answer_file(out, answer, overwrite=overwrite, quiet=as_json)
        left = _purse(asked)
        if not as_json:
            say(f"to you: {left_told(left.remaining, left.budget)}")
            return
        emit(answers_for_machines(given, out, **left_as_plain(left.remaining, left.budget)))


def _purse(table: RemoteTable) -> _ServedBudget:
    from understudy.client.decode import cost_from_plain
    from understudy.privacy.budget import Budget

    told = table.budget()
    parts = {name: Fraction(told.kept[name]) for name in ("order", "reserve") if name in told.kept}
    whole = Budget.of(
        told.epsilon, told.delta, key_delta=told.key_delta, filter=told.kept.get("filter", "zcdp"), **parts
    )
    return _ServedBudget(whole, cost_from_plain({told.currency: told.yours.amount}))


def _show_quotes(quotes: list[ServerQuote], budget: Budget, *, as_json: bool) -> None:
    if as_json:
        emit(
            [
                {
                    "question": quote.question,
                    "cost": {quote.cost.currency: quote.cost.amount},
                    "error": quote.error,
                    "unit": quote.unit,
                    "beta": quote.beta,
                    "share": quote.share,
                    "payable": quote.is_payable,
                    "needs_approval": quote.needs_approval,
                    "noise": quote.noise,
                    "forecast": [
                        {"column": one.column, "unit": one.unit, "error": one.error} for one in quote.forecast
                    ],
                }
                for quote in quotes
            ]
        )
        return
    for quote in quotes:
        say(quote.question)
        say(error_line(quote.error, quote.unit) + noise_told(quote.noise))
        for column in quote.forecast if quote.unit == "people" else ():
            say(f"  {column}")
        say(
            "  free: it follows from what was bought"
            if quote.is_free
            else f"  would take at most {price_told(quote.cost, budget)}"
        )
        if quote.needs_approval:
            say("  a custodian has to approve it first")
        if not quote.is_payable:
            say("  what is left to you does not pay for it")
