"""Optimal noise for a workload of marginals: every interaction of its attributes is measured once, as precisely as
the workload uses it.

    precisions from public numbers → one look at all residuals → tables with exact variances → a stand-in near them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError, RefusedError, TooLargeError
from understudy.mechanism.matrix.bases import RangeBasis
from understudy.mechanism.matrix.many_marginals import JointStrategy
from understudy.mechanism.matrix.residual_plan import Objective, Residuals, check_size
from understudy.privacy.relation import Relation
from understudy.query.projection import Projection
from understudy.query.workload import Workload
from understudy.rational import Number, exact
from understudy.releases.evidence import possible_ends
from understudy.releases.range_sums import RangeSums
from understudy.releases.residual.small_bars import with_small_bars
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.releases.small_marginals import below, direct_bars
from understudy.releases.target import importance
from understudy.standin.from_interactions import stand_in
from understudy.standin.graphical.model import GraphicalStandIn
from understudy.standin.graphical.projected import projected

Values = NDArray[np.float64]

CELLS_LIMIT = 1 << 23
"""Numbers that are measured at once: about a second of noise, and 100 MB in the ledger."""

REACHES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Standard deviations by which an answer may differ from its measurement: one of them is chosen for a marginal."""

PLANNED_BY = ("cells_limit", "ranges", "objective")
"""The options that decide what is measured: those of `planned`."""


def residual(
    run: Run,
    *,
    cells_limit: int = CELLS_LIMIT,
    ranges: Sequence[str] = (),
    objective: Objective = "largest",
) -> Outcome:
    """Release the workload's marginals through noisy residuals of every clique below them.

    `ranges` names ordered attributes whose ranges matter more than their cells. The `objective` is the largest
    variance of an answer, or the sum of them, each times its marginal's weight.

    Privacy     The run's ρ, in one debit for the worst pair of neighbours: `JointStrategy`.
    Accuracy    Every cell of the workload, and of the 1-way and 2-way marginals below it, within its stated error,
                and every range of `ranges` (`RangeSums`), jointly, except with probability β: a union bound over
                the variances of sums of discrete Gaussians, or of rounded normal numbers (`half_width`).
    Complexity  O(Σ_C |C's cells|·2^|C|), and a table of all cells of a small universe, or a junction tree, for the
                stand-in.
    Gap         Pure budgets are refused. What the stand-in says of cliques outside of the workload has no theorem.
    """
    plan = planned(run, cells_limit=cells_limit, ranges=ranges, objective=objective)
    if plan is None:
        return _public(run)
    residuals, look = plan
    run.tell("measuring residuals", 0, 2)
    released = np.array(run.look("residuals", look), np.int64)
    run.tell("fitting the stand-in", 1, 2)
    replace = run.curator.relation.rows_are_public
    tables = ResidualTables(residuals, look, released, float(run.curator.rows) if replace else None)
    found = _ResidualAnswers(run, tables, share_of_beta(run, residuals)).outcome()
    run.tell("fitted", 2, 2)
    return found


def planned(
    run: Run, *, cells_limit: int = CELLS_LIMIT, ranges: Sequence[str] = (), objective: Objective = "largest"
) -> tuple[Residuals, JointStrategy] | None:
    """What would be measured, from public numbers; nothing where all that is asked is public."""
    if run.budget.is_pure:
        raise RefusedError(
            "residuals are measured with Gaussian noise, which needs a delta: ask for one, or use "
            "`method='mwem'`. Nothing was spent"
        )
    for name in ranges:
        if not isinstance(run.domain[name], Bins):
            raise ParameterError(f"{name} has no order, so it has no ranges: name integers, reals or dates")
    if cells_limit < 1:
        raise ParameterError(f"cells_limit must be at least 1, not {cells_limit}")
    relation, rounded = run.curator.relation, run.rounded
    plan = _plan(run.workload, relation, run.total, cells_limit, ranges, objective, rounded=rounded)
    if plan is None or ranges or objective != "largest":
        return plan
    residuals, _ = plan
    small = direct_bars(run, (*run.workload, *below(run.workload)))
    beta, own = share_of_beta(run, residuals), residuals.precisions(objective)
    look = with_small_bars(
        residuals, own, relation, run.total, small, dict.fromkeys(small, beta), rounded=rounded
    )
    return residuals, look


def _plan(
    workload: Workload,
    relation: Relation,
    rho: Fraction,
    cells_limit: int,
    ranges: Sequence[str],
    objective: Objective,
    *,
    rounded: bool = False,
) -> tuple[Residuals, JointStrategy] | None:
    residuals = Residuals.of(workload, ranges, total=not relation.rows_are_public)
    if not residuals.cliques:
        return None
    check_size(residuals, cells_limit)
    return residuals, residuals.strategies(residuals.precisions(objective), relation, rho, rounded=rounded)


def predicted_error(
    domain: Domain,
    workload: Workload,
    price: Number,
    relation: Relation,
    *,
    objective: Objective = "largest",
    cells_limit: int = CELLS_LIMIT,
) -> float:
    """The expected Σ|error| over the cells of a marginal, in people, as the weighted mean over the workload.

    `price` is a ρ. From public numbers: the noise alone, before a stand-in or signs of counts mend any of it.
    """
    if domain != workload.domain:
        raise ParameterError("the workload is about another domain")
    plan = _plan(workload, relation, exact(price, "price"), cells_limit, (), objective)
    if plan is None:
        return 0.0
    residuals, look = plan
    precisions = np.array([float(part.precision) for part in look.parts])
    variances = residuals.variances(precisions, residuals.mean)
    weights = np.array([float(weight) for weight in workload.weights])
    return float(weights @ (residuals.queries * np.sqrt(2 / pi * variances)) / weights.sum())


def residual_error(run: Run) -> float:
    """The largest error that `residual` would certify for the run, in people; infinite where it cannot be made.

    Errors of marginals with the run's target count by their `importance`.
    """
    try:
        plan = planned(run)
    except (ParameterError, RefusedError, TooLargeError):
        return inf
    if plan is None:
        return 0.0
    residuals, look = plan
    replace = run.curator.relation.rows_are_public
    tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64), 0.0 if replace else None)
    beta = share_of_beta(run, residuals)
    return max(
        importance(clique, run.target) * float(tables.error(clique, beta).max()) for clique in run.workload
    )


def share_of_beta(run: Run, residuals: Residuals) -> Fraction:
    """β of each answer: of every cell, or every question about ranges, and of the number of rows.

    Cells of the 1-way and 2-way marginals below the workload are counted too: they are told beside it.
    """
    asked = RangeSums.questions(residuals) if _has_ranges(residuals) else run.workload.queries
    return run.beta / (asked + sum(map(run.domain.size, below(run.workload))) + 1)


def _has_ranges(residuals: Residuals) -> bool:
    return any(isinstance(one, RangeBasis) for one in residuals.bases.values())


@dataclass(frozen=True, eq=False)
class _ResidualAnswers:
    """The answers that noisy tables and a stand-in give together."""

    run: Run
    tables: ResidualTables
    share: Fraction

    def outcome(self) -> Outcome:
        run = self.run
        rows, rows_error = self._rows()
        model = stand_in(run.domain, self.tables.told(), rows=rows, constraints=run.constraints)
        cliques, small = list(run.workload), below(run.workload)
        guesses = _projections(model, [*cliques, *small])
        answers = tuple(
            self._answer(clique, rows * guess)
            for clique, guess in zip((*cliques, *small), guesses, strict=True)
        )
        told, also = answers[: len(cliques)], answers[len(cliques) :]
        sums = RangeSums(self.tables, self.share) if _has_ranges(self.tables.residuals) else None
        return Outcome("residual", model, rows, told, self._proof(rows_error), sums, also)

    def _rows(self) -> tuple[float, float]:
        """How many rows there are, and how far that can be off."""
        if self.tables.rows is not None:
            return self.tables.rows, 0.0
        declared = self.run.curator.declaration
        noisy, error = float(self.tables.table(())), float(self.tables.error((), self.share))
        least, most = float(declared.rows_at_least or 0), float(declared.rows_at_most or inf)
        low, high = map(float, possible_ends(np.array(noisy), error, least, most))
        rows = min(max(noisy, low), high)
        return rows, max(rows - low, high - rows)

    def _answer(self, clique: Clique, guess: Values) -> MarginalAnswer:
        """The stand-in's counts, moved near the noisy ones and into the proved interval."""
        noisy, error = self.tables.table(clique), self.tables.error(clique, self.share)
        most = self.run.curator.rows_at_most
        low, high = possible_ends(noisy, error, most=inf if most is None else float(most))
        value = np.clip(near(noisy, guess, self.tables.variance(clique)), low, high)
        return MarginalAnswer(clique, value, low, high, "measured")

    def _proof(self, rows_error: float) -> dict[str, Any]:
        look = self.tables.look
        return {
            "mechanism": "residuals of every clique below the workload, with discrete Gaussian noise",
            "theorem": "the law of the noise that was added; no theorem about the stand-in",
            "residuals": len(look.parts),
            "numbers": look.cells,
            "rho": float(look.rho),
            "price": "of the worst pair of neighbours, all residuals together",
            "beta": float(self.run.beta),
            "rows_error": rows_error,
        }


def near(noisy: Values, guess: Values, variance: Values) -> Values:
    """The guess, moved to within a few standard deviations of noisy counts: as many as promise the least error.

    The promise is an unbiased estimate of the squared error of clip(guess, noisy ± r·σ) for a guess that does not
    depend on the noise: Σ (value - noisy)² - σ² + 2σ²·[moved].
    """
    deviation = np.sqrt(variance)
    best, found = inf, noisy
    for reach in REACHES:
        value = np.clip(guess, noisy - reach * deviation, noisy + reach * deviation)
        risk = float(((value - noisy) ** 2 + 2 * variance * (value != guess)).sum())
        if risk < best:
            best, found = risk, value
    return found


def _projections(model: Projection, cliques: Sequence[Clique]) -> list[Values]:
    if isinstance(model, GraphicalStandIn):
        return projected(model, cliques)
    return [model.project(clique) for clique in cliques]


def _public(run: Run) -> Outcome:
    """Where nobody can change any answer: the number of rows is public, and nothing else is asked."""
    rows = float(run.curator.rows)
    known = [np.full(run.domain.shape(clique), rows) for clique in run.workload]
    answers = tuple(
        MarginalAnswer(clique, counts, counts, counts, "measured")
        for clique, counts in zip(run.workload, known, strict=True)
    )
    return Outcome(
        "residual",
        GraphicalStandIn(run.domain, rows),
        rows,
        answers,
        {"mechanism": "public numbers", "theorem": ""},
    )
