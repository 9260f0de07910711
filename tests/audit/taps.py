"""Taps where exact values meet noise: what arrived there on one table and on its neighbour, against the bounds.

A tap sits in every mechanism, so a value is compared wherever it comes from. The values of one debit are held
together until it is settled: each may move as far as its mechanism says, and all of them together may lose no
more than was charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from audit.replay import PUBLIC_STATE, Difference
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.matrix.many_marginals import PartsNoise
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.mechanism.small_database.levels import Enumeration
from understudy.mechanism.small_database.shells import Counted
from understudy.mechanism.sparse_vector import AboveThreshold
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Event

Values = NDArray[np.int64]


@dataclass(frozen=True)
class Tap:
    """Values that met noise, and the mechanism whose noise it was."""

    mechanism: Any
    values: Values

    def fault(self, moved: Values) -> str:
        """What is wrong with values that moved so far; nothing, if the mechanism declared as much."""
        size, bound = self._measured(moved)
        return f"moved by {size}, {bound} declared by {self.mechanism}" if size > bound else ""

    def reach(self, moved: Values, event: Event) -> Fraction:
        """How far the values moved, as a part of what the noise was made for; `event` is that of the debit."""
        if isinstance(self.mechanism, PartsNoise):
            return self._of_parts(self.mechanism, moved) / event.zcdp_cost()
        size, bound = self._measured(moved)
        return Fraction(size, bound)

    def _measured(self, moved: Values) -> tuple[int, int]:
        """The move in the norm of the mechanism, and its sensitivity; nothing where it has none of its own."""
        mechanism = self.mechanism
        if isinstance(mechanism, LaplaceMechanism):
            size, bound = int(np.abs(moved).sum()), mechanism.l1
        elif isinstance(mechanism, GaussianMechanism):
            size, bound = int((moved * moved).sum()), mechanism.l2_squared
        elif isinstance(mechanism, ExponentialMechanism | ReportNoisyMax | AboveThreshold):
            size, bound = int(np.abs(moved).max(initial=0)), mechanism.sensitivity
        elif isinstance(mechanism, Counted | Enumeration):
            size, bound = int(np.abs(moved).max(initial=0)), 1
        else:
            return 0, 0
        return size, bound

    def loss(self, moved: Values, *, pure: bool) -> Fraction | None:
        """What the noise lets through of a move, in the ledger's currency; None where noise is not added."""
        mechanism = self.mechanism
        if not moved.any():
            return Fraction(0)
        if isinstance(mechanism, LaplaceMechanism):
            lost = int(np.abs(moved).sum()) / mechanism.scale
            return lost if pure else lost * lost / 2
        if isinstance(mechanism, GaussianMechanism):
            return int((moved * moved).sum()) / (2 * mechanism.variance)
        if isinstance(mechanism, PartsNoise):
            return self._of_parts(mechanism, moved)
        return None

    def _of_parts(self, mechanism: PartsNoise, moved: Values) -> Fraction:
        lost, at = Fraction(0), 0
        for precision, size in zip(mechanism.precisions, mechanism.sizes, strict=True):
            lost += precision * int((moved[at : at + size] ** 2).sum()) / 2
            at += size
        assert at == moved.size
        return lost


@dataclass
class Taps:
    """What met noise in one run, debit by debit."""

    settled: list[tuple[Event, list[Tap]]] = field(default_factory=list)
    waiting: list[Tap] = field(default_factory=list)

    def put(self, mechanism: Any, values: Any) -> None:
        self.waiting.append(Tap(mechanism, np.array(values, np.int64).ravel()))

    def close(self, event: Event, *, last: int | None = None) -> None:
        """The debit of what waits; only the `last` so many were said, where others were drawn in vain."""
        self.settled.append((event, self.waiting if last is None else self.waiting[-last:]))
        self.waiting = []


@contextmanager
def tapped() -> Iterator[Taps]:
    """Every mechanism's values, for as long as this lasts."""
    taps = Taps()
    with (
        _before(LaplaceMechanism, "release", taps.put),
        _before(GaussianMechanism, "release", taps.put),
        _before(ExponentialMechanism, "choose_many", taps.put),
        _before(ReportNoisyMax, "choose_many", taps.put),
        _before(AboveThreshold, "ask", lambda mechanism, state, value: taps.put(mechanism, [value])),
        _before(PartsNoise, "draw_many", taps.put),
        _before(Enumeration, "draw_many", taps.put),
        _before(Counted, "draw_many", taps.put),
        _ledger(taps),
    ):
        yield taps


@contextmanager
def _before(kind: type, name: str, note: Callable[..., None]) -> Iterator[None]:
    plain = getattr(kind, name)
    taken = note.__code__.co_argcount - (1 if hasattr(note, "__self__") else 0)

    def tapped_call(self: Any, *arguments: Any, **named: Any) -> Any:
        note(self, *arguments[: taken - 1])
        return plain(self, *arguments, **named)

    with patch.object(kind, name, tapped_call):
        yield


@contextmanager
def _ledger(taps: Taps) -> Iterator[None]:
    """A debit's values are complete when it is settled; of a sparse vector's, the last was said."""
    settle, advance = MemoryLedger.settle, MemoryLedger.advance

    def settled(self: MemoryLedger, debit: Any, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        taps.close(debit.event)
        return settle(self, debit, answer, hidden=hidden)

    def advanced(self: MemoryLedger, debit: Any, *, state: bytes, **step: Any) -> bool:
        done = advance(self, debit, state=state, **step)
        if done and state != PUBLIC_STATE:
            taps.close(debit.event, last=1)
        return done

    with patch.object(MemoryLedger, "settle", settled), patch.object(MemoryLedger, "advance", advanced):
        yield


def compared(first: Taps, second: Taps, budget: Budget) -> tuple[list[Difference], int]:
    """Every value of two runs on neighbours against its bound, and every debit's against its price; how many."""
    found, count = [], 0
    if len(first.settled) != len(second.settled):
        return [Difference("taps", f"{len(first.settled)} debits / {len(second.settled)}")], 0
    for (event, one), (other, two) in zip(first.settled, second.settled, strict=True):
        if event != other or len(one) != len(two):
            found.append(Difference("taps", f"{event} / {other}"))
            continue
        losses: list[Fraction | None] = []
        for a, b in zip(one, two, strict=True):
            moved = b.values - a.values
            count += moved.size
            if fault := a.fault(moved):
                found.append(Difference("sensitivity", fault))
            losses.append(a.loss(moved, pure=budget.is_pure))
        added = [loss for loss in losses if loss is not None]
        if len(added) == len(losses) and sum(added, Fraction(0)) * UNITS > budget.price(event).units:
            found.append(Difference("price", f"{float(sum(added)):.6g} lost, {budget.price(event)} charged"))
    return found, count
