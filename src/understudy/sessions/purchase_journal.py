"""A session in the ledger: a debit of nothing, whose steps are the purchases.

A purchase is written down before it is made, and made under a request of its own. So another process, or this one
after a crash, finds every purchase made or makes it, and pays for none twice.
"""

from __future__ import annotations

import json
from typing import Any

from understudy.errors import InsufficientBudgetError, LedgerError, ParameterError, RequestConflictError
from understudy.ledger.interface import SEPARATOR, Debit, Ledger
from understudy.privacy.event import SpentBefore, Together
from understudy.sessions.terms import described


class PurchaseJournal:
    """The written purchases of one session.

    `lazily` opens it with the first purchase: until then nothing is written, and a name that is free stays so.
    """

    def __init__(self, ledger: Ledger, *, name: str, terms: str, analyst: str, lazily: bool = False) -> None:
        if SEPARATOR in name:
            raise ParameterError(f"a session's name must not hold {SEPARATOR!r}, which numbers its purchases")
        self._ledger = ledger
        self._name = name
        self._terms = terms
        self._analyst = analyst
        self._debit: Debit | None = None
        if not lazily or self._is_taken():
            self._open()

    def _is_taken(self) -> bool:
        """Whether the name is in the ledger; nobody can pay for what is tried here, so that nothing is written."""
        beyond = SpentBefore(epsilon=2 * self._ledger.budget.epsilon + 1)
        try:
            self._ledger.charge(beyond, question=self._terms, request=self._name, analyst=self._analyst)
        except RequestConflictError:
            return True
        except InsufficientBudgetError:
            return False
        raise LedgerError(
            "the ledger granted more than its whole budget", remedy="Run `understudy ledger verify`"
        )

    def _open(self) -> Debit:
        try:
            debit = self._ledger.charge(
                Together(()), question=self._terms, request=self._name, analyst=self._analyst
            )
        except RequestConflictError as known:
            raise self._taken(known) from None
        if self._ledger.hidden(debit) is None:
            self._ledger.settle(debit, b"opened", hidden=b"-")
        self._debit = debit
        return debit

    def _taken(self, known: RequestConflictError) -> RequestConflictError:
        """Why the name cannot be used: what it stands for in the ledger."""
        name, mine = self._name, described(self._terms, self._analyst)
        theirs = described(known.question, known.analyst)
        if not known.question:
            why = f"the name {name!r} belongs to another analyst; take another one for the session"
        elif theirs is None:
            why = f"the name {name!r} belongs to a request; take another one for the session"
        elif theirs == mine:
            why = f"session {name!r} was opened on another version of the table; take a new name"
        else:
            why = f"session {name!r} has {theirs}; ask with the same terms, or take a new name"
        return RequestConflictError(why, question=known.question, analyst=known.analyst)

    def request(self, step: int) -> str:
        """The name under which the purchase of a step is charged."""
        return f"{self._name}{SEPARATOR}{step}"

    def write(self, step: int, plan: dict[str, Any]) -> bool:
        """Write down the purchase that comes after `step` others; False if another process was faster."""
        text = json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()
        question = f"session step {step + 1}: {plan['kind']}"
        debit = self._debit or self._open()
        return self._ledger.advance(debit, step=step, question=question, answer=text, state=b"-")

    def after(self, step: int) -> list[dict[str, Any]]:
        """The purchases written down after the first `step` ones."""
        if self._debit is None:
            return []
        latest = self._ledger.hidden(self._debit)
        if latest is None or latest.step == step:
            return []
        return [json.loads(text) for text in self._ledger.steps(self._debit)[step:]]
