"""What a refusal says where something was bought for the question before it was refused."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from understudy.errors import (
    InsufficientBudgetError,
    PriceRoseError,
    RefusedAfterChargeError,
    RefusedError,
)
from understudy.ledger.interface import Ledger
from understudy.privacy.cost import Cost
from understudy.sessions.asking import Asking

SAY_NOTHING_WAS_BOUGHT = (RefusedError, InsufficientBudgetError, PriceRoseError)
"""The refusals whose class promises that nothing was bought; others, as of a closed project, promise nothing."""


@contextmanager
def charges_told(asking: Asking, ledger: Ledger) -> Generator[None]:
    """Have a refusal of what is done within say what was charged for the question so far, and what is left.

    It is a `RefusedAfterChargeError` then. Where nothing was charged it passes as it is.
    """
    try:
        yield
    except RefusedError as refusal:
        if not asking.spent or type(refusal) not in SAY_NOTHING_WAS_BOUGHT:
            raise
        charged: Cost = type(asking.charged)(asking.spent)
        raise RefusedAfterChargeError(
            refusal.problem,
            remedy=refusal.remedy,
            charged=charged.amount,
            share=ledger.budget.share(charged),
            remaining=ledger.available(asking.analyst).amount,
            currency=charged.currency,
        ) from refusal
