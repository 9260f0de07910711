"""What a search finds that is scored by a holdout: fresh accuracy with each mode, in one run.

A search draws decision trees at random, fits each on training rows and has the holdout score it, with validation
rows to guess from, as scikit-learn's searches have. The tree with the largest score is taken, and its accuracy on
fresh rows, which nothing else uses, is what the search found. `alone` is `auto` without validation rows, `plain`
the sealed rows without a certificate, `guesses` the validation rows alone.

Run: python -m bench.model_search [--tables digits adult] [--trials 500] [--splits 12]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from bench.tables import NotAtHand, load
from bench.verdict import Verdict, claim, ended, not_run, shown
from understudy.errors import RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.validity.holdout import Holdout

BETA = 0.05
MODES = ("bounded", "gaussian", "realised", "check", "ladder")
GUESSING = ("realised", "check")
FULL_TRIALS, FULL_SPLITS = 500, 12
TABLES = ("digits", "adult")
ERRORS = 3
"""How many standard errors of the difference are noise."""


@dataclass(frozen=True)
class Shares:
    """How many rows each part of a search has; fresh rows are what is left."""

    fitted: int
    guessed: int
    sealed: int


SHARES = {"digits": Shares(450, 150, 600), "adult": Shares(3000, 1000, 4000)}


@dataclass(frozen=True, eq=False)
class Predicted:
    """A fitted tree by what it predicts, for as many rows as are asked about: no two parts have as many."""

    by_rows: dict[int, NDArray[np.int64]]

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.by_rows[len(X)]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The trees of one search, the rows that they are scored on and guessed from, and their fresh accuracies."""

    trees: list[Predicted]
    sealed: tuple[NDArray[np.float64], NDArray[np.int64]]
    guessed: tuple[NDArray[np.float64], NDArray[np.int64]]
    fresh: NDArray[np.float64]

    def exact(self, part: tuple[NDArray[np.float64], NDArray[np.int64]]) -> NDArray[np.float64]:
        """The accuracy of each tree on these rows."""
        return np.array([float((tree.predict(part[0]) == part[1]).mean()) for tree in self.trees])


def rows_of(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features and labels of a table."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.int64)
    table = load(name)
    *features, target = table.domain.names
    return np.column_stack([table.codes[column] for column in features]).astype(np.float64), table.codes[
        target
    ]


def candidates(name: str, trials: int, seed: int) -> Candidates:
    """One split of a table, and so many trees with parameters drawn at random."""
    X, y = rows_of(name)
    draw, share = np.random.default_rng(seed), SHARES[name]
    cuts = np.cumsum([share.fitted, share.guessed, share.sealed])
    fitted, guessed, sealed, fresh = np.split(draw.permutation(len(y)), cuts)
    trees, accuracies = [], []
    for _ in range(trials):
        tree = DecisionTreeClassifier(
            max_depth=int(draw.integers(1, 13)),
            min_samples_leaf=int(np.exp(draw.uniform(0, np.log(50)))),
            max_features=float(draw.uniform(0.05, 1)),
            criterion=str(draw.choice(["gini", "entropy"])),
            random_state=int(draw.integers(2**31)),
        ).fit(X[fitted], y[fitted])
        trees.append(
            Predicted({len(part): np.asarray(tree.predict(X[part]), np.int64) for part in (sealed, guessed)})
        )
        accuracies.append(float((tree.predict(X[fresh]) == y[fresh]).mean()))
    return Candidates(
        trees, (X[sealed], y[sealed]), (X[guessed], y[guessed]), np.array(accuracies, dtype=np.float64)
    )


@dataclass(frozen=True)
class Found:
    """Fresh accuracy of the tree that a search took, the widest width that it was told, and how many it tried."""

    fresh: float
    width: float
    trials: int


def searched(mode: str, tried: Candidates, classes: NDArray[np.int64], seed: int) -> Found:
    """The tree with the largest score, the first one of equals; a mode that halts is taken as far as it came."""
    trials = len(tried.fresh)
    if mode in ("plain", "guesses"):
        scores = tried.exact(tried.sealed if mode == "plain" else tried.guessed)
        return Found(float(tried.fresh[int(np.argmax(scores))]), 1.0, trials)
    holdout = Holdout(
        *tried.sealed, queries=trials, beta=BETA, mode="auto" if mode == "alone" else mode, classes=classes,
        noise=SeededNoise(seed),
    )  # fmt: skip
    told: list[float] = []
    widest = 0.0
    try:
        for tree in tried.trees:
            score = holdout.score(tree, *(() if mode == "alone" else tried.guessed))
            told.append(score.value)
            widest = max(widest, score.width)
    except RefusedError:
        if not told:
            raise
    return Found(float(tried.fresh[int(np.argmax(told))]), widest, len(told))


def table_of_modes(name: str, trials: int, splits: int, again: int = 4) -> list[Verdict]:
    """Each mode on the same trees, over several splits of the rows, with the noise of several draws."""
    classes = np.unique(rows_of(name)[1])
    found: dict[str, list[list[Found]]] = {}
    refused: dict[str, str] = {}
    for split in range(splits):
        tried = candidates(name, trials, split)
        for mode in ("guesses", "plain", "auto", "alone", *MODES):
            try:
                runs = [searched(mode, tried, classes, 100 * split + i) for i in range(again)]
            except RefusedError as error:
                refused[mode] = str(error).split(":")[0]
                continue
            found.setdefault(mode, []).append(runs)
    print(f"{name}: {SHARES[name].sealed:,} sealed rows, {trials} trials, {splits} splits, β = {BETA}")
    print(f"  {'mode':<10}{'fresh':>8}{'± error':>9}{'widest':>9}{'trials':>9}")
    means = {}
    for mode, all_runs in found.items():
        each = np.array([np.mean([run.fresh for run in runs]) for runs in all_runs])
        means[mode] = each
        error = each.std(ddof=1) / np.sqrt(len(each))
        width = np.mean([run.width for runs in all_runs for run in runs])
        asked = np.mean([run.trials for runs in all_runs for run in runs])
        print(f"  {mode:<10}{each.mean():>8.4f}{error:>9.4f}{width:>9.3f}{asked:>9.0f}")
    for mode, why in refused.items():
        print(f"  {mode:<10} refuses: {why}")
    verdicts = []
    for ours, others in (("auto", MODES), ("alone", [mode for mode in MODES if mode not in GUESSING])):
        best = max((mode for mode in others if mode in means), key=lambda mode: means[mode].mean())
        behind = means[best] - means[ours]
        error = behind.std(ddof=1) / np.sqrt(splits)
        verdicts.append(
            claim(
                f"model search, {name}, {ours} finds what the best mode does",
                f"{behind.mean():+.4f} ± {error:.4f} behind {best}",
                holds=behind.mean() <= ERRORS * error + 1e-12,
            )
        )
    return verdicts


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--trials", type=int, default=FULL_TRIALS)
    parser.add_argument("--splits", type=int, default=FULL_SPLITS)
    given = parser.parse_args(arguments)
    found: list[Verdict] = []
    for name in given.tables:
        try:
            verdicts = table_of_modes(name, given.trials, given.splits)
        except NotAtHand as missing:
            verdicts = [not_run(f"model search, {name}", str(missing))]
        full = (one.of_full_size("trials", given.trials, FULL_TRIALS) for one in verdicts)
        found += shown(*(one.of_full_size("splits", given.splits, FULL_SPLITS) for one in full))
    return found


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
