"""SmallDB: all small databases counted by level, and one drawn; beside numpy's way of scoring every one of them.

CPU seconds of one thread. Both ways must arrive at the same counts of every level. Thresholds and
hierarchies have no peer: there are up to 10^144 databases.

Run: python -m bench.smalldb
UNDERSTUDY_BENCH_CANDIDATES (default 100000000) sets the number of databases, for a short run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.small_database_chain import Chain
from understudy.mechanism.small_database_levels import Enumeration
from understudy.mechanism.small_database_tree import Tree
from understudy.noise import SeededNoise

QUERIES, CLASSES, ROWS = 32, 8, 10_000
CANDIDATES = int(os.environ.get("UNDERSTUDY_BENCH_CANDIDATES", 100_000_000))
BAR_NS = 30
"""Nanoseconds for each database that counting may take."""

BAR_CHAIN = 30
"""CPU seconds for 1,000 classes and 100 rows."""

PEER_CANDIDATES = 10_000_000
"""At most this many go through numpy; its time for each does not depend on their number."""

TAIL = 4
"""Classes whose units numpy scores in one block."""


def clocked(job: Callable[[], Any]) -> tuple[Any, float]:
    start = process_time()
    result = job()
    return result, process_time() - start


def size_for(candidates: int) -> int:
    size = 1
    while comb(size + CLASSES, size + 1) <= candidates:
        size += 1
    return size


def compositions(units: int, classes: int) -> NDArray[np.int64]:
    chosen = combinations_with_replacement(range(classes), units)
    return np.array([np.bincount(c, minlength=classes) for c in map(np.array, chosen)]).reshape(-1, classes)


def by_numpy(matrix: NDArray[np.bool_], answers: NDArray[np.int64], size: int) -> dict[int, int]:
    """Every database's level: all splits of the last classes at once, for each split of the first ones."""
    head, tail = matrix[:, :-TAIL].astype(np.int64), matrix[:, -TAIL:].astype(np.int32)
    blocks = [
        ROWS * (tail @ compositions(units, TAIL).T.astype(np.int32))
        if units
        else np.zeros((QUERIES, 1), np.int32)
        for units in range(size + 1)
    ]
    counts, levels, waiting = np.zeros(size * ROWS + 1, np.int64), [], 0
    for first in compositions_up_to(size, CLASSES - TAIL):
        base = (ROWS * (head @ first) - size * answers).astype(np.int32)
        block = blocks[size - int(first.sum())]
        levels.append(np.abs(block + base[:, None]).max(axis=0))
        waiting += block.shape[1]
        if waiting > 1 << 20:
            counts += np.bincount(np.concatenate(levels), minlength=counts.size)
            levels, waiting = [], 0
    counts += np.bincount(np.concatenate([*levels, np.zeros(0, np.int32)]), minlength=counts.size)
    return {int(at): int(counts[at]) for at in np.flatnonzero(counts)}


def compositions_up_to(units: int, classes: int) -> NDArray[np.int64]:
    return compositions(units, classes + 1)[:, :-1]


def instance(size: int) -> tuple[Enumeration, NDArray[np.int64]]:
    draw = np.random.default_rng(7)
    matrix = draw.random((QUERIES, CLASSES)) < 0.5
    answers = (matrix @ draw.multinomial(ROWS, draw.dirichlet(np.ones(CLASSES)))).astype(np.int64)
    return Enumeration(matrix, size, ROWS, Fraction(1, 2 * size)), answers


def enumeration() -> None:
    warm, warm_answers = instance(3)
    warm.draw(warm_answers, noise=SeededNoise(1))
    databases, answers = instance(size_for(CANDIDATES))
    found, counting = clocked(lambda: databases.levels(answers))
    _, drawing = clocked(lambda: databases.draw(answers, noise=SeededNoise(1)))
    smaller, small_answers = instance(size_for(min(CANDIDATES, PEER_CANDIDATES)))
    scored, scoring = clocked(lambda: by_numpy(smaller.matrix, small_answers, smaller.size))
    if scored != smaller.levels(small_answers) or sum(found.values()) != databases.candidates:
        raise SystemExit("the two ways disagree")
    each, peer = counting / databases.candidates * 1e9, scoring / smaller.candidates * 1e9
    print(
        f"{databases.candidates:,} databases of {databases.size} rows, {CLASSES} classes, {QUERIES} queries"
    )
    print(f"  counted by level   {counting:8.2f} CPU s   {each:6.2f} ns each   bar {BAR_NS} ns")
    print(f"  counted and drawn  {drawing:8.2f} CPU s")
    print(f"  scored by numpy                        {peer:6.2f} ns each   {peer / each:.1f} times as long")


def counted(
    what: str, kind: type[Chain] | type[Tree], matrix: NDArray[np.bool_], size: int, bar: str
) -> None:
    draw = np.random.default_rng(8)
    classes = matrix.shape[1]
    answers = (matrix @ draw.multinomial(ROWS, draw.dirichlet(np.ones(classes)))).astype(np.int64)
    databases = kind(matrix, size, ROWS, Fraction(1, 2 * size))
    units, seconds = clocked(lambda: databases.draw(answers, noise=SeededNoise(1)))
    error = np.abs(matrix @ np.array(units) / size - answers / ROWS).max()
    print(f"{what}: {classes} classes, {size} rows, 10^{len(str(databases.candidates)) - 1} databases")
    print(f"  drawn exactly      {seconds:8.2f} CPU s   {bar}   error {error:.4f} (ε = 1, n = {ROWS:,})")


def main() -> None:
    enumeration()
    counted("thresholds", Chain, np.tri(999, 1000, dtype=bool), 100, f"bar {BAR_CHAIN} s")
    counted("the cells of one marginal", Tree, np.eye(200, dtype=bool), 100, "no bar")


if __name__ == "__main__":
    main()
