"""How the adaptive release spends its price: decided by public numbers alone, the same rule for every table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, inf, log10, sqrt
from statistics import median

from understudy.domain.domain import Domain
from understudy.errors import ParameterError, TooLargeError
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.query.workload import Workload
from understudy.rational import MIN_PARAMETER
from understudy.releases.adaptive.bars_sweep import BarsForecast
from understudy.releases.adaptive.sweep_choice import SweepForecast, can_be_drawn, can_sweep, pairs_below
from understudy.releases.target import pairs_and_triples, triples_with

ROWS_SHARE = Fraction(1, 100)
"""Of the price, for the number of rows where that is private."""

MERGE_NOISES = 10
"""A value is rare if its count is below so many standard deviations of the noise of a typical measurement."""

SECONDS = 4.0
"""CPU time that the fits, and the last sweep, may each take where nothing is said: the same on every machine, so
that a run that was stopped on one goes on as it began on another."""

CELLS_PER_SECOND, LEAST_PER_SECOND, FEW_MARGINALS = 250_000, 100_000, 2000
"""Cells of a tree for each CPU second that its fits may take, for a workload of so few marginals; for more, each
of which is read off the tree, in proportion fewer, down to the least. It is the least where the workload is swept:
fits take longer there, as the tree learns from the sweep whatever it holds."""

BYTES_PER_CELL = 400
"""Memory for each cell of the tree: beliefs, remembered steps of the fit, answers that are kept."""

SWEPT_PER_SECOND = 2_500_000
"""Numbers that a sweep measures in a CPU second, counts of residuals and noise together."""

BYTES_PER_SWEPT = 40
"""Memory for each number that a sweep measures."""

LEAST_CELLS = 1000
"""Cells of a tree below which no release is begun."""

MOST_CANDIDATES = 4000
"""Triples whose gaps are looked at; where there are more, pairs alone."""


MOST_ROUNDS = 8

MOST_FIRST, MOST_DIRECT = 0.75, 0.4
"""Of what the sweep leaves, at most for the 1-way marginals: where noise is as large as the counts of pairs, these
tell hardly more; and at most for bars that are no wider than those of direct questions."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Shares of the price, rounds, and sizes.

    `guard` is the share of the last sweep, which is over the workload where `guard_order` is 0, and over all pairs
    where it is 2. Where it would teach a stand-in little, it has no share beforehand, and may be made `for_bars`
    alone, for what that takes (`bars_sweep`). `first` is
    that of the 1-way marginals, and `select` that of the gaps in each round, both of what the sweep leaves. A
    round's price is `growth` times the one before. Values rarer than `merge` people are merged with their
    neighbours. `cells` caps the tree of the stand-in, `most` the picks of a round; `triples` says whether triples
    are candidates beside pairs. A last sweep over pairs measures the triples with the `target` too, where there is
    one and they fit into it.
    """

    first: Fraction
    select: Fraction
    guard: Fraction
    guard_order: int
    rounds: int
    growth: float
    merge: float
    cells: int
    most: int
    triples: bool
    for_bars: bool = False
    target: str | None = None

    @property
    def sweeps_workload(self) -> bool:
        """Whether there is a last sweep, and it is over the workload."""
        return self.guard > 0 and self.guard_order == 0

    def round_shares(self) -> list[Fraction]:
        """Of each round, of what the rounds spend; they sum to 1."""
        parts = [Fraction(round(1000 * self.growth**r)) for r in range(self.rounds)]
        return [part / sum(parts) for part in parts]


def noise_to_signal(domain: Domain, precision: float, rows: float) -> float:
    """The L1 error, as a rate, that noise leaves in a typical pair if twice as many marginals as attributes are
    measured.
    """
    sizes = sorted(domain.shape())
    cells = median(a * b for i, a in enumerate(sizes) for b in sizes[:i]) if len(sizes) > 1 else sizes[0]
    return 0.8 * cells * sqrt(2 * len(domain) / precision) / max(rows, 1.0)


def selection_noise(workload: Workload, precision: float, rows: float) -> float:
    """The noise of a pair's gap, as a rate, if a fiftieth of the price is spent on one look at all gaps."""
    threes = sum(comb(len(c), 3) for c in workload)
    looked_at = len(pairs_below(workload.domain, workload)) + (threes / 4 if threes <= MOST_CANDIDATES else 0)
    return sqrt(50 * looked_at / precision) / max(rows, 1.0)


def triples_are_few(workload: Workload) -> bool:
    """Whether there are triples below the workload, and each can be a candidate."""
    return 0 < sum(comb(len(c), 3) for c in workload) <= MOST_CANDIDATES


def first_prices(domain: Domain, price: Fraction) -> dict[str, Fraction]:
    """What each 1-way marginal is measured for, of the price of all of them: larger ones for more.

    All have the same where the smallest would have less than noise can be drawn for.
    """
    wanted = {attribute.name: Fraction(round(1000 * sqrt(attribute.size))) for attribute in domain}
    if price * min(wanted.values()) < MIN_PARAMETER * sum(wanted.values()):
        wanted = dict.fromkeys(wanted, Fraction(1))
    return {name: price * part / sum(wanted.values()) for name, part in wanted.items()}


def least_first(domain: Domain) -> Fraction:
    """The rho for which all 1-way marginals can just be measured."""
    return len(domain) * MIN_PARAMETER


def rule_for(
    domain: Domain,
    workload: Workload,
    *,
    precision: float,
    rows: float,
    memory: int | None = None,
    seconds: float | None = None,
    target: str | None = None,
) -> Rule:
    """The rule. `precision` is what the whole price buys on one marginal, 1/σ²; `rows` is public or was bought.
    `target` is an attribute that models are going to predict.

    The noisier the measurements, the more goes to the 1-way marginals; the noisier the gaps, the more goes to
    looking at them, and the fewer rounds there are. The constants are such that one real and two generated tables
    come out near their best at each of three prices; others were only looked at afterwards.
    """
    noise = noise_to_signal(domain, precision, rows) / 0.08
    looked = selection_noise(workload, precision, rows)
    doubt = looked / 0.012
    limits = limits_of(workload, memory, seconds)
    forecast = SweepForecast(domain, workload, precision, rows)
    sweep = forecast.choose(_sweeps(domain, workload, target), limits.swept)
    guard = sweep.share
    for_bars = not guard and _may_sweep_for_bars(domain, workload, precision, rows, limits.swept)
    order = 2 if for_bars else sweep.order
    rounds = min(max(round(1 - 1.4 * log10(max(looked, 1e-12))), 3), MOST_ROUNDS)
    if order == 0 and guard and forecast.plain_error <= QUIET:
        rounds = 2  # the sweep knows it all
    first = max(0.13 * noise**0.5, min(0.067 * doubt**0.5, 0.15))
    first *= FIRST_BEFORE_PAIRS if guard and order else 1.0
    direct = min(_direct_share(domain, workload) / float(1 - guard), MOST_DIRECT)
    return Rule(
        first=_share(max(first, direct), 0.03, MOST_FIRST),
        select=_share(0.06 * doubt**0.25, 0.03, 0.15),
        guard=guard,
        guard_order=order,
        rounds=int(rounds),
        growth=1.3,
        merge=MERGE_NOISES * sqrt(2 * len(domain) / precision),
        cells=limits.cells_beside if guard and order == 0 else limits.cells,
        most=40,
        triples=triples_are_few(workload),
        for_bars=for_bars,
        target=target
        if guard
        and order
        and _sweeps_triples(domain, workload, target, limits.swept, float(guard) * precision)
        else None,
    )


def _may_sweep_for_bars(
    domain: Domain, workload: Workload, precision: float, rows: float, swept: int
) -> bool:
    """Whether a sweep over pairs can be made for their bars alone; what it takes is found later."""
    found = bars_forecast(domain, workload, precision, rows)
    return found is not None and can_sweep(domain, found.pairs, swept) and found.is_worth_a_look


def bars_forecast(domain: Domain, workload: Workload, precision: float, rows: float) -> BarsForecast | None:
    """What can be said of a sweep for bars beforehand; nothing where no pair has anything to measure."""
    pairs = pairs_below(domain, workload)
    if all(domain.size(pair) == 1 for pair in pairs):
        return None
    return BarsForecast(domain, pairs, told(domain, workload), precision, rows)


def told(domain: Domain, workload: Workload) -> int:
    """How many marginals a release tells: the workload's, and the 1-way and 2-way ones below them."""
    small = {*map(frozenset, pairs_below(domain, workload)), *(frozenset([name]) for name in domain.names)}
    return len({*map(frozenset, workload), *small})


def _direct_share(domain: Domain, workload: Workload) -> float:
    """Of the price, for the 1-way marginals if all that is told were asked directly, each for an equal part.

    Values that are merged afterwards have no other measurement, so 1-way marginals never get less.
    """
    return len(domain) / told(domain, workload)


def _share(value: float, low: float, high: float) -> Fraction:
    return Fraction(round(1000 * min(max(value, low), high)), 1000)


SWEEP_WORKLOAD, SWEEP_PAIRS = (0.6, 0.7), Fraction(2, 5)
"""Limits of the share of the last sweep over the workload, which leaves the 1-way marginals twice as much as
direct questions would take; and the share of one over pairs, by adult, classes-18 and network-20 at epsilon 1: a
quarter is up to 7% worse."""

FIRST_BEFORE_PAIRS = 1.7
"""Where the sweep is over pairs, 1-way marginals get so much more: shorter bars, at the same accuracy."""

QUIET = 0.005
"""Half the L1 error of plain noise on every marginal below which rounds have little to add to a sweep."""


TARGETED_SWEEP = Fraction(3, 5)
"""The share of a sweep over pairs and the triples with a target, by models that learn from rows of adult at
epsilon 1."""


def _sweeps_triples(
    domain: Domain, workload: Workload, target: str | None, swept: int, precision: float
) -> bool:
    """Whether the triples with a target fit into a sweep over pairs, and their noise can be drawn; `precision` is
    what the sweep's price buys on one marginal.
    """
    pairs, triples = pairs_below(domain, workload), triples_with(target, workload)
    if not triples or not can_sweep(domain, [*pairs, *triples], swept):
        return False
    residuals = Residuals.of(pairs_and_triples(domain, pairs, triples, target))
    precisions = residuals.precisions()
    return can_be_drawn(precisions * precision / float(residuals.price @ precisions))


def _sweeps(domain: Domain, workload: Workload, target: str | None) -> list[tuple[Fraction, int]]:
    """The sweeps to choose from: share and order of one over the workload, and of one over pairs, if there is more
    in the workload: a sweep of nothing but pairs gives them bars that are no longer than direct questions have.
    """
    whole = _share(0.95 - 2 * _direct_share(domain, workload), *SWEEP_WORKLOAD)
    larger = any(len(clique) > 2 for clique in workload)
    pairs = TARGETED_SWEEP if triples_with(target, workload) else SWEEP_PAIRS
    return [(whole, 0), *([(pairs, 2)] if larger else [])]


@dataclass(frozen=True)
class SizeLimits:
    """What time and memory allow: `cells` of the stand-in's tree, and numbers that the last sweep measures.

    Where the last sweep is over the workload, the tree has `cells_beside` it at most.
    """

    cells: int
    swept: int
    cells_beside: int


def limits_of(workload: Workload, memory: int | None, seconds: float | None) -> SizeLimits:
    """The sizes that fit into so much memory, in bytes, and into so many CPU seconds.

    Time is forecast, never read from a clock: a run that was killed must go on as it began. More seconds than
    `SECONDS` buy a larger tree and a larger sweep, fewer buy smaller ones. Where memory is limited, the tree and
    the sweep have half each of what the answers leave.
    """
    if (memory is not None and memory <= 0) or (seconds is not None and not 0 < seconds < inf):
        raise ParameterError("limits of memory (bytes) and time (seconds) must be positive")
    time = SECONDS if seconds is None else seconds
    fewer = CELLS_PER_SECOND * min(1.0, FEW_MARGINALS / len(workload))
    cells, swept = max(int(time * max(fewer, LEAST_PER_SECOND)), 1), int(time * SWEPT_PER_SECOND)
    beside = max(int(time * LEAST_PER_SECOND), 1)
    if memory is not None:
        answers = 40 * workload.queries
        if memory < answers + BYTES_PER_CELL * LEAST_CELLS:
            raise TooLargeError(
                "the answers to this workload, in the memory that was allowed,",
                cells=workload.queries,
                limit=max(memory - BYTES_PER_CELL * LEAST_CELLS, 0) // 40,
            )
        left = memory - answers
        cells = min(cells, max(left // 2 // BYTES_PER_CELL, LEAST_CELLS))
        swept = min(swept, left // 2 // BYTES_PER_SWEPT)
    return SizeLimits(cells, swept, min(cells, beside))
