"""Inputs by random mutation of good ones, thrown at a door in this process; and what counts as an escape.

An input is let in, or refused by an `UnderstudyError` whose words help. Anything else escapes: another exception,
a hang (CPU seconds for one input), or memory that grows.
"""

from __future__ import annotations

import logging
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from understudy.errors import UnderstudyError

FULL = bool(os.environ.get("UNDERSTUDY_AUDIT"))
MILLION = {
    "questions": 300_000,
    "sql": 200_000,
    "declarations": 150_000,
    "events": 150_000,
    "forged entries": 100_000,
    "workload files": 40_000,
    "descriptions": 20_000,
    "ledger files": 20_000,
    "release folders": 10_000,
    "witness files": 5_000,
    "command lines": 5_000,
}
"""How many inputs each door gets in `make audit`: a million."""
HANG = 20.0
"""CPU seconds that no single input of a few hundred bytes may take."""
GROWTH = 768 << 20
"""Bytes by which this process's memory may grow while a batch runs."""

Input = TypeVar("Input", str, bytes)


class HangError(BaseException):
    """Not an Exception, so that nothing under test can take it for one of its own."""


@dataclass
class Tally:
    """What became of the inputs."""

    tried: int = 0
    let_in: int = 0
    refused: int = 0

    def __str__(self) -> str:
        return f"{self.tried} inputs: {self.let_in} let in, {self.refused} refused"


def helpful(error: UnderstudyError) -> bool:
    """Whether an error says something to a person, in words and not in the words of a traceback."""
    words = str(error)
    return len(words) >= 12 and " " in words and "Traceback" not in words and " object at 0x" not in words


def throw(
    name: str, door: Callable[[Any], Any], made: Iterator[Any], slice_: int, *, parts: int = 1
) -> Tally:
    """Put a door's share of a million inputs to it, in `parts` calls, or a slice; the first escape is shown."""
    tally, before_it = Tally(), marked()
    count, started = (MILLION[name] // parts if FULL else slice_), time.process_time()
    before = signal.signal(signal.SIGVTALRM, _hang)
    try:
        for _, given in zip(range(count), made, strict=False):
            signal.setitimer(signal.ITIMER_VIRTUAL, HANG)
            tally.tried += 1
            try:
                door(given)
                tally.let_in += 1
            except UnderstudyError as error:
                tally.refused += 1
                if not helpful(error):
                    raise AssertionError(f"{given!r}: {error!r} helps nobody") from error
            except (Exception, HangError) as error:
                raise AssertionError(f"{given!r} escaped: {type(error).__name__}: {error}") from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    grown = peak() - before_it
    assert grown < GROWTH, f"memory grew by {grown >> 20} MiB"
    logging.getLogger("fuzz").info("%s: %s, %.0f CPU s", name, tally, time.process_time() - started)
    return tally


def _hang(*_: Any) -> None:
    raise HangError(f"{HANG:g} CPU seconds were not enough")


def marked() -> int:
    """Set the mark of `peak` back to what is in use now, and return that.

    Otherwise the mark is that of the whole process, and nothing is seen to grow after a larger test.
    """
    with suppress(OSError):  # Linux alone can set it back; elsewhere what came before hides what is less
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Bytes of memory in use at most, since it was marked."""
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found << 10


NUMBERS = (
    "0", "1", "-1", "2", "0.5", "1e309", "-1e309", "1e-400", "nan", "inf", ".inf", "1/0", "1/3", "1e99999", "١٢",
    "9" * 40, "18446744073709551616", "-9223372036854775809", "0x1F", "1_000", "+5", "01", "1e", "--1", "³",
)  # fmt: skip
ODD = (
    "",
    "\x00",
    "\n",
    "\r\n",
    "\t",
    "\u2028",
    "\ufeff",
    "\ud800",
    "é",
    "𝔘",
    "'",
    '"',
    "`",
    "\\",
    "\\UFFFFFFFF",
    "%",
)
DEEP = ("[", "(", "{", "((", "[[", "- ", "a: ", "not ", "-", "&a [*a", '{"a":', '[{"events":[')


def mutations(corpus: Sequence[Input], words: Sequence[str], *, seed: int) -> Iterator[Input]:
    """For ever: a good input with one to five things done to it."""
    draw = random.Random(seed)
    binary = isinstance(corpus[0], bytes)
    spell: Any = (lambda text: text.encode("utf-8", "surrogatepass")) if binary else (lambda text: text)
    vocabulary = [spell(word) for word in (*words, *NUMBERS, *ODD)]
    deep = [spell(word) for word in DEEP]
    while True:
        given = draw.choice(corpus)
        for _ in range(1 + min(4, int(draw.expovariate(1)))):
            given = _mutated(given, corpus, vocabulary, deep, draw)
        yield given


def _mutated(
    given: Any, corpus: Sequence[Any], vocabulary: Sequence[Any], deep: Sequence[Any], draw: Any
) -> Any:
    size = len(given)
    at = draw.randrange(size + 1)
    end = min(size, at + int(draw.expovariate(0.15)))
    match draw.randrange(10):
        case 0:
            return given[:at] + given[end:]
        case 1:
            return given[:at] + draw.choice(vocabulary) + given[at:]
        case 2:
            return given[:at] + draw.choice(vocabulary) + given[end:]
        case 3:
            return given[:end] + given[at:end] * draw.choice((1, 2, 7)) + given[end:]
        case 4:
            other = draw.choice(corpus)
            return given[:at] + other[draw.randrange(len(other) + 1) :]
        case 5:
            start = draw.randrange(size + 1)
            return given[:at] + given[start : start + end - at] + given[end:]
        case 6:
            return given[:at] if draw.random() < 0.3 else given[:at] + given[at + 1 :]
        case 7:
            # A few long ones: depth is what recursion dies of.
            times = draw.choice((2, 30, 30, 30, 3000)) if draw.random() < 0.1 else 2
            return given[:at] + draw.choice(deep) * times + given[at:]
        case 8:
            return given[:at] + _letter(given, draw) + given[at + 1 :]
        case _:
            return _number_changed(given, vocabulary, at, draw)


def _letter(given: Any, draw: Any) -> Any:
    if isinstance(given, bytes):
        return bytes([draw.randrange(256)])
    return chr(draw.randrange(128) if draw.random() < 0.9 else draw.randrange(0xD7FF))


def _number_changed(given: Any, vocabulary: Sequence[Any], at: int, draw: Any) -> Any:
    """The next run of digits, as another number."""
    digits = b"0123456789" if isinstance(given, bytes) else "0123456789"
    while at < len(given) and given[at] not in digits:
        at += 1
    end = at
    while end < len(given) and given[end] in digits:
        end += 1
    return given[:at] + draw.choice(vocabulary[-len(NUMBERS) - len(ODD) : -len(ODD)]) + given[end:]
