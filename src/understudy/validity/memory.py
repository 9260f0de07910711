"""What a holdout has said, and what it hides between two questions, kept in a ledger under one name."""

from __future__ import annotations

import json
from typing import Any

from understudy.ledger.interface import Ledger
from understudy.privacy.event import Together


class Memory:
    """The steps of one holdout in order, and its latest secret. Other terms under the same name are refused."""

    def __init__(self, ledger: Ledger, terms: str, *, name: str) -> None:
        self._ledger = ledger
        self._debit = ledger.charge(Together(()), question=terms, request=name)
        if ledger.hidden(self._debit) is None:
            ledger.settle(self._debit, b"opened", hidden=b"{}")
        self.length = 0
        self.secret: dict[str, Any] = {}

    def later(self) -> list[Any]:
        """The steps that were added since the last look, by another thread or process; the secret is theirs."""
        latest = self._ledger.hidden(self._debit)
        if latest is None or latest.step == self.length:
            return []
        steps = self._ledger.steps(self._debit)
        # The steps may be newer than the state that was read first: read on until both are of one moment.
        while latest is not None and latest.step != len(steps):
            latest, steps = self._ledger.hidden(self._debit), self._ledger.steps(self._debit)
        new = [json.loads(step) for step in steps[self.length :]]
        self.length = len(steps)
        self.secret = {} if latest is None else json.loads(latest.state)
        return new

    def all(self) -> list[Any]:
        """Every step, from the first."""
        return [json.loads(step) for step in self._ledger.steps(self._debit)]

    def keep(self, question: str, step: Any, secret: dict[str, Any]) -> bool:
        """Keep a step and the secret after it, if no other came first; else change nothing: look at `later`."""
        written = json.dumps(step, sort_keys=True, separators=(",", ":")).encode()
        hidden = json.dumps(secret).encode()
        if not self._ledger.advance(
            self._debit, step=self.length, question=question, answer=written, state=hidden
        ):
            return False
        self.length += 1
        self.secret = dict(secret)
        return True
