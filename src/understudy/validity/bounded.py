"""Bounded noise as a mode: every score is within r of the sealed rows' own for sure."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from understudy.noise.cosine import rounded_cosine
from understudy.noise.samplers import NoiseSource
from understudy.theory.cosine_noise import BoundedWidth, cosine_width
from understudy.validity.certificate import Certificate
from understudy.validity.lattice import rounding, told
from understudy.validity.modes import Heard, ModeCard, Said, SealedLook, on_grid
from understudy.validity.transfer import bounded


@dataclass(frozen=True)
class Bounded:
    """The mean with noise of density cos² on [-r, r], rounded to the public grid.

    Certificate  Theorem T (`theory.cosine_noise`), with r and its order α fixed in advance by rows, queries and β.
                 The noise never exceeds r, so that no part of β pays for it.
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
    def certificate(self) -> Certificate:
        return self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        best = self._best
        ideal = bounded(self.rows, self.queries, self.beta, r=best.r, alpha=best.alpha)
        return on_grid(ideal, self.rows)

    def width_with(self, rows: int) -> float:
        return cosine_width(rows, self.queries, self.beta).width + rounding(rows)

    @property
    def text(self) -> str:
        best = self._best
        return f"bounded tilting r {best.r:.9g} alpha {best.alpha:g} queries {self.queries} beta {self.beta}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del heard
        drawn = int(rounded_cosine(Fraction(self.r) * look.steps, 1, noise=noise)[0])
        return {"value": told(look.total + drawn, look.steps)}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        return Said(step["value"], self.certificate.width, "measured")


BOUNDED = ModeCard(name="bounded", build=lambda t: Bounded(t.rows, t.queries, t.beta), planned="bounded")
