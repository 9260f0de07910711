"""What a ledger has left for a start, looked at before the first charge: public numbers alone."""

from __future__ import annotations

from fractions import Fraction

from understudy.errors import InsufficientBudgetError
from understudy.ledger.interface import Ledger
from understudy.mechanism.key_selection import delta_again
from understudy.privacy.cost import DELTA_UNITS, UNITS
from understudy.privacy.price import Price
from understudy.starting.opening import PURCHASES, StartReading
from understudy.table.column_reader import ValueKind

DELTA_SPENT = Fraction(4, 5)
"""What the keys of a start take of the delta for keys that is left: so there is some left for another start."""

LEAST_DELTA = Fraction(1, 10**9)
"""The part of the delta for keys below which what is left is taken for nothing."""

ELSEWHERE = (
    "Declare the columns by hand (`understudy init`), or start in another folder with a ledger of its own: what "
    "two ledgers spend on one table adds up"
)


def delta_left(ledger: Ledger) -> Fraction:
    """What the ledger has left of the budget's delta for keys."""
    return max(Fraction(ledger.budget.delta_cap, DELTA_UNITS) - ledger.delta_spent, Fraction(0))


def keys_delta(ledger: Ledger, request: str) -> Fraction:
    """The delta that the keys of a start may cost: of those that were bought before, what makes the same again."""
    known = ledger.find(request)
    if known is not None:
        return delta_again(known.event.delta_cost())
    return delta_left(ledger) * DELTA_SPENT


def check_means(ledger: Ledger, reading: StartReading, price: Price) -> None:
    """Raise an InsufficientBudgetError where the ledger cannot pay for a whole start of this price.

    What was bought before is not counted. Whether there are columns of text in a file of text is not known before
    it is bought, so that a delta for their keys has to be left in any case.
    """
    known = {what: ledger.find(reading.request(what)) for what in PURCHASES}
    if any(known[what] is not None for what in PURCHASES[2:]):
        return  # they were the last ones, or their price is what the ledger will say
    paid = sum(debit.cost.units for debit in known.values() if debit is not None)
    wanted, left = int(price.amount * UNITS) - paid, ledger.available()
    if wanted > left.units:
        raise InsufficientBudgetError(
            requested=wanted / UNITS,
            remaining=left.amount,
            currency=price.currency,
            remedy=f"A start takes a tenth of the whole budget. {ELSEWHERE}",
        )
    own = ledger.budget.key_delta
    if own and delta_left(ledger) < own * LEAST_DELTA and ValueKind.TEXT in reading.reader.kinds().values():
        raise InsufficientBudgetError(
            requested=float(own * LEAST_DELTA),
            remaining=float(delta_left(ledger)),
            currency="delta",
            remedy=f"Values of text are found with a part of the `key_delta`, and all of it is spent. {ELSEWHERE}",
        )
