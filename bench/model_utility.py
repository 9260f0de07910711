"""Models that are trained on the rows of a release and tested on real rows that no release saw.

Four fifths of the table are released (all 3-way marginals of at most 10,000 cells), the rest is kept for the test.
A model of gradient boosting (scikit-learn, its settings as they come) is trained on synthetic rows to predict a
column of two values, and once on the released part itself; the area under its curve on the test rows is told, the
mean over seeds with half of its 95% interval. `weight` is what marginals with that column weigh more: 1 is a
release that knows of no target, and the product's own is that of `--target`.

With `--causes` what is lost on the way is told apart instead. The odds of the column, as the stand-in's tree tells
them itself, are tested without a model. Models learn from a sample of the released part, from rows of the stand-in
alone, from rows that agree with the answers, from rows that were moved to exact answers, all of them or those with
the target, and from rows of a release at epsilon 1000, which has next to no noise.

Run: python -m bench.model_utility [--table adult] [--target income>50K] [--epsilons 1] [--weights 1 4] [--seeds 5]
                                   [--causes]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from bench.clock import clocked
from bench.synthesis_score import open_run
from bench.synthesis_tables import Sheet, table
from bench.tables import Codes, NotAtHand
from bench.verdict import Verdict, at_least, ended, not_run, shown, verdict
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.rows import AdaptiveStandIn
from understudy.releases.agreement import agreeing_rows
from understudy.releases.synthetic import sample_codes
from understudy.releases.target import TARGET_WEIGHT, weighted_for

TEST = 5
"""One row of so many is kept for the test."""


def split(sheet: Sheet, seed: int) -> tuple[Sheet, Codes]:
    """The released part of a table, and the test rows."""
    at = np.random.default_rng(seed).permutation(sheet.rows)
    kept, test = at[sheet.rows // TEST :], at[: sheet.rows // TEST]
    codes = {name: column[kept] for name, column in sheet.codes.items()}
    return replace(sheet, codes=codes), {name: column[test] for name, column in sheet.codes.items()}


def area(trained: Codes, test: Codes, target: str) -> float:
    """The area under the curve, on the test rows, of a model that learnt from others."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    features = [name for name in test if name != target]

    def stacked(codes: Codes) -> NDArray[np.float64]:
        return np.stack([np.asarray(codes[name], np.float64) for name in features], axis=1)

    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(stacked(trained), np.asarray(trained[target]))
    return float(roc_auc_score(test[target], model.predict_proba(stacked(test))[:, 1]))


def released(sheet: Sheet, target: str, epsilon: float, weight: int, seed: int) -> Codes:
    """Rows of an adaptive release in which marginals with the target weigh so much more."""
    workload = weighted_for(sheet.workload, target, weight) if weight > 1 else sheet.workload
    run = open_run(replace(sheet, workload=workload), epsilon, seed, "gdp")
    run.target = target if weight > 1 else None
    outcome = adaptive(run)
    every = (*outcome.answers, *outcome.also)
    return agreeing_rows(outcome.standin, every, round(outcome.rows), np.random.default_rng(seed))


def odds_area(standin: AdaptiveStandIn, test: Codes, target: str) -> float:
    """The area under the curve, on the test rows, of the target's odds by the stand-in's tree."""
    from sklearn.metrics import roc_auc_score

    merging = standin.merging
    groups = {
        name: np.searchsorted(starts, np.asarray(test[name]), side="right") - 1
        for name, starts in zip(standin.domain.names, merging.starts, strict=True)
    }
    odds = np.zeros(len(test[target]))
    for factor in standin.model.factors:
        if target in factor.clique:
            axis = factor.clique.index(target)
            more = np.diff(factor.logs, axis=axis).squeeze(axis)
            odds += more[tuple(groups[name] for name in factor.clique if name != target)]
    return float(roc_auc_score(test[target], odds))


NO_NOISE = 1000.0
"""An epsilon whose noise does not matter."""


def causes(sheet: Sheet, test: Codes, target: str, epsilon: float, seed: int) -> dict[str, float]:
    """The area of models that learn from rows of which one thing at a time is exact."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, sheet.rows, sheet.rows)
    found = {"sample of the rows": area({n: c[at] for n, c in sheet.codes.items()}, test, target)}
    outcome = adaptive(open_run(sheet, epsilon, seed))
    noisy, rows = (*outcome.answers, *outcome.also), round(outcome.rows)
    counts = sheet.counts([answer.clique for answer in noisy])
    exact = [replace(answer, counts=c.astype(np.float64)) for answer, c in zip(noisy, counts, strict=True)]
    mixed = [e if target in e.clique else n for n, e in zip(noisy, exact, strict=True)]
    assert isinstance(outcome.standin, AdaptiveStandIn)
    found["the stand-in's own odds"] = odds_area(outcome.standin, test, target)
    found["rows of the stand-in"] = area(sample_codes(outcome.standin, rows, rng), test, target)
    for what, answers in (
        ("answers", noisy),
        ("exact answers", exact),
        ("answers, the target's exact", mixed),
    ):
        codes = agreeing_rows(outcome.standin, answers, rows, np.random.default_rng(seed))
        found[f"rows that agree with {what}"] = area(codes, test, target)
    found[f"rows at epsilon {NO_NOISE:g}"] = area(released(sheet, target, NO_NOISE, 1, seed), test, target)
    return found


def _told(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4f}"
    half = float(student.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return f"{fmean(values):.4f} ± {half:.4f}"


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", default="adult")
    parser.add_argument("--target", default="income>50K")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--weights", nargs="+", type=int, default=[1, TARGET_WEIGHT])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--causes", action="store_true", help="tell apart what is lost on the way")
    asked = parser.parse_args(arguments)
    try:
        sheet = table(asked.table)
    except NotAtHand as error:
        return shown(not_run("model utility", str(error)))
    parts = [split(sheet, seed) for seed in range(asked.seeds)]
    real = [area(part.codes, test, asked.target) for part, test in parts]
    print(f"{asked.table}, {asked.target}: real rows {_told(real)}", flush=True)
    found: list[Verdict] = []
    for epsilon in asked.epsilons if asked.causes else ():
        told = [causes(part, test, asked.target, epsilon, seed) for seed, (part, test) in enumerate(parts)]
        for what in told[0]:
            print(f"  epsilon {epsilon:g}, {what}: {_told([one[what] for one in told])}", flush=True)
    for epsilon in () if asked.causes else asked.epsilons:
        means: dict[int, float] = {}
        for weight in asked.weights:
            areas, seconds = [], []
            for seed, (part, test) in enumerate(parts):
                rows, cpu = clocked(
                    lambda p=part, w=weight, s=seed, e=epsilon: released(p, asked.target, e, w, s)
                )
                areas.append(area(rows, test, asked.target))
                seconds.append(cpu)
            means[weight] = fmean(areas)
            print(
                f"  epsilon {epsilon:g}, weight {weight}: {_told(areas)}  {fmean(seconds):.1f} CPU s",
                flush=True,
            )
        if 1 in means and TARGET_WEIGHT in means:
            what = f"model utility, {asked.table}, epsilon {epsilon:g}: area with a target"
            found.append(verdict(what, means[TARGET_WEIGHT], at_least(means[1], "{:.4f}")))
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
