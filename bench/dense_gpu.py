"""Dense multiplicative weights on a CUDA device: an update with the answer that follows, against a copy.

A copy reads and writes every cell once, and so does an update of all of them: that is what the device's memory
allows. Every update here touches all cells, and is followed by an answer to another query, in one pass: of queries
that the device has seen before, which are judged, and of new ones, whose patterns the host has to make first.

Before that every operation is compared with brute force in NumPy, on small domains of many shapes (`--check` does
that alone), in both precisions.

Run: python -m bench dense_gpu (needs a CUDA device and CuPy; nothing else beyond NumPy)
     python -m bench.dense_gpu --cells 28 32 --check
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cupy  # pyright: ignore[reportMissingImports]
import numpy as np

from bench.verdict import Verdict, at_most, ended, shown, verdict
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.linear import Factor, LinearQuery
from understudy.standin.dense.weights import DenseWeights

SHAPES = [
    (7,),
    (2,) * 16,
    (5, 3, 40, 30),
    (3, 20_000),
    (3, 40, 2000),
    (2, 70_000),
    (4, 3, 2, 5),
    (17, 3, 1001),
]
STEPS = 10
MOST = 1.3


def domain_of(shape: Sequence[int]) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i:02d}", 0, size - 1) for i, size in enumerate(shape)))


def random_query(domain: Domain, draw: np.random.Generator) -> LinearQuery:
    names = list(draw.permutation(domain.names)[: draw.integers(1, 5)])
    factors: list[Factor] = []
    while names:
        clique = domain.clique(names[: draw.integers(1, 3)])
        names = [name for name in names if name not in clique]
        table = draw.random(domain.shape(clique))
        factors.append(Factor(clique, table if draw.random() < 0.4 else (table < 0.5).astype(float)))
    return LinearQuery(domain, tuple(factors))


def check(shape: Sequence[int], dtype: Any, seed: int) -> float:
    """The largest difference of an answer, or of a rate relative to itself, from brute force."""
    domain, draw = domain_of(shape), np.random.default_rng(seed)
    start = draw.random(tuple(shape)) + 0.01
    ours = DenseWeights.histogram(domain, start, dtype=dtype, device="cuda")
    rates, worst = start / start.sum(), 0.0
    for _ in range(8):
        query, following = random_query(domain, draw), random_query(domain, draw)
        step = float(draw.normal())
        worst = max(worst, abs(ours.answer(query) - np.vdot(rates, query.weights(domain.names))))
        rates = rates * np.exp(step * query.weights(domain.names))
        rates /= rates.sum()
        if draw.random() < 0.5:
            ours.reweight(query, step)
        else:
            told = ours.reweight_then_answer(query, step, following)
            worst = max(worst, abs(told - np.vdot(rates, following.weights(domain.names))))
        clique = domain.clique(draw.permutation(domain.names)[: draw.integers(0, 3)])
        others = tuple(i for i, name in enumerate(domain.names) if name not in clique)
        worst = max(worst, float(np.abs(ours.project(clique) - rates.sum(axis=others)).max()))
    return max(worst, float(np.abs(ours.rates() / rates - 1).max()) / 20)


def seconds(work: Callable[[], object], times: int) -> float:
    """Of one, by the wall: the device did nothing else, and each ends with a number on the host."""
    work()
    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    for _ in range(times):
        work()
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - began) / times


def measured(log_cells: int) -> list[Verdict]:
    """An update of every cell and an answer, against a copy, at 2 to this power of cells."""
    domain, draw = domain_of([2] * log_cells), np.random.default_rng(log_cells)
    ours = DenseWeights.uniform(domain, dtype="float32", device="cuda")

    def everywhere() -> LinearQuery:
        """Weights between 0.1 and 1 on three attributes: every cell changes."""
        names = domain.clique(draw.choice(domain.names, 3, replace=False))
        return LinearQuery(domain, tuple(Factor((name,), 0.1 + 0.9 * draw.random(2)) for name in names))

    known = [everywhere() for _ in range(4)]
    turn = iter(range(10**6))

    def again() -> None:
        i = next(turn)
        ours.reweight_then_answer(known[i % 4], 0.01, known[(i + 1) % 4])

    def new() -> None:
        ours.reweight_then_answer(everywhere(), 0.01, everywhere())

    fused, fresh = seconds(again, STEPS), seconds(new, STEPS)
    read = seconds(lambda: ours.answer(everywhere()), 3)
    cells = ours._cells.cells  # pyright: ignore[reportPrivateUsage]
    other = cupy.empty_like(cells)
    copy = seconds(partial(cupy.copyto, other, cells), STEPS)
    speed = 8 * 2**log_cells / fused / 1e12
    print(
        f"2^{log_cells} float32: update and answer {1000 * fused:.2f} ms ({speed:.2f} TB/s), of new queries "
        f"{1000 * fresh:.2f} ms, an answer alone {1000 * read:.2f} ms, a copy {1000 * copy:.2f} ms"
    )
    told = at_most(MOST, "{:.2f} times a copy of the cells")
    return shown(verdict(f"update and answer at 2^{log_cells}", fused / copy, told))


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, nargs="+", default=[32], help="logarithms of numbers of cells")
    parser.add_argument("--check", action="store_true", help="compare with brute force, and time nothing")
    given = parser.parse_args(list(arguments))
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "CuPy", cupy.__version__)
    found: list[Verdict] = []
    for dtype, allowed in (("float64", 1e-12), ("float32", 2e-6)):
        worst = max(check(shape, dtype, seed) for shape in SHAPES for seed in range(5))
        found += shown(
            verdict(
                f"{dtype}: furthest from brute force",
                worst / allowed,
                at_most(1, "{:.3f} of what is allowed"),
            )
        )
    for log_cells in () if given.check else given.cells:
        found += measured(log_cells)
        gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
    return found


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
