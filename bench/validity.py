"""The reusable holdout against a plain one: seven attacks, joint coverage, and what a score costs.

Run: python -m bench validity
The long form, 1,000 runs of every certified mode at three sizes: UNDERSTUDY_AUDIT=1 python -m bench validity
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import binom

from understudy.errors import RefusedError
from understudy.noise import SeededNoise
from understudy.validity.analysts.correlation import agreements, expected_majority, majority, selection
from understudy.validity.analysts.game import Game, Plain
from understudy.validity.audit import made, play, validity_audit
from understudy.validity.holdout import Holdout

BETA = 0.05
LONG = bool(os.environ.get("UNDERSTUDY_AUDIT"))
MODES = ("gaussian", "check", "realised", "thresholdout", "ladder")
SCORE_BAR_MS = 2


def met(*, holds: bool) -> str:
    return "met" if holds else "MISSED"


def science(rows: int = 10_000, variables: int = 10_000) -> None:
    print(f"T1: {variables:,} variables chosen on {rows:,} rows")
    for signal in (0, 20):
        plain = Game(Plain(rows, variables + 50, BETA), SeededNoise(0))
        claims = selection(plain, variables, np.random.default_rng(0), signal=signal)
        ours = Game(made("check", rows, variables + 50, BETA, 50), SeededNoise(0))
        checked = selection(ours, variables, np.random.default_rng(0), signal=signal)
        width = ours.mode.certificate.width
        print(f"  signal {signal:>2}: plain claims {claims[-1]:.3f}, true {plain.truths[-1]:.3f}", end="; ")
        print(f"checked says {checked[-1]:.3f} ± {width:.3f}, true {ours.truths[-1]:.3f}", end="; ")
        holds = ours.covered and width <= 0.19 and (signal > 0 or claims[-1] >= 0.6)
        print(f"{ours.heard.failures} rejected  {met(holds=holds)}")


def closed_form() -> None:
    print("T2: plain answers against the closed form")
    for rows, queries in ((1000, 1000), (2000, 500), (10_000, 1000)):
        runs = 40 if rows < 10_000 else 10
        found = [play(majority, Plain(rows, queries + 1, BETA), queries, s).claimed for s in range(runs)]
        error = np.std(found, ddof=1) / np.sqrt(runs)
        expected = expected_majority(rows, queries)
        off = (np.mean(found) - expected) / error
        print(
            f"  n {rows:>6,} k {queries:>5,}: {np.mean(found):.4f} expected {expected:.4f}, {off:+.1f} errors",
            end="",
        )
        print(f"  {met(holds=abs(off) < 3)}")


def coverage() -> None:
    sizes = ((500, 200), (2000, 500), (10_000, 1000)) if LONG else ((500, 200),)
    runs = 1000 if LONG else 100
    print(f"joint coverage under T2, {runs} runs (exact binomial test of at least 95%)")
    for rows, queries in sizes:
        modes = [made(name, rows, queries + 1, BETA) for name in MODES]
        errors: dict[str, list[float]] = {name: [] for name in MODES}
        missed, stopped = dict.fromkeys(MODES, 0), dict.fromkeys(MODES, 0)
        for seed in range(runs):
            draw = np.random.default_rng(seed)
            sample = agreements(rows, queries, draw)
            for mode in modes:
                game = Game(mode, SeededNoise(seed), vacuous=True)
                majority(game, queries, draw, agrees=sample)
                errors[mode.name].append(game.outcome.largest_error)
                missed[mode.name] += not game.covered
                stopped[mode.name] += bool(game.refusal)
        for mode in modes:
            width, failed = mode.certificate.width, missed[mode.name]
            p = float(binom.sf(failed - 1, runs, BETA))
            print(
                f"  n {rows:>6,} k {queries:>5,} {mode.name:<13} missed {failed:>3}, "
                f"stopped {stopped[mode.name]:>4}, "
                f"95% of largest errors {np.quantile(errors[mode.name], 0.95):.3f} of ± {width:.3f}"
                f"{' (vacuous)' if width >= 0.5 else ''}  {met(holds=p > 1e-3)}"
            )


def search() -> None:
    """500 candidates on noise. The largest of 500 means of 1,000 fair coins is 0.548 on average."""
    rows, candidates, seeds = 1000, 500, 20
    best, said = [], {"ladder": [], "check": []}
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        truth, predicted = draw.integers(0, 2, rows), draw.integers(0, 2, (candidates, rows))
        best.append(float((predicted == truth).mean(axis=1).max()) - 0.5)
        for mode, scores in said.items():
            holdout = Holdout(None, truth, queries=candidates, mode=mode, rejections=3)
            scores += [holdout.score_predictions(row, guess=0.5) for row in predicted]
    print(f"a search over {candidates} candidates on noise, {rows:,} rows, {seeds} times")
    overfit = float(np.mean(best))
    print(f"  plain: the best overfits by {overfit:.4f} on average (bar 0.05)  {met(holds=overfit >= 0.05)}")
    for mode, scores in said.items():
        holds = all(abs(score.value - 0.5) <= score.width for score in scores)
        most = max(score.value for score in scores)
        widest = max(score.width for score in scores)
        print(f"  {mode}: at most {most:.3f}, width at most {widest:.3f}  {met(holds=holds)}")
    try:
        Holdout(None, truth, queries=candidates, mode="gaussian")
        print("  gaussian: MISSED, it did not refuse")
    except RefusedError as refusal:
        print(f"  gaussian: {str(refusal).split(';')[0]}  met")


def cost() -> None:
    rows, scores = 10_000, 300
    truth = np.random.default_rng(0).integers(0, 2, rows)
    with tempfile.TemporaryDirectory() as folder:
        for kept in (None, Path(folder) / "holdout.db"):
            for mode in ("gaussian", "ladder"):
                holdout = Holdout(None, truth, queries=scores, mode=mode, path=kept, name=f"{mode}")
                before = process_time()
                for _ in range(scores):
                    holdout.score_predictions(truth)
                milliseconds = 1000 * (process_time() - before) / scores
                where = "in a file" if kept else "in memory"
                holds = milliseconds < SCORE_BAR_MS
                print(f"  {mode:<9} {where:<10} {milliseconds:.3f} CPU ms a score  {met(holds=holds)}")


def attacks() -> None:
    print("seven attacks, 2,000 rows, 300 questions, 5 runs: last claim, truth, width, runs with all within")
    for finding in validity_audit(rows=2000, queries=300, runs=5, modes=("plain", *MODES)):
        head = f"  {finding.analyst:<18} {finding.mode:<13}"
        if not finding.runs:
            print(f"{head} refuses: {finding.refused.split(';')[0]}")
            continue
        told = f"{finding.claimed:.3f} {finding.truth:.3f} ± {finding.width:.3f}"
        print(f"{head} {told} {finding.covered}/{finding.runs}")


def main() -> None:
    science()
    closed_form()
    search()
    print("cost of a score besides the model's, 10,000 rows")
    cost()
    attacks()
    coverage()


if __name__ == "__main__":
    main()
