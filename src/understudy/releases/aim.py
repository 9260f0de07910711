"""AIM, the adaptive and iterative mechanism (McKenna, Mullins, Sheldon, Miklau 2022), on the graphical stand-in.

1-way marginals → pick one marginal by the exponential mechanism, measure it, refit; spend faster when it taught
nothing → until the price is spent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import RefusedError
from understudy.mechanism.gap import Guess, WorstGuess
from understudy.mechanism.parameters import whole
from understudy.privacy.cost import rounded_down
from understudy.privacy.event import Selection
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.releases.evidence import Evidence
from understudy.releases.run import Outcome, Run
from understudy.standin.graphical.model import CandidateSizes, FitSettings, GraphicalStandIn, fit
from understudy.standin.graphical.projected import projected

Values = NDArray[np.float64]

ROUNDS_PER_ATTRIBUTE = 16
MEASURE_SHARE = Fraction(9, 10)
"""Of a round's price, for its measurement; the rest is for the selection."""

MODEL_BYTES = 80 << 20
"""The published limit of the model's size, of eight bytes to a cell; it grows with what was spent."""

ORDER = 3
"""Candidates have at most so many attributes."""

BETWEEN = FitSettings(most_passes=100)


def aim(run: Run, *, model_bytes: int = MODEL_BYTES, settings: FitSettings | None = None) -> Outcome:
    """Release the workload's marginals by AIM.

    Privacy     The run's price at most: each round debits ε²/8 for its selection and 1/(2σ²) for its measurement
                (σ in units of what one person moves), and the last round takes what is left.
    Accuracy    Measured marginals by the law of their noise; others by the measured counts that hold theirs.
    Complexity  One count of all candidates and one fit for each round; up to 16 rounds for each attribute.
    Gap         No theorem about the stand-in. What is measured is what the rounds choose, so the bars of 1-way and
                2-way marginals can be wider than direct questions at the same price would have, and a pair that
                was not measured has no bar of its own: `adaptive`, `residual` and `mwem` do not leave that open.
    """
    whole(model_bytes, "model_bytes", at_least=1)
    if run.budget.is_pure:
        raise RefusedError(
            "AIM adds Gaussian noise, which no pure epsilon pays for: give a delta, or use "
            "`method='mwem'` (small universes) or `method='ic'`. Nothing was spent"
        )
    run.check_affordable(run.budget.cap)
    under_way = _Aim(run, model_bytes // 8, settings or FitSettings())
    under_way.begin()
    under_way.done = not under_way.weights  # only the number of rows was asked for
    while not under_way.done:
        under_way.round()
    return under_way.outcome()


@dataclass(eq=False)
class _Aim:
    """A release under way: its evidence, the model that was fitted to it last, and the two prices of a round."""

    run: Run
    most_cells: int
    settings: FitSettings
    model: GraphicalStandIn | None = None
    rounds: int = 0
    done: bool = False

    def __post_init__(self) -> None:
        self.evidence = Evidence(self.run)
        self.left = self.run.total
        limit = ROUNDS_PER_ATTRIBUTE * len(self.run.domain)
        self.measure_rho = rounded_down(MEASURE_SHARE * self.run.total / limit)
        self.select_rho = rounded_down((1 - MEASURE_SHARE) * self.run.total / limit)

    @property
    def beta(self) -> Fraction:
        """Of each measured marginal; there are at most 17 for each attribute."""
        return self.run.beta / ((ROUNDS_PER_ATTRIBUTE + 1) * len(self.run.domain))

    @property
    def measuring(self) -> Price:
        """What the next marginal is measured for."""
        return Price("rho", self.measure_rho)

    @cached_property
    def weights(self) -> dict[Clique, int]:
        """The downward closure of the workload; a candidate weighs what it has in common with all marginals."""
        workload = self.run.workload
        closure = {part for c in workload for order in range(1, ORDER + 1) for part in combinations(c, order)}
        domain = self.run.domain
        member = np.zeros((len(workload), len(domain)), np.int64)
        for i, c in enumerate(workload):
            member[i, [domain.position(name) for name in c]] = 1
        appear = member.sum(axis=0)
        ordered = sorted(closure, key=lambda c: (len(c), [domain.position(name) for name in c]))
        return {c: int(sum(appear[domain.position(name)] for name in c)) for c in ordered}

    @cached_property
    def sizes(self) -> CandidateSizes:
        return CandidateSizes(self.run.domain, list(self.weights))

    @cached_property
    def marginals(self) -> dict[Clique, Marginal]:
        return {c: Marginal(self.run.domain, c) for c in self.weights}

    # ---- rounds

    def begin(self) -> None:
        self.buy("first", [(name,) for name in self.run.domain.names])
        self.refit(BETWEEN)

    def round(self) -> None:
        """One selection, one measurement, one fit; then the annealing."""
        self.rounds += 1
        if self.left < 2 * (self.measure_rho + self.select_rho):
            self.done = True
            self.select_rho = rounded_down((1 - MEASURE_SHARE) * self.left)
            self.measure_rho = rounded_down(self.left - self.select_rho)
        open_ = self.affordable()
        assert self.model is not None
        rows, before = self.evidence.rows, projected(self.model, open_)
        noise = sqrt(2 / pi) * self.evidence.noise(self.measuring).spread
        guesses = tuple(
            Guess(
                self.marginals[c],
                np.rint(rows * rates),  # type: ignore[arg-type]  # rounded by the guess itself
                Fraction(self.weights[c]),
                Fraction(round(noise * rates.size)),
            )
            for c, rates in zip(open_, before, strict=True)
        )
        epsilon = self.run.curator.ledger.budget.epsilon_within(
            Price("rho", self.select_rho), Selection(epsilon=Fraction(1))
        )
        look = WorstGuess(guesses, epsilon, self.run.curator.relation)
        index = int(self.run.look(f"round {self.rounds} select", look))
        self.left -= self.select_rho
        self.buy(f"round {self.rounds} measure", [open_[index]])
        self.refit(self.settings if self.done else BETWEEN)
        self.anneal(open_[index], rows * before[index], noise)
        done = float(1 - self.left / self.run.total)
        known = len(self.evidence.measurements)
        self.run.tell(f"round {self.rounds} done", done, 1.0, measured=known, cells=self.model.cells)

    def affordable(self) -> list[Clique]:
        """Candidates that the tree holds anyway, or whose tree is within the part of the limit that was spent."""
        assert self.model is not None
        spent = 1 - (self.left - self.measure_rho - self.select_rho) / self.run.total
        limit = self.most_cells * float(spent)
        known = [m.clique for m in self.evidence.measurements]
        cells = self.sizes.cells(known)
        held = [set(c) for c in self.model.cliques]
        found = [
            c
            for c, size in zip(self.weights, cells, strict=True)
            if size <= limit or any(clique.issuperset(c) for clique in held)
        ]
        return found or [c for c in self.weights if len(c) == 1]

    def anneal(self, clique: Clique, before: Values, noise: float) -> None:
        """A measurement that moved the model by less than its noise was not worth its round: spend faster."""
        assert self.model is not None
        moved = np.abs(self.evidence.rows * projected(self.model, [clique])[0] - before).sum()
        if moved <= noise * before.size:
            self.measure_rho *= 4
            self.select_rho *= 4

    def buy(self, step: str, cliques: Sequence[Clique]) -> None:
        price = self.measuring
        marginals = [Marginal(self.run.domain, c) for c in cliques]
        variance = float(self.evidence.noise(price).variance)
        self.evidence.measure(step, marginals, [variance] * len(marginals), self.beta, price)
        self.left -= price.amount * len(cliques)

    def refit(self, settings: FitSettings) -> None:
        self.model = fit(
            self.run.domain,
            self.evidence.measurements,
            total=self.evidence.rows,
            start=self.model,
            constraints=self.run.constraints,
            settings=settings,
        )

    # ---- the end

    def outcome(self) -> Outcome:
        assert self.model is not None
        rows = self.evidence.rows
        told, also = (
            self.evidence.answers(
                {c: rows * t for c, t in zip(found, projected(self.model, found), strict=True)}
            )
            for found in (list(self.run.workload), self.evidence.beside)
        )
        return Outcome("aim", self.model, rows, told, self.proof(), also=also)

    def proof(self) -> dict[str, Any]:
        assert self.model is not None
        return {
            "mechanism": "aim",
            "theorem": "the law of the noise that was added; no theorem about the stand-in",
            "rounds": self.rounds,
            "measured": len(self.evidence.measurements),
            "cells": self.model.cells,
            "most_cells": self.most_cells,
            "beta": float(self.run.beta),
        }
