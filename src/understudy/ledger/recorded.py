"""What is known of a stored ledger after its first entries, checked as they are read."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache

from understudy.errors import LedgerError, UnderstudyError
from understudy.ledger.books import Books
from understudy.ledger.chain import START, Entry, canonical, is_sealed
from understudy.ledger.interface import Debit
from understudy.privacy.accounting_rule import RULE_1, RULES, AccountingRule
from understudy.privacy.budget import Budget
from understudy.privacy.cost import ZCDP, Cost, PureDP
from understudy.privacy.event import Event
from understudy.privacy.filter import FILTERS
from understudy.privacy.recording import from_text, recorded_number


@dataclass(eq=False)
class Recorded:
    """The end of the chain and the totals there."""

    books: Books
    entries: int = 0
    head: str = START
    at: str = ""
    total: int = 0
    marked: tuple[int, int, int] = (0, 0, 0)
    """Entries, joint events and their work at the newest snapshot."""

    def copy(self) -> Recorded:
        return replace(self, books=self.books.copy())

    def read(self, entry: Entry) -> None:
        """Check an entry that was found in the store, and enter it.

        Every total is worked out anew from the recorded event; what is recorded must agree.
        """
        if (entry.number, entry.previous) != (self.entries + 1, self.head) or not is_sealed(entry):
            raise broken(entry.number)
        try:
            if entry.kind == "open":
                total = self.books.begin(event_of(entry)).units
            elif entry.kind == "debit":
                total = self.books.enter(event_of(entry), analyst=entry.analyst or "", at=entry.at).units
            else:
                total = self.total
        except UnderstudyError:
            raise broken(entry.number) from None
        if total != entry.total:
            raise broken(entry.number)
        self.entries, self.head, self.at, self.total = entry.number, entry.hash, entry.at, entry.total

    def debit(self, entry: Entry) -> Debit:
        cost: Cost = PureDP(entry.cost) if self.books.budget.is_pure else ZCDP(entry.cost)
        return Debit(
            entry.number,
            event_of(entry),
            cost,
            entry.question or "",
            entry.request or "",
            entry.analyst or "",
        )


def broken(number: int) -> LedgerError:
    """The complaint about an entry that is not what was written."""
    return LedgerError(
        f"entry {number} of the ledger does not follow from the ones before it: it was changed or lost",
        remedy="Run `understudy ledger verify`; nothing is granted until the ledger is restored",
    )


def event_of(entry: Entry) -> Event:
    """What an entry records as done."""
    return _event(entry.event or "")


_event = lru_cache(maxsize=4096)(from_text)


def terms(name: str, budget: Budget, rule: AccountingRule, promise: str = "") -> str:
    """What the first entry binds a ledger to.

    The first rule of joint accounting is named by no number, and the filter zcdp by no name: versions that knew no
    others wrote neither. Nor did they write the `promise`, which is empty where nobody told it.
    """
    cap = budget.cap
    return canonical(
        {
            "format": 1,
            "table": name,
            "epsilon": str(budget.epsilon),
            "delta": str(budget.delta),
            "currency": cap.currency,
            "cap": cap.units,
            **({} if rule == RULE_1 else {"accounting": rule.number}),
            **budget.filter.terms(),
            **({"key_delta": str(budget.key_delta)} if budget.key_delta else {}),
            **({"promise": promise} if promise else {}),
        }
    )


def promise_of(entry: Entry) -> str:
    """What a first entry says is promised, and to whom; empty where it says nothing."""
    try:
        found = json.loads(entry.terms or "").get("promise", "")
    except (ValueError, AttributeError, RecursionError):
        raise broken(entry.number) from None
    if not isinstance(found, str):
        raise broken(entry.number)
    return found


def rule_of(entry: Entry) -> AccountingRule:
    """The rule of joint accounting that a first entry records."""
    try:
        number = json.loads(entry.terms or "").get("accounting", 1)
    except (ValueError, AttributeError, RecursionError):
        raise broken(entry.number) from None
    rule = RULES.get(number) if type(number) is int else None
    if rule is None:
        raise LedgerError(
            "the ledger was begun under a rule of accounting that this program does not know",
            remedy="Use the version of understudy that began it; nothing was spent",
        )
    return rule


def budget_of(entry: Entry) -> Budget:
    """The budget that a first entry records."""
    try:
        return budget_in(entry.terms or "")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise broken(entry.number) from None


def budget_in(text: str) -> Budget:
    """The budget in the terms of a first entry; a LedgerError where a later program wrote them."""
    plain = json.loads(text)
    keys = recorded_number(plain.get("key_delta", "0"))
    numbers = recorded_number(plain["epsilon"]), recorded_number(plain["delta"])
    name = plain.get("filter", "zcdp")
    if name not in FILTERS:
        raise LedgerError(
            "the ledger was begun with a privacy filter that this program does not know",
            remedy="Use the version of understudy that began it; nothing was spent",
        )
    if name == "zcdp":
        return Budget(*numbers, keys)
    parts = {key: recorded_number(plain[key]) for key in ("order", "reserve") if key in plain}
    return Budget.of(*numbers, key_delta=keys, filter=name, **parts)
