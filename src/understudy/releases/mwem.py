"""MWEM: multiplicative weights on what the exponential mechanism picks: [Lecture 7, Algorithm 1] that never stops.

    1-way marginals → rounds of: pick the worst marginals, measure them whole, refit everything → bound the rest

Whole marginals are picked and measured, since all their cells cost what one does; every past measurement is
replayed until the histogram agrees with all of them (`maximum_entropy`). Where all of the workload's marginals are
going to be measured there is nothing to pick: one round measures them, and those small marginals below them whose
bars would else be wider than direct questions have (`small_marginals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import ParameterError, TooLargeError
from understudy.mechanism.additive import noise_for
from understudy.mechanism.gap import Guess, NoisyGaps, WorstGuess
from understudy.mechanism.parameters import whole
from understudy.privacy.cost import Cost
from understudy.privacy.event import Selection
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.releases.evidence import Evidence
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.releases.small_marginals import SmallMarginals
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.interactions import interactions_of
from understudy.standin.maximum_entropy import EntropyFit, maximum_entropy

Values = NDArray[np.float64]

MOST_FITTED_CELLS = 1 << 20
"""Cells of a universe on which a fit takes seconds, or minutes with thousands of marginals."""

TOTAL_SHARE = Fraction(1, 50)
"""Of the price, for the number of rows where that is private."""

FIRST_SHARE = Fraction(1, 10)
"""Of the price, for the 1-way marginals, where not all of the workload is measured."""

BOUND_SHARE = Fraction(1, 10)
"""Of the price, for the gaps of the marginals that were not measured."""

SELECT_SHARE = Fraction(1, 10)
"""Of a round's price, for its selections."""


ENTROPY = 0.4
"""κ times the standard deviation of the noise, in people: enough to keep empty what the noise alone would fill."""

REACH = 3
"""Standard deviations of a cell's noise by which an answer may differ from its measurement."""

LEAST_VARIANCE = 1e-6
"""What the fit takes an exact count to have: nearly none."""


@dataclass(frozen=True, slots=True)
class MwemShares:
    """How a price is spent: public, and fixed before the first debit. They sum to 1."""

    rounds: int
    per_round: int
    total: Fraction
    first: Fraction
    select: Fraction
    """Of all selections together."""
    measure: Fraction
    """Of all rounds' measurements together."""
    bound: Fraction
    small: SmallMarginals | None = None
    """How the 1-way and 2-way marginals below the workload are told, where all of it is measured."""

    @property
    def measured(self) -> int:
        return self.rounds * self.per_round + (0 if self.small is None else len(self.small.measured))


def shares(run: Run, rounds: int | None, per_round: int | None) -> MwemShares:
    """The rule, from public numbers alone: the workload, the domain, the neighbours.

    The whole workload is measured unless the caller asks for fewer. Marginals overlap, so an interaction is
    measured in every marginal that holds it and the fit adds that up; picking a few leaves the others uncertain.
    Asked for rounds alone, they measure as many marginals together as there are attributes. What measures the
    whole workload in every round measures it in one.
    """
    whole(1 if rounds is None else rounds, "rounds", at_least=1)
    whole(1 if per_round is None else per_round, "per_round", at_least=1)
    total = Fraction(0) if run.curator.relation.rows_are_public else TOTAL_SHARE
    everything = len(run.workload)
    if rounds is None and per_round is None:
        rounds, per_round = 1, everything
    elif rounds is None:
        assert per_round is not None
        rounds = 1 if per_round >= everything else max(1, min(len(run.domain), everything // per_round))
    elif per_round is None:
        per_round = max(1, min(everything, -(-len(run.domain) // rounds)))
    assert per_round is not None
    if per_round >= everything:
        none, small = Fraction(0), SmallMarginals.of(run)
        return MwemShares(1, everything, none, none, none, Fraction(1), none, small)
    left = 1 - total - FIRST_SHARE - BOUND_SHARE
    return MwemShares(
        rounds,
        per_round,
        total,
        FIRST_SHARE,
        left * SELECT_SHARE,
        left * (1 - SELECT_SHARE),
        BOUND_SHARE,
    )


def mwem(
    run: Run,
    *,
    rounds: int | None = None,
    per_round: int | None = None,
    average: bool = False,
    passes: int = 400,
    cells: int = MOST_FITTED_CELLS,
) -> Outcome:
    """Release the workload's marginals through a histogram of every cell.

    `per_round` marginals are picked and measured in each of `rounds` rounds; left alone, all are measured in one.
    With `average` the stand-in is the mean of the rounds' histograms, else the last one.

    Privacy     The run's price, in debits: the number of rows where it is private, first marginals, each
                selection, each round's measurements, the gaps of what was not measured. [Lecture 7, Theorem 4]
    Accuracy    Measured marginals by the law of their noise, jointly for all cells of all of them; the others by a
                noisy gap that was paid for: a cell is off by half of the L1 distance, and half of the difference
                of totals, at most. Where all of the workload is measured, the 1-way and 2-way marginals below it
                are told with bars that no direct question at the same price would make smaller
                (`small_marginals`). Where marginals are picked, only the 1-way ones are told beside the workload,
                from a tenth of the price, and their bars can be wider than that; `auto` never picks.
    Complexity  Memory of a few tables of |X| cells; a pass of the fit is four products of matrices.
    Gap         No theorem about the histogram itself. A killed run that picks marginals is resumed by refitting,
                which needs the same floating-point results, up to rounding to whole people.
    """
    size = run.domain.size()
    if size > cells:
        raise TooLargeError(
            "the histogram of every cell, which mwem holds (`method='adaptive'` does not),",
            cells=size,
            limit=cells,
        )
    if passes < 1:
        raise ParameterError(f"a fit takes at least one pass, not {passes}")
    plan = shares(run, rounds, per_round)
    under_way = _Mwem(run, plan, passes)
    run.check_affordable(under_way.worst())
    under_way.begin()
    histograms = []
    for t in range(1, plan.rounds + 1):
        under_way.measure(t, under_way.pick(t))
        if plan.small is not None:
            under_way.prove_small(plan.small)
        under_way.fit()
        histograms.append(under_way.model.histogram)
        run.tell(f"round {t} done", t, plan.rounds)
    if average:
        under_way.model = EntropyFit(run.domain, np.mean(histograms, axis=0), {})
    return under_way.outcome()


@dataclass(eq=False)
class _Mwem:
    """A release under way: its plan, its evidence, and the histogram that was fitted to it last."""

    run: Run
    plan: MwemShares
    passes: int

    def __post_init__(self) -> None:
        self.evidence = Evidence(self.run)
        self.model = EntropyFit.uniform(self.run.domain, self.run.constraints)

    # ---- prices and noise

    @property
    def pure(self) -> bool:
        return self.run.budget.is_pure

    def price(self, share: Fraction, parts: int = 1) -> Price:
        """One of `parts` equal parts of a share, in whole units of the ledger."""
        return (self.run.price(share) / parts).whole_units

    @property
    def selection_epsilon(self) -> Fraction:
        price = self.price(self.plan.select, self.plan.measured)
        return self.run.curator.ledger.budget.epsilon_within(price, Selection(epsilon=Fraction(1)))

    def variance(self, marginal: Marginal, price: Price) -> float:
        """Of one cell's noise; more than that of an exact count, which the fit could not weigh."""
        moved = self.run.curator.calibration.sensitivity(marginal)
        mechanism = noise_for(price, moved, rounded=self.run.rounded)
        return max(float(mechanism.variance), LEAST_VARIANCE)

    def worst(self) -> Cost:
        """The whole price, in the ledger's currency; an ε paid from a ledger of ρ costs ε²/2 at most."""
        ledger, plan = self.run.curator.ledger.budget, self.plan
        if self.pure == ledger.is_pure:
            return self.run.budget.cap
        parts = [
            (plan.total, 1),
            (plan.first, len(self.run.domain)),
            (plan.select, plan.measured),
            (plan.measure, plan.measured),
            (plan.bound, 1),
        ]
        return type(ledger.cap)(
            sum(count * ledger.most(self.run.price(share) / count).units for share, count in parts)
        )

    # ---- buying

    def begin(self) -> None:
        """The number of rows, and first marginals where some of the workload stays unmeasured."""
        if self.plan.total:
            everyone = Marginal(self.run.domain, ())
            price = self.price(self.plan.total)
            answer = self.run.measure("rows", [everyone], price, beta=self.beta)[0]
            self.evidence.keep_rows(answer.noisy, self.variance(everyone, price), float(answer.error))
        if self.plan.first:
            cliques = [(name,) for name in self.run.domain.names]
            self._buy("first", cliques, self.price(self.plan.first, len(cliques)))
            self.fit()

    @property
    def beta(self) -> Fraction:
        """Of each measured marginal, the number of rows and the bounds of all the others."""
        if self.plan.small is not None:
            return self.plan.small.beta
        firsts = len(self.run.domain) if self.plan.first else 0
        return self.run.beta / (self.plan.measured + firsts + 2)

    def pick(self, t: int) -> list[Clique]:
        """The worst marginals by gap less the noise that measuring would bring, one selection after another."""
        workload = self.run.workload
        if self.plan.small is not None:
            return [*workload, *self.plan.small.measured]
        guesses = self._guesses(list(workload))
        left = list(range(len(workload)))
        picked: list[Clique] = []
        for i in range(1, self.plan.per_round + 1):
            look = WorstGuess(
                tuple(guesses[j] for j in left),
                self.selection_epsilon,
                self.run.curator.relation,
            )
            picked.append(workload.cliques[left.pop(int(self.run.look(f"round {t} select {i}", look)))])
        return picked

    def _guesses(self, cliques: Sequence[Clique]) -> list[Guess]:
        weights = dict(zip(self.run.workload.cliques, self.run.workload.weights, strict=True))
        price = self.price(self.plan.measure, self.plan.measured)
        found = []
        for clique in cliques:
            rates = self.model.project(clique)
            marginal = Marginal(self.run.domain, clique)
            expected = sqrt(2 / pi * self.variance(marginal, price)) * marginal.size
            offset = Fraction(round(expected))
            found.append(Guess(marginal, np.rint(rates * self.evidence.rows), weights[clique], offset))  # type: ignore[arg-type]
        return found

    def measure(self, t: int, cliques: Sequence[Clique]) -> None:
        price = self.price(self.plan.measure, self.plan.measured)
        self._buy(f"round {t} measure", cliques, price)

    def _buy(self, step: str, cliques: Sequence[Clique], price: Price) -> None:
        marginals = [Marginal(self.run.domain, clique) for clique in cliques]
        variances = [self.variance(marginal, price) for marginal in marginals]
        self.evidence.measure(step, marginals, variances, self.beta, price)

    # ---- fitting and answering

    def prove_small(self, small: SmallMarginals) -> None:
        """What the measured marginals say together of those that they hold, and of the number of rows."""
        noisy = {m.clique: m.counts for m in self.evidence.measurements}
        for mean in small.means:
            sums = [_summed(noisy[clique], clique, mean.clique) for clique in mean.held_by]
            self.evidence.prove(self.evidence.plain, mean.clique, np.mean(sums, axis=0), mean.error)
        if self.evidence.private_rows:
            self.evidence.bound_rows()

    def fit(self) -> None:
        self.model = maximum_entropy(
            self.run.domain,
            interactions_of(self.evidence.measurements),
            rows=self.evidence.rows,
            entropy=ENTROPY,
            start=self.model,
            passes=self.passes,
            constraints=self.run.constraints,
        )

    def outcome(self) -> Outcome:
        run, rows = self.run, self.evidence.rows
        cliques = list(run.workload)
        open_ = [clique for clique in cliques if self.evidence.intervals.of(clique) is None]
        bounds = self._bounds(open_) if open_ and self.plan.bound else {}
        beside = self.evidence.beside
        told = []
        for clique in (*cliques, *beside):
            table = rows * self.model.project(clique)
            if self.evidence.intervals.of(clique) is not None:
                told.append(self.evidence.intervals.answer(clique, self._limited(clique, table), None))
            else:
                bound = bounds.get(clique, inf)
                basis = "bounded" if bound < inf else "uncertified"
                told.append(MarginalAnswer.around(clique, table, np.full(table.shape, bound), basis))
        standin = DenseWeights.histogram(run.domain, self.model.histogram, threads=1)
        answers, also = tuple(told[: len(cliques)]), tuple(told[len(cliques) :])
        return Outcome("mwem", standin, rows, answers, self._proof(len(open_)), also=also)

    def _limited(self, clique: Clique, table: Values) -> Values:
        """The model's counts, near those that were measured of the clique itself, if it was."""
        told = [m for m in self.evidence.measurements if m.clique == clique]
        if not told:
            return table
        precision = sum(1 / m.variance for m in told)
        noisy = np.sum([m.counts / m.variance for m in told], axis=0) / precision
        return limited(noisy, table, 1 / precision)

    def _bounds(self, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """Every cell is off by (L1 distance + difference of totals)/2 at most: that is what deviations sum to."""
        guesses = tuple(self._guesses(cliques))
        price = self.price(self.plan.bound)
        look = NoisyGaps(guesses, self.run.curator.relation, price, self.run.rounded)
        gaps = self.run.look("bounds", look)
        spread = look.mechanism.error(self.beta, cells=len(guesses))
        rows, found = self.evidence.rows, {}
        for clique, guess, gap in zip(cliques, guesses, gaps, strict=True):
            drift = abs(float(guess.counts.sum()) - rows) + 2 * self.evidence.rows_error
            # A guess is rounded: half a person more for each cell that it stands for.
            found[clique] = max(0.0, (gap + spread + drift) / 2) + 0.5
        return found

    def _small_marginals(self) -> dict[str, Any]:
        """How the marginals below the workload were told, for the certificate."""
        small = self.plan.small
        if small is None:
            return {"small_marginals": "1-way ones from a tenth of the price"}
        told = {"measured": len(small.measured), "added_up": len(small.means)}
        return {"small_marginals": told} if any(told.values()) else {}

    def _proof(self, unmeasured: int) -> dict[str, Any]:
        plan = self.plan
        return {
            "mechanism": "mwem",
            "theorem": "the law of the noise that was added; no theorem about the histogram",
            "rounds": plan.rounds,
            "per_round": plan.per_round,
            "unmeasured": unmeasured,
            **self._small_marginals(),
            "shares": {
                name: float(getattr(plan, name)) for name in ("total", "first", "select", "measure", "bound")
            },
            "beta": float(self.run.beta),
            "rows_error": self.evidence.rows_error,
        }


def _summed(counts: Values, clique: Clique, part: Clique) -> Values:
    """The counts of a clique, added up to those of a part of it."""
    return counts.sum(axis=tuple(i for i, name in enumerate(clique) if name not in part))


def limited(noisy: Values, model: Values, variance: float) -> Values:
    """The model's counts, moved to within `REACH` standard deviations of the noisy ones (limited translation).

    A right model is hardly ever moved; a cell that the histogram cannot follow is answered nearly as measured.
    """
    reach = REACH * sqrt(variance)
    return np.clip(model, noisy - reach, noisy + reach)
