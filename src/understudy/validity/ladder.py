"""Leaderboards that cannot be climbed by noise: only the running best is told. [BlumHardt15]"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import floor, sqrt
from typing import Any

import numpy as np

from understudy.errors import ParameterError
from understudy.noise.samplers import NoiseSource
from understudy.theory.ladder import ladder_width
from understudy.validity.certificate import BEST, Certificate
from understudy.validity.modes import Heard, ModeCard, Said, SealedLook
from understudy.validity.transfer import ladder


@dataclass(frozen=True)
class Ladder:
    """The best loss so far, told only when it is beaten by more than η, rounded to η.

    Certificate  About the running best alone: it is within `width` of the best true loss so far. The releases
                 fall strictly on a grid, and the tree of all that can be said is counted exactly.
    """

    rows: int
    queries: int
    beta: float
    name = "ladder"
    about_best = True

    @cached_property
    def eta(self) -> float:
        return ladder_width(self.rows, self.queries, self.beta)[1]

    @property
    def certificate(self) -> Certificate:
        return self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        return ladder(self.rows, self.queries, self.beta)

    def width_with(self, rows: int) -> float:
        return ladder_width(rows, self.queries, self.beta)[0]

    @property
    def text(self) -> str:
        return f"ladder eta {self.eta:.9g} queries {self.queries} beta {self.beta}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del noise
        loss = 1 - look.mean
        if loss < heard.best - self.eta:
            return {"best": min(round(loss / self.eta), floor(1 / self.eta)) * self.eta}
        return {"best": None}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        return _best_so_far(step, heard, self.certificate.width)


@dataclass(frozen=True)
class FreeLadder:
    """The parameter-free ladder: the best is beaten when the paired difference exceeds its standard error.

    Told when loss < best - std(l - l_best)/sqrt(n), rounded to 1/n. [BlumHardt15]

    Certificate  None: no theorem gives it a useful width, and the width it reports is 1. It is for competitions
                 that want no parameter. Its memory of the best submission's rows is kept in no file.
    """

    rows: int
    queries: int
    beta: float
    name = "free-ladder"
    about_best = True

    @property
    def certificate(self) -> Certificate:
        return Certificate(1.0, self.beta, "no theorem (parameter-free ladder)", (BEST,))

    def width_with(self, rows: int) -> float:
        del rows
        return 1.0

    @property
    def text(self) -> str:
        return f"parameter-free ladder, uncertified, queries {self.queries}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del noise
        if look.values is None:
            raise ParameterError("the parameter-free ladder compares rows: it needs one number for each")
        losses = 1 - look.values
        before = heard.secret.get("losses")
        spread = 0.0 if before is None else float(np.std(losses - before, ddof=1)) if self.rows > 1 else 1.0
        if before is not None and not losses.mean() < float(before.mean()) - spread / sqrt(self.rows):
            return {"best": None}
        heard.secret["losses"] = losses
        return {"best": round(float(losses.mean()) * self.rows) / self.rows}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        return _best_so_far(step, heard, 1.0)


LADDER = ModeCard(name="ladder", build=lambda t: Ladder(t.rows, t.queries, t.beta), for_pairs=True)

FREE_LADDER = ModeCard(
    name="free-ladder", build=lambda t: FreeLadder(t.rows, t.queries, t.beta), certified=False
)


def _best_so_far(step: dict[str, Any], heard: Heard, width: float) -> Said:
    heard.asked += 1
    if step["best"] is None:
        return Said(1 - heard.best, width, "repeat")
    heard.best = step["best"]
    return Said(1 - heard.best, width, "measured")
