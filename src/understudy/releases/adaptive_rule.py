"""How the adaptive release spends its price: decided by public numbers alone, the same rule for every table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, inf, log10, sqrt
from statistics import median

from understudy.domain import Domain
from understudy.errors import ParameterError, TooLargeError
from understudy.query.workload import Workload

ROWS_SHARE = Fraction(1, 100)
"""Of the price, for the number of rows where that is private."""

MERGE_NOISES = 10
"""A value is rare if its count is below so many standard deviations of the noise of a typical measurement."""

CELLS = 200_000
"""Cells of the stand-in's tree: a pass takes milliseconds, a fit about a hundred of them."""

CELLS_PER_SECOND = 25_000_000
"""Cells of a tree that one CPU second propagates, roughly: what a limit of time is turned into."""

BYTES_PER_CELL = 400
"""Memory for each cell of the tree: beliefs, remembered steps of the fit, answers that are kept."""

MOST_CANDIDATES = 4000
"""Triples whose gaps are looked at; where there are more, pairs alone."""


MOST_ROUNDS = 8


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Shares of the price, rounds, and sizes.

    `guard` is the share of the last sweep over all that was not measured; `first` is that of the 1-way marginals,
    and `select` that of the gaps in each round, both of what the sweep leaves. A round's price is `growth` times
    the one before. Values rarer than `merge` people are merged with their neighbours. `cells` caps the tree of the
    stand-in, `most` the picks of a round; `triples` says whether triples are candidates beside pairs.
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
    looked_at = len(_pairs(workload)) + (threes / 4 if threes <= MOST_CANDIDATES else 0)
    return sqrt(50 * looked_at / precision) / max(rows, 1.0)


def _pairs(workload: Workload) -> set[frozenset[str]]:
    return {frozenset((a, b)) for c in workload for i, a in enumerate(c) for b in c[:i]}


def rule_for(
    domain: Domain,
    workload: Workload,
    *,
    precision: float,
    rows: float,
    memory: int | None = None,
    seconds: float | None = None,
) -> Rule:
    """The rule. `precision` is what the whole price buys on one marginal, 1/σ²; `rows` is public or was bought.

    The noisier the measurements, the more goes to the 1-way marginals, and the fewer rounds there are; the noisier
    the gaps, the more goes to looking at them. The constants are such that two real and two generated tables come
    out near their best at each of three prices; others were only looked at afterwards.
    """
    threes = sum(comb(len(c), 3) for c in workload)
    noise = noise_to_signal(domain, precision, rows) / 0.08
    doubt = selection_noise(workload, precision, rows) / 0.012
    guard, order = _guard(domain, workload, precision, rows)
    return Rule(
        first=_share(max(0.13 * noise**0.5, min(0.067 * doubt**0.5, 0.15)), 0.03, 0.4),
        select=_share(0.06 * doubt**0.25, 0.03, 0.15),
        guard=guard,
        guard_order=order,
        rounds=int(min(max(round(5 - 2.5 * log10(max(noise, 1e-12))), 2), MOST_ROUNDS)),
        growth=1.3,
        merge=MERGE_NOISES * sqrt(2 * len(domain) / precision),
        cells=most_cells(workload, memory, seconds),
        most=40,
        triples=0 < threes <= MOST_CANDIDATES,
    )


def _share(value: float, low: float, high: float) -> Fraction:
    return Fraction(round(1000 * min(max(value, low), high)), 1000)


GUARDS = (Fraction(9, 10), Fraction(1, 4), Fraction(3, 20))
"""Shares of the last sweep: where its noise is below what rows are worth, over the workload, over pairs."""


def _guard(domain: Domain, workload: Workload, precision: float, rows: float) -> tuple[Fraction, int]:
    """The share and the order of the last sweep: the largest order whose noise still says something.

    A sweep measures every marginal of the workload (order 0), or every pair (2); with noise of standard deviation
    σ it moves no answer that is within a few σ, so it is worth its price where σ is small beside the rows.
    """
    direct = 0.4 * workload.queries * sqrt(1 / (len(workload) * precision)) / max(rows, 1.0)
    if all(domain[name].size == 2 for c in workload for name in c):
        direct /= 1.5  # contrasts
    if direct <= 0.015:
        return GUARDS[0], 0
    if sqrt(len(workload) / (precision * float(GUARDS[1]))) <= 0.001 * rows:
        return GUARDS[1], 0
    pairs = len(_pairs(workload))
    if pairs and sqrt(pairs / 2 / (precision * float(GUARDS[2]))) <= 0.004 * rows:
        return GUARDS[2], 2
    return Fraction(0), 0


def most_cells(workload: Workload, memory: int | None, seconds: float | None) -> int:
    """Cells that the tree may have under limits of memory, in bytes, and of time.

    Time is forecast, never read from a clock: a run that was killed must go on as it began.
    """
    if (memory is not None and memory <= 0) or (seconds is not None and not 0 < seconds < inf):
        raise ParameterError("limits of memory (bytes) and time (seconds) must be positive")
    cells = CELLS
    if seconds is not None:
        cells = min(cells, int(seconds * CELLS_PER_SECOND / 500))
    if memory is not None:
        answers = 40 * workload.queries
        if memory < answers + BYTES_PER_CELL * 1000:
            raise TooLargeError(
                "the answers to this workload, in the memory that was allowed,",
                cells=workload.queries,
                limit=max(memory - BYTES_PER_CELL * 1000, 0) // 40,
            )
        cells = min(cells, (memory - answers) // BYTES_PER_CELL)
    return cells
