"""What a question would cost, before anybody pays: from public numbers, without a look."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from understudy.answer.answer import Answer
from understudy.answer.plain import without_infinity
from understudy.answer.sql_answer import SqlAnswer
from understudy.curator.prepared_question import PreparedQuestion
from understudy.errors import LedgerError, SourceError, UnderstudyError
from understudy.privacy.cost import UNITS, Cost
from understudy.server.inquiry import Inquiry
from understudy.server.problems import Problem, problem_of
from understudy.server.served_tables import OpenTable
from understudy.server.tokens import Caller


def priced(opened: OpenTable, caller: Caller, inquiry: Inquiry, threshold: float) -> dict[str, Any]:
    """The most that a question can cost, its error with its unit, and whether it can be paid or needs an approval.

    What cannot be paid needs no approval: nothing is bought for it. Where it is refused for that, a `hint` says
    what to ask instead.

    `threshold` is the part of the whole budget above which it does. A question that would be refused has a
    `problem` instead.
    """
    ledger = opened.project.ledger
    told: dict[str, Any] = {"question": inquiry.question}
    try:
        inquiry.check()
        if inquiry.is_direct:
            prepared = _prepared(opened, inquiry)
            price = prepared.due(analyst=caller.analyst).cost
            error, beta, unit = prepared.quote.error, prepared.quote.beta, prepared.quote.unit
            forecast = [{"column": f.column, "unit": f.unit, "error": f.error} for f in prepared.forecast()]
            told["forecast"] = without_infinity(forecast)
            told["noise"] = prepared.quote.noise
        else:
            session = opened.session(caller.analyst)
            price = session.price(inquiry.question, caller.analyst, error=inquiry.within)
            error, beta, unit = session.error(inquiry.question), float(session.terms.beta), "people"
            if inquiry.within is not None:
                error, unit = inquiry.within, session.unit(inquiry.question)
                unpaid = session.unpaid(inquiry.question, caller.analyst, error=error)
                told |= {} if unpaid is None else {"hint": unpaid.remedy}
    except (LedgerError, SourceError):
        raise
    except (UnderstudyError, Problem) as refusal:
        return told | {"problem": problem_of(refusal).as_plain()}
    left = ledger.available(caller.analyst)
    share = ledger.budget.share(price)
    return told | {
        "cost": {price.currency: price.amount},
        "share": share,
        "free": not price.units,
        "error": error,
        "unit": unit,
        "beta": beta,
        "affordable": price.units <= left.units,
        "share_of_left": price.units / left.units if left.units else None,
        "more_like_this": left.units // price.units if price.units else None,
        "needs_approval": share > threshold and price.units <= left.units,
    }


def _prepared(opened: OpenTable, inquiry: Inquiry) -> PreparedQuestion[Answer | SqlAnswer]:
    """A question that is measured by itself, priced as it would be asked."""
    terms: dict[str, Any] = {**inquiry.price, "noise": inquiry.noise}
    return opened.project.prepare(inquiry.question, **terms)


def priced_together(
    opened: OpenTable, caller: Caller, inquiries: Sequence[Inquiry], told: Sequence[dict[str, Any]]
) -> None:
    """Add to the price of each of several questions what it and those before it cost `together` at most.

    In the session that is found by one plan of all of them (`sessions.several`), since a question can cost more
    after others; what is measured by itself is tried against the ledger, one after the other. Nothing is added
    where one is refused.
    """
    if len(told) < 2 or any("problem" in one for one in told):
        return
    if inquiries[0].is_direct:
        tried = opened.project.curator.tried(
            [_prepared(opened, inquiry).order(None, caller.analyst) for inquiry in inquiries]
        )
        units = 0
        for one, charge in zip(told, tried, strict=True):
            units += charge.cost.units
            one["together"] = {charge.cost.currency: type(charge.cost)(units).amount}
        return
    session = opened.session(caller.analyst)
    questions = [inquiry.question for inquiry in inquiries]
    try:
        several = session.several(questions, caller.analyst, error=inquiries[0].within)
    except (LedgerError, SourceError):
        raise
    except UnderstudyError:
        return
    for one, cost in zip(told, several.prices(), strict=True):
        one["together"] = {cost.currency: cost.amount}


def agreed(inquiry: Inquiry, price: Cost) -> Cost | None:
    """The most that a caller has agreed to, in the currency of a price; None for any.

    It came as a decimal number, and is taken to twelve digits.
    """
    if inquiry.most is None:
        return None
    return type(price)(ceil(Fraction(inquiry.most) * UNITS * (1 + Fraction(1, 10**12))))
