"""Figures kept as they are measured, so that a run that was stopped goes on where it was.

A figure is found again only under the same settings and the same code: that of the program for its own figures,
the versions installed and the script that calls them for a peer's.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bench.tables import ROOT

SHARED = ("clock", "counting", "curating", "release_score", "tables")
"""What the benchmark uses of others: they clock, make the large table, open runs, and load."""

STARTED = time.time()


def digest(*paths: Path) -> str:
    """A name for the contents of files, or of all Python files of folders."""
    made = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            name = file.relative_to(path) if path.is_dir() else file.name
            made.update(str(name).encode() + b"\0" + file.read_bytes())
    return made.hexdigest()[:12]


@cache
def program() -> str:
    """The program's code, as it is on disk now, and all of the benchmark's that makes, asks, clocks or judges."""
    here = ROOT / "bench"
    shared = [here / f"{name}.py" for name in SHARED]
    return digest(ROOT / "src" / "understudy", *sorted(here.glob("synthesis*.py")), *shared)


@dataclass(frozen=True)
class Kept:
    """A figure, and when it was measured."""

    value: Any
    when: float


def age(*figures: Kept) -> str:
    """When the oldest of some figures was measured, if not by this run."""
    oldest = min(kept.when for kept in figures)
    return "" if oldest >= STARTED else time.strftime("  (of %Y-%m-%d %H:%M)", time.localtime(oldest))


@dataclass(eq=False)
class Record:
    """A file of JSON lines; a half-written last line is ignored."""

    path: Path
    fresh: bool = False
    reused: int = 0
    _known: dict[str, Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.fresh or not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            try:
                told = json.loads(line)
                self._known[_name(told["key"])] = Kept(told["value"], told["when"])
            except (ValueError, KeyError):
                continue

    def measured(self, key: Mapping[str, Any], measure: Callable[[], Any]) -> Kept:
        """What is known under the key, else what `measure` finds; that must be plain values."""
        known = self._known.get(_name(key))
        if known is not None:
            self.reused += known.when < STARTED
            return known
        kept = Kept(measure(), time.time())
        self._known[_name(key)] = kept
        with self.path.open("a") as file:
            told = json.dumps({"key": dict(key), "value": kept.value, "when": kept.when})
            file.write(f"\n{told}\n")  # on a line of its own, also after one that was never finished
        return kept


def _name(key: Mapping[str, Any]) -> str:
    return json.dumps(dict(key), sort_keys=True)
