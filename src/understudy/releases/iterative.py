"""IC, the Iterative Construction mechanism. [Lecture 7, Algorithm 1]

    ask the hypothesis → a distinguisher looks for a query that it gets wrong → buy its answer → stop, or update

What an analyst can see of the control flow, above all the number of rounds, depends on bought values and on the
hypothesis alone, which is made of them; so it is post-processing, and needs no price of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from understudy.curator.curator import Curator
from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.additive import Additive, noise_for
from understudy.mechanism.worst_query import QueryClass
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.cost import Cost
from understudy.privacy.price import Price
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection
from understudy.rational import Number, exact, positive
from understudy.releases.distinguisher import Distinguisher, distinguisher
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.standin.dense.weights import Device
from understudy.standin.median.median import SurvivingSet
from understudy.standin.multiplicative import MultiplicativeWeights
from understudy.standin.protocol import DatabaseUpdate
from understudy.theory.lecture7 import ic_eps0, ic_threshold, stop_error

UpdateRule = Callable[[Fraction], DatabaseUpdate[Any]]
"""From the gap α/2 that every update has to the algorithm that is best for it."""

Composition = Literal["ledger", "lecture"]

TOTAL_SHARE = Fraction(1, 20)
"""Of the price, for the number of rows where that is private."""

GRID = 10**6
"""Accuracies are multiples of a millionth."""

SPLITS = tuple(Fraction(i, 8) for i in range(2, 7))
"""Shares of a round that its selection may get; which one is decided by the certificate."""


@dataclass(frozen=True, slots=True)
class IterativeDesign:
    """Public numbers that a run is made of: fixed before the first debit.

    `total` is the price of the number of rows, None where that is public. `margin` is λ and `regret` F of the
    theorem, as rates; `total_error` is τ, how far off the paid-for number of rows can be, in people. All hold
    together except with probability β.
    """

    alpha: Fraction
    rounds: int
    total: Price | None
    select: Price
    measure: Price
    total_error: float
    margin: float
    regret: float

    @property
    def needed(self) -> float:
        """The least α that these numbers certify: 4λ + 2F. [Lecture 7, Theorem 5]"""
        return 4 * self.margin + 2 * self.regret

    @property
    def threshold(self) -> float:
        """θ = α/2 + λ."""
        return ic_threshold(self.alpha, self.margin)

    def error(self, *, stopped: bool) -> float:
        """Largest error of any query of the class, as a rate.

        Stopped: θ + λ + F. Exhausted: the updates were as many as there can be with gaps of α/2, so none is left.
        """
        if not stopped:
            return float(self.alpha) / 2
        return stop_error(self.threshold, self.margin, self.regret) if isfinite(self.regret) else inf


@dataclass(frozen=True)
class _Planner:
    """Designs for one table, class, budget and distinguisher. Reads no data."""

    run: Run
    queries: QueryClass
    distinguisher: Distinguisher
    composition: Composition

    @property
    def curator(self) -> Curator:
        return self.run.curator

    @property
    def private_rows(self) -> bool:
        return not self.curator.relation.rows_are_public

    def design(self, alpha: Fraction, updates: int) -> IterativeDesign:
        """The best split of each of the rounds' prices between selection and measurement."""
        return min((self._split(alpha, updates, share) for share in self._shares()), key=lambda d: d.needed)

    def _shares(self) -> Sequence[Fraction]:
        return (Fraction(1, 2),) if self.composition == "lecture" else SPLITS

    def _split(self, alpha: Fraction, updates: int, share: Fraction) -> IterativeDesign:
        total = self.run.price(TOTAL_SHARE).whole_units if self.private_rows else None
        select, measure = self._prices(updates, share)
        # β/2 for the distinguisher, γ = β/(2B) a round; β/2 for noise, half of that for the number of rows.
        beta = self.run.beta
        noise = beta / 4 if self.private_rows else beta / 2
        off = 0.0 if total is None else float(self.noise(total).error(beta / 4))
        people = float(self.noise(measure).error(noise, cells=updates))
        gap = self.distinguisher.error(self.curator, self.queries, select, float(beta / (2 * updates)))
        rows = self.curator.rows_at_least
        return IterativeDesign(
            alpha,
            updates,
            total,
            select,
            measure,
            off,
            (people + off) / rows,
            (gap + 2 * off) / rows,
        )

    def _prices(self, updates: int, share: Fraction) -> tuple[Price, Price]:
        """Of one selection and of one measurement.

        Pure: ε₀ = ε/(2B) each, or another split of ε/B. With a δ, `lecture` takes the lecture's ε₀ where its
        hypotheses hold, and `ledger` divides ρ. [Lecture 7, Theorem 4]
        """
        left = 1 - TOTAL_SHARE if self.private_rows else Fraction(1)
        if self.composition == "lecture" and not self.run.budget.is_pure:
            step = exact(ic_eps0(self.run.budget.epsilon * left, self.run.budget.delta, updates))
            each = Price("epsilon", step).whole_units
            return each, each
        a_round = self.run.price(left) / updates
        return (a_round * share).whole_units, (a_round * (1 - share)).whole_units

    def noise(self, price: Price) -> Additive:
        """The noise that the answer to one query, or the number of rows, is bought with."""
        return noise_for(price, self.curator.relation.moves(ONE_COUNT), rounded=self.run.rounded)

    def smallest(self, rule: UpdateRule, most_rounds: int) -> Fraction:
        """The least α, in millionths, that is certified with at most `most_rounds` rounds. [Lecture 7, Theorem 8]

        A larger α needs fewer updates, so less noise: bisection finds the crossing.
        """

        def holds(step: int) -> bool:
            alpha = Fraction(step, GRID)
            try:
                updates = rule(alpha / 2).most_updates(alpha / 2)
                return updates <= most_rounds and (
                    updates == 0 or self.design(alpha, updates).needed <= alpha
                )
            except ParameterError:  # steps too cheap to take, or gaps too small for the update
                return False

        if not holds(GRID):
            raise RefusedError(
                "no error below 100% can be certified for this class at this price: more rows, a larger budget or "
                "fewer cells would help. Nothing was spent"
            )
        low, high = 0, GRID
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return Fraction(high, GRID)


def iterative_construction(
    run: Run,
    *,
    alpha: Number | None = None,
    update: DatabaseUpdate[Any] | UpdateRule | None = None,
    queries: Sequence[LinearQuery] | QueryClass | None = None,
    distinguisher: str | Distinguisher = "exponential",
    composition: Composition = "ledger",
    most_rounds: int = 2000,
    device: Device = "cpu",
) -> Outcome:
    """IC(D, α, ε₀, Distinguish, U) over a finite class of counting queries. [Lecture 7, Algorithm 1]

    Without an `alpha` the smallest one that can be certified is taken. `queries` are the workload's cells unless
    given. `update` is an algorithm for gaps of α/2, or a rule that makes one (else multiplicative weights, which
    `device="cuda"` has a GPU hold).

    Privacy     B = B(α/2) rounds of a selection and a measurement, each a debit of its own, which add up to the
                run's price at most: sums of ε, sums of ρ, or the lecture's steps under its hypotheses, which cost
                less than the ledger's cap. [Lecture 7, Theorem 4]
    Accuracy    All queries of the class within α, except with probability β: θ = α/2 + λ is the threshold, so that
                an update has a gap of α/2 at least and a stop leaves α/2 + 2λ + F at most; the printed 3α/4 does
                not. [Lecture 7, Theorem 5] [Lecture 7, Theorem 7] [Lecture 7, Theorem 8]
    Gap         One error holds for all cells of the class, small marginals included: it can be wider than the bar
                of a direct question to a 1-way or 2-way marginal, and those beside the workload have none; `auto`
                never chooses this method. Under `add-remove` rates are of a paid-for number of rows, and λ and F
                are calibrated with the declared lower bound on it; both are in the certificate. Resuming a killed
                run needs the same floating-point results, so the same machine and versions.
    """
    planner = _Planner(run, _class(run, queries), _named(distinguisher), composition)
    rule = _rule(run, update, device)
    chosen, updates = _aimed(planner, rule, alpha, most_rounds)
    algorithm = rule(chosen / 2)
    design = planner.design(chosen, max(1, updates))
    _check_certified(planner, rule, algorithm, design, updates, most_rounds)
    hypothesis = algorithm.start()
    run.check_affordable(_worst(run, planner, design, updates))
    return _construct(run, planner, design, updates, algorithm, hypothesis)


def _aimed(
    planner: _Planner, rule: UpdateRule, alpha: Number | None, most_rounds: int
) -> tuple[Fraction, int]:
    """The α to aim at, the given one or the smallest that is certified, and how many updates it may take."""
    if planner.curator.rows_at_least < 1:
        raise RefusedError("there is nothing to stand in for: the table has no rows. Nothing was spent")
    chosen = planner.smallest(rule, most_rounds) if alpha is None else positive(alpha, "alpha", at_most=1)
    updates = rule(chosen / 2).most_updates(chosen / 2)
    if updates > most_rounds:
        raise RefusedError(
            f"an error of {float(chosen):g} may take {updates:,} rounds, more than {most_rounds:,}"
        )
    return chosen, updates


def certified_error(run: Run, *, alpha: Number | None = None, most_rounds: int = 2000) -> float:
    """The largest error, in people, that `iterative_construction` would certify. Reads no data."""
    planner = _Planner(run, _class(run, None), _named("exponential"), "ledger")
    chosen, _ = _aimed(planner, _rule(run, None), alpha, most_rounds)
    return float(chosen) * planner.curator.rows_at_least


def _named(given: str | Distinguisher) -> Distinguisher:
    return distinguisher(given)


def _class(run: Run, queries: Sequence[LinearQuery] | QueryClass | None) -> QueryClass:
    if queries is None:
        return QueryClass.cells(run.workload)
    return queries if isinstance(queries, QueryClass) else QueryClass.of(queries)


def _rule(run: Run, update: DatabaseUpdate[Any] | UpdateRule | None, device: Device = "cpu") -> UpdateRule:
    if update is None:
        return lambda gap: MultiplicativeWeights(domain=run.domain, alpha=gap, device=device)
    if device != "cpu":
        raise ParameterError("`device` goes with multiplicative weights: leave it out, or `update`")
    if callable(update):
        return update
    return lambda gap: update


def _check_certified(
    planner: _Planner,
    rule: UpdateRule,
    algorithm: Any,
    design: IterativeDesign,
    updates: int,
    most_rounds: int,
) -> None:
    """Refuse an α that the theorem does not reach, before anything is spent."""
    margin = getattr(algorithm, "margin", None)  # of an update that needs better estimates than Definition 1
    if margin is not None and design.margin > margin:
        raise ParameterError(
            f"this update needs estimates within {float(margin):g}; these are within {design.margin:.4g}"
        )
    if updates == 0 or design.needed <= design.alpha:
        return
    if not isfinite(design.regret):  # a learner without a claim: what is certified then is the exhausted case
        if 4 * design.margin <= design.alpha:
            return
        raise RefusedError(f"these measurements are within {design.margin:.4g} only, not a quarter of alpha")
    smallest = planner.smallest(rule, most_rounds)
    raise RefusedError(
        f"an error of {float(design.alpha):g} cannot be certified at this price; the smallest is "
        f"{float(smallest):g}. Nothing was spent"
    )


def _worst(run: Run, planner: _Planner, design: IterativeDesign, updates: int) -> Cost:
    """What the whole run costs if no round stops it: the run's price, or less for the lecture's steps."""
    ledger = run.curator.ledger.budget
    total = ledger.total([planner.noise(design.total).event] if design.total else [])
    each = ledger.price(planner.noise(design.measure).event).units + ledger.most(design.select).units
    return type(total)(total.units + updates * each)


def _construct(
    run: Run,
    planner: _Planner,
    design: IterativeDesign,
    updates: int,
    algorithm: DatabaseUpdate[Any],
    hypothesis: Any,
) -> Outcome:
    rows = _rows(run, design)
    sequence: list[dict[str, Any]] = []
    stopped = False
    for t in range(1, updates + 1):
        rates = _rates(planner.queries, hypothesis)
        index = planner.distinguisher.distinguish(
            run, f"round {t} select", planner.queries, rates * rows, design.select
        )
        query = planner.queries.query(index)
        bought = run.measure(f"round {t} measure", [Marginal.of(query)], design.measure)[0]
        value = float(bought.noisy) / rows
        run.tell(f"round {t} done", t, updates)
        if abs(value - rates[index]) < design.threshold:
            stopped = True
            break
        sequence.append({"query": index, "standin": float(rates[index]), "value": value})
        hypothesis = algorithm.update(hypothesis, query, value)
    return _outcome(run, planner, design, hypothesis, rows, stopped=stopped, sequence=sequence)


def _rows(run: Run, design: IterativeDesign) -> float:
    """The number of rows: public, or bought and moved into the declared bounds, which brings it nearer."""
    if not design.total:
        return float(run.curator.rows_at_least)
    bought = run.measure("rows", [Marginal(run.domain, ())], design.total, beta=run.beta / 4)[0]
    return float(np.clip(float(bought.noisy), run.curator.rows_at_least, run.curator.rows_at_most))


def _rates(queries: QueryClass, hypothesis: Projection) -> NDArray[np.float64]:
    """Q(Dᵗ) for every query of the class; the median's answers are not those of any one histogram."""
    if isinstance(hypothesis, SurvivingSet):
        return np.array([hypothesis.answer(queries.query(i)) for i in range(len(queries))])
    return queries.answers(hypothesis)


def _outcome(
    run: Run,
    planner: _Planner,
    design: IterativeDesign,
    hypothesis: Projection,
    rows: float,
    *,
    stopped: bool,
    sequence: list[dict[str, Any]],
) -> Outcome:
    rate = design.error(stopped=stopped)
    # |c - n̂p| ≤ n·|c/n - p| + |n - n̂|, and n is at most n̂ + τ.
    people = rate * (rows + design.total_error) + design.total_error
    rates = np.split(_rates(planner.queries, hypothesis), planner.queries.ends[:-1])
    known = {m.key: table for m, table in zip(planner.queries.marginals, rates, strict=True)}
    answers = []
    for clique in run.workload:
        marginal = Marginal(run.domain, clique)
        table = known.get(marginal.key)
        certified = table is not None and isfinite(people)
        counts = rows * (hypothesis.project(clique) if table is None else table.reshape(marginal.shape))
        error = np.full(marginal.shape, people if certified else inf)
        answers.append(
            MarginalAnswer.around(clique, counts, error, "certified" if certified else "uncertified")
        )
    return Outcome("ic", hypothesis, rows, tuple(answers), _proof(design, rate, sequence, stopped=stopped))


def _proof(
    design: IterativeDesign, rate: float, sequence: list[dict[str, Any]], *, stopped: bool
) -> dict[str, Any]:
    return {
        "mechanism": "iterative construction",
        "theorem": "Lecture 7, Theorem 5, with the threshold alpha/2 + lambda",
        "ended": "stopped" if stopped else "exhausted",
        "alpha": float(design.alpha),
        "error": rate,
        "rounds": len(sequence) + stopped,
        "most_rounds": design.rounds,
        "threshold": design.threshold,
        "lambda": design.margin,
        "F": design.regret,
        "select": design.select.as_numbers(),
        "measure": design.measure.as_numbers(),
        "rows_error": design.total_error,
        "sequence": sequence,
    }
