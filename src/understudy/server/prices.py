"""What a question would cost, before anybody pays: from public numbers, without a look."""

from __future__ import annotations

from typing import Any

from understudy.answer.plain import without_infinity
from understudy.errors import LedgerError, SourceError, UnderstudyError
from understudy.server.house import OpenTable
from understudy.server.inquiry import Inquiry
from understudy.server.problems import Problem, problem_of
from understudy.server.tokens import Caller


def priced(opened: OpenTable, caller: Caller, inquiry: Inquiry, threshold: float) -> dict[str, Any]:
    """The most that a question can cost, its error with its unit, and whether it can be paid or needs an approval.

    `threshold` is the part of the whole budget above which it does. A question that would be refused has a
    `problem` instead.
    """
    ledger = opened.project.ledger
    told: dict[str, Any] = {"question": inquiry.question}
    try:
        inquiry.check()
        if inquiry.is_direct:
            terms: dict[str, Any] = {**inquiry.price, "noise": inquiry.noise}
            prepared = opened.project.prepare(inquiry.question, **terms)
            price = prepared.due(analyst=caller.analyst).cost
            error, beta, unit = prepared.quote.error, prepared.quote.beta, prepared.quote.unit
            forecast = [{"column": f.column, "unit": f.unit, "error": f.error} for f in prepared.forecast()]
            told["forecast"] = without_infinity(forecast)
            told["noise"] = prepared.quote.noise
        else:
            session = opened.session(caller.analyst)
            price = session.price(inquiry.question, caller.analyst)
            error, beta, unit = session.error(inquiry.question), float(session.terms.beta), "people"
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
