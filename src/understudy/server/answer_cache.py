"""Answers of sessions that were sent once, ready to be sent again without a thread."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

from understudy.privacy.cost import Cost

MOST_REPLIES = 1 << 15
MOST_REPLY_BYTES = 1 << 28
"""Answers, and bytes of them, that are sent again from memory."""

Key = tuple[str, int, str, str]
"""Table, which of its openings, whose session, and the question's words."""


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """An answer as everybody who asks again gets it: as plain values, as JSON, and the nothing that it costs."""

    plain: dict[str, Any]
    text: str
    nothing: Cost


class AnswerCache:
    """The answers that were given in sessions, ready to be sent again; the ones used longest ago make room."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, KnownAnswer] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def find(self, key: Key) -> KnownAnswer | None:
        """The answer, if it is remembered."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: Key, known: KnownAnswer) -> None:
        """Remember an answer; the first one of a question stays."""
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = known
            self._bytes += len(known.text)
            while len(self._kept) > MOST_REPLIES or self._bytes > MOST_REPLY_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1].text)
