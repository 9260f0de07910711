"""A ledger after the worst that question strings alone can do: what opening, charging and verifying it takes.

Every question costs epsilon 1e-9 and is about three attributes. In turns they are about random cells of many
cliques, each of which has to be told apart; about cells that nobody else asks about; and about attributes of
thousands of cells. All are charged and answered by the ledger's own code, some hundred to a transaction. At the
end the budget is all but spent, so that every charge is looked at again before it is turned down; these are
charged one by one, and timed.

In another ledger every price is 2.2% of what was charged so far, over tables of attributes of 4,096 cells that are
all told apart: each question calls for sweeps over all of them, until the credit of the rule is used up.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from time import process_time

from sqlalchemy.engine import URL

from bench.clock import clocked
from bench.verdict import Verdict, at_most, verdict
from understudy.errors import InsufficientBudgetError
from understudy.ledger import export
from understudy.ledger.group import Ticket
from understudy.ledger.page import Charge, Operation, Settle
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.event import Event, LaplaceNoise, Located, Selection, Span

ENTRIES = 100_000
TINY = Fraction(1, 10**9)
BUDGET = Budget.of(1)
BATCH = 250
LEFT = Fraction(1, 10**8)
LATE = 100
"""What is left of the budget for the last questions, and how many they are."""

CHARGE, OPEN, VERIFY, FILE = 1.0, 1.5, 60.0, 22.0
"""Bars: CPU seconds of the dearest charge, an opening and `verify`; megabytes of one answer of 4.2M cells."""

CLIMB, WIDE, MASKS, CLIMBS = Fraction(22, 1000), 61, 13, 600
"""The part of all before it that a question costs; attributes of 4,096 cells, counts of each, and prices then."""

CLIMBED_CHARGE, CLIMBED = 0.5, 300.0
"""Bars: CPU seconds of the dearest charge, and of `verify`, where prices climb."""


def hostile(count: int, seed: int = 1) -> Iterator[Located]:
    """Located events of epsilon 1e-9."""
    draw = random.Random(seed)
    for i in range(count):
        kind, split = i % 3, i % 3 != 1
        size = (40, 40, 4096)[kind]
        names = [f"{'mcw'[kind]}{name:02}" for name in sorted(draw.sample(range((24, 3, 4)[kind]), 3))]
        masks = [1 << draw.randrange(size) if kind == 1 else draw.getrandbits(size) | 1 for _ in names]
        l1 = Fraction(2 if split else 1)
        yield Located(
            noise=LaplaceNoise(l1=l1, scale=l1 / TINY),
            region=tuple(Span(name, size, mask) for name, mask in zip(names, masks, strict=True)),
            relation="replace",
            split=split,
        )


class Filled:
    """A ledger of so many entries, and the CPU seconds of the dearest charge."""

    def __init__(self, url: URL, entries: int) -> None:
        self.url, self.dearest, self.refused = url, 0.0, 0
        self._ledger = DurableLedger(url, "hostile", BUDGET)
        questions = entries // 2
        early = questions - LATE
        events = list(hostile(questions))
        for start in range(0, early, BATCH):
            self._ask(events[start : min(start + BATCH, early)], start)
        left = self._ledger.remaining.units - int(LEFT * 10**15)
        self._ask([Selection(epsilon=Fraction(left, 10**15))], early)
        for start in range(early, questions):
            self._ask(events[start : start + 1], start + 1)
        self._ledger.close()

    def _ask(self, events: Sequence[Event], first: int) -> None:
        charges = [
            Ticket[Operation](Charge.of(event, f"count {first + i}", f"r{first + i}", "eve", None, None))
            for i, event in enumerate(events)
        ]
        for one in charges[:1]:  # by itself, as a charge is that nobody shares
            before = process_time()
            self._ledger._commit([one])
            self.dearest = max(self.dearest, process_time() - before)
        if charges[1:]:
            self._ledger._commit(charges[1:])
        self.refused += sum(isinstance(one.error, InsufficientBudgetError) for one in charges)
        granted = [one.result for one in charges if one.error is None]
        if granted:
            answer = json.dumps([-1234567890]).encode()
            self._ledger._commit([Ticket[Operation](Settle(debit, answer, None)) for debit in granted])


def climbing() -> Iterator[Fraction | Located]:
    """Events that fill tables, and then prices of further ones, as parts of what was charged before."""
    draw = random.Random(1)
    for at in range(WIDE):
        for _ in range(MASKS):
            span = Span(f"a{at:02}", 4096, draw.getrandbits(4096) | 1)
            noise = LaplaceNoise(l1=Fraction(2), scale=2000 / TINY)
            yield Located(noise=noise, region=(span,), relation="replace", split=True)
    yield from [CLIMB] * CLIMBS


def climbed(url: URL) -> float:
    """A ledger of these, each asked by itself; the CPU seconds of the dearest charge."""
    ledger, dearest = DurableLedger(url, "hostile", BUDGET), 0.0
    for number, event in enumerate(climbing()):
        if not isinstance(event, Located):
            price = event * max(Fraction(ledger.spent.units, 10**15), TINY)
            noise = LaplaceNoise(l1=Fraction(2), scale=2 / price)
            event = Located(noise=noise, region=(Span("z", 2, 1),), relation="replace", split=True)
        before = process_time()
        ledger.charge(event, question=f"count {number}", request=f"r{number}")
        dearest = max(dearest, process_time() - before)
    ledger.close()
    return dearest


def opened(url: URL) -> None:
    """What every program does first."""
    ledger = DurableLedger(url, "hostile", BUDGET)
    assert ledger.spent.units
    ledger.close()


def megabytes_of_a_large_answer(folder: Path) -> float:
    """By how much one answer of 4.2M cells with the noise of epsilon 1e-9 makes a ledger larger."""
    draw = random.Random(7)
    digits = ",".join(str(draw.getrandbits(33) - (1 << 32)) for _ in range(1 << 22))
    url = URL.create("sqlite", database=str(folder / "large.ledger"))
    ledger = DurableLedger(url, "hostile", BUDGET)
    debit = ledger.charge(next(hostile(1)), question="q", request="r")
    ledger.settle(debit, f"[[{digits}]]".encode())
    ledger.close()
    return (folder / "large.ledger").stat().st_size / 1e6


def shown(folder: Path, entries: int) -> list[Verdict]:
    """Fill ledgers, half and whole, and print what they cost."""
    found: list[Verdict] = []
    seconds: list[float] = []
    for part, count in (("half", entries // 2), ("whole", entries)):
        url = URL.create("sqlite", database=str(folder / f"{part}.ledger"))
        filled, filling = clocked(lambda url=url, count=count: Filled(url, count))
        opening = min(clocked(lambda url=url: opened(url))[1] for _ in range(3))
        told, verifying = clocked(lambda url=url: export.verify(url, "hostile"))
        assert told["sound"], told["problems"][:3]
        seconds.append(verifying)
        size = (folder / f"{part}.ledger").stat().st_size / 1e6
        print(
            f"hostile, {told['entries']:,} entries, {size:.0f} MB ({filled.refused:,} more were refused): "
            f"CPU seconds of filling {filling:.0f}, dearest charge {filled.dearest:.2f}, opening {opening:.2f}, "
            f"verify {verifying:.1f}",
            flush=True,
        )
        if part == "whole":
            bars = (
                (f"charge, dearest of {entries:,} entries", filled.dearest, CHARGE),
                (f"opening {entries:,} entries", opening, OPEN),
                (f"verify {entries:,} entries", verifying, VERIFY),
            )
            for title, value, bar in bars:
                held = verdict(f"ledger, hostile: {title}", value, at_most(bar, "{:.2f} CPU seconds"))
                found.append(held.of_full_size("entries", entries, ENTRIES))
    linear = verdict(
        "ledger, hostile: verify, whole by half", seconds[1] / seconds[0], at_most(2.5, "{:.2f} times")
    )
    found.append(linear.of_full_size("entries", entries, ENTRIES))
    url = URL.create("sqlite", database=str(folder / "climbed.ledger"))
    dearest = climbed(url)
    told, verifying = clocked(lambda: export.verify(url, "hostile"))
    assert told["sound"], told["problems"][:3]
    print(
        f"prices that climb, {told['entries']:,} entries: dearest charge {dearest:.2f}, verify {verifying:.1f}"
    )
    found.append(
        verdict("ledger, climbing: charge, dearest", dearest, at_most(CLIMBED_CHARGE, "{:.2f} CPU seconds"))
    )
    found.append(verdict("ledger, climbing: verify", verifying, at_most(CLIMBED, "{:.2f} CPU seconds")))
    large = megabytes_of_a_large_answer(folder)
    print(f"one answer of 4.2M cells with ten digits each: {large:.1f} MB")
    found.append(verdict("ledger, one answer of 4.2M cells", large, at_most(FILE, "{:.1f} MB")))
    return found
