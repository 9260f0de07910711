"""The area under the ROC curve: no mean over rows, so the certificates of means do not cover it.

Given the labels, the p positive and the q negative rows are independent draws, each kind from its own population,
and the area is a mean over p·q pairs. Replacing a positive row moves it by at most 1/p, a negative one by 1/q: its
sensitivity is Δ = 1/min(p, q). Two theorems remain.

    noise          [BNSSSU16] for queries of sensitivity Δ: a query chosen by an (ε, δ)-DP algorithm is off by more
                   than 18εΔn with probability below δ/ε, for ε < 1/3, δ < ε/4 and n ≥ ln(4ε/δ)/ε². `Auc` here.
    counted trees  by Hoeffding's inequality for two-sample U-statistics a fixed score's area is off by t with
                   probability at most 2e^{-2·min(p, q)·t²}, as a mean of min(p, q) rows would be: guesses and
                   ladders hold as they are, with min(p, q) for n.

The first is wide: it is the price of noise without a mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np

from understudy.errors import ParameterError
from understudy.noise.samplers import NoiseSource
from understudy.theory.composition import log_gdp_delta
from understudy.theory.minimise import best_from
from understudy.theory.normal_noise import quantile
from understudy.validity.certificate import (
    ADVANCE,
    BOUNDED,
    CAP,
    INDEPENDENT,
    ROUNDED,
    SEALED,
    Certificate,
)
from understudy.validity.modes import Heard, Said, SealedLook, with_normal_noise

PAIRS = "the score is the area under the curve, and which rows are positive is public"


def about_pairs(certificate: Certificate) -> Certificate:
    """A certificate of a mean over min(p, q) rows, said of the area under the curve: what it then assumes."""
    if BOUNDED not in certificate.assumptions:
        return certificate
    assumed = tuple(PAIRS if line == BOUNDED else line for line in certificate.assumptions)
    return replace(certificate, theorem=f"{certificate.theorem}, min(p, q) for n", assumptions=assumed)


def auc_width(positive: int, negative: int, queries: int, beta: float) -> tuple[float, float]:
    """(width, σ): 18εΔn and the quantile of the largest of k normal noises, at the best ε and σ; 1 if none.

    The noise gets what δ/ε leaves of β; δ is that of the Gaussian mechanism with μ = sqrt(k)·Δ/σ.
    """
    rows, least = positive + negative, min(positive, negative)

    def width(at: tuple[float, ...]) -> float:
        sigma, eps = exp(at[0]), exp(at[1])
        if eps >= 1 / 3:
            return inf
        log_delta = log_gdp_delta(eps, sqrt(queries) / (least * sigma))
        # a larger δ is also true: the theorem's condition on n may ask for it
        log_delta = max(log_delta, log(4 * eps) - rows * eps * eps)
        overfit = exp(log_delta) / eps
        if overfit >= min(beta, 1 / 4):
            return inf
        return sigma * quantile(queries, beta - overfit) + 18 * eps * rows / least

    starts = [(x, y) for x in np.linspace(-12, 0, 40) for y in np.linspace(-9, log(1 / 3) - 1e-6, 40)]
    found, at = best_from(width, starts)
    return (found, exp(at[0])) if found < 1 else (1.0, 1.0)


@dataclass(frozen=True)
class Auc:
    """The area under the curve with normal noise, certified as a query of sensitivity 1/min(p, q).

    The area is a whole number of steps of 1/(2pq), as a tie counts half; p and q are public. What is told is the
    rounding to this grid of an ideal answer, half a step from it at most.
    """

    positive: int
    negative: int
    queries: int
    beta: float
    name = "auc"
    about_best = False

    def __post_init__(self) -> None:
        if self.positive < 1 or self.negative < 1:
            raise ParameterError("the area under the curve needs rows of both classes")

    @property
    def rows(self) -> int:
        return self.positive + self.negative

    @cached_property
    def _best(self) -> tuple[float, float]:
        return auc_width(self.positive, self.negative, self.queries, self.beta)

    @property
    def sigma(self) -> float:
        return self._best[1]

    @property
    def certificate(self) -> Certificate:
        assumed = (INDEPENDENT, SEALED, ADVANCE, PAIRS, ROUNDED, CAP)
        return Certificate(
            self._best[0] + _half_step(self.positive, self.negative),
            self.beta,
            "Bassily et al. 2016, sensitivity 1/min(p, q)",
            assumed,
        )

    def width_with(self, rows: int) -> float:
        """With the classes in the same proportion."""
        positive = max(1, round(rows * self.positive / self.rows))
        negative = max(1, rows - positive)
        return auc_width(positive, negative, self.queries, self.beta)[0] + _half_step(positive, negative)

    @property
    def text(self) -> str:
        return f"auc sigma {self.sigma:.9g} queries {self.queries} beta {self.beta}"

    def say(self, look: SealedLook, heard: Heard, *, noise: NoiseSource) -> dict[str, Any]:
        del heard
        return {"value": with_normal_noise(look, self.sigma, noise)}

    def read(self, step: dict[str, Any], heard: Heard) -> Said:
        heard.asked += 1
        return Said(step["value"], self.certificate.width, "measured")


def _half_step(positive: int, negative: int) -> float:
    return 1 / (4 * positive * negative)
