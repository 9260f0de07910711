"""What a model that learns from the synthetic rows is worth on the table, by released numbers alone.

The model is a decision table: for every cell of one to three columns it predicts the most frequent value of
another column. It learns from one half of the rows. Which columns it looks at is decided by how often it is right
in the other half. How often it is right in the table is a sum over cells of one marginal, those of each predicted
value, so that an answered marginal tells it together with an interval: nothing is looked at, and nothing is
charged. All bars of the release hold together, so the intervals of all models do, whichever were chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.releases.run import MarginalAnswer
from understudy.releases.synthetic import Codes

if TYPE_CHECKING:
    from understudy.releases.release import Release

Cells = NDArray[np.float64]

MOST_TARGETS = 24
"""Columns that are predicted: the first ones of a wider table."""
MOST_TRIED = 200
"""Decision tables that are tried for a column, those with the fewest cells first."""
MOST_CELLS = 100_000
MOST_ROWS = 20_000
"""Rows that are learned from and tried on, half each."""


@dataclass(frozen=True)
class PredictionUtility:
    """A decision table that predicts `target` from `features`; numbers are shares of people it is right of.

    on_rows    in the half of the synthetic rows that it did not learn from
    in_table   in the table, as the release's answers estimate it
    low, high  in the table, certainly, with the probability with which the error bars hold
    baseline   in the table, by always predicting the most frequent value, as the answers estimate it
    """

    target: str
    features: Clique
    on_rows: float
    in_table: float
    low: float
    high: float
    baseline: float


def predictions(release: Release, codes: Codes) -> tuple[PredictionUtility, ...]:
    """The best decision table for each of the first columns that some answered marginal with error bars holds."""
    drawn = len(next(iter(codes.values()))) if codes else 0
    if drawn < 2:
        return ()
    # Rows may stand in some order. They were shuffled by a generator of a small seed, which would undo it here.
    rng = np.random.default_rng(np.random.SeedSequence(drawn, spawn_key=(7,)))
    kept = rng.permutation(drawn)[:MOST_ROWS]
    halves = [{name: column[part] for name, column in codes.items()} for part in np.array_split(kept, 2)]
    answered = sorted(
        (
            answer
            for answer in (*release.answers, *release.also)
            if 2 <= len(answer.clique) <= 4
            and answer.counts.size <= MOST_CELLS
            and np.isfinite(answer.error).all()
        ),
        key=lambda answer: answer.counts.size,
    )
    found: list[PredictionUtility] = []
    for target in release.domain.names[:MOST_TARGETS]:
        tried = [answer for answer in answered if target in answer.clique][:MOST_TRIED]
        judged = [(_learned(release, answer, target, halves), answer) for answer in tried]
        if judged and release.domain[target].size > 1:
            (right, chosen), answer = max(judged, key=lambda one: one[0][0])
            found.append(_certified(release, answer, target, chosen, right))
    return tuple(found)


def _learned(
    release: Release, answer: MarginalAnswer, target: str, halves: list[Codes]
) -> tuple[float, NDArray[np.bool_]]:
    """How often a decision table is right in the second half of the rows, and the cells where it is right."""
    learned, tried = (_counted(release, answer.clique, half) for half in halves)
    axis = answer.clique.index(target)
    others = tuple(i for i in range(learned.ndim) if i != axis)
    usual = learned.sum(axis=others, keepdims=True) / max(learned.sum(), 1.0)
    best = np.expand_dims(
        np.argmax(learned + usual / 2, axis=axis), axis
    )  # where no row was, the usual value
    places = np.arange(learned.shape[axis]).reshape([-1 if i == axis else 1 for i in range(learned.ndim)])
    chosen = np.broadcast_to(best == places, learned.shape)
    return float(tried[chosen].sum() / max(tried.sum(), 1.0)), chosen


def _counted(release: Release, clique: Clique, rows: Codes) -> Cells:
    shape = release.domain.shape(clique)
    cells = np.ravel_multi_index([rows[name] for name in clique], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _certified(
    release: Release, answer: MarginalAnswer, target: str, chosen: NDArray[np.bool_], on_rows: float
) -> PredictionUtility:
    """What the answered marginal says of a decision table in the table itself."""
    counts = np.maximum(answer.counts, 0.0)
    low, high = (np.broadcast_to(np.maximum(end, 0.0), counts.shape) for end in (answer.low, answer.high))
    right, wrong = (
        (float(low[part].sum()), float(high[part].sum())) for part in (chosen, np.logical_not(chosen))
    )
    if release.rows_are_public:
        least, most = (
            max(right[0], release.rows - wrong[1]) / max(release.rows, 1e-300),
            min(right[1], release.rows - wrong[0]) / max(release.rows, 1e-300),
        )
    else:  # a share grows with those it is right of, and shrinks with the others
        least, most = _share(right[0], wrong[1], 0.0), _share(right[1], wrong[0], 1.0)
    axis = answer.clique.index(target)
    single = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != axis))
    total = max(float(counts.sum()), 1e-300)
    return PredictionUtility(
        target,
        tuple(name for name in answer.clique if name != target),
        on_rows,
        float(counts[chosen].sum()) / total,
        min(max(least, 0.0), 1.0),
        min(max(most, 0.0), 1.0),
        float(single.max()) / total,
    )


def _share(part: float, rest: float, otherwise: float) -> float:
    return part / (part + rest) if part + rest > 0 else otherwise
