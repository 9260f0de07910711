"""How a holdout speaks: mechanisms whose answers, together, hold against the population.

Each mode takes the exact score on the holdout's rows and says something that generalises; its certificate is
fixed in advance, from the number of rows n, of queries k and the failure probability β, and lists what it
assumes. Here: normal noise (`Gaussian`). Others: bounded noise (`bounded`), guesses (`checking`,
`thresholdout`), the running best (`ladder`), AUC (`auc`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import hypot, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, RefusedError
from understudy.noise.normal import rounded_normal
from understudy.noise.samplers import NoiseSource
from understudy.theory.arguments import whole
from understudy.theory.capacity import rows_needed
from understudy.theory.certificates import NOISE_CERTIFICATES
from understudy.theory.normal_noise import quantile
from understudy.theory.tilting import TILTING, outward, tilting_split, transfer_log_bound, transfer_order
from understudy.validity.certificate import (
    CAP,
    FILTER,
    VACUOUS,
    Certificate,
)
from understudy.validity.lattice import grid, rounding, told, total
from understudy.validity.noise_filter import NoiseFilter
from understudy.validity.transfer import best_sigma, gaussian

USEFUL = 0.1
"""The width that a refusal names the number of rows for."""


@dataclass(frozen=True, eq=False)
class SealedLook:
    """One look at the sealed rows: the exact score, the same on the public grid, and a guess from elsewhere.

    `mean` is for modes that count what they can say; noise is added to `total`, in steps of 1/`steps` (`lattice`),
    and nothing finer is told. `values` has one number for each person. `scale` is that of the noise where it was
    asked for; else the mode's own is drawn (`noise_filter`).
    """

    mean: float
    total: int
    steps: int
    guess: float | None = None
    values: NDArray[np.float64] | None = None
    scale: float | None = None

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
    units: int = 0
    """What the noise adds up to, of a mode with a `noise_filter`."""
    secret: dict[str, Any] = field(default_factory=dict)
    """What is kept from the analyst between two questions."""


@dataclass(frozen=True)
class Said:
    """A score, how far it can be from the population's, and where it comes from."""

    value: float
    width: float
    source: str


def sampling_deviation(rows: int) -> float:
    """1/(2·sqrt(n)): the largest standard deviation that a mean of n independent numbers in [0, 1] can have."""
    return 1 / (2 * sqrt(rows))


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


class SearchedMode(HoldoutMode, Protocol):
    """A mode whose scores tell candidates apart, so that `auto` can forecast what a search finds by them."""

    @property
    def deviation(self) -> float:
        """The standard deviation of a told score around the population's, or of the guess that is told for it."""
        ...


@dataclass(frozen=True, slots=True)
class ModeTerms:
    """What a mode is built of: rows, scores and a failure probability; the rest matters to some modes only.

    `rejections` is how many guesses may be wrong, None for the mode's own number; `theorem` names a certificate
    for normal noise, None for Theorem T; `slack` is how far a right guess may be from the sample, None for the
    best. Raises a `ParameterError` where `queries` or `rejections` is no number of scores.
    """

    rows: int
    queries: int
    beta: float
    rejections: int | None = None
    theorem: str | None = None
    slack: float | None = None

    def __post_init__(self) -> None:
        whole(self.queries, "queries")
        if self.rejections is not None:
            whole(self.rejections, "rejections", at_least=0)

    def wrong(self, usual: int) -> int:
        """How many guesses may be wrong."""
        return usual if self.rejections is None else self.rejections


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeCard:
    """A mode as the holdout, its boards and the audit know it; `choice.MODE_CARDS` lists the cards.

    `planned` names the planner's entry by which `auto` compares the mode, if it may choose it; the mode is then a
    `SearchedMode`. One that `takes_guesses` is for scores that come with guesses. `for_pairs` says that it
    certifies the area under the curve too, as a mean of min(p, q) rows; `certified` that it promises anything.
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
                 is wider and rests on privacy alone. All k answers at once. Under Theorem T the noise of a score
                 may be chosen (`noise_filter`): z·σ_j + t at the realised sum, where the largest of k standard
                 normal numbers is beyond z with the part of β that `theory.tilting` plans for it. That part
                 needs no planned noise: divided by their own σ_j, the noises are independent standard normal
                 numbers, however each σ_j was chosen.
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
    def deviation(self) -> float:
        return hypot(self.sigma, sampling_deviation(self.rows))

    @property
    def certificate(self) -> Certificate:
        return self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        ideal = gaussian(self.rows, self.queries, self.beta, sigma=self.sigma, theorem=self.theorem)
        if self.filter is not None:
            width = self._reach(self.sigma) + self.filter.t(self.filter.cap)
            ideal = replace(ideal, width=min(1.0, outward(width)), assumptions=filtered(ideal.assumptions))
        return on_grid(ideal, self.rows)

    @cached_property
    def filter(self) -> NoiseFilter | None:
        """The cap on noise that is chosen on the way; None where the theorem fixes the noise."""
        if self.theorem != TILTING.name:
            return None
        left, n = self.beta - self._noise_beta, self.rows
        alpha = transfer_order(n, left, self.queries / (n * self.sigma) ** 2 / 4)

        def log_bound(sigma: float) -> float:
            return transfer_log_bound(n, alpha, outward(1 / (n * sigma) ** 2 / 4))

        return NoiseFilter(n, self.queries, left, alpha, self.sigma, log_bound)

    @cached_property
    def _noise_beta(self) -> float:
        return tilting_split(self.rows, self.queries, self.beta)[2]

    def _reach(self, sigma: float) -> float:
        """How far noise of this deviation reaches in any score, but for its part of β."""
        return sigma * quantile(self.queries, self._noise_beta)

    def width_with(self, rows: int) -> float:
        return gaussian(rows, self.queries, self.beta, theorem=self.theorem).width + rounding(rows)

    @property
    def text(self) -> str:
        return f"gaussian {self.theorem} sigma {self.sigma:.9g} queries {self.queries} beta {self.beta}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        scale = admitted(self.filter, look, heard)
        value = with_normal_noise(look, self.sigma if scale is None else scale, noise)
        return {"value": value} if scale is None else {"value": value, "scale": scale}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        if self.filter is None:
            return Said(step["value"], self.certificate.width, "measured")
        scale = step.get("scale")
        t = spent(self.filter, scale, heard)
        return Said(step["value"], width_of(self._reach(scale or self.sigma), t, self.rows), "measured")


GAUSSIAN = ModeCard(
    name="gaussian",
    build=lambda t: Gaussian(t.rows, t.queries, t.beta, t.theorem or "tilting"),
    planned="tilting",
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


def admitted(noise: NoiseFilter | None, look: SealedLook, heard: Heard) -> float | None:
    """The scale of noise that a look asks for, None for the planned one; refused where it may not have that."""
    if noise is None:
        if look.scale is not None:
            raise ParameterError("the noise of this mode is fixed: leave `scale` out")
        return None
    noise.admit(heard.units, look.scale)
    return look.scale


def spent(noise: NoiseFilter, scale: float | None, heard: Heard) -> float:
    """t when a score with noise of this scale was told; `heard` is updated."""
    cost = noise.cost(scale)
    heard.units += noise.cap if cost is None else cost
    return noise.t(heard.units)


def width_of(reach: float, t: float, rows: int) -> float:
    """How far a score can be off that noise moved by `reach` at most, told on the grid of so many rows."""
    return min(1.0, outward(reach + t)) + rounding(rows)


def filtered(assumed: tuple[str, ...]) -> tuple[str, ...]:
    """The conditions of a theorem under a filter: its sum is capped, and counted as it is spent."""
    return tuple(FILTER if line == CAP else line for line in assumed)


def on_grid(ideal: Certificate, rows: int) -> Certificate:
    """The certificate of answers that are rounded to the public grid; its check is of the same answers."""
    more = rounding(rows)
    check = None if ideal.check is None else replace(ideal.check, width=ideal.check.width + more)
    return replace(ideal, width=ideal.width + more, check=check)


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
