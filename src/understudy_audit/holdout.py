"""The reusable holdout under audit: its certificates rest on how little one row moves everything that it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.errors import HandleClosedError
from understudy.noise.samplers import NoiseSource
from understudy.validity.holdout import Holdout
from understudy.validity.modes import Gaussian, HoldoutMode
from understudy.validity.thresholdout import Thresholdout
from understudy_audit.claim import Claim, NormalClaim, PureClaim
from understudy_audit.events import Draws
from understudy_audit.privacy import Draw, Pair, Subject, stacked

FINE = 2**40
"""Steps in which a score is looked at: far finer than any noise."""

BETA = 0.05
LABELS = np.array([0, 1])

Labels = NDArray[np.int64]
Conversation = Callable[[Holdout], Sequence[int]]
"""What an analyst asks of a holdout, and the whole numbers that come back."""


@dataclass(frozen=True)
class TalkCase:
    """A conversation on rows of which so many are predicted rightly, the last of them or not on either side."""

    name: str
    right: int
    talk: Conversation


def _draw(mode: HoldoutMode, labels: Labels, talk: Conversation, width: int) -> Draw:
    def told(count: int, noise: NoiseSource) -> Draws:
        runs = []
        for _ in range(count):
            # The mode is the one that was asked for, whatever its certificate is worth on so few rows.
            holdout = Holdout(
                None, labels, queries=mode.queries, beta=BETA, mode=mode, classes=LABELS, tolerance=2.0,
                noise=noise,
            )  # fmt: skip
            runs.append(talk(holdout))
        return stacked(runs, width)

    return told


def _pairs(mode: HoldoutMode, claim: Claim, situations: Sequence[TalkCase], width: int) -> list[Pair]:
    """Predictions are all 0: a row is right where its label is 0. The second table has another last row."""
    found = []
    for situation in situations:
        first = np.ones(mode.rows, np.int64)
        first[: situation.right] = 0
        second = first.copy()
        second[-1] = 1 - second[-1]
        one, two = (_draw(mode, labels, situation.talk, width) for labels in (first, second))
        found.append(Pair(situation.name, one, two, claim))
    return found


def _fine(value: float) -> int:
    return round(value * FINE)


# ---- scores with normal noise


def _same(holdout: Holdout, *, flips: Sequence[bool]) -> list[int]:
    """The same predictions, or all of them turned round, again and again."""
    guesses = np.zeros(holdout.rows, np.int64)
    return [_fine(holdout.score_predictions(guesses ^ int(flip)).value) for flip in flips]


def _adaptive(holdout: Holdout) -> list[int]:
    """The second question is turned round where the first score was high."""
    guesses = np.zeros(holdout.rows, np.int64)
    first = holdout.score_predictions(guesses).value
    second = holdout.score_predictions(guesses ^ int(first > 0.5)).value
    return [_fine(first), _fine(second)]


def gaussian_pairs(rows: int = 30, queries: int = 2) -> list[Pair]:
    """k scores, each moved by 1/n at most: together one normal number of spread 1 that moves by √k/(nσ)."""
    mode = Gaussian(rows, queries, BETA)
    claim = NormalClaim(sqrt(queries) / (rows * mode.sigma))
    situations = [TalkCase(f"{right} right, twice the same", right, _twice) for right in (0, 8, 15, 22, 29)]
    situations += [TalkCase(f"{right} right, then turned round", right, _turned) for right in (0, 15, 29)]
    situations += [
        TalkCase(f"{right} right, the second by the first", right, _adaptive) for right in (10, 15, 20)
    ]
    return _pairs(mode, claim, situations, queries)


def _twice(holdout: Holdout) -> list[int]:
    return _same(holdout, flips=(False, False))


def _turned(holdout: Holdout) -> list[int]:
    return _same(holdout, flips=(False, True))


# ---- thresholdout


def _checked(holdout: Holdout, *, guesses: Sequence[float]) -> list[int]:
    """Guesses, one after the other, until the holdout has no answer left."""
    predictions, told = np.zeros(holdout.rows, np.int64), []
    for guess in guesses:
        try:
            said = holdout.score_predictions(predictions, guess=guess)
        except HandleClosedError:
            break
        told += [int(said.source == "measured"), _fine(said.value)]
    return told


def thresholdout_pairs(rows: int = 2200, queries: int = 3) -> list[Pair]:
    """One answer that costs 2/(ns), whatever is compared before it: about ε = 1."""
    mode = Thresholdout(rows, queries, BETA, rejections=1)
    claim = PureClaim(Fraction(2 / (rows * mode.scale)))
    half, step = rows // 2, mode.scale

    def talk(*steps: float) -> Conversation:
        """Guesses so many noise scales from the edge at which a comparison turns."""
        guesses = [0.5 + mode.threshold + s * step for s in steps]
        return lambda holdout: _checked(holdout, guesses=guesses)

    situations = [
        TalkCase(f"guesses {steps} scales from the edge", half, talk(*steps))
        for steps in (
            (0.0,), (0.0, 0.0, 0.0), (-2.0, -2.0, 2.0), (-4.0, 0.0, 4.0), (4.0, 0.0, -4.0), (8.0, 0.0, 0.0),
            (-8.0, -8.0, -8.0), (2.0, 2.0, 2.0), (-1.0, 1.0, -1.0), (20.0, 0.0, 0.0),
        )
    ]  # fmt: skip
    situations += [
        TalkCase(f"{right} right", right, talk(0.0, 0.0, 0.0)) for right in (half - 1, half + 1, half + 5)
    ]
    return _pairs(mode, claim, situations, 2 * queries)


def holdout_subjects() -> list[Subject]:
    """The two modes whose certificates rest on a privacy curve; the others promise none."""
    return [
        Subject("holdout-gaussian", "validity.holdout.Holdout (gaussian)", "run", gaussian_pairs),
        Subject("holdout-thresholdout", "validity.holdout.Holdout (thresholdout)", "run", thresholdout_pairs),
    ]
