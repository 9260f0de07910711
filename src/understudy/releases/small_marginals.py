"""The 1-way and 2-way marginals below a workload: told with bars that are no wider than those of direct questions.

A direct question, for comparison, has an equal part of the whole price, and of β, with all marginals that are
told: those of the workload, and the 1-way and 2-way ones below them. Where every marginal of the workload is
measured at one price, whatever comes out, a smaller marginal is a sum of cells of each that holds it, and the mean
of several such sums has a law that is known before any noise is drawn. Where its bar is wider than the direct
question's, the smaller marginal is measured as well. So few are measured where attributes are many and small, and
most where they are few and large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.mechanism.additive import Additive, law_of
from understudy.noise.sums import NoiseLaw, sum_bound
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.releases.run import Run

WHOLE = Fraction(1)


def below(workload: Workload) -> list[Clique]:
    """The 1-way and 2-way marginals that lie in a marginal of the workload and are not in it themselves."""
    parts = (part for clique in workload for order in (1, 2) for part in combinations(clique, order))
    known = set(workload)
    return [part for part in dict.fromkeys(parts) if part not in known]


def direct_bars(run: Run, cliques: Iterable[Clique]) -> dict[Clique, float]:
    """Half-widths, in people, of direct questions to 1-way and 2-way marginals, for those among `cliques`.

    Each question has an equal part of the whole price, and of β, with all marginals that are told. Empty where
    a part is too small for any noise that can be drawn.
    """
    asked = len(run.workload) + len(below(run.workload))
    price = (run.price(WHOLE) / asked).whole_units
    try:
        return {
            clique: bar(run, clique, price, run.beta / asked) for clique in cliques if len(clique) in (1, 2)
        }
    except ParameterError:
        return {}


def bar(run: Run, clique: Clique, price: Price, beta: Fraction) -> float:
    """The half-width, in people, of a marginal that is measured at a price, for all its cells jointly."""
    marginal = Marginal(run.domain, clique)
    calibrated = run.curator.calibration
    return float(calibrated.error(marginal, *calibrated.mechanism(marginal, price), beta))


@dataclass(frozen=True)
class MeanOfSums:
    """A small marginal as the mean of what several measured ones, `held_by`, say of it, and its half-width."""

    clique: Clique
    held_by: tuple[Clique, ...]
    error: float


@dataclass(frozen=True)
class SmallMarginals:
    """How the marginals below a workload are told: `measured` at the workload's price, or as `means`."""

    measured: tuple[Clique, ...]
    means: tuple[MeanOfSums, ...]
    price: Price
    """Of each measured marginal, those of the workload included."""
    beta: Fraction
    """Of each marginal that is told."""

    @classmethod
    def of(cls, run: Run) -> SmallMarginals:
        """By public numbers alone: what is measured, and how it is weighed, is known before any noise is drawn."""
        small, workload = below(run.workload), list(run.workload)
        asked = len(workload) + len(small)
        beta, direct = run.beta / asked, direct_bars(run, small)
        measured: list[Clique] = []
        while True:
            every = [*workload, *measured]
            price = (run.price(WHOLE) / len(every)).whole_units
            law = _law(run, price)
            means = [_mean(run.domain, c, every, law, beta) for c in small if c not in measured]
            wide = [mean.clique for mean in means if mean.error > direct.get(mean.clique, 0.0)]
            if not wide:
                return cls(tuple(measured), tuple(means), price, beta)
            measured += wide


def _law(run: Run, price: Price) -> NoiseLaw | None:
    """The law of the noise on each cell, where sums of it have one that is known here."""
    mechanism: Additive
    marginal = Marginal(run.domain, max(run.workload, key=run.domain.size))
    mechanism, _ = run.curator.calibration.mechanism(marginal, price)
    law = law_of(mechanism)
    return None if law is None or law.kind == "rounded" else law


def _mean(
    domain: Domain, clique: Clique, measured: Sequence[Clique], law: NoiseLaw | None, beta: Fraction
) -> MeanOfSums:
    """The mean of the sums that add up the fewest cells: of as many of them as make its variance least."""
    size = domain.size(clique)
    held = sorted((domain.size(c) // size, c) for c in measured if set(clique) < set(c))
    if law is None or not held:
        return MeanOfSums(clique, (), float("inf"))
    totals = [0]
    for cells, _ in held:
        totals.append(totals[-1] + cells)
    count = min(range(1, len(held) + 1), key=lambda m: totals[m] / m**2)
    one_sided = float(beta / (2 * size))
    error = sum_bound(law, (totals[count], 0), WHOLE, one_sided) / count
    return MeanOfSums(clique, tuple(c for _, c in held[:count]), error)
