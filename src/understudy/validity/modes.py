"""How a holdout speaks: four mechanisms whose answers, together, hold against the population.

Each mode takes the exact mean over the holdout's rows and says something that generalises; its certificate is
fixed in advance, from the number of rows n, of queries k and the failure probability β. Assumptions of all of
them: the rows are independent draws, nothing else looks at them, and the total of queries is fixed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, floor, log, tanh
from typing import Any, Protocol

from understudy.errors import HandleClosedError, ParameterError, RefusedError
from understudy.noise import NoiseSource, normal
from understudy.theory.capacity import rows_needed
from understudy.theory.cvar import cvar_width
from understudy.theory.drift import drift_width
from understudy.theory.guess_and_check import gnc_dev, gnc_width, step_grid
from understudy.theory.ladder import ladder_width

VACUOUS = 0.5
"""A width of this much or more says nothing: answering 1/2 always does as well."""


@dataclass
class Heard:
    """What has been said so far, as far as a mode needs it."""

    asked: int = 0
    failures: int = 0
    best: float = 1.0
    """The least loss that a ladder has shown."""
    secret: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """A score, how far it can be from the population's, and where it comes from."""

    value: float
    width: float
    source: str


class Mode(Protocol):
    """A mechanism with its certificate."""

    @property
    def text(self) -> str:
        """What is promised: fixed in advance, and kept with the journal."""
        ...

    @property
    def width(self) -> float:
        """The widest certificate that an answer can have."""
        ...

    def say(self, mean: float, guess: float | None, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        """The next step, in plain values: all that is ever released of this query."""
        ...

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        """What a step means to the analyst; `heard` is updated."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """The mean with continuous normal noise.

    Certificate  "cvar": every privacy curve transfers; the default. "drift": narrower, not yet read by a second
                 pair of eyes; by name only. Both promise all k answers at once against any analyst.
    """

    rows: int
    queries: int
    beta: float
    certificate: str = "cvar"

    def __post_init__(self) -> None:
        if self.certificate not in ("cvar", "drift"):
            raise ParameterError(f"the certificate is 'cvar' or 'drift', not {self.certificate!r}")

    @cached_property
    def _best(self) -> tuple[float, float]:
        return self._at(self.rows)

    def _at(self, rows: int) -> tuple[float, float]:
        found = cvar_width if self.certificate == "cvar" else drift_width
        return found(rows, self.queries, self.beta)

    @property
    def width(self) -> float:
        return self._best[0]

    @property
    def sigma(self) -> float:
        return self._best[1]

    @property
    def text(self) -> str:
        return f"gaussian {self.certificate} sigma {self.sigma:.9g} queries {self.queries} beta {self.beta}"

    def rows_for(self, width: float) -> int:
        """Rows that would certify a width."""
        return rows_needed(lambda n: self._at(n)[0], width)

    def say(self, mean: float, guess: float | None, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del guess, heard
        return {"value": min(max(mean + self.sigma * float(normal(1, noise=noise)[0]), 0.0), 1.0)}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        return Said(step["value"], self.width, "measured")


@dataclass(frozen=True)
class Checking:
    """GuessAndCheck(η, m): guesses from other rows, checked here; η is chosen best for m rejections.

    Certificate  The tree of queries that can be asked at all: η + sqrt((ln(2/β) + ln nodes)/(2n)).
    """

    rows: int
    queries: int
    beta: float
    rejections: int = 50

    @cached_property
    def eta(self) -> float:
        return min(
            step_grid(1.0, 200),
            key=lambda eta: gnc_width(self.rows, self.queries, self.rejections, eta, self.beta),
        )

    @property
    def grid(self) -> int:
        return ceil(2 / self.eta)

    @property
    def width(self) -> float:
        return gnc_width(self.rows, self.queries, self.rejections, self.eta, self.beta)

    @property
    def text(self) -> str:
        return (
            f"guess and check eta {self.eta:.9g} rejections {self.rejections} queries {self.queries} "
            f"beta {self.beta}"
        )

    def say(self, mean: float, guess: float | None, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del noise
        if guess is None:
            raise ParameterError(
                "this mode checks guesses: give rows that are not the holdout's to guess from"
            )
        if heard.failures > self.rejections:
            raise HandleClosedError(f"more than {self.rejections} guesses were wrong: the holdout has halted")
        guess = min(max(guess, 0.0), 1.0)
        if abs(mean - guess) <= self.eta:
            return {"accepted": True, "value": guess}
        if heard.failures == self.rejections:
            return {"accepted": False, "value": None}
        cell = min(floor(mean * self.grid), self.grid - 1)
        return {"accepted": False, "value": (2 * cell + 1) / (2 * self.grid)}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        if step["accepted"]:
            return Said(step["value"], self.width, "checked")
        heard.failures += 1
        if step["value"] is None:
            raise HandleClosedError(f"more than {self.rejections} guesses were wrong: the holdout has halted")
        spread = gnc_dev(self.rows, self.queries, self.rejections, self.grid, self.beta)
        return Said(step["value"], 1 / (2 * self.grid) + spread, "measured")


@dataclass(frozen=True)
class Ladder:
    """The best loss so far, told only when it is beaten by more than η, rounded to η. [BlumHardt15]

    Certificate  About the running best alone: it is within `width` of the best true loss so far.
    """

    rows: int
    queries: int
    beta: float

    @cached_property
    def _best(self) -> tuple[float, float]:
        return ladder_width(self.rows, self.queries, self.beta)

    @property
    def width(self) -> float:
        return self._best[0]

    @property
    def eta(self) -> float:
        return self._best[1]

    @property
    def text(self) -> str:
        return f"ladder eta {self.eta:.9g} queries {self.queries} beta {self.beta}"

    def say(self, mean: float, guess: float | None, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del guess, noise
        loss = 1 - mean
        if loss < heard.best - self.eta:
            return {"best": min(round(loss / self.eta), floor(1 / self.eta)) * self.eta}
        return {"best": None}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        if step["best"] is None:
            return Said(1 - heard.best, self.width, "repeat")
        heard.best = step["best"]
        return Said(1 - heard.best, self.width, "measured")


@dataclass(frozen=True)
class Thresholdout:
    """The score on other rows while the holdout agrees within a noisy threshold; else the holdout's, with noise.

    It is a sparse vector on statistical queries [DFHPRR15]: Lap(2s) on the threshold T, Lap(4s) on each
    comparison, Lap(s) on an answer, so each of the B answers costs 2/(ns) of pure ε. s is chosen for the
    certificate, and T is how far a comparison can be wrong; the published parameters are in
    `theory.thresholdout`.

    Certificate  All comparisons are right beyond a = 8s(ln k + ln(200B/β)), so that answers are within T + a of
                 the sample, but for β/100. ε-DP moves no query by more than tanh(ε/4) from the sample's posterior.
                 Together T + a + 1/100 + tanh(B/(2ns)).
    """

    rows: int
    queries: int
    beta: float
    rejections: int = 50

    @cached_property
    def _best(self) -> tuple[float, float]:
        return min((self._at(tau / 1000), tau / 1000) for tau in step_grid(1.0, 200))

    def _at(self, scale: float) -> float:
        return 2 * self._slack(scale) + 0.01 + tanh(self.rejections / (2 * self.rows * scale))

    def _slack(self, scale: float) -> float:
        return 8 * scale * (log(self.queries) + log(200 * self.rejections / self.beta))

    @property
    def width(self) -> float:
        return self._best[0]

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

    def say(self, mean: float, guess: float | None, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        if guess is None:
            raise ParameterError("this mode compares with other rows: give rows that are not the holdout's")
        if heard.failures >= self.rejections:
            raise HandleClosedError(f"its {self.rejections} answers from the holdout are used up")
        if "threshold" not in heard.secret:
            heard.secret["threshold"] = self.threshold + 2 * self.scale * _laplace(noise)
        if abs(mean - guess) + 4 * self.scale * _laplace(noise) < heard.secret["threshold"]:
            return {"accepted": True, "value": min(max(guess, 0.0), 1.0)}
        del heard.secret["threshold"]
        return {"accepted": False, "value": min(max(mean + self.scale * _laplace(noise), 0.0), 1.0)}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        heard.failures += not step["accepted"]
        return Said(step["value"], self.width, "checked" if step["accepted"] else "measured")


def _laplace(noise: NoiseSource) -> float:
    """A continuous Laplace number of scale 1, for validity alone."""
    first, second = ((float(word) + 0.5) / 2**53 for word in noise.words(2) >> 11)
    return log(first) - log(second)


def automatic(rows: int, queries: int, beta: float, *, guesses: bool) -> Mode:
    """The narrowest certificate of those that fit: checked guesses where there are other rows, else noise.

    Decided by public numbers: the ladder is taken where every other certificate says nothing.
    """
    candidates: list[Mode] = [Gaussian(rows, queries, beta)]
    if guesses:
        candidates.append(Checking(rows, queries, beta))
    best = min(candidates, key=lambda mode: mode.width)
    return best if best.width < VACUOUS else Ladder(rows, queries, beta)


def check_worth(mode: Mode) -> None:
    """Refuse a mode whose certificate says nothing, with what it would take."""
    if mode.width < VACUOUS:
        return
    remedy = "use the ladder, or fewer queries"
    if isinstance(mode, Gaussian):
        rows = mode.rows_for(0.1)
        remedy = f"{rows:,} rows would certify 0.1; or use guesses from other rows, or the ladder"
    raise RefusedError(f"the certificate would be vacuous (half-width {min(mode.width, 1):.3f}): {remedy}")
