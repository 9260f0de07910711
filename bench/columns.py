"""How well bounds and bins are found privately: 300 invented columns of 50,000 rows, for ε = 1 all together.

Coverage is the share of rows between the bounds; width is beside that of the middle 98% of the rows; a cut is
off by as much as its target is beyond the ranks of the values at both of its sides: that is what atoms leave
open.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

from bench.verdict import Verdict, at_least, at_most, ended, shown, verdict
from understudy.mechanism.column_profile.profile import ColumnProfile, ColumnProfiling, counts_of, distinct_of
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours, Relation

KINDS = (
    "normal",
    "lognormal",
    "Pareto",
    "uniform whole",
    "mostly 0",
    "Poisson",
    "years",
    "far from 0, narrow",
)
WHOLE = (3, 5, 6)


def column(kind: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """One invented column."""
    if kind == 0:
        return rng.normal(rng.uniform(-1e3, 1e3), 10 ** rng.uniform(-1, 4), rows)
    if kind == 1:
        return rng.lognormal(rng.uniform(0, 10), rng.uniform(0.3, 2.5), rows)
    if kind == 2:
        return (rng.pareto(rng.uniform(1.1, 3), rows) + 1) * 10 ** rng.uniform(-2, 4)
    if kind == 3:
        return rng.integers(0, int(10 ** rng.uniform(0.5, 4)), rows).astype(float)
    if kind == 4:
        return np.where(rng.random(rows) < 0.6, 0, rng.exponential(10 ** rng.uniform(0, 6), rows))
    if kind == 5:
        return rng.poisson(rng.uniform(0.5, 60), rows).astype(float)
    if kind == 6:
        return np.floor(rng.triangular(1930, rng.uniform(1940, 2000), 2010, rows))
    return rng.normal(10 ** rng.uniform(3, 6) * rng.choice([-1, 1]), 10 ** rng.uniform(-1, 1), rows)


def quality(values: np.ndarray, found: ColumnProfile, *, whole: bool) -> tuple[float, float, float]:
    """Coverage, width beside that of the middle, and how far the worst of the 15 cuts is off."""
    rows, cuts = values.size, np.array(found.cuts)
    inside = np.mean((values >= found.low) & (values <= found.high))
    low, high = np.quantile(values, [0.01, 0.99])
    width = (found.high - found.low) / max(high - low, 1 if whole else 1e-12)
    targets = np.arange(1, 16) / 16
    places = np.searchsorted(values, cuts, side="left")
    before = values[np.maximum(places - 1, 0)]  # the value below a cut: a target within its atom is met
    below = np.searchsorted(values, before, side="left") / rows
    upto = np.searchsorted(values, cuts, side="right") / rows
    if not cuts.size:
        return float(inside), float(width), 1.0
    off = np.maximum(0, np.maximum(below[None] - targets[:, None], targets[:, None] - upto[None]))
    return float(inside), float(width), float(off.min(axis=1).max())


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(prog="python -m bench columns", description=__doc__)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-9")
    parser.add_argument("--neighbours", default="add-remove", choices=[str(kind) for kind in Neighbours])
    parser.add_argument("--seed", type=int, default=1, help="of the columns, and of the noise")
    options = parser.parse_args(arguments)
    budget = Budget.of(float(options.epsilon), float(options.delta))
    relation = Relation(Neighbours(options.neighbours))
    profiling = ColumnProfiling(columns=options.columns, price=budget.whole, relation=relation)
    rng, noise = np.random.default_rng(options.seed), SeededNoise(options.seed)
    found, kinds, failed, spent = [], [], 0, 0.0
    for number in range(options.columns):
        kind = number % len(KINDS)
        values = column(kind, options.rows, rng)
        start = time.process_time()
        values = np.sort(values)
        profile = profiling.profile(
            counts_of([values], 0), distinct=distinct_of([values]), whole=kind in WHOLE, noise=noise
        )
        spent += time.process_time() - start
        if profile.low is None:
            failed += 1
            continue
        found.append(quality(values, profile, whole=kind in WHOLE))
        kinds.append(kind)
    covered, widths, offs = np.array(found).T
    print(
        f"{options.columns} columns x {options.rows:,} rows, {budget} for all, {relation}: {spent:.1f} CPU s"
    )
    print(f"{'':22}{'covered':>16}{'width':>16}{'worst cut off':>18}")
    print(f"{'':22}{'median  worst':>16}{'median   90%':>16}{'median    90%':>18}")
    for kind, name in [*enumerate(KINDS), (None, "all")]:
        own = np.array([True] * len(kinds) if kind is None else [k == kind for k in kinds])
        if not own.any():
            continue
        print(
            f"{name:22}{np.median(covered[own]):8.2%}{covered[own].min():8.2%}{np.median(widths[own]):8.2f}"
            f"{np.quantile(widths[own], 0.9):8.2f}{np.median(offs[own]):9.2%}{np.quantile(offs[own], 0.9):9.2%}"
        )
    within = float(np.mean(offs <= 0.03)) * (len(found) / options.columns)
    found_all = [
        verdict("columns without bounds", failed, at_most(0)),
        verdict("rows covered, median", float(np.median(covered)), at_least(0.99, "{:.4f}")),
        verdict("rows covered, worst column", float(covered.min()), at_least(0.95, "{:.4f}")),
        verdict("width beside q99 - q01, median", float(np.median(widths)), at_most(1.5, "{:.2f}")),
        verdict("columns whose 15 cuts are within 3% of rank", within, at_least(0.9, "{:.3f}")),
    ]
    return shown(*(each.of_full_size("columns", options.columns, 300) for each in found_all))


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
