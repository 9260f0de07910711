"""What a mechanism with a memory has said, step by step, kept in the ledger beside what it hides.

A journal is a handle of the ledger: its terms are the question of its debit, its steps are plain values, and
beside the last one stands the state that the mechanism hides. Most journals cost nothing themselves (`NOTHING`);
a sparse vector's is paid for. The same name continues the same journal, in another thread, process or year; other
terms are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from understudy.ledger.interface import NOTHING, Debit, Hidden, JournalStep, Ledger, fresh_request
from understudy.privacy.event import Event

PUBLIC = b"-"
"""The state of a journal that hides nothing."""


class Journal:
    """The steps of one mechanism, in order. Adding one fails when somebody else's came first.

    name     its request in the ledger; without one, a fresh request.
    event    what opening it is charged.
    start    draws the first hidden state; called only where the ledger holds none.
    lazily   the journal is opened with its first step: until then nothing is written, and a free name stays free.

    Raises, when it is opened, a `RequestConflictError` for a name that was used with other terms, and an
    `InsufficientBudgetError` where the ledger cannot pay for the event.
    """

    def __init__(
        self,
        ledger: Ledger,
        terms: str,
        *,
        name: str = "",
        analyst: str = "",
        event: Event = NOTHING,
        start: Callable[[], bytes] = lambda: PUBLIC,
        lazily: bool = False,
    ) -> None:
        self._ledger = ledger
        self._terms = terms
        self.analyst = analyst
        self._event = event
        self._start = start
        self.name = name or fresh_request()
        self.length = 0
        """The number of steps that were read or added here."""
        self.hidden = PUBLIC
        """The state after the last step that was read or added here."""
        self.debit: Debit | None = None
        if name:
            self._find()
        if not lazily:
            self._open()

    def _find(self) -> Debit | None:
        """The journal's debit, where the ledger holds it; it must have these terms."""
        if self.debit is None:
            found = self._ledger.find(self.name)
            if found is not None:
                found.check_same(self._event, question=self._terms, analyst=self.analyst)
            self.debit = found
        return self.debit

    def _open(self) -> Debit:
        """Charge for the journal and keep its first state; one that is open already is only read."""
        if self.debit is None or self._ledger.hidden(self.debit) is None:
            self.debit = self._ledger.charge(
                self._event,
                question=self._terms,
                request=self.name,
                analyst=self.analyst,
                hidden=self._start(),
            )
        return self.debit

    def latest(self) -> Hidden | None:
        """The number of steps so far, by anybody, and what is hidden after them; the next `add` follows them.

        None where the journal is not opened yet, or its state was lost. Steps that were not read are skipped.
        """
        debit = self._find()
        latest = None if debit is None else self._ledger.hidden(debit)
        if latest is not None:
            self.length, self.hidden = latest.step, latest.state
        return latest

    def later(self) -> Iterator[Any]:
        """The steps that were added since the last look, here or elsewhere.

        A step counts as read when the next one is asked for: who fails while taking one in gets it again.
        """
        debit = self._find()
        latest = None if debit is None else self._ledger.hidden(debit)
        if debit is None or latest is None or latest.step == self.length:
            return
        first, steps = self.length, self._ledger.steps(debit, after=self.length)
        # The steps may be newer than the state that was read first: read on until both are of one moment.
        while latest is not None and latest.step != first + len(steps):
            latest, steps = self._ledger.hidden(debit), self._ledger.steps(debit, after=first)
        self.hidden = PUBLIC if latest is None else latest.state
        for number, step in enumerate(steps, first + 1):
            yield json.loads(step)
            self.length = number

    def text_of(self, number: int) -> bytes | None:
        """The step of this number, from 1, as the ledger keeps it; None where there is none."""
        debit = self._find()
        steps = [] if debit is None or number < 1 else self._ledger.steps(debit, after=number - 1)
        return steps[0] if steps else None

    def all(self) -> list[Any]:
        """Every step, from the first."""
        debit = self._find()
        return [] if debit is None else [json.loads(step) for step in self._ledger.steps(debit)]

    def add(self, question: str, step: Any, *, hidden: bytes = PUBLIC) -> bool:
        """Keep a step and what is hidden after it, if the last step is known here; else change nothing.

        Then look at `later` first.
        """
        kept = self._ledger.advance(
            self.debit or self._open(),
            step=self.length,
            question=question,
            answer=_written(step),
            state=hidden,
        )
        if kept:
            self.length += 1
            self.hidden = hidden
        return kept

    def beside(self, question: str, step: Any) -> JournalStep:
        """A public step to be kept in the transaction of a debit: after it, `length` is the caller's to move."""
        return JournalStep(
            self.name, self._terms, self.analyst, self.length, question, _written(step), PUBLIC
        )


def _written(step: Any) -> bytes:
    return json.dumps(step, sort_keys=True, separators=(",", ":")).encode()
