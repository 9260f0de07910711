"""The game between an analyst and a mechanism, with a referee who knows the population.

An analyst sees answers and widths only. The referee keeps, for each of them, what is true.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import RefusedError
from understudy.noise.samplers import NoiseSource
from understudy.theory.baseline import hoeffding_width
from understudy.validity.certificate import Certificate
from understudy.validity.modes import Heard, HoldoutMode, Said, SealedLook, check_worth


@dataclass(frozen=True)
class Plain:
    """A holdout as it is used: exact means, and the width that holds if no query depends on an answer."""

    rows: int
    queries: int
    beta: float
    name = "plain"
    about_best = False

    @property
    def certificate(self) -> Certificate:
        return Certificate(
            self.width_with(self.rows), self.beta, "Hoeffding", ("no query depends on an answer",)
        )

    def width_with(self, rows: int) -> float:
        return hoeffding_width(rows, self.beta, self.queries)

    @property
    def text(self) -> str:
        return f"plain queries {self.queries} beta {self.beta}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del heard, noise
        return {"value": look.mean}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        return Said(step["value"], self.certificate.width, "exact")


@dataclass
class Game:
    """One run against one mode. Asking raises `RefusedError` once the mode has halted.

    A mode whose certificate says nothing is refused at once, as a holdout would, unless `vacuous` games are
    wanted; a plain holdout never refuses.
    """

    mode: HoldoutMode
    noise: NoiseSource
    heard: Heard = field(default_factory=Heard)
    answers: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    truths: list[float] = field(default_factory=list)
    refusal: str = ""
    vacuous: bool = False

    def __post_init__(self) -> None:
        if not (self.vacuous or isinstance(self.mode, Plain)):
            check_worth(self.mode)

    def ask(
        self, mean: float, truth: float, guess: float | None = None, *, scale: float | None = None
    ) -> float:
        """An answer about a query with this mean on the sample and this one in the population.

        `scale` is that of the noise, where the mode lets it be chosen.
        """
        look = replace(SealedLook.at(mean, self.mode.rows, guess), scale=scale)
        try:
            step = self.mode.say(look, self.heard, noise=self.noise)
            said = self.mode.read(step, self.heard)
        except RefusedError as error:
            self.refusal = str(error)
            raise
        self.answers.append(said.value)
        self.widths.append(said.width)
        best = self.mode.about_best and self.truths
        self.truths.append(max(truth, self.truths[-1]) if best else truth)
        return said.value

    @property
    def errors(self) -> NDArray[np.float64]:
        """How far each answer was from what it promised: the truth, or the best truth so far."""
        return np.abs(np.array(self.answers) - np.array(self.truths))

    @property
    def covered(self) -> bool:
        """Whether every answer was within its width."""
        return bool((self.errors <= np.array(self.widths) + 1e-12).all())

    @property
    def outcome(self) -> GameResult:
        """The last answer, which is the one that an attack is about."""
        last = (self.answers[-1], self.truths[-1], self.widths[-1]) if self.answers else (0.5, 0.5, 1.0)
        return GameResult(
            self.mode.name, *last, float(self.errors.max(initial=0.0)), self.covered, self.refusal
        )


@dataclass(frozen=True)
class GameResult:
    """What was claimed at the end, what was true, and whether all widths held; `refusal` if it stopped early."""

    mode: str
    claimed: float
    truth: float
    width: float
    largest_error: float
    covered: bool
    refusal: str = ""

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def other_rows(truth: float, rows: int, draw: np.random.Generator) -> float:
    """A guess from as many rows of the analyst's own."""
    return float(draw.binomial(rows, truth)) / rows
