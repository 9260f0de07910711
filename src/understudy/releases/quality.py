"""How good a release is, column by column and pair by pair, from released numbers and public laws alone.

The measure is the total variation distance: the share of people who would have to be moved to another cell
for two tables of one marginal to agree. Four numbers are worked out for each marginal, and none of them looks
at the table:

    bound      the synthetic rows are certainly no further from the table, by the error bars of the answers
    expected   how far the answers are from the table, estimated from the noise that such error bars speak of
    gap        how far the rows are from the answers: known exactly, since both are public
    sampling   how far a fresh sample of as many people would be from the population that it is drawn from

The last is what every table of people carries anyhow, private or not: a release whose distance is not above
it is as good as the table itself is for statements about the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf, log, pi, sqrt
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from understudy.domain.domain import Clique
from understudy.privacy.cost import PureDP
from understudy.query.marginal import Marginal
from understudy.releases.synthetic import Codes

if TYPE_CHECKING:
    from understudy.answer.answer import Answer
    from understudy.releases.release import Release

Cells = NDArray[np.float64]

MOST_PAIRED = 24
"""Attributes whose pairs are judged: the first ones of a wider table, and the report says so."""
MOST_CELLS = 100_000
"""Of a pair that is judged."""
MOST_WORST = 8
"""Cells that are told as the worst, of columns and of pairs."""


def is_doubtful(value: Cells, low: Cells, high: Cells) -> NDArray[np.bool_]:
    """Of which cells the error bar is at least as large as the count: half of it is as long, or it reaches 0."""
    return (low <= 0) | ((high - low) / 2 >= value)


@dataclass(frozen=True)
class DoubtfulCell:
    """A cell of the synthetic table that may be far off: its rows, as people, and the answer, which the table's
    own count is between `low` and `high` of.
    """

    clique: Clique
    labels: tuple[str, ...]
    rows: float
    value: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """The rows are certainly no further from the table's own count, in people."""
        return max(abs(self.rows - self.low), abs(self.high - self.rows))


@dataclass(frozen=True)
class MarginalQuality:
    """One column or pair. Distances are shares of the people; `noise` is the share of people in cells whose
    error bar is at least as large as their count. `expected` and `noise` are None where nothing is certified,
    `gap` where no rows were drawn. `association` is how far a pair is from independent columns, as a
    distance.
    """

    clique: Clique
    cells: int
    expected: float | None
    bound: float
    gap: float | None
    sampling: float
    noise: float | None
    association: float = 0.0

    @property
    def distance(self) -> float | None:
        """How far the rows are expected to be from the table: noise, and what the rows add to it."""
        return None if self.expected is None else min(sqrt(self.expected**2 + (self.gap or 0.0) ** 2), 1.0)

    @property
    def score(self) -> float | None:
        """The share of people who are expected to be in their right cell: 1 less the distance."""
        return None if self.distance is None else 1 - self.distance

    @property
    def ratio(self) -> float | None:
        """The distance in units of the sampling error."""
        if self.distance is None:
            return None
        return self.distance / self.sampling if self.sampling else (inf if self.distance else 0.0)

    @property
    def is_noise(self) -> bool:
        """Whether most of the people are in cells whose error bars are at least as large as their counts."""
        return self.noise is not None and self.noise > 0.5


@dataclass(frozen=True)
class ReleaseQuality:
    """Columns, pairs and the worst cells of both; `left_out` pairs were not judged."""

    columns: tuple[MarginalQuality, ...]
    pairs: tuple[MarginalQuality, ...]
    worst: tuple[DoubtfulCell, ...]
    left_out: int = 0

    @property
    def is_noise(self) -> bool | None:
        """Whether most columns that have error bars are mostly noise, or most pairs where columns say
        nothing; None where nothing has error bars.
        """
        judged = [found for found in self.columns if found.noise is not None]
        judged = judged or [found for found in self.pairs if found.noise is not None]
        return sum(found.is_noise for found in judged) * 2 > len(judged) if judged else None

    @property
    def noisy_pairs(self) -> int:
        return sum(found.is_noise for found in self.pairs)


def mean_distance(found: Sequence[MarginalQuality]) -> tuple[float, float] | None:
    """The mean of the expected distances and of the sampling errors beside them; None where there are none."""
    judged = [one for one in found if one.distance is not None]
    if not judged:
        return None
    return fmean(one.distance or 0.0 for one in judged), fmean(one.sampling for one in judged)


def sampling_distance(shares: Cells, rows: int) -> float:
    """The expected distance of a sample of independent people from the population with these shares.

    Half the sum of the mean absolute deviations of binomial counts, by de Moivre's formula: E|X - np| =
    2m·P[X = m]·q, where m = ⌊np⌋ + 1.
    """
    if rows < 1:
        return 1.0
    p = shares[(shares > 0) & (shares < 1)]
    m = np.minimum(np.floor(rows * p) + 1, rows)
    chance = gammaln(rows + 1) - gammaln(m + 1) - gammaln(rows - m + 1)
    chance += m * np.log(p) + (rows - m + 1) * np.log1p(-p)
    return float((m * np.exp(chance)).sum() / rows)


@dataclass(eq=False)
class QualityJudge:
    """Judges marginals of one release and of rows that were drawn from it, given by their codes."""

    release: Release
    codes: Codes
    worst: dict[int, list[DoubtfulCell]] = field(default_factory=dict[int, list[DoubtfulCell]])

    def __post_init__(self) -> None:
        release = self.release
        self._drawn = len(next(iter(self.codes.values()))) if self.codes else 0
        answers = (*release.answers, *release.also)
        self._has_law = any(answer.basis == "measured" for answer in answers)
        self._bars = max(sum(answer.counts.size for answer in answers), 1)
        total = release.answer(Marginal(release.domain, ()))
        self._rows_off = (
            float(abs(total.value - release.rows) + total.error) if not release.rows_are_public else 0.0
        )

    def shown(self, clique: Clique) -> tuple[Answer, Cells | None]:
        """The release's own answer to a marginal, and the rows as people; all of them public."""
        marginal = Marginal(self.release.domain, clique)
        answer = self.release.answer(marginal)
        shape = self.release.domain.shape(marginal.by)
        if not self._drawn:
            return answer, None
        places = np.ravel_multi_index([self.codes[name] for name in marginal.by], shape)
        counts = np.bincount(places, minlength=answer.value.size).reshape(shape).astype(np.float64)
        return answer, counts * (self.release.rows / self._drawn)

    def judged(self, clique: Clique) -> MarginalQuality:
        """The quality of one marginal; its most doubtful cells are kept in `worst`, by the number of
        attributes.
        """
        answer, rows = self.shown(clique)
        value = answer.value
        people = max(float(value.clip(0).sum()), 1e-300)
        shares = value.clip(0) / people
        ends = None if answer.low is None or answer.high is None else (answer.low, answer.high)
        gap = (
            None if rows is None else float(np.abs(rows / max(self.release.rows, 1e-300) - shares).sum() / 2)
        )
        expected, bound, noisy = None, 1.0, None
        if ends:
            bound = self._bound(*ends, value if rows is None else rows)
            noisy = float(shares[is_doubtful(value, *ends)].sum())
            if self._has_law:
                low, high = ends
                # Of what is cut off at 0, the farther end tells how long the whole interval was.
                half_width = np.where(low > 0, (high - low) / 2, answer.error)
                expected = min(self._expected(shares, half_width / people), bound, 1.0)
            if rows is not None:
                self._keep_worst(clique, value, *ends, rows)
        return MarginalQuality(
            clique, value.size, expected, bound, gap,
            sampling_distance(shares.ravel(), round(self.release.rows)), noisy, _association(shares),
        )  # fmt: skip

    def _expected(self, shares: Cells, half_width: Cells) -> float:
        """The expected distance Σ E(value - truth)₊, as if all bars of the release were one band around its
        noise.

        The k bars hold together but for β, so a bar is z(β/2k) deviations of normal noise, or ln(k/β) scales
        of Laplace noise; of either the positive part has a known mean. No cell has fewer than no people, so
        that the excess of a cell is at most its count.
        """
        risk = self.release.beta / self._bars
        if self.release.certificate["cost"]["currency"] == PureDP.currency:
            above = half_width / log(1 / risk) / 2
        else:
            above = half_width / NormalDist().inv_cdf(1 - risk / 2) / sqrt(2 * pi)
        return float(np.minimum(shares, above).sum())

    def _bound(self, low: Cells, high: Cells, rows: Cells) -> float:
        """The largest distance of the rows from any table whose counts lie between `low` and `high`.

        Two tables of as many people are as far apart as what one has too many in some cells, or too few in
        others.
        """
        people = max(self.release.rows, 1e-300)
        over, under = float((rows - low).clip(0).sum()), float((high - rows).clip(0).sum())
        if self.release.rows_are_public:
            return min(over / people, under / people, 1.0)
        reach = float(np.maximum(high - rows, rows - low).sum())
        return min((reach + min(self._rows_off, reach)) / 2 / people, 1.0)

    def _keep_worst(self, clique: Clique, value: Cells, low: Cells, high: Cells, rows: Cells) -> None:
        reach = np.maximum(high - rows, rows - low).ravel()
        kept = self.worst.setdefault(len(clique), [])
        for place in np.argsort(-reach, kind="stable")[:MOST_WORST]:
            at = np.unravel_index(place, value.shape)
            names = Marginal(self.release.domain, clique).by
            labels = tuple(self.release.domain[name].labels[i] for name, i in zip(names, at, strict=True))
            told = (float(numbers[at]) for numbers in (rows, value, low, high))
            kept.append(DoubtfulCell(names, labels, *told))
        kept.sort(key=lambda cell: -cell.reach)
        del kept[MOST_WORST:]

    def judge(self, columns: Sequence[str]) -> ReleaseQuality:
        """The quality of some columns, and of the pairs of the first of them that are not too large."""
        single = tuple(self.judged((name,)) for name in columns)
        domain = self.release.domain
        paired = list(combinations(columns[:MOST_PAIRED], 2))
        wanted = [pair for pair in paired if domain.size(pair) <= MOST_CELLS]
        pairs = tuple(self.judged(pair) for pair in wanted)
        worst = tuple(cell for order in sorted(self.worst) for cell in self.worst[order])
        every = len(domain) * (len(domain) - 1) // 2
        return ReleaseQuality(single, pairs, worst, every - len(pairs))


def noise_of(release: Release) -> ReleaseQuality:
    """The columns of a release and the pairs that its page judges, to say whether they are mostly noise.

    Noise is a matter of the answers and their error bars: no rows are drawn for it.
    """
    return QualityJudge(release, {}).judge(release.domain.names)


def _association(shares: Cells) -> float:
    """How far a pair's table is from that of independent columns, as a distance."""
    if shares.ndim != 2:
        return 0.0
    return float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2)
