"""The answers that a session has given: asked again, a question gets the same answer for nothing."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from understudy.answer.answer import Answer
from understudy.ledger.asking_lock import AskingLock
from understudy.query.marginal import Marginal

MOST_ANSWERS = 1 << 15
"""Answers for nothing that are remembered; the one that was used longest ago is deduced again when it is asked."""

MOST_FREE_CELLS = 1 << 21
"""Cells of these answers together. Answers that were paid for are all kept."""

Identity = tuple[Any, ...]
"""What makes two questions about one domain the same question (`identity`)."""


class AnswerMemory:
    """All answers that were paid for, and the latest of those that cost nothing.

    Promise     A question whose answer is remembered gets that answer. One that was paid for is never forgotten:
                it is frozen, and fresh noise for it would cost again. One that cost nothing follows from what is
                known, so that forgetting it loses no promise.
    Cost        Memory in the answers paid for, and at most `MOST_FREE_CELLS` cells of the others.

    Safe for threads: an answer is found without a lock, by single operations of dictionaries, and remembered
    under one that is held for no longer than that takes.
    """

    def __init__(self) -> None:
        self._lock = AskingLock("session")
        self.paid: dict[Identity, Answer] = {}
        self.free: OrderedDict[Identity, Answer] = OrderedDict()
        self.free_cells = 0
        self.closer: dict[Identity, Answer] = {}
        """What was bought of single marginals within an error of its own (`within_error`), wide or narrow."""

    def find(self, marginal: Marginal) -> Answer | None:
        """The answer that was given to a question, if it is remembered."""
        asked = marginal.identity
        known = self.paid.get(asked)
        if known is None and (known := self.free.get(asked)) is not None:
            try:
                self.free.move_to_end(asked)
            except KeyError:  # another thread forgot it just now: it is the answer all the same
                return known
        return known

    def keep_free(self, marginal: Marginal, answer: Answer) -> Answer:
        """Remember an answer that cost nothing, in place of those that were used longest ago.

        Returns the answer to give: one that another thread was quicker to remember, so that both say the same.
        """
        asked = identity(marginal)
        with self._lock:
            known = self.paid.get(asked) or self.free.get(asked)
            if known is not None:
                return known
            self.free[asked] = answer
            self.free_cells += answer.value.size
            while len(self.free) > MOST_ANSWERS or self.free_cells > MOST_FREE_CELLS:
                self.free_cells -= self.free.popitem(last=False)[1].value.size
        return answer

    def keep_closer(self, marginal: Marginal, answer: Answer, width: float) -> None:
        """Remember what was bought within an error of its own, where it is nearer than what was before.

        Where that is within the session's `width`, it is the answer from now on of a question that had none.
        """
        asked = identity(marginal)
        with self._lock:
            known = self.closer.get(asked)
            if known is None or float(answer.error.max(initial=0.0)) < float(known.error.max(initial=0.0)):
                self.closer[asked] = answer
        if self.find(marginal) is None and bool((answer.error <= width).all()):
            self.keep_paid(marginal, answer)

    def keep_paid(self, marginal: Marginal, answer: Answer) -> None:
        """Remember an answer that was paid for, for good; it takes the place of one that was deduced."""
        asked = identity(marginal)
        with self._lock:
            if asked in self.free:
                self.free_cells -= self.free.pop(asked).value.size
            self.paid[asked] = answer


def identity(marginal: Marginal) -> Identity:
    """What makes two questions of one session the same question."""
    return marginal.identity
