"""What a mutant is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

ONE = Fraction(1)
ERROR = 1e-8
"""Of each bound: a mutant must be caught beyond doubt."""


@dataclass(frozen=True)
class Mutant:
    """A mechanism broken on purpose, the audit that is to catch it, and whether it did; or why none can."""

    name: str
    audit: str
    caught: Callable[[], bool]
    escapes: str = ""
