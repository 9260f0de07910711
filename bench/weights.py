"""Dense multiplicative weights: update and next answer, beside one in-place pass over memory and beside numpy.

The limit is what the machine needs to read and write every cell once (numpy's ``cells *= 1.0``, split among as
many threads). The peer is the textbook in numpy: exponentiate, multiply, sum, divide, take the dot product. All
take turns, and the fastest of several turns counts, for the machine may be shared; for that reason too all times
are CPU seconds, of all threads together. The bar is for 0/1 queries in float64; in float32 half the bytes move,
and sums in float64 become what takes time while the cells are in the cache.

Run: python -m bench.weights [--cells 20 24 26] [--dtype float64]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench.clock import bests
from bench.verdict import Verdict, at_least, at_most, ended, shown, verdict
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.linear import LinearQuery
from understudy.standin.dense.weights import DenseWeights, Precision

BAR_LIMIT = 1.5
"""Passes over memory that an update and an answer may take."""

BAR_PEER = 8
"""Times faster than the textbook in numpy that they must be."""

Pairs = list[tuple[LinearQuery, LinearQuery]]

CORES = len(os.sched_getaffinity(0))
STEP = 0.05
FULL = 2**20
"""Cells from which on the bars hold: with fewer, what a call costs shows."""


def domain_of(bits: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i:02d}", 0, 1) for i in range(bits)))


def workloads(domain: Domain) -> dict[str, list[LinearQuery]]:
    """Kinds of queries; each is asked in turn, the update on one and then the answer to the next.

    Attributes are taken from everywhere: cells of the last ones alternate within a cache line, those of the first
    ones are halves of the memory.
    """
    names = domain.names
    draw = np.random.default_rng(7)
    triples = [[names[i] for i in draw.choice(len(names), 3, replace=False)] for _ in range(12)]
    return {
        "0/1 on one attribute": [LinearQuery.conjunction(domain, {name: [0, 1]}) for name in names[::2]],
        "0/1 on three attributes": [
            LinearQuery.conjunction(domain, {name: [1, 0] for name in triple}) for triple in triples
        ],
        "real weights on three attributes": [
            LinearQuery.table(domain, triple, draw.random((2, 2, 2))) for triple in triples[:4]
        ],
    }


def textbook(cells: NDArray, weights: NDArray, following: NDArray) -> float:
    cells *= np.exp(STEP * weights)
    cells /= cells.sum()
    return float(np.vdot(cells, following))


def one_pass(cells: NDArray, pool: ThreadPoolExecutor, threads: int) -> None:
    """Every cell read and written once, in place."""
    parts = np.array_split(cells, threads)
    list(pool.map(lambda part: np.multiply(part, part.dtype.type(1), out=part), parts))


def measure(bits: int, dtype: Precision, threads: int) -> list[Verdict]:
    domain = domain_of(bits)
    ours = DenseWeights.uniform(domain, dtype=dtype, threads=threads)
    flat = np.full(domain.shape(), 1 / domain.size(), dtype).reshape(-1)
    found = []
    with ThreadPoolExecutor(threads) as pool:
        for kind, queries in workloads(domain).items():
            pairs = list(pairwise([*queries, queries[0]]))

            def fused(pairs: Pairs = pairs) -> None:
                for now, following in pairs:
                    ours.reweight_then_answer(now, STEP, following)

            def apart(pairs: Pairs = pairs) -> None:
                for now, following in pairs:
                    ours.reweight(now, STEP)
                    ours.answer(following)

            def limit(pairs: Pairs = pairs) -> None:
                for _ in pairs:
                    one_pass(flat, pool, threads)

            now, following = (
                np.ascontiguousarray(q.weights(domain.names), dtype).reshape(-1) for q in pairs[0]
            )
            jobs = {"limit": limit, "fused": fused, "apart": apart}
            seconds = bests(jobs, 30 if bits <= 20 else 8, warm=True)
            each = {name: value / len(pairs) * 1e3 for name, value in seconds.items()}
            peer = {"numpy": lambda now=now, following=following: textbook(flat, now, following)}
            each["numpy"] = bests(peer, 5, warm=True)["numpy"] * 1e3
            to_limit, to_peer = report(f"2^{bits} {dtype:8}{threads:3} thr  {kind}", each)
            if kind.startswith("0/1") and dtype == "float64":
                name = f"weights, 2^{bits}, {threads} threads, {kind}"
                found.append(verdict(name, to_limit, at_most(BAR_LIMIT, "{:.2f} passes over memory")))
                found.append(verdict(name, to_peer, at_least(BAR_PEER, "{:.1f} times faster than numpy")))
    return found


def report(what: str, each: dict[str, float]) -> tuple[float, float]:
    to_limit, to_peer = each["fused"] / each["limit"], each["numpy"] / each["fused"]
    print(
        f"{what:58}{each['limit']:8.3f}{each['fused']:8.3f}{each['apart']:8.3f}{each['numpy']:9.2f}"
        f"{to_limit:9.2f}{to_peer:9.1f}",
        flush=True,
    )
    return to_limit, to_peer


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, nargs="+", default=[20, 24, 26], help="powers of two")
    parser.add_argument("--dtype", nargs="+", choices=["float32", "float64"], default=["float64", "float32"])
    options = parser.parse_args(arguments)
    columns = f"{'limit':>8}{'fused':>8}{'apart':>8}{'numpy':>9}{'x limit':>9}{'x numpy':>9}"
    print(f"{'ms for an update and an answer':58}{columns}")
    return shown(
        *(
            found.of_full_size("cells", 2**bits, FULL)
            for bits in options.cells
            for dtype in options.dtype
            for threads in sorted({1, CORES})
            for found in measure(bits, dtype, threads)
        )
    )


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
