"""What the synthesis benchmark is held to, read off its lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from bench.synthesis_tables import SEEN
from bench.verdict import Verdict, at_least, at_most, below, not_run, verdict

OURS = "adaptive"

ADULT = {0.1: 0.12, 1.0: 0.045, 10.0: 0.019}
"""By epsilon: the mean error that the release of adult is held to, that of its answers and that of its rows."""

ADULT_SECONDS = 3.0
"""CPU seconds that the release of adult may take."""

ROWS_BEHIND = 1.1
"""The error of rows over that of the answers, at most."""

PUBLISHED = {"dpsynth SWIFT of 10⁷ cells and 10,000 iterations": 0.0564, "mbi MST": 0.0871}
"""Rows of peers that are on no package index, adult at epsilon 1, as measured once in runs to their end."""

LESS_CPU = 100
WIDE_SECONDS, WIDE_MEGABYTES = 30.0, 1000.0


@dataclass(frozen=True)
class Line:
    """One line of the tables: what a method or a peer did on a table."""

    table: str
    epsilon: float
    method: str
    _: KW_ONLY
    answers: float
    rows: float
    largest: float
    cpu: float
    megabytes: float = 0.0
    problem: str = ""
    peer: bool = False
    behind: float = math.nan
    within: float = 0.0
    """Half of the 95% interval of the answers' mean error, over seeds."""

    @classmethod
    def without(cls, table: str, epsilon: float, peer: str, cpu: float, problem: str) -> Line:
        nan = math.nan
        return cls(
            table, epsilon, peer, answers=nan, rows=nan, largest=nan, cpu=cpu, problem=problem, peer=True
        )

    def beside(self, other: Line, method: str) -> bool:
        """Whether the other is about the same table and price, by that method."""
        return (other.table, other.epsilon, other.method) == (self.table, self.epsilon, method)


def bars(lines: Sequence[Line], large: dict[str, float]) -> list[Verdict]:
    return [
        *_adult(lines),
        *_rows(lines),
        *_against(lines),
        *_peers(lines),
        *_wide(lines),
        *_large(lines, large),
    ]


def _is_ours(line: Line) -> bool:
    return line.method == OURS or line.method.startswith("auto")


def _ours(lines: Sequence[Line], table: str, epsilon: float) -> Line | None:
    """What the program releases unless told otherwise: `auto` where that is not the adaptive release."""
    here = [x for x in lines if (x.table, x.epsilon) == (table, epsilon)]
    auto = [x for x in here if x.method != OURS and _is_ours(x)]
    return next(iter(auto + [x for x in here if x.method == OURS]), None)


def _adult(lines: Sequence[Line]) -> Iterator[Verdict]:
    for epsilon, error in ADULT.items():
        ours = _ours(lines, "adult", epsilon)
        if ours is None:
            continue
        where = f"adult, epsilon {epsilon:g}"
        yield _at_most(f"{where}: mean error of the answers", ours.answers, error, "{:.4f}")
        yield _at_most(f"{where}: mean error of the rows", ours.rows, error, "{:.4f}")
        yield _at_most(f"{where}: CPU s", ours.cpu, ADULT_SECONDS, "{:.2f}")


def _rows(lines: Sequence[Line]) -> Iterator[Verdict]:
    """Rows against answers, on the tables by which constants were fixed and on those that were held back.

    Both are judged: the adaptive release, and what `auto` takes where that is another method.
    """
    for kind, held in (("tables seen before", False), ("tables held back", True)):
        ours = [x for x in lines if _is_ours(x) and (x.table not in SEEN) == held]
        found = [x for x in ours if not math.isnan(x.behind)]
        if found:
            worst = max(found, key=lambda line: line.behind)
            where = f"{kind}, worst {worst.method} on {worst.table}, {worst.epsilon:g}"
            yield _at_most(f"rows over answers, orders 1 to 3 ({where})", worst.behind, ROWS_BEHIND, "{:.2f}")


def _at_most(what: str, measured: float, limit: float, shape: str) -> Verdict:
    return verdict(f"synthesis, {what}", measured, at_most(limit, shape))


def _against(lines: Sequence[Line]) -> Iterator[Verdict]:
    """The worst case over all tables and prices of the same comparison."""
    for rival, part, what in (
        ("aim", "answers", "mean error of answers over that of AIM"),
        ("plain noise", "answers", "mean error of answers over that of plain noise"),
        ("plain noise", "largest", "largest error of a cell over that of plain noise"),
    ):
        for kind, held in (("seen before", False), ("held back", True)):
            here = [line for line in lines if (line.table not in SEEN) == held]
            yield from _worst(here, rival, part, f"tables {kind}: {what}")


def _worst(lines: Sequence[Line], rival: str, part: str, what: str) -> Iterator[Verdict]:
    found = []
    for line in lines:
        ours = _ours(lines, line.table, line.epsilon)
        if line.method == rival and ours is not None and not math.isnan(getattr(line, part)):
            found.append((getattr(ours, part) / getattr(line, part), line))
    if not found:
        return
    ratio, line = max(found, key=lambda pair: pair[0])
    lower = sum(r < 1 for r, _ in found)
    where = f"{lower} of {len(found)} lower; worst {line.table}, {line.epsilon:g}"
    yield verdict(f"synthesis, {what} ({where})", ratio, below(1, "{:.3f}"))


def _peers(lines: Sequence[Line]) -> Iterator[Verdict]:
    ours = _ours(lines, "adult", 1.0)
    if ours is None:
        return
    adult = [x for x in lines if x.peer and x.table == "adult"]
    aims = [
        x for x in adult if x.method.endswith("-aim") and x.cpu > 0 and not x.problem.startswith("failed")
    ]
    fastest = min(aims, key=lambda x: x.cpu, default=None)
    what = "synthesis, adult, epsilon 1: CPU of the fastest AIM over ours"
    if fastest is None:
        yield not_run(what, "no peer's AIM was run: --peers all")
    else:
        ended = "stopped before its end" if fastest.problem else "finished"
        times = fastest.cpu / ours.cpu
        yield verdict(f"{what} ({fastest.method}, {ended})", times, at_least(LESS_CPU, "{:.0f} times"))
    for line in [x for x in lines if x.peer and not math.isnan(x.rows)]:
        own = _ours(lines, line.table, line.epsilon)
        if own is not None:
            what = f"synthesis, {line.table}, epsilon {line.epsilon:g}: rows, below {line.method}"
            yield verdict(what, own.rows, below(line.rows, "{:.4f}"))
    for name, rows in PUBLISHED.items():
        what = f"synthesis, adult, epsilon 1: rows, below {name} (its figure measured elsewhere)"
        yield verdict(what, ours.rows, below(rows, "{:.4f}"))


def _wide(lines: Sequence[Line]) -> Iterator[Verdict]:
    for name in ("mixed-48", "mixed-110"):
        ours = _ours(lines, name, 1.0)
        if ours is not None:
            yield _at_most(f"{name}, epsilon 1: CPU s", ours.cpu, WIDE_SECONDS, "{:.1f}")
            yield _at_most(f"{name}, epsilon 1: memory", ours.megabytes, WIDE_MEGABYTES, "{:.0f} MB")


def _large(lines: Sequence[Line], large: dict[str, float]) -> Iterator[Verdict]:
    adult = _ours(lines, "adult", 1.0)
    if "release" not in large or adult is None:
        return
    yield _at_most("10,000,000 rows, epsilon 1: CPU s, held to one count and the release of adult",
                   large["release"], large["count"] + adult.cpu, "{:.2f}")  # fmt: skip
