"""Certificates for means with normal noise: what a theorem gives at its own best noise, and at a given one.

Every certificate is one `NoiseCertificate`, which stands in the file of its theorem; `certificates` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, log1p, sqrt

import numpy as np

from understudy.theory.composition import log_gdp_delta
from understudy.theory.minimise import best_on_line
from understudy.theory.normal_law import ndtri
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width

TWO_READERS = "derived and re-derived by two readers"
"""Who has read the proof of Theorem T."""


def own_note(readers: str) -> str:
    """What a plan says of a theorem of our own."""
    return f"own theorem, {readers}, not peer reviewed; cvar is the conservative choice"


@dataclass(frozen=True, kw_only=True)
class NoiseCertificate:
    """k means of n rows, answered with N(0, σ²) noise, are all within a width of the population, but for β.

    `best(n, k, β)` is the width at the theorem's best σ, and that σ where the theorem names it; `at(n, k, β,
    σ)` the width at a given one. `name` is what a holdout is asked for it by, `theorem` what its certificate
    cites; the planner may know it by another name and a longer citation. An `own` theorem is not peer
    reviewed, and says so; `readers` says who has read its proof. One that is `by_name` is recommended to
    nobody who does not ask for it.
    """

    name: str
    theorem: str
    best: Callable[[int, int, float], tuple[float, float | None]]
    at: Callable[[int, int, float, float], float]
    plan_name: str = ""
    plan_theorem: str = ""
    own: bool = False
    by_name: bool = False
    readers: str = "refereed"

    @cached_property
    def planned(self) -> Planned:
        return Planned(
            name=self.plan_name or self.name,
            promises=VALIDITY,
            theorem=self.plan_theorem or self.theorem,
            width=self._width,
            note=own_note(self.readers) if self.own else "",
            by_name=self.by_name,
        )

    def _width(self, s: PlanInputs) -> Width:
        width, sigma = self.best(s.rows, s.queries, s.beta)
        return width, {} if sigma is None else {"sigma": sigma}


def alone(width: Callable[[int, int, float], float]) -> Callable[[int, int, float], tuple[float, None]]:
    """The best width of a theorem that does not say at which σ it is reached."""
    return lambda n, k, beta: (width(n, k, beta), None)


def quantile(k: int, beta: float) -> float:
    """t with P[max of k |N(0, 1)| > t] = β."""
    return -float(ndtri(-expm1(log1p(-beta) / k) / 2))


def union_quantile(k: int, beta: float) -> float:
    """t with P[|N(0, 1)| > t] = β/k: k of them, however they depend on each other, are within t but for β."""
    return float(-ndtri(beta / (2 * k)))


def gdp_mu(n: int, k: int, sigma: float) -> float:
    """μ of Gaussian differential privacy: k means of n numbers in [0, 1] with noise σ, one row replaced."""
    return sqrt(k) / (n * sigma)


def gdp_delta_at(eps: float, mu: float) -> float:
    """δ(ε) of the Gaussian mechanism with μ."""
    return exp(log_gdp_delta(eps, mu))


def least(width: Callable[[float], float], low: float, high: float) -> float:
    """The least width on a line from `low` to `high`."""
    return best_on_line(width, np.linspace(low, high, 80).tolist())[0]
