"""What a mechanism with a memory has said, step by step, kept in the ledger.

A journal is a handle that costs nothing in itself: its terms are the question of its debit, its steps are plain
values, and beside the last one stands what the mechanism hides. The same name continues the same journal, in
another thread, process or year; other terms are refused.
"""

from __future__ import annotations

import json
from typing import Any

from understudy.ledger.interface import Debit, Ledger, fresh_request
from understudy.privacy.event import Together


class Journal:
    """The steps of one mechanism, in order. Adding one fails when somebody else's came first."""

    def __init__(self, ledger: Ledger, terms: str, *, name: str = "", analyst: str = "") -> None:
        self._ledger = ledger
        self.name = name or fresh_request()
        self._debit: Debit = ledger.charge(Together(()), question=terms, request=self.name, analyst=analyst)
        if ledger.hidden(self._debit) is None:
            ledger.settle(self._debit, b"opened", hidden=b"-")
        self.length = 0
        self.hidden = b"-"

    def later(self) -> list[Any]:
        """The steps that were added since the last look, here or elsewhere."""
        latest = self._ledger.hidden(self._debit)
        if latest is not None:
            self.hidden = latest.state
        if latest is None or latest.step == self.length:
            return []
        steps = self._ledger.steps(self._debit)[self.length :]
        self.length += len(steps)
        return [json.loads(step) for step in steps]

    def add(self, question: str, step: Any, *, hidden: bytes = b"-") -> bool:
        """Keep a step and what is hidden after it, if the last step is known here; else change nothing.

        Then look at `later` first.
        """
        written = json.dumps(step, sort_keys=True, separators=(",", ":")).encode()
        if self._ledger.advance(
            self._debit, step=self.length, question=question, answer=written, state=hidden
        ):
            self.length += 1
            self.hidden = hidden
            return True
        return False
