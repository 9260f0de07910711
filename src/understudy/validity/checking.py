"""GuessAndCheck as a mode: guesses from other rows, checked on the sealed ones.

A right guess costs next to nothing, a wrong one a factor in the number of questions that could have been asked.
With a fixed number of rejections (`Checking`) all answers share one width, and the mode halts; counting them as
they happen (`Realised`) it never halts but for vacuity, and each answer has the width of the rejections before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, erfc, floor, hypot, sqrt
from typing import Any

from understudy.errors import HandleClosedError
from understudy.noise.samplers import NoiseSource
from understudy.theory.capacity import rows_needed
from understudy.theory.guess_and_check import gnc_dev, gnc_failures_width, gnc_width, step_grid
from understudy.validity.certificate import VACUOUS, Certificate
from understudy.validity.modes import (
    USEFUL,
    Heard,
    ModeCard,
    Said,
    SealedLook,
    needed_guess,
    sampling_deviation,
)
from understudy.validity.transfer import guess_and_check, realised


@dataclass(frozen=True)
class _SlackAndGrid(ABC):
    """What both ways share: η, the best slack for the certificate, and the coarsest grid that is right to η."""

    rows: int
    queries: int
    beta: float
    about_best = False

    @cached_property
    def eta(self) -> float:
        return self._best(self.rows)[1]

    @property
    def grid(self) -> int:
        return ceil(1 / (2 * self.eta))

    @property
    def deviation(self) -> float:
        """The standard deviation of a guess that is right, from as many rows as are sealed."""
        return sampling_deviation(self.rows)

    @property
    def certificate(self) -> Certificate:
        return self._certificate

    def width_with(self, rows: int) -> float:
        return self._best(rows)[0]

    @cached_property
    def _certificate(self) -> Certificate:
        return self._certified()

    @abstractmethod
    def _certified(self) -> Certificate:
        """The certificate, with its own η."""

    @abstractmethod
    def _best(self, rows: int) -> tuple[float, float]:
        """The narrowest width with so many rows, and its η."""


@dataclass(frozen=True)
class Checking(_SlackAndGrid):
    """GuessAndCheck(η, m): a guess within η of the sample is right; the rejection after the m-th halts it.

    η is `slack`, or the best of those that let a right guess pass (`least_slack`).

    Certificate  The tree of queries that can be asked at all: η + sqrt((ln(2/β) + ln nodes)/(2n)), with the
                 coarsest grid of answers that is right to η.
    """

    rejections: int = 50
    slack: float | None = None
    name = "check"

    def _best(self, rows: int) -> tuple[float, float]:
        return min((self._width(rows, eta), eta) for eta in _slacks(rows, self.slack))

    def _width(self, rows: int, eta: float) -> float:
        return gnc_width(rows, self.queries, self.rejections, eta, self.beta, ceil(1 / (2 * eta)))

    def _certified(self) -> Certificate:
        return guess_and_check(self.rows, self.queries, self.rejections, self.eta, self.beta, grid=self.grid)

    @cached_property
    def _measured(self) -> float:
        spread = gnc_dev(self.rows, self.queries, self.rejections, self.grid, self.beta)
        return 1 / (2 * self.grid) + spread

    @property
    def text(self) -> str:
        return (
            f"guess and check eta {self.eta:.9g} rejections {self.rejections} queries {self.queries} "
            f"beta {self.beta}"
        )

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del noise
        guess = needed_guess(look)
        if heard.failures > self.rejections:
            raise HandleClosedError(f"more than {self.rejections} guesses were wrong: the holdout has halted")
        if abs(look.mean - guess) <= self.eta:
            return {"accepted": True, "value": guess}
        if heard.failures == self.rejections:
            return {"accepted": False, "value": None}
        return {"accepted": False, "value": _nearest(look.mean, self.grid)}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        if step["accepted"]:
            return Said(step["value"], self.certificate.width, "checked")
        heard.failures += 1
        if step["value"] is None:
            raise HandleClosedError(f"more than {self.rejections} guesses were wrong: the holdout has halted")
        return Said(step["value"], self._measured, "measured")


@dataclass(frozen=True)
class Realised(_SlackAndGrid):
    """GuessAndCheck that counts the guesses that turn out wrong, instead of fixing how many may.

    η is `slack`, or the best for `expected` wrong guesses; any number is certified. An answer's width is that of
    the wrong guesses before it, known when it is given; the mode refuses before that says nothing. A score without
    a guess is measured, and counts as one whose guess was wrong: in the tree of all that can be asked it takes the
    branch of a rejection, whatever the rows say.

    Certificate  Weight 2^-(f+1) on f failures: `theory.guess_and_check.gnc_failures_width`.
    """

    expected: int = 20
    slack: float | None = None
    name = "realised"

    def _best(self, rows: int) -> tuple[float, float]:
        failures = min(self.expected, self.queries - 1)
        return min(
            (gnc_failures_width(rows, self.queries, failures, eta, self.beta), eta)
            for eta in _slacks(rows, self.slack)
        )

    def _certified(self) -> Certificate:
        return self.certificate_after(min(self.expected, self.queries - 1))

    def certificate_after(self, failures: int) -> Certificate:
        """What answers up to and after so many wrong guesses are worth."""
        return realised(self.rows, self.queries, failures, self.eta, self.beta)

    @property
    def text(self) -> str:
        return (
            f"guess and check, realised failures, eta {self.eta:.9g} queries {self.queries} beta {self.beta}"
        )

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del noise
        width = _realised_width(self.rows, self.queries, heard.failures, self.eta, self.beta)
        if width >= VACUOUS:
            rows = rows_needed(self._after(heard.failures), USEFUL)
            raise HandleClosedError(
                f"{heard.failures} guesses were wrong: the next answer's certificate would say nothing "
                f"(half-width {width:.3f}, wider than the whole range); {rows:,} rows would certify {USEFUL:g}"
            )
        if look.guess is not None:
            guess = needed_guess(look)
            if abs(look.mean - guess) <= self.eta:
                return {"accepted": True, "value": guess}
        return {"accepted": False, "value": _nearest(look.mean, self.grid)}

    def forecast_rejections(self, guess_rows: int) -> float:
        """How many of all guesses will be wrong by chance, if each is a mean over so many rows of its own.

        By the normal law, with the largest standard deviation that the difference of two such means can have.
        """
        deviation = hypot(sampling_deviation(self.rows), sampling_deviation(guess_rows))
        return self.queries * erfc(self.eta / deviation / sqrt(2))

    def _after(self, failures: int) -> Any:
        """The width as a function of rows, at the best η for the failures that happened."""
        return lambda n: min(
            gnc_failures_width(n, self.queries, min(failures, self.queries), eta, self.beta)
            for eta in _slacks(n, None)
        )

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        width = _realised_width(self.rows, self.queries, heard.failures, self.eta, self.beta)
        heard.asked += 1
        heard.failures += not step["accepted"]
        return Said(step["value"], width, "checked" if step["accepted"] else "measured")


CHECK = ModeCard(
    name="check",
    build=lambda t: Checking(t.rows, t.queries, t.beta, t.wrong(50), t.slack),
    takes_guesses=True,
    for_pairs=True,
)

REALISED = ModeCard(
    name="realised",
    build=lambda t: Realised(t.rows, t.queries, t.beta, t.wrong(20), t.slack),
    planned="guess-and-check",
    takes_guesses=True,
    for_pairs=True,
)


@lru_cache(maxsize=4096)
def _realised_width(rows: int, queries: int, failures: int, eta: float, beta: float) -> float:
    return gnc_failures_width(rows, queries, min(failures, queries), eta, beta)


def least_slack(rows: int) -> float:
    """3/sqrt(n): more than four standard deviations of the difference of two means of n rows each.

    A narrower check would reject guesses that are right, and every rejection costs more than the slack.
    """
    return 3 / sqrt(rows)


def _slacks(rows: int, wanted: float | None) -> list[float]:
    if wanted is not None:
        return [wanted]
    least = min(least_slack(rows), 0.9)
    return [least, *(eta for eta in step_grid(1.0, 100) if eta > least)]


def _nearest(mean: float, grid: int) -> float:
    """The middle of the cell, of `grid` equal ones, that holds a mean."""
    return (2 * min(floor(mean * grid), grid - 1) + 1) / (2 * grid)
