"""What a ledger holds under the name of a run: every step's request begins with it."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.ledger.export import document
from understudy.ledger.interface import Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.cost import UNITS


@dataclass(frozen=True)
class Purchases:
    """What a run bought so far from a ledger of that budget: its requests, and what they cost together."""

    name: str
    requests: frozenset[str]
    units: int
    budget: Budget
    analysts: tuple[str, ...] = ()

    @property
    def amount(self) -> float:
        return self.units / UNITS

    @property
    def currency(self) -> str:
        return self.budget.cap.currency

    @property
    def price(self) -> str:
        """The price in words; a rho also as the epsilon of a release that costs as much."""
        told = f"{self.currency} {self.amount:.6g}"
        if self.budget.is_pure or not self.units:
            return told
        return f"{told}, about epsilon {zcdp_epsilon(self.amount, float(self.budget.delta)):.3g},"

    def conflict(self) -> str:
        """Why nothing else can be bought under the name."""
        steps = "one request" if len(self.requests) == 1 else f"{len(self.requests):,} requests"
        asked = f" by {', '.join(self.analysts)}" if self.analysts else ""
        return (
            f"the name {self.name} belongs to a release with other terms, or of another version of the table "
            f"({self.price} in {steps}{asked}). Choose another `name`, or give its terms"
        )


def purchases(ledger: Ledger, name: str) -> Purchases:
    """What the ledger holds for the steps of the run of that name."""
    found = [entry for entry in _debits(ledger) if entry[0].startswith(f"{name} ")]
    return Purchases(
        name,
        frozenset(request for request, _, _ in found),
        sum(units for _, units, _ in found),
        ledger.budget,
        tuple(sorted({analyst for _, _, analyst in found if analyst})),
    )


def paid_before(ledger: Ledger, name: str) -> int:
    """Units that the ledger holds for the steps of the run of that name."""
    return purchases(ledger, name).units


def is_drawn_on(ledger: Ledger) -> bool:
    """Whether a stored ledger has granted anything: from then on its budget is what it is."""
    return isinstance(ledger, DurableLedger) and ledger.is_begun


def _debits(ledger: Ledger) -> list[tuple[str, int, str]]:
    """Request, units and analyst of every debit."""
    if isinstance(ledger, MemoryLedger):
        return [(debit.request, debit.cost.units, debit.analyst) for debit in ledger.debits]
    if not isinstance(ledger, DurableLedger) or not ledger.is_begun:
        return []
    entries = document(ledger.url, ledger.name, answers=False)["entries"]
    return [
        (entry["request"] or "", entry["cost"], entry["analyst"] or "")
        for entry in entries
        if entry["kind"] == "debit"
    ]
