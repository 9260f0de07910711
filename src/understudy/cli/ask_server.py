"""`understudy ask --url`: questions on the command line to a table that a server holds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from understudy.cli.answer_file import answers_for_machines, check_answer_file, write_answer_file
from understudy.cli.ask_session import is_told_with_answers, stopped_as_plain, tell_stopped, why_stopped
from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import emit
from understudy.cli.prices import (
    UNPAID,
    VOUCHED_BY_NOBODY,
    confirm,
    end_dry_run,
    error_line,
    left_as_plain,
    left_told,
    noise_told,
    price_told,
    refusal_as_plain,
)
from understudy.cli.progress import busy, looking
from understudy.cli.terminal import say
from understudy.client.many import MOST_PRICED
from understudy.errors import (
    InsufficientBudgetError,
    ParameterError,
    RefusedAfterChargeError,
    UnderstudyError,
)

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
    in_session: bool
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
        quotes = asked.quote_all(questions, **price)  # finds every mistake first
        together = _together(quotes)
        purse = _purse(asked)
        if dry_run:
            is_general = all(price[name] is None for name in ("epsilon", "rho", "error"))
            _show_quotes(quotes, together, purse, is_general=is_general, as_json=as_json)
            return
        confirm(together[-1], purse, yes=yes, quiet=as_json, several=len(questions) > 1)
        called = request or fresh_request()
        names = [f"{called}.{i}" if len(questions) > 1 else called for i in range(1, len(questions) + 1)]
        again = "" if request else f" with --request {called}"
        if_interrupted(
            f"what was charged stays in the ledger: give the same command{again} again, and pay nothing twice"
        )
        given: list[dict[str, Any]] = []
        charged, stopped = 0, None
        for question, name, so_far in zip(questions, names, together, strict=True):
            agreed = type(so_far)(max(so_far.units - charged, 0))
            most = agreed.amount if len(questions) > 1 else None
            try:
                with busy(looking(question, len(given), len(questions), "Asking"), quiet=as_json):
                    answer = asked.ask(question, **price, most=most, why=why, request=name)
            except UnderstudyError as refusal:
                if not is_told_with_answers(refusal, given):
                    raise
                stopped = refusal
                break
            charged += min(
                answer.cost.units, agreed.units
            )  # what was paid under the request before is not new
            if not as_json:
                from understudy.cli.show_answers import show

                show(question, answer, purse.budget, everything=everything)
            share = purse.budget.share(answer.cost)
            given.append({"question": question, **answer.as_dict(), "share": share, "request": name})
            if out is not None:
                write_answer_file(out, answer, overwrite=overwrite, quiet=as_json)
        left, unanswered = _purse(asked), questions[len(given) :]
        why_not = "" if stopped is None else why_stopped(stopped, together[-1], len(given), len(questions))
        if isinstance(stopped, RefusedAfterChargeError) and not given:
            again = ""  # no answer waits under the request
        if not as_json:
            say(f"to you: {left_told(left.remaining, left.budget)}")
            if stopped is not None:
                tell_stopped(f"{why_not}{again}", unanswered, quiet=False)
            return
        told = left_as_plain(left.remaining, left.budget)
        if stopped is not None:
            told |= stopped_as_plain(stopped, f"{why_not}{again}", unanswered)
        emit(answers_for_machines(given, out, **told))
        if stopped is not None:
            tell_stopped(why_not, unanswered, quiet=True)


def _together(quotes: list[ServerQuote]) -> list[Cost]:
    """The most that the first question costs, the first two, and so on: a server tells it for 50 at a time."""
    found: list[Cost] = []
    before = 0  # of the requests for prices that came before
    for place, quote in enumerate(quotes):
        if place and place % MOST_PRICED == 0:
            before = found[-1].units
        alone = found[-1].units + quote.cost.units if found else quote.cost.units
        units = alone if quote.together is None else before + quote.together.units
        found.append(type(quote.cost)(units))
    return found


def _purse(table: RemoteTable) -> _ServedBudget:
    from understudy.client.decode import cost_from_plain
    from understudy.privacy.budget import Budget

    told = table.budget()
    parts = {name: Fraction(told.kept[name]) for name in ("order", "reserve") if name in told.kept}
    whole = Budget.of(
        told.epsilon, told.delta, key_delta=told.key_delta, filter=told.kept.get("filter", "zcdp"), **parts
    )
    return _ServedBudget(whole, cost_from_plain({told.currency: told.yours.amount}))


def _show_quotes(
    quotes: list[ServerQuote],
    together: list[Cost],
    purse: _ServedBudget,
    *,
    is_general: bool,
    as_json: bool,
) -> None:
    """Tell the prices; the command ends with a refusal where what is left to whoever asks does not pay.

    A question to the session in general, at no price of its own (`is_general`), is answered all the same.
    """
    budget = purse.budget
    unpaid = [
        None
        if quote.is_payable and so_far.units <= purse.remaining.units
        else _unpaid(so_far, purse, quote.hint)
        for quote, so_far in zip(quotes, together, strict=True)
    ]
    refused = None if is_general else next((one for one in unpaid if one is not None), None)
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
                    "together": {so_far.currency: so_far.amount},
                    **({"payable": why is None} if is_general else refusal_as_plain(why)),
                    "needs_approval": quote.needs_approval,
                    "noise": quote.noise,
                    "forecast": [
                        {"column": one.column, "unit": one.unit, "error": one.error} for one in quote.forecast
                    ],
                }
                for quote, so_far, why in zip(quotes, together, unpaid, strict=True)
            ]
        )
        end_dry_run(refused, as_json=True)
        return
    for quote, why in zip(quotes, unpaid, strict=True):
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
        if why is not None:
            say(VOUCHED_BY_NOBODY if is_general else UNPAID)
    if len(quotes) > 1:
        say(f"All of them, in one command: at most {price_told(together[-1], budget)}")
    end_dry_run(refused, as_json=False)


def _unpaid(cost: Cost, purse: _ServedBudget, hint: str) -> InsufficientBudgetError:
    """Why a server would refuse what all questions so far cost; `hint` is what it says to do, if anything."""
    left, remedy = purse.remaining, {"remedy": hint} if hint else {}
    return InsufficientBudgetError(
        requested=cost.amount, remaining=left.amount, currency=cost.currency, **remedy
    )
