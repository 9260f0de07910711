"""`auto` where both ways of asking are open: the first score decides whether guesses are checked.

A holdout with features may be a scorer of scikit-learn, which brings other rows with each estimator, or may be
asked for scores alone. Which of the two it is shows at the first score, before anything was told: the choice then
depends on nothing that the sealed rows could have influenced, so the certificate of the chosen mode holds with the
whole of β, as if it had been named when the holdout was opened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from understudy.noise.samplers import NoiseSource
from understudy.validity.certificate import Certificate
from understudy.validity.checking import Realised
from understudy.validity.modes import Heard, HoldoutMode, Said, SealedLook
from understudy.validity.noise_filter import NoiseFilter


@dataclass(frozen=True)
class FirstScoreDecides:
    """Two modes for the same rows, queries and β, of which the first score takes one for good.

    guessed    for a first score with a guess, and without a chosen scale of noise; unless the guess comes from so
               few rows that by chance more guesses would be wrong than the mode was planned for
    unguessed  for any other first score

    Certificate  The wider of the two, until the first score; from then on, that of the mode it has taken.
    """

    guessed: Realised
    unguessed: HoldoutMode
    name = "auto"

    @property
    def rows(self) -> int:
        return self.guessed.rows

    @property
    def queries(self) -> int:
        return self.guessed.queries

    @property
    def beta(self) -> float:
        return self.guessed.beta

    @property
    def about_best(self) -> bool:
        return self.unguessed.about_best

    @property
    def text(self) -> str:
        return f"the first score decides: {self.guessed.text}, or without a guess {self.unguessed.text}"

    @property
    def narrower(self) -> HoldoutMode:
        """The mode with the narrower certificate."""
        return min(self.guessed, self.unguessed, key=lambda mode: mode.certificate.width)

    @property
    def certificate(self) -> Certificate:
        both = (self.guessed.certificate, self.unguessed.certificate)
        wider = max(both, key=lambda one: one.width)
        theorem = f"{both[0].theorem}, or, if the first score brings no guess, {both[1].theorem}"
        every = tuple(dict.fromkeys(line for one in both for line in one.assumptions))
        return replace(wider, theorem=theorem, assumptions=every)

    @property
    def filter(self) -> NoiseFilter | None:
        """The cap on noise of chosen scales: a first score that names a scale takes the mode that has it."""
        return getattr(self.unguessed, "filter", None)

    def width_with(self, rows: int) -> float:
        return max(self.guessed.width_with(rows), self.unguessed.width_with(rows))

    def settled(self, look: SealedLook, guess_rows: int | None = None) -> HoldoutMode:
        """The mode that a first look takes, by how it is asked and by nothing that it sees.

        `guess_rows` is how many rows its guess comes from, None for as many as are sealed.
        """
        if look.guess is None or look.scale is not None:
            return self.unguessed
        wrong = self.guessed.forecast_rejections(guess_rows or self.rows)
        return self.guessed if wrong <= self.guessed.expected else self.unguessed

    def told(self, step: dict[str, Any]) -> HoldoutMode:
        """The mode that the first step of a journal has taken."""
        return self.guessed if step["mode"] == self.guessed.name else self.unguessed

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        """The first step. Later ones are those of the mode that it names."""
        mode = self.settled(look)
        return mode.say(look, heard, noise=noise) | {"mode": mode.name}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        return self.told(step).read(step, heard)
