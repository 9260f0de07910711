"""`understudy ask --session NAME --buy CLASS`: a class of questions is ordered, and nothing else is bought."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import emit
from understudy.cli.prices import (
    confirm,
    end_dry_run,
    left_as_plain,
    left_told,
    not_paid,
    price_told,
    refusal_as_plain,
)
from understudy.cli.progress import busy
from understudy.cli.terminal import say
from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.sessions.session import Session
    from understudy.sessions.terms import Announced


def check_order(buy: list[str], questions: list[str], *, given: dict[str, bool]) -> None:
    """Refuse a command that would buy anything beside one class, since prices are those of the next purchase.

    A class takes a part of what is left of the session's β, so that whatever is bought after it costs more than
    it would cost now: only the price of one class is the most that a command which orders it can charge.
    """
    if len(buy) > 1:
        raise ParameterError(
            "--buy orders one class in a command, since the price of the next is known only once this one is "
            "bought: give one command for each class"
        )
    if questions:
        raise ParameterError(
            "--buy orders a class in a command without questions, since their price is known only once it is "
            "bought: give the command without the questions, then ask them in the same session"
        )
    if any(given.values()):
        named = " and ".join(option for option, is_given in given.items() if is_given)
        raise ParameterError(
            f"{named} belongs to a question, which a command with --buy has not: leave it out"
        )


def order_class(entered: Session, named: Announced, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Buy a class of questions after its price was confirmed; in a dry run tell the price, or why not."""
    from understudy.sessions.terms import class_text

    ledger, budget, text = entered.curator.ledger, entered.curator.ledger.budget, class_text(named)
    price = entered.price_of_class(named)
    if dry_run:
        refusal = not_paid(price, ledger, entered.analyst)
        if as_json:
            cost = {"cost": {price.currency: price.amount}, "share": budget.share(price)}
            emit([{"buy": text, **cost, **refusal_as_plain(refusal)}])
        else:
            say(f"buy {text}\n  every question of the class, for at most {price_told(price, budget)}")
        end_dry_run(refusal, as_json=as_json)
        return
    confirm(price, ledger, yes=yes, quiet=as_json)
    if_interrupted(
        f"what the session {entered.name!r} bought stays in the ledger: give the same command again, and pay "
        "nothing twice"
    )
    with busy(f"Buying: {text}", quiet=as_json):
        cost = entered.buy(named)
    left = entered.remaining
    if as_json:
        bought = {"buy": text, "cost": {cost.currency: cost.amount}, "share": budget.share(cost)}
        emit({"bought": [bought], **left_as_plain(left, budget), "contradicted": entered.contradicted})
        return
    say(f"bought {text}, for {price_told(cost, budget)}")
    say(left_told(left, budget))
