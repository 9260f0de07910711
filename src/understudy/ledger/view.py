"""A ledger as a notebook shows it: what was spent, what is left, and the newest debits.

A question that was asked under an analyst's name is that analyst's alone: its price is shown here, and not itself.
"""

from __future__ import annotations

import re

from understudy.errors import UnderstudyError
from understudy.ledger.interface import Ledger
from understudy.pages import notebook

NEWEST = 20
"""Debits that are listed."""

_DIGESTS = re.compile(r" #[0-9a-f]{16,}(\s+[0-9a-f]{16,})*")
"""What tells equal words of different questions apart, for machines."""


def ledger_html(ledger: Ledger, title: str) -> str:
    """The view of a ledger, newest debits first. Reads the ledger, and no table."""
    debits = ledger.debits()
    rows = [
        [
            f"{debit.number:,}",
            _DIGESTS.sub("", debit.question) if not debit.analyst else "(asked under a name)",
            debit.analyst,
            f"{debit.cost.currency} {debit.cost.amount:.4g}",
        ]
        for debit in debits[: -NEWEST - 1 : -1]
    ]
    found = notebook.table(
        ["entry", "question", "analyst", "price"], rows, numbers=("entry", "price"), total=len(debits)
    )
    note = "Questions about different people cost as one, so that prices may add up to more than was spent."
    return notebook.panel(title, spent_of(ledger), found, note=note if rows else "Nothing was charged yet.")


def spent_of(ledger: Ledger) -> notebook.Markup:
    """A bar of what was spent of the budget, in words too; or why nobody can tell."""
    try:
        cap, spent, left = ledger.budget.cap, ledger.spent, ledger.remaining
    except UnderstudyError as error:
        return notebook.warning(f"The ledger cannot be read: {error}")
    part = spent.units / cap.units if cap.units else 1.0
    told = f"{spent.currency} {spent.amount:.4g} of {cap.amount:.4g} spent, {left.amount:.4g} left"
    if not ledger.budget.is_pure:
        told += f" ({ledger.budget.filter.name}: epsilon {ledger.budget.spent_epsilon(spent):.3g} so far)"
    if ledger.budget.key_delta:
        told += (
            f"; of delta, for keys: {float(ledger.delta_spent):.3g} of {float(ledger.budget.key_delta):.3g}"
        )
    return notebook.share(part, told)
