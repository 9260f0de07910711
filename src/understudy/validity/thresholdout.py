"""Thresholdout as a mode: the score on other rows while the holdout agrees with it, by a sparse vector."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, log, tanh
from typing import Any

from understudy.errors import HandleClosedError, ParameterError
from understudy.noise.samplers import NoiseSource, discrete_laplace
from understudy.theory.guess_and_check import step_grid
from understudy.validity.certificate import (
    ADVANCE,
    BOUNDED,
    CAP,
    ELSEWHERE,
    INDEPENDENT,
    SEALED,
    Certificate,
)
from understudy.validity.lattice import rounding, told
from understudy.validity.modes import Heard, ModeCard, Said, SealedLook, needed_guess


@dataclass(frozen=True)
class Thresholdout:
    """The score on other rows while the holdout agrees within a noisy threshold; else the holdout's, with noise.

    It is a sparse vector on statistical queries [DFHPRR15]: Lap(2s) on the threshold T, Lap(4s) on each
    comparison, Lap(s) on an answer, so each of the B answers costs 2/(ns) of pure ε. All of it is discrete Laplace
    noise on the public grid, where a row moves a score by M steps. s is chosen for the certificate, and T is how
    far a comparison can be wrong; the published parameters are in `theory.thresholdout`.

    Certificate  All comparisons are right beyond a = 8s(ln k + ln(200B/β)), so that answers are within T + a of
                 the sample, but for β/100. ε-DP moves no query by more than tanh(ε/4) from the sample's posterior.
                 Together T + a + 1/100 + tanh(B/(2ns)), and what rounding moves: T and the guess by a step and a
                 half, and 2 for the discrete law, whose P[|X| > t + 1] ≤ e^{-t/b} at every real t.
    """

    rows: int
    queries: int
    beta: float
    rejections: int = 50
    name = "thresholdout"
    about_best = False

    def __post_init__(self) -> None:
        if self.rejections < 1:
            raise ParameterError(
                "thresholdout needs an answer for a wrong guess: let `rejections` be at least 1"
            )

    @cached_property
    def _best(self) -> tuple[float, float]:
        return self._best_with(self.rows)

    def _best_with(self, rows: int) -> tuple[float, float]:
        return min((self._at(tau / 1000, rows), tau / 1000) for tau in step_grid(1.0, 200))

    def _at(self, scale: float, rows: int) -> float:
        private = tanh(self.rejections / (2 * rows * scale))
        return 2 * self._slack(scale) + 0.01 + private + rounding(rows, 3.5)

    def _slack(self, scale: float) -> float:
        return 8 * scale * (log(self.queries) + log(200 * self.rejections / self.beta))

    @property
    def certificate(self) -> Certificate:
        theorem = "sparse vector and pure privacy, tanh(ε/4)"
        assumed = (INDEPENDENT, SEALED, ADVANCE, BOUNDED, CAP, ELSEWHERE)
        return Certificate(self._best[0], self.beta, theorem, assumed)

    def width_with(self, rows: int) -> float:
        return self._best_with(rows)[0]

    @property
    def scale(self) -> float:
        return self._best[1]

    @property
    def threshold(self) -> float:
        return self._slack(self.scale)

    @property
    def text(self) -> str:
        return (
            f"thresholdout threshold {self.threshold:.9g} scale {self.scale:.9g} "
            f"answers {self.rejections} queries {self.queries} beta {self.beta}"
        )

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        guess = needed_guess(look)
        if heard.failures >= self.rejections:
            raise HandleClosedError(f"its {self.rejections} answers from the holdout are used up")
        scale = Fraction(self.scale) * look.steps
        if "threshold" not in heard.secret:
            heard.secret["threshold"] = ceil(self.threshold * look.steps) + _laplace(2 * scale, noise)
        off = abs(look.total - round(guess * look.steps)) + _laplace(4 * scale, noise)
        if off < self._in_steps(heard.secret["threshold"], look.steps):
            return {"accepted": True, "value": guess}
        del heard.secret["threshold"]
        return {"accepted": False, "value": told(look.total + _laplace(scale, noise), look.steps)}

    def _in_steps(self, threshold: float, steps: int) -> int:
        """A noisy threshold in steps: whole, or as version 0.1 kept it, a float between 0 and 1 or so."""
        return threshold if isinstance(threshold, int) else round(threshold * steps)

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        heard.failures += not step["accepted"]
        return Said(step["value"], self._best[0], "checked" if step["accepted"] else "measured")


THRESHOLDOUT = ModeCard(
    name="thresholdout",
    build=lambda t: Thresholdout(t.rows, t.queries, t.beta, t.wrong(50)),
    takes_guesses=True,
)


def _laplace(scale: Fraction, noise: NoiseSource) -> int:
    return int(discrete_laplace(scale, 1, noise=noise)[0])
