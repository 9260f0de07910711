"""A session in the ledger: a debit of nothing, whose steps are the purchases.

A purchase is written down before it is made, and made under a request of its own. So another process, or this one
after a crash, finds every purchase made or makes it, and pays for none twice.
"""

from __future__ import annotations

import json
from typing import Any

from understudy.errors import RequestConflictError
from understudy.ledger.interface import Ledger
from understudy.privacy.event import Together


class Handle:
    """The written purchases of one session."""

    def __init__(self, ledger: Ledger, *, name: str, terms: str, analyst: str) -> None:
        self._ledger = ledger
        self._name = name
        try:
            self._debit = ledger.charge(Together(()), question=terms, request=name, analyst=analyst)
        except RequestConflictError:
            raise RequestConflictError(
                f"the name {name!r} belongs to a session with other terms or another analyst, or to a request; "
                "ask with the same terms, or take a new name"
            ) from None
        if ledger.hidden(self._debit) is None:
            ledger.settle(self._debit, b"opened", hidden=b"-")

    def request(self, step: int) -> str:
        """The name under which the purchase of a step is charged."""
        return f"{self._name} {step}"

    def write(self, step: int, plan: dict[str, Any]) -> bool:
        """Write down the purchase that comes after `step` others; False if another process was faster."""
        text = json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()
        question = f"session step {step + 1}: {plan['kind']}"
        return self._ledger.advance(self._debit, step=step, question=question, answer=text, state=b"-")

    def after(self, step: int) -> list[dict[str, Any]]:
        """The purchases written down after the first `step` ones."""
        latest = self._ledger.hidden(self._debit)
        if latest is None or latest.step == step:
            return []
        return [json.loads(text) for text in self._ledger.steps(self._debit)[step:]]
