"""SmallDB: all small databases counted by level, and one drawn; beside numpy's way of scoring every one of them.

CPU seconds of one thread. Both ways must arrive at the same counts of every level. Thresholds and hierarchies of
the size that they are made for have no peer, there are up to 10^144 databases: there numpy stands beside a smaller
one.

Run: python -m bench.smalldb [--candidates 100000000] [--classes 1000]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from bench.clock import clocked
from bench.verdict import Verdict, at_most, claim, ended, shown, verdict
from understudy.mechanism.small_database.chain import Chain
from understudy.mechanism.small_database.levels import Enumeration
from understudy.mechanism.small_database.tree import Tree
from understudy.noise.samplers import SeededNoise

QUERIES, CLASSES, ROWS = 32, 8, 10_000
CANDIDATES = 100_000_000
BAR_NS = 30
"""Nanoseconds for each database that counting may take."""

CHAIN_CLASSES, CELLS, UNITS = 1000, 200, 100
BAR_CHAIN = 30
"""CPU seconds for thresholds on that many classes, and rows."""

PEER_CANDIDATES = 10_000_000
"""At most this many go through numpy; its time for each does not depend on their number."""

TAIL = 4
"""Classes whose units numpy scores in one block."""


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
        else np.zeros((len(matrix), 1), np.int32)
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


def answers_of(matrix: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    draw = np.random.default_rng(seed)
    return (matrix @ draw.multinomial(ROWS, draw.dirichlet(np.ones(matrix.shape[1])))).astype(np.int64)


def enumeration(candidates: int) -> list[Verdict]:
    warm, warm_answers = instance(3)
    warm.draw(warm_answers, noise=SeededNoise(1))
    databases, answers = instance(size_for(candidates))
    found, counting = clocked(lambda: databases.levels(answers))
    _, drawing = clocked(lambda: databases.draw(answers, noise=SeededNoise(1)))
    smaller, small_answers = instance(size_for(min(candidates, PEER_CANDIDATES)))
    scored, scoring = clocked(lambda: by_numpy(smaller.matrix, small_answers, smaller.size))
    same = scored == smaller.levels(small_answers) and sum(found.values()) == databases.candidates
    each, peer = counting / databases.candidates * 1e9, scoring / smaller.candidates * 1e9
    print(
        f"{databases.candidates:,} databases of {databases.size} rows, {CLASSES} classes, {QUERIES} queries"
    )
    print(f"  counted by level   {counting:8.2f} CPU s   {each:6.2f} ns each")
    print(f"  counted and drawn  {drawing:8.2f} CPU s")
    print(f"  scored by numpy                        {peer:6.2f} ns each   {peer / each:.1f} times as long")
    return [
        claim("smalldb, both ways count the same", holds=same),
        verdict("smalldb, counting", each, at_most(BAR_NS, "{:.2f} ns a database")),
    ]


def counted(
    what: str, kind: type[Chain] | type[Tree], matrix: NDArray[np.bool_], small: NDArray[np.bool_], most: int
) -> tuple[float, Verdict]:
    """CPU seconds to draw one of all databases; and numpy beside it on few classes, which it can score."""
    answers, classes = answers_of(matrix, 8), matrix.shape[1]
    databases = kind(matrix, UNITS, ROWS, Fraction(1, 2 * UNITS))
    units, seconds = clocked(lambda: databases.draw(answers, noise=SeededNoise(1)))
    error = np.abs(matrix @ np.array(units) / UNITS - answers / ROWS).max()
    print(f"{what}: {classes} classes, {UNITS} rows, 10^{len(str(databases.candidates)) - 1} databases")
    print(f"  drawn exactly      {seconds:8.2f} CPU s   error {error:.4f} (ε = 1, n = {ROWS:,})")
    few = kind(small, size_for(most), ROWS, Fraction(1, 2 * UNITS))
    truth = answers_of(small, 9)
    drawing = clocked(lambda: few.draw(truth, noise=SeededNoise(1)))[1]
    scored, scoring = clocked(lambda: by_numpy(small, truth, few.size))
    print(f"  {few.candidates:,} databases: drawn {drawing:.3f} CPU s, scored by numpy {scoring:.3f}, "
          f"{scoring / drawing:.1f} times as long")  # fmt: skip
    return seconds, claim(f"smalldb, {what}, numpy counts the same", holds=scored == few.levels(truth))


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=CANDIDATES, help="databases that are enumerated")
    parser.add_argument("--classes", type=int, default=CHAIN_CLASSES, help="classes that thresholds cut")
    asked = parser.parse_args(arguments)
    few, most = CLASSES, min(asked.candidates, PEER_CANDIDATES // 100)
    found = enumeration(asked.candidates)
    n = asked.classes
    chain = np.tri(n - 1, n, dtype=bool)
    seconds, same = counted("thresholds", Chain, chain, np.tri(few - 1, few, dtype=bool), most)
    held = verdict("smalldb, thresholds", seconds, at_most(BAR_CHAIN, "{:.1f} CPU s"))
    cells = np.eye(min(n, CELLS), dtype=bool)
    _, also = counted("the cells of one marginal", Tree, cells, np.eye(few, dtype=bool), most)
    return shown(*found, held.of_full_size("classes", n, CHAIN_CLASSES), same, also)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
