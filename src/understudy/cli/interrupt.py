"""Ctrl-C: one line that says what is safe, and the exit status 130.

A command notes, before each of its stages, what would be true if it were stopped there: a text, or a function that
finds out from the ledger. The signal is remembered as well as raised, because a database may turn the interruption
of a query into an error of its own.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 130
"""The exit status of a command that was stopped by Ctrl-C: 128 and the number of the signal."""

UNCHARGED = "nothing was charged"


@dataclass
class Interruption:
    """Whether the running command was interrupted, and what is safe at its present stage."""

    happened: bool = False
    safe: str | Callable[[], str] = UNCHARGED

    def told(self) -> str:
        """The line for the person who pressed Ctrl-C."""
        return f"interrupted; {self.safe if isinstance(self.safe, str) else self.safe()}"


_running = Interruption()


def if_interrupted(safe: str | Callable[[], str]) -> None:
    """Note what is to be said if the command is interrupted from here on; a function is called only then."""
    _running.safe = safe


def was_interrupted() -> bool:
    """Whether the running command was interrupted, whatever became of the exception."""
    return _running.happened


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """A command under way: SIGINT is remembered, and raises KeyboardInterrupt as ever.

    A process for which the signal is ignored or handled otherwise (`nohup`, another program) is left alone.
    """
    global _running
    before, _running = _running, Interruption()
    running = _running

    def remember(number: int, frame: FrameType | None) -> None:
        running.happened = True
        signal.default_int_handler(number, frame)

    try:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if usual:
            signal.signal(signal.SIGINT, remember)
    except ValueError:  # not the main thread, which alone hears signals
        usual = False
    try:
        yield running
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _running = before


def ignore_further() -> None:
    """A second Ctrl-C does not cut off the line that the first one gets."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        return
