"""What a figure is held to, and whether it is met: one vocabulary for all benchmarks.

A benchmark returns its verdicts. What is `not run`, for want of data or of a peer, or `not judged`, because the
run was shorter than what the bar is for, is not missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Word = Literal["met", "MISSED", "not run", "not judged"]
WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Bar:
    """A limit. `shape` writes a figure and then its unit."""

    limit: float
    words: str
    shape: str
    meets: Callable[[float, float], bool]

    def __str__(self) -> str:
        number = self.shape[: self.shape.index("}") + 1]
        return f"{self.words} {number.format(self.limit)}"


def at_most(limit: float, shape: str = "{:g}") -> Bar:
    return Bar(limit, "at most", shape, lambda measured, limit: measured <= limit)


def at_least(limit: float, shape: str = "{:g}") -> Bar:
    return Bar(limit, "at least", shape, lambda measured, limit: measured >= limit)


def below(limit: float, shape: str = "{:g}") -> Bar:
    return Bar(limit, "below", shape, lambda measured, limit: measured < limit)


@dataclass(frozen=True)
class Verdict:
    """A demand by its name, one of the four words, and what there is to say."""

    name: str
    word: Word
    told: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.name}" + (f": {self.told}" if self.told else "")

    def of_full_size(self, what: str, size: int, full: int) -> Verdict:
        """Not judged where the run is shorter than what the bar is for; a claim without figures always is."""
        if size >= full or not self.told:
            return self
        return Verdict(self.name, "not judged", f"{self.told}; the bar is for {full:,} {what}")


def verdict(name: str, measured: float, bar: Bar) -> Verdict:
    """Whether a figure meets its bar; one that is no number does not."""
    return claim(name, f"{bar.shape.format(measured)} ({bar})", holds=bar.meets(measured, bar.limit))


def claim(name: str, told: str = "", *, holds: bool) -> Verdict:
    """A demand that is no figure."""
    return Verdict(name, "met" if holds else "MISSED", told)


def not_run(name: str, why: str) -> Verdict:
    return Verdict(name, "not run", why)


def shown(*found: Verdict) -> list[Verdict]:
    """Print verdicts, each on a line, and hand them on."""
    for one in found:
        print(one, flush=True)
    return list(found)


def ended(found: Sequence[Verdict]) -> int:
    """Print what was not run, not judged and missed, as the last lines; the status to exit with."""
    named = {word: list(dict.fromkeys(one.name for one in found if one.word == word)) for word in WORDS}
    for word in ("not run", "not judged"):
        if named[word]:
            print(f"{word}: {'; '.join(named[word])}")
    print(f"missed: {'; '.join(named['MISSED'])}" if named["MISSED"] else "nothing was missed")
    return 1 if named["MISSED"] else 0
