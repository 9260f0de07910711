"""Bounded noise as a mode: every score is within r of the sealed rows' own for sure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import hypot, pi, sqrt
from typing import Any

from understudy.noise.cosine import rounded_cosine
from understudy.noise.samplers import NoiseSource
from understudy.theory.cosine_noise import BoundedWidth, cosine_log_bound, cosine_width
from understudy.theory.tilting import outward
from understudy.validity.certificate import Certificate
from understudy.validity.lattice import rounding, told
from understudy.validity.modes import (
    Heard,
    ModeCard,
    Said,
    SealedLook,
    admitted,
    filtered,
    on_grid,
    sampling_deviation,
    spent,
    width_of,
)
from understudy.validity.noise_filter import NoiseFilter
from understudy.validity.transfer import bounded


@dataclass(frozen=True)
class Bounded:
    """The mean with noise of density cos² on [-r, r], rounded to the public grid.

    Certificate  Theorem T (`theory.cosine_noise`), with r and its order α fixed in advance by rows, queries and β.
                 The noise never exceeds r, so that no part of β pays for it. The r of a score may be chosen
                 (`noise_filter`): its width is r_j + t at the realised sum.
    """

    rows: int
    queries: int
    beta: float
    name = "bounded"
    about_best = False

    @cached_property
    def _best(self) -> BoundedWidth:
        return cosine_width(self.rows, self.queries, self.beta)

    @property
    def r(self) -> float:
        """The largest noise there can be, as a score."""
        return self._best.r

    @property
    def deviation(self) -> float:
        """The standard deviation of a score: of cos² noise, r·sqrt(1/3 - 2/π²), and of the sample."""
        return hypot(self.r * sqrt(1 / 3 - 2 / pi**2), sampling_deviation(self.rows))

    @property
    def certificate(self) -> Certificate:
        return self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        best = self._best
        ideal = bounded(self.rows, self.queries, self.beta, r=best.r, alpha=best.alpha)
        width = min(1.0, outward(best.r + self.filter.t(self.filter.cap)))
        return on_grid(replace(ideal, width=width, assumptions=filtered(ideal.assumptions)), self.rows)

    @cached_property
    def filter(self) -> NoiseFilter:
        """The cap on noise that is chosen on the way."""
        best, n = self._best, self.rows

        def log_bound(r: float) -> float:
            return cosine_log_bound(n, best.alpha, r)

        return NoiseFilter(n, self.queries, self.beta, best.alpha, best.r, log_bound)

    def width_with(self, rows: int) -> float:
        return cosine_width(rows, self.queries, self.beta).width + rounding(rows)

    @property
    def text(self) -> str:
        best = self._best
        return f"bounded tilting r {best.r:.9g} alpha {best.alpha:g} queries {self.queries} beta {self.beta}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        scale = admitted(self.filter, look, heard)
        r = self.r if scale is None else scale
        value = told(
            look.total + int(rounded_cosine(Fraction(r) * look.steps, 1, noise=noise)[0]), look.steps
        )
        return {"value": value} if scale is None else {"value": value, "scale": scale}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        scale = step.get("scale")
        t = spent(self.filter, scale, heard)
        return Said(step["value"], width_of(scale or self.r, t, self.rows), "measured")


BOUNDED = ModeCard(name="bounded", build=lambda t: Bounded(t.rows, t.queries, t.beta), planned="bounded")
