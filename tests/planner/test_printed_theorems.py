"""Published theorems that a plan names by number, each against a computation of its own."""

from __future__ import annotations

from math import exp, log, log1p, sqrt
from typing import Any

import pytest
from scipy.optimize import minimize, minimize_scalar, root_scalar

from understudy.planner.solve import Option, plan

SITUATIONS = [
    (1000, 10, 0.05),
    (10**4, 1000, 0.05),
    (10**5, 10**4, 0.05),
    (10**5, 100, 0.3),
    (10**6, 10**5, 1e-3),
]


def planned(name: str, rows: int, queries: int, beta: float) -> Option:
    found = plan(rows=rows, queries=queries, beta=beta, promise="validity", best_only=True)
    return next(option for option in found.options if option.mechanism == name)


def ladder_failure(e: float, eta: float, n: int, k: int) -> float:
    """ln of exp(-2e²n + (1/η + 2) ln(4k/η) + 1), the chance to be off by more than e + η."""
    return -2 * e * e * n + (1 / eta + 2) * log(4 * k / eta) + 1


@pytest.mark.parametrize(("n", "k", "beta"), SITUATIONS)
def test_blumhardt15_theorem_3_1_is_what_a_plan_prints(n, k, beta):
    """The e at which the theorem's probability is β, at the best η; a grid of η's loses next to nothing."""
    option = planned("ladder-published", n, k, beta)
    assert option.theorem == "Blum and Hardt 2015, Theorem 3.1"
    eta = float(option.parameters["eta"])
    assert exp(ladder_failure(option.width - eta, eta, n, k)) == pytest.approx(beta, rel=1e-8)

    def width(log_eta: float) -> float:
        step = exp(log_eta)
        crossed = root_scalar(
            lambda e: ladder_failure(e, step, n, k) - log(beta), bracket=(0, 1e3), xtol=1e-15
        )
        return step + crossed.root

    found: Any = minimize_scalar(width, bounds=(log(1e-4), 0), method="bounded", options={"xatol": 1e-10})
    best = float(found.fun)
    assert best * (1 - 1e-9) <= option.width <= best * (1 + 1e-4)


@pytest.mark.parametrize(("n", "k", "beta"), SITUATIONS)
def test_rrsstw20_theorem_2_1_is_what_a_plan_prints(n, k, beta):
    """sqrt(((2ρkn - ln(1-l))/l)/(2nβ)) + (1/(2n)) sqrt(ln(4k/β)/ρ), over ρ and l together, from many starts."""
    option = planned("gaussian-rogers20", n, k, beta)
    assert option.theorem == "Rogers et al. 2020, Theorem 2.1"

    def width(at) -> float:
        rho, share = exp(at[0]), 1 / (1 + exp(-at[1]))
        information = (2 * rho * k * n - log1p(-share)) / share
        return sqrt(information / (2 * n * beta)) + sqrt(log(4 * k / beta) / rho) / (2 * n)

    tight = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 5000}
    centre = -log(n * sqrt(k))
    starts = [(centre + shift, logit) for shift in (-2, 0, 2) for logit in (-1, 2)]
    best = min(minimize(width, start, method="Nelder-Mead", options=tight).fun for start in starts)
    assert option.width == pytest.approx(best, rel=1e-7)
