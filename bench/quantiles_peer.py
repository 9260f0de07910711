"""What OpenDP says of quantiles: run by its own Python, on a file of whole numbers; prints JSON.

Usage: python quantiles_peer.py {scores|ends|tree} FILE STEPS CURRENCY AMOUNT BETA REPETITIONS LEVEL…

`scores` are ends and estimates by OpenDP's private quantile, `ends` ends alone (the estimate is their middle),
`tree` both by its noisy tree of counts: for each repetition and level the lower end, the estimate and the upper
end. `bench.quantiles` says what the ends are. This is no part of the program.
"""

from __future__ import annotations

import json
import sys
from math import log


def measured(currency):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp, dp.zero_concentrated_divergence() if currency == "rho" else dp.max_divergence()


def scores(rows, steps, currency, amount, beta, repetitions, levels, draws=3):
    """Three private quantiles for each level, each at an equal part of the price; the outer two are shifted.

    With two `draws` the one at the level itself is left out.
    """
    dp, measure = measured(currency)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    candidates, part = list(range(steps + 1)), amount / (draws * len(levels))

    def drawn(level):
        """The private quantile at the part of the price, and how many ranks it is off at most, but for β."""
        alone = dp.m.make_private_quantile(*space, measure, [0, 1], level, 1.0).map(1)
        scale = alone / part if currency == "epsilon" else (alone / part) ** 0.5
        made = dp.m.make_private_quantile(*space, measure, candidates, level, scale * (1 + 1e-9))
        assert 0.999 * part < made.map(1) <= part
        epsilon = part if currency == "epsilon" else (8 * part) ** 0.5
        moved = max(level, 1 - level)  # ranks that one row moves a score by
        return made, 2 * moved / epsilon * (log(steps + 1) + log(2 * len(levels) / beta))

    told = []
    for level in levels:
        point, off = drawn(level)
        low, high = level - off / len(rows), level + off / len(rows)
        below = drawn(round(low, 4))[0] if low > 0 else None
        above = drawn(round(high, 4))[0] if high < 1 else None
        of_level = []
        for _ in range(repetitions):
            first = 0 if below is None else below(rows)
            last = steps if above is None else above(rows)
            of_level.append([first, point(rows) if draws == 3 else (first + last) // 2, last])
        told.append(of_level)
    return [[of_level[i] for of_level in told] for i in range(repetitions)]


def tree(rows, steps, currency, amount, beta, repetitions, levels):
    """A tree of counts over all steps, made consistent; the ends by the test that `bench.quantiles` names."""
    import numpy as np

    dp, _ = measured(currency)
    leaves = steps + 1
    branches = dp.t.choose_branching_factor(leaves)
    metric = dp.l1_distance(T=int) if currency == "epsilon" else dp.l2_distance(T=int)
    space = dp.vector_domain(dp.atom_domain(T=int), size=leaves), metric
    expand = dp.t.make_b_ary_tree(*space, leaves, branches)
    noise = dp.m.then_laplace if currency == "epsilon" else dp.m.then_gaussian
    alone = (expand >> noise(1.0)).map(1)
    made = expand >> noise(alone / amount if currency == "epsilon" else (alone / amount) ** 0.5)
    consistent = dp.t.make_consistent_b_ary_tree(branches)
    counts = np.bincount(rows, minlength=leaves).tolist()

    def curve(values):
        told = np.array(consistent(made(values))[:leaves], float)
        return np.cumsum(told), float(told.sum())

    quiet = [curve([0] * leaves) for _ in range(12)]
    told = []
    for _ in range(repetitions):
        below, total = curve(counts)
        found = []
        for level in levels:
            spread = np.sqrt(np.mean([(noise - level * whole) ** 2 for noise, whole in quiet], axis=0)).mean()
            off = spread * _normal(1 - beta / (2 * len(levels)))
            away = below[:-1] - level * total  # T at the cuts 1, 2, …
            fails = np.flatnonzero(away > -level - off)
            low = int(fails[0]) if fails.size else steps
            fails = np.flatnonzero(away < 1 - level + off)
            high = int(fails[-1]) + 1 if fails.size else 0
            found.append([low, int(np.argmax(away >= 0)), high])
        told.append(found)
    return told


def _normal(p):
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def main() -> None:
    way, path, steps, currency, amount, beta, repetitions, *levels = sys.argv[1:]
    with open(path) as file:
        rows = [int(line) for line in file]
    given = (
        rows,
        int(steps),
        currency,
        float(amount),
        float(beta),
        int(repetitions),
        list(map(float, levels)),
    )
    found = tree(*given) if way == "tree" else scores(*given, draws=2 if way == "ends" else 3)
    print("JSON" + json.dumps(found))


if __name__ == "__main__":
    main()
