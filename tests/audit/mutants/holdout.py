"""Holdouts that promise what an adaptive analyst breaks, or forget what was said."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import binom

from audit.mutants.mutant import Mutant
from low_bits import AllBits, read_labels
from memorising import SEEN, Memoriser, Turncoat, label_of
from understudy.errors import HandleClosedError, RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.validity.checking import Checking
from understudy.validity.holdout import Holdout
from understudy.validity.modes import Gaussian, HoldoutMode
from understudy.validity.thresholdout import Thresholdout
from understudy_audit.analysts.correlation import majority
from understudy_audit.analysts.game import Plain
from understudy_audit.validity import made, play

ROWS, QUERIES, BETA, RUNS = 500, 200, 0.05, 60
FALSE_ALARM = 1e-9


def uncovered(mode: HoldoutMode) -> bool:
    """Whether the majority analyst finds a width that fails in more runs than β allows, beyond doubt."""
    missed = sum(not play(majority, mode, QUERIES, seed, vacuous=True).covered for seed in range(RUNS))
    return bool(binom.sf(missed - 1, RUNS, BETA) < FALSE_ALARM)


@dataclass(frozen=True)
class Narrowed:
    """Another mode, with widths that are a sixth of what it proves."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, step, heard):
        said = self.inner.read(step, heard)
        return replace(said, width=said.width / 6)


class Lenient(Checking):
    """Does not count the guesses that were wrong."""

    def read(self, step, heard):
        said = super().read(step, heard)
        heard.failures = 0
        return said


def never_halts(mode: Checking) -> bool:
    """Whether more guesses may be wrong than the certificate was made for."""

    def hostile(game, queries, draw):
        majority(game, queries, draw, hostile=True)

    return not play(hostile, mode, QUERIES, 1, vacuous=True).refusal


class Forgetful(Holdout):
    """Opened again, it has said nothing."""

    def _catch_up(self) -> None:
        deque(self._journal.later(), maxlen=0)


class Redrawing(Holdout):
    """Opened again, it counts on, with a new threshold."""

    def _catch_up(self) -> None:
        super()._catch_up()
        self._memory.heard.secret = {}


LABELS = np.arange(400) % 2


def reopened(kind: type[Holdout], told: Callable[[Holdout], object]) -> bool:
    """Whether `told` of a holdout differs before and after it was closed and opened again."""
    seen = []
    with TemporaryDirectory() as folder:
        for seed in (1, 2):
            mode = Thresholdout(400, 20, BETA, rejections=2)
            holdout = kind(
                None, LABELS, queries=20, beta=BETA, mode=mode, tolerance=9.0, path=Path(folder) / "h.db",
                noise=SeededNoise(seed),
            )  # fmt: skip
            if seed == 1:
                holdout.score_predictions(LABELS, guess=1.0)
            seen.append(told(holdout))
            holdout._journal._ledger.close()  # type: ignore[attr-defined]
    return seen[0] != seen[1]


def threshold(holdout: Holdout) -> object:
    return holdout._memory.heard.secret.get("threshold")


class Endless(Holdout):
    """Counts its scores against no number."""

    @property
    def queries(self) -> int:
        return 10**9

    @queries.setter
    def queries(self, value: int) -> None:
        """The number that was promised is dropped."""


def gives_more_than_promised(kind: type[Holdout]) -> bool:
    """A score beyond the number that the certificate covers."""
    mode = Thresholdout(400, 3, BETA, rejections=2)
    try:
        holdout = kind(None, LABELS, queries=3, beta=BETA, mode=mode, tolerance=9.0, noise=SeededNoise(1))
        for _ in range(4):
            holdout.score_predictions(LABELS, guess=1.0)
    except HandleClosedError:
        return False
    return True


def low_bits_tell(kind: type[Gaussian]) -> bool:
    """Whether an analyst reads most labels off the floats that a holdout with noise of many counts tells."""
    draw, rows, times = np.random.default_rng(1), 90, 30
    labels = draw.integers(0, 2, rows)
    mode = kind(rows, rows // 3 * times, BETA)
    holdout = Holdout(None, labels, queries=mode.queries, mode=mode, classes=[0, 1], tolerance=9.0,
                      noise=SeededNoise(1))  # fmt: skip
    found = read_labels(
        lambda p: holdout.score_predictions(p).value, rows, mode.sigma, times=times, draw=draw
    )
    return bool(binom.sf((found == labels).sum() - 1, rows, 0.5) < FALSE_ALARM)


class Trusting(Holdout):
    """Says that it is strict, and shows its rows to any estimator."""

    def score(self, estimator, X=None, y=None):
        self.strict = False
        try:
            return super().score(estimator, X, y)
        finally:
            self.strict = True


def rows_are_memorised(kind: type[Holdout]) -> bool:
    """Whether an estimator that is wrong about the population is told, by a strict holdout, that it is right."""
    rows = np.random.default_rng(2).normal(size=(4000, 1))
    holdout = kind(rows, label_of(rows), queries=4, beta=BETA, strict=True, noise=SeededNoise(1))
    SEEN.clear()
    first = Memoriser()
    try:
        holdout.score(first)
        told = holdout.score(Turncoat(first))
    except RefusedError:
        return False
    finally:
        SEEN.clear()
    return told.value - told.width > 0


HOLDOUT = [
    Mutant("a holdout that tells all bits of its scores", "low bits", lambda: low_bits_tell(AllBits)),
    Mutant(
        "a strict holdout that shows its rows to estimators of this process",
        "memorising",
        lambda: rows_are_memorised(Trusting),
    ),
    Mutant("a holdout that answers exactly", "analysts", lambda: uncovered(Plain(ROWS, QUERIES + 1, BETA))),
    Mutant(
        "a holdout's widths divided by six",
        "analysts",
        lambda: uncovered(Narrowed(made("gaussian", ROWS, QUERIES + 1, BETA))),
    ),
    Mutant(
        "a holdout that counts no wrong guesses",
        "analysts",
        lambda: never_halts(Lenient(ROWS, QUERIES + 1, BETA, rejections=5)),
    ),
    Mutant(
        "a holdout that gives any number of scores", "contract", lambda: gives_more_than_promised(Endless)
    ),
    Mutant(
        "a holdout that forgets when it is opened again",
        "contract",
        lambda: reopened(Forgetful, lambda holdout: holdout.left),
    ),
    Mutant(
        "a holdout that draws its threshold again when it is opened again",
        "contract",
        lambda: reopened(Redrawing, threshold),
    ),
]

HOLDOUT_HONEST = [
    Mutant("the low bits of the Gaussian holdout", "low bits", lambda: low_bits_tell(Gaussian)),
    Mutant("a strict holdout", "memorising", lambda: rows_are_memorised(Holdout)),
    Mutant("the Gaussian holdout", "analysts", lambda: uncovered(made("gaussian", ROWS, QUERIES + 1, BETA))),
    Mutant("the bounded holdout", "analysts", lambda: uncovered(made("bounded", ROWS, QUERIES + 1, BETA))),
    Mutant(
        "guess and check halts",
        "analysts",
        lambda: never_halts(Checking(ROWS, QUERIES + 1, BETA, rejections=5)),
    ),
    Mutant("a holdout counts its scores", "contract", lambda: gives_more_than_promised(Holdout)),
    Mutant("a holdout opened again", "contract", lambda: reopened(Holdout, lambda h: (h.left, threshold(h)))),
]
