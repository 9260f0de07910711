"""The reusable holdout against a plain one: eight attacks, joint coverage, and what a score costs.

Run: python -m bench.validity [--parts cost search]
The long form, 1,000 runs of every certified mode at three sizes: UNDERSTUDY_AUDIT=1 python -m bench validity
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binom

from bench.clock import rate
from bench.verdict import Verdict, at_least, at_most, below, claim, ended, shown, verdict
from understudy.errors import RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.theory.baseline import split_width
from understudy.theory.cosine_noise import cosine_width
from understudy.theory.cvar import cvar_V_zcdp, cvar_width
from understudy.theory.drift import drift_width_sharp
from understudy.theory.tilting import tilting_t, tilting_width, transfer_log_bound, transfer_order
from understudy.theory.transfer import bnsssu_rrsstw_width, jlnrss_width
from understudy.validity.bounded import Bounded
from understudy.validity.holdout import Holdout
from understudy.validity.modes import Gaussian, Heard
from understudy_audit.analysts.correlation import agreements, expected_majority, majority, selection
from understudy_audit.analysts.game import Game, Plain
from understudy_audit.validity import made, play, validity_audit
from understudy_textbook.cosine_noise import cosine_capacity
from understudy_textbook.elementary import elementary_normal
from understudy_textbook.rogers20 import rz_cvar_width, rz_width

BETA = 0.05
LONG = bool(os.environ.get("UNDERSTUDY_AUDIT"))
MODES: tuple[str, ...] = ("bounded", "gaussian", "check", "realised", "thresholdout", "ladder")
SCORE_BAR_MS = 2


def science(rows: int = 10_000, variables: int = 10_000) -> list[Verdict]:
    found = []
    print(f"T1: {variables:,} variables chosen on {rows:,} rows")
    for signal in (0, 20):
        plain = Game(Plain(rows, variables + 50, BETA), SeededNoise(0))
        claims = selection(plain, variables, np.random.default_rng(0), signal=signal)
        ours = Game(made("check", rows, variables + 50, BETA, 50), SeededNoise(0))
        checked = selection(ours, variables, np.random.default_rng(0), signal=signal)
        width = ours.mode.certificate.width
        print(f"  signal {signal:>2}: plain claims {claims[-1]:.3f}, true {plain.truths[-1]:.3f}", end="; ")
        print(f"checked says {checked[-1]:.3f} ± {width:.3f}, true {ours.truths[-1]:.3f}", end="; ")
        print(f"{ours.heard.failures} rejected")
        name = f"validity, T1 with signal {signal}"
        found.append(claim(f"{name}, all answers within", holds=ours.covered))
        found.append(verdict(f"{name}, width", width, at_most(0.19, "± {:.3f}")))
        if not signal:
            found.append(verdict(f"{name}, the plain holdout overfits", claims[-1], at_least(0.6, "{:.3f}")))
    return found


def closed_form() -> list[Verdict]:
    print("T2: plain answers against the closed form")
    verdicts = []
    for rows, queries in ((1000, 1000), (2000, 500), (10_000, 1000)):
        runs = 40 if rows < 10_000 else 10
        found = [play(majority, Plain(rows, queries + 1, BETA), queries, s).claimed for s in range(runs)]
        error = np.std(found, ddof=1) / np.sqrt(runs)
        expected = expected_majority(rows, queries)
        off = (np.mean(found) - expected) / error
        told = f"{np.mean(found):.4f} expected {expected:.4f}, {off:+.1f} errors"
        print(f"  n {rows:>6,} k {queries:>5,}: {told}")
        name = f"validity, T2 closed form, n {rows:,} k {queries:,}"
        verdicts.append(verdict(name, abs(off), below(3, "{:.1f} standard errors")))
    return verdicts


def coverage() -> list[Verdict]:
    verdicts = []
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
                f"{' (vacuous)' if width >= 0.5 else ''}"
            )
            name = f"validity, coverage of {mode.name}, n {rows:,} k {queries:,}"
            verdicts.append(claim(name, f"{failed} of {runs} missed, p {p:.2g}", holds=p > 1e-3))
    return verdicts


def search() -> list[Verdict]:
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
    print(f"  plain: the best overfits by {overfit:.4f} on average")
    found = [verdict("validity, search, the plain holdout overfits", overfit, at_least(0.04, "{:.4f}"))]
    for mode, scores in said.items():
        holds = all(abs(score.value - 0.5) <= score.width for score in scores)
        most = max(score.value for score in scores)
        widest = max(score.width for score in scores)
        print(f"  {mode}: at most {most:.3f}, width at most {widest:.3f}")
        found.append(claim(f"validity, search, {mode} within its width", holds=holds))
    try:
        Holdout(None, np.zeros(rows, np.int64), queries=candidates, mode="gaussian", theorem="cvar")
        refused = ""
    except RefusedError as refusal:
        refused = str(refusal).split(";")[0]
    return [*found, claim("validity, search, gaussian by cvar refuses", refused, holds=bool(refused))]


def cost() -> list[Verdict]:
    """Beside the plain holdout's score: the mean of numpy's comparison."""
    rows, scores, found = 10_000, 300, []
    print(f"cost of a score besides the model's, {rows:,} rows")
    truth = np.random.default_rng(0).integers(0, 2, rows)
    told = [truth] * scores
    plain = 1000 / rate(lambda predicted: float((predicted == truth).mean()), told)
    print(f"  {'plain':<9} {'by numpy':<10} {plain:.3f} CPU ms a score")
    with tempfile.TemporaryDirectory() as folder:
        for kept in (None, Path(folder) / "holdout.db"):
            for mode in ("gaussian", "ladder"):
                holdout = Holdout(None, truth, queries=scores, mode=mode, path=kept, name=f"{mode}")
                milliseconds = 1000 / rate(holdout.score_predictions, told)
                where = "in a file" if kept else "in memory"
                times = f"{milliseconds / plain:.1f} times plain"
                print(f"  {mode:<9} {where:<10} {milliseconds:.3f} CPU ms a score   {times}")
                name = f"validity, cost, {mode} {where}"
                found.append(verdict(name, milliseconds, below(SCORE_BAR_MS, "{:.3f} CPU ms a score")))
    return found


def attacks() -> list[Verdict]:
    print("eight attacks, 2,000 rows, 300 questions, 5 runs: last claim, truth, width, runs with all within")
    for finding in validity_audit(rows=2000, queries=300, runs=5, modes=("plain", *MODES)):
        head = f"  {finding.analyst:<18} {finding.mode:<13}"
        if not finding.runs:
            print(f"{head} refuses: {finding.refused.split(';')[0]}")
            continue
        told = f"{finding.claimed:.3f} {finding.truth:.3f} ± {finding.width:.3f}"
        print(f"{head} {told} {finding.covered}/{finding.runs}")
    return []


PUBLISHED = (
    ("split", "fresh rows for each question", lambda n, k: split_width(n, k, BETA)),
    ("gaussian-bnsssu16", "Bassily et al. 2016", lambda n, k: bnsssu_rrsstw_width(n, k, BETA)),
    ("gaussian-jlnrss20", "Jung et al. 2020", lambda n, k: jlnrss_width(n, k, BETA, 2)),
    ("gaussian-rogers20", "Rogers et al. 2020, as printed", lambda n, k: rz_width(n, k, BETA)),
    ("rogers20-cvar", "their route with one β", lambda n, k: rz_cvar_width(n, k, BETA)),
    (
        "elementary",
        "information about each row, one β",
        lambda n, k: elementary_normal(n, k, BETA)[0],
    ),
    ("cvar", "CVaR transfer", lambda n, k: cvar_width(n, k, BETA)[0]),
    ("drift-sharp", "posterior drift", lambda n, k: drift_width_sharp(n, k, BETA)[0]),
    ("tilting", "Theorem T, normal noise", lambda n, k: tilting_width(n, k, BETA)[0]),
    ("bounded", "Theorem T, bounded noise", lambda n, k: cosine_width(n, k, BETA).width),
)
"""Certificates from the widest to the narrowest at 100,000 rows and 10,000 questions."""

TOLD = {
    "gaussian-rogers20": 0.1845,
    "rogers20-cvar": 0.1479,
    "cvar": 0.1497,
    "drift-sharp": 0.1081,
    "tilting": 0.0962,
    "bounded": 0.0801,
}
"""What README.md and the documents say of them."""


def transfer_t(rho: float, rows: int) -> float:
    """The t of Theorem T for prices that add up to rho, at the order that is best for them."""
    order = transfer_order(rows, BETA, rho)
    return tilting_t(rows, BETA, order, transfer_log_bound(rows, order, rho))


def published() -> list[Verdict]:
    """What is published beside Theorem T, and how many questions a width allows, computed in this run."""
    rows, queries = 10**5, 10**4
    print(f"half-widths for {queries:,} adaptive questions on {rows:,} rows, all at once but for β = {BETA}")
    widths = {}
    for name, by, width in PUBLISHED:
        widths[name] = min(1.0, width(rows, queries))
        print(f"  {name:<18} {widths[name]:.4f}   {by}")
    capacity = {wanted: cosine_capacity(rows, wanted, BETA) for wanted in (0.05, 0.1)}
    for wanted, most in capacity.items():
        print(f"  within ±{wanted}, bounded noise: {most:,} questions")
    print("  (24,408 within ±0.1 by a search that stops at one in 2,000)")
    for mode in (Bounded(rows, queries, BETA), Gaussian(rows, queries, BETA)):
        first = mode.read({"value": 0.5}, Heard()).width
        print(f"  {mode.name}, first score ± {first:.4f}, last ± {mode.certificate.width:.4f}")
    session = [transfer_t(0.02, rows), cvar_V_zcdp(0.02, BETA)]
    print("  sessions, beyond alpha, ρ = 0.02: Theorem T {:.4f}, CVaR transfer {:.4f}".format(*session))
    found = [
        claim(
            f"validity, published, {name} is {told}",
            f"{widths[name]:.4f}",
            holds=f"{widths[name]:.4f}" == f"{told}",
        )
        for name, told in TOLD.items()
    ]
    best = min(widths[name] for name in ("gaussian-bnsssu16", "gaussian-jlnrss20", "gaussian-rogers20"))
    return [
        *found,
        verdict(
            "validity, published, bounded over the best published",
            widths["bounded"] / best,
            below(0.45, "{:.3f}"),
        ),
        verdict(
            "validity, published, Theorem T with normal noise", widths["tilting"], below(0.0963, "{:.4f}")
        ),
        verdict("validity, published, bounded noise", widths["bounded"], below(0.0802, "{:.4f}")),
        verdict("validity, published, questions within 0.1", capacity[0.1], at_least(24_408, "{:,}")),
        claim("validity, published, splitting gives nothing", holds=widths["split"] >= 0.5),
    ]


PARTS: dict[str, Callable[[], list[Verdict]]] = {
    "published": published,
    "science": science,
    "closed-form": closed_form,
    "search": search,
    "cost": cost,
    "attacks": attacks,
    "coverage": coverage,
}


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parts = parser.parse_args(arguments).parts
    return [one for part in parts for one in shown(*PARTS[part]())]


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
