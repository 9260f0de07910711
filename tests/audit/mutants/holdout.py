"""Holdouts that promise what an adaptive analyst breaks, or forget what was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import binom

from audit.mutants.mutant import Mutant
from understudy.errors import HandleClosedError
from understudy.noise.samplers import SeededNoise
from understudy.validity.checking import Checking
from understudy.validity.holdout import Holdout
from understudy.validity.modes import HoldoutMode, Thresholdout
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
        self._memory.later()


class Redrawing(Holdout):
    """Opened again, it counts on, with a new threshold."""

    def _catch_up(self) -> None:
        super()._catch_up()
        self._heard.secret = {}


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
            holdout._memory._ledger.close()  # type: ignore[attr-defined]
    return seen[0] != seen[1]


def threshold(holdout: Holdout) -> object:
    return holdout._heard.secret.get("threshold")


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
    mode = Thresholdout(400, 10**9 if kind is Endless else 3, BETA, rejections=2)
    try:
        holdout = kind(None, LABELS, queries=3, beta=BETA, mode=mode, tolerance=9.0, noise=SeededNoise(1))
        for _ in range(4):
            holdout.score_predictions(LABELS, guess=1.0)
    except HandleClosedError:
        return False
    return True


HOLDOUT = [
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
    Mutant("the Gaussian holdout", "analysts", lambda: uncovered(made("gaussian", ROWS, QUERIES + 1, BETA))),
    Mutant(
        "guess and check halts",
        "analysts",
        lambda: never_halts(Checking(ROWS, QUERIES + 1, BETA, rejections=5)),
    ),
    Mutant("a holdout counts its scores", "contract", lambda: gives_more_than_promised(Holdout)),
    Mutant("a holdout opened again", "contract", lambda: reopened(Holdout, lambda h: (h.left, threshold(h)))),
]
