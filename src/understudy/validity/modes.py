"""How a holdout speaks: mechanisms whose answers, together, hold against the population.

Each mode takes the exact score on the holdout's rows and says something that generalises; its certificate is
fixed in advance, from the number of rows n, of queries k and the failure probability β, and lists what it
assumes. Here: noise (`Gaussian`, `Thresholdout`). Others: bounded noise (`bounded`), guesses (`checking`),
the running best (`ladder`), AUC (`auc`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, log, tanh
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import HandleClosedError, ParameterError, RefusedError
from understudy.noise.normal import rounded_normal
from understudy.noise.samplers import NoiseSource, discrete_laplace
from understudy.theory.capacity import rows_needed
from understudy.theory.certificates import NOISE_CERTIFICATES
from understudy.theory.guess_and_check import step_grid
from understudy.validity.certificate import (
    ADVANCE,
    BOUNDED,
    CAP,
    ELSEWHERE,
    INDEPENDENT,
    SEALED,
    VACUOUS,
    Certificate,
)
from understudy.validity.lattice import grid, rounding, told, total
from understudy.validity.transfer import best_sigma, gaussian

USEFUL = 0.1
"""The width that a refusal names the number of rows for."""


@dataclass(frozen=True, eq=False)
class SealedLook:
    """One look at the sealed rows: the exact score, the same on the public grid, and a guess from elsewhere.

    `mean` is for modes that count what they can say; noise is added to `total`, in steps of 1/`steps` (`lattice`),
    and nothing finer is told. `values` has one number for each person.
    """

    mean: float
    total: int
    steps: int
    guess: float | None = None
    values: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, values: NDArray[np.float64], steps: int, guess: float | None = None) -> SealedLook:
        """A look at one number in [0, 1] for each person, in so many steps."""
        return cls(float(values.mean()), total(values, steps), len(values) * steps, guess, values)

    @classmethod
    def at(cls, mean: float, rows: int, guess: float | None = None) -> SealedLook:
        """A look at so many rows of which only the mean is known, as in a game."""
        steps = rows * grid(rows)
        return cls(mean, round(mean * steps), steps, guess)


@dataclass
class Heard:
    """What has been said so far, as far as a mode needs it."""

    asked: int = 0
    failures: int = 0
    best: float = 1.0
    """The least loss that a ladder has shown."""
    secret: dict[str, Any] = field(default_factory=dict)
    """What is kept from the analyst between two questions."""


@dataclass(frozen=True)
class Said:
    """A score, how far it can be from the population's, and where it comes from."""

    value: float
    width: float
    source: str


class HoldoutMode(Protocol):
    """A mechanism with its certificate."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int:
        """Independent rows, or people, that it speaks about."""
        ...

    @property
    def queries(self) -> int: ...

    @property
    def beta(self) -> float: ...

    @property
    def text(self) -> str:
        """What is promised: fixed in advance, and kept with the journal."""
        ...

    @property
    def certificate(self) -> Certificate:
        """What the widest answer is worth."""
        ...

    @property
    def about_best(self) -> bool:
        """Whether the promise is about the running best, rather than about each answer."""
        ...

    def width_with(self, rows: int) -> float:
        """The width of the same promise with another number of rows."""
        ...

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        """The next step, in plain values: all that is ever released of this query."""
        ...

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        """What a step means to the analyst; `heard` is updated."""
        ...


@dataclass(frozen=True, slots=True)
class ModeTerms:
    """What a mode is built of: rows, scores and a failure probability; the rest matters to some modes only.

    `rejections` is how many guesses may be wrong, None for the mode's own number; `theorem` names a certificate
    for normal noise, None for Theorem T; `slack` is how far a right guess may be from the sample, None for the
    best.
    """

    rows: int
    queries: int
    beta: float
    rejections: int | None = None
    theorem: str | None = None
    slack: float | None = None

    def wrong(self, usual: int) -> int:
        """How many guesses may be wrong."""
        return usual if self.rejections is None else self.rejections


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeCard:
    """A mode as the holdout, its boards and the audit know it; `choice.MODE_CARDS` lists the cards.

    `planned` names the planner's entry by which `auto` compares the mode, if it may choose it. One that
    `takes_guesses` cannot do without a guess for each score. `for_pairs` says that it certifies the area under the
    curve too, as a mean of min(p, q) rows; `certified` that it promises anything.
    """

    name: str
    build: Callable[[ModeTerms], HoldoutMode]
    planned: str = ""
    takes_guesses: bool = False
    for_pairs: bool = False
    certified: bool = True


@dataclass(frozen=True)
class Gaussian:
    """The mean with normal noise, rounded to the public grid: exactly the law of a rounded ideal answer.

    Certificate  One of `theory.certificates`, named in advance: "tilting" by default, which is Theorem T; "cvar"
                 is wider and rests on privacy alone. All k answers at once.
    """

    rows: int
    queries: int
    beta: float
    theorem: str = "tilting"
    name = "gaussian"
    about_best = False

    def __post_init__(self) -> None:
        if self.theorem not in NOISE_CERTIFICATES:
            listed = ", ".join(NOISE_CERTIFICATES)
            raise ParameterError(f"the certificate is one of {listed}, not {self.theorem!r}")

    @cached_property
    def sigma(self) -> float:
        return best_sigma(self.rows, self.queries, self.beta, self.theorem)

    @property
    def certificate(self) -> Certificate:
        return self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        ideal = gaussian(self.rows, self.queries, self.beta, sigma=self.sigma, theorem=self.theorem)
        return on_grid(ideal, self.rows)

    def width_with(self, rows: int) -> float:
        return gaussian(rows, self.queries, self.beta, theorem=self.theorem).width + rounding(rows)

    @property
    def text(self) -> str:
        return f"gaussian {self.theorem} sigma {self.sigma:.9g} queries {self.queries} beta {self.beta}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del heard
        return {"value": with_normal_noise(look, self.sigma, noise)}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        return Said(step["value"], self.certificate.width, "measured")


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


GAUSSIAN = ModeCard(
    name="gaussian",
    build=lambda t: Gaussian(t.rows, t.queries, t.beta, t.theorem or "tilting"),
    planned="tilting",
)

THRESHOLDOUT = ModeCard(
    name="thresholdout",
    build=lambda t: Thresholdout(t.rows, t.queries, t.beta, t.wrong(50)),
    takes_guesses=True,
)


def needed_guess(look: SealedLook) -> float:
    """The guess of a look, which a mode that checks guesses cannot do without."""
    if look.guess is None:
        raise ParameterError("this mode checks guesses: give rows that are not the holdout's to guess from")
    if not np.isfinite(look.guess):
        raise ParameterError("a guess is a number between 0 and 1")
    return between_0_and_1(look.guess)


def between_0_and_1(value: float) -> float:
    """`value`, or the nearer end of [0, 1]."""
    return min(max(value, 0.0), 1.0)


def with_normal_noise(look: SealedLook, sigma: float, noise: NoiseSource) -> float:
    """A look's score with normal noise of this deviation, rounded to its grid."""
    drawn = int(rounded_normal(Fraction(sigma) * look.steps, 1, noise=noise)[0])
    return told(look.total + drawn, look.steps)


def on_grid(ideal: Certificate, rows: int) -> Certificate:
    """The certificate of answers that are rounded to the public grid; its check is of the same answers."""
    more = rounding(rows)
    check = None if ideal.check is None else replace(ideal.check, width=ideal.check.width + more)
    return replace(ideal, width=ideal.width + more, check=check)


def _laplace(scale: Fraction, noise: NoiseSource) -> int:
    return int(discrete_laplace(scale, 1, noise=noise)[0])


def check_worth(mode: HoldoutMode, tolerance: float = VACUOUS) -> None:
    """Refuse a mode whose certificate is wider than `tolerance`, with the number of rows that it would take."""
    width = mode.certificate.width
    if width < tolerance:
        return
    wanted = min(USEFUL, tolerance)
    try:
        remedy = f"{rows_needed(mode.width_with, wanted):,} rows would certify {wanted:g}"
    except ParameterError:
        remedy = f"no number of rows certifies {wanted:g}"
    shown = f"half-width {min(width, 1.0):.3f}"
    reason = f"be wider than {tolerance:g} ({shown})"
    if width >= VACUOUS:
        reason = f"say nothing ({shown}, wider than the whole range)"
    raise RefusedError(
        f"the certificate would {reason}: {remedy}; or ask fewer queries, bring guesses from other rows, "
        f"or use the ladder"
    )
