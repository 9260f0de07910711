"""Many questions at once: priced together before the first is asked, and asked a few at a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from understudy.errors import ParameterError

MOST_PRICED = 50
"""Questions that a server prices in one request."""

MOST_AT_ONCE = 16
"""Questions that are under way together; a server lets an analyst have fewer, and the rest wait there."""

Progress = Callable[[int, int], None]
"""Told how many of how many questions are answered."""

Given = TypeVar("Given")


def batches(questions: Sequence[str]) -> Iterator[Sequence[str]]:
    """The questions in so many requests for prices as are needed."""
    for start in range(0, len(questions), MOST_PRICED):
        yield questions[start : start + MOST_PRICED]


def answered(
    questions: Sequence[str], ask: Callable[[int], Given], *, at_once: int, progress: bool | Progress
) -> list[Given]:
    """What `ask` gives for the place of each question, in their order, `at_once` of them at a time.

    Where one fails no further ones are begun, those under way are finished, and its error is raised.
    """
    is_number = type(at_once) is int  # callers may be untyped
    if not is_number or not 1 <= at_once <= MOST_AT_ONCE:
        raise ParameterError(f"`at_once` is a number from 1 to {MOST_AT_ONCE}, not {at_once!r}")
    told = _Told(len(questions), _line if progress is True else progress or None)

    def asked(place: int) -> Given:
        given = ask(place)
        told.one_more()
        return given

    with ThreadPoolExecutor(min(at_once, max(len(questions), 1)), thread_name_prefix="ask") as pool:
        futures = [pool.submit(asked, place) for place in range(len(questions))]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _Told:
    """Counts answers, and tells how many there are: one thread at a time."""

    def __init__(self, total: int, tell: Progress | None) -> None:
        self._total = total
        self._tell = tell
        self._done = 0
        self._lock = threading.Lock()

    def one_more(self) -> None:
        with self._lock:
            self._done += 1
            if self._tell is not None:
                self._tell(self._done, self._total)


def _line(done: int, total: int) -> None:
    """How far it is, in one line of the error stream that is written over."""
    end = "\n" if done == total else ""
    print(f"\r{done} of {total} questions answered", end=end, file=sys.stderr, flush=True)  # noqa: T201
