"""What a public number of rows says of every answer of a release: no cell holds more people, and all hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from understudy.releases.run import MarginalAnswer


def within_rows(answers: Iterable[MarginalAnswer], rows: int) -> tuple[MarginalAnswer, ...]:
    """Answers about a table that everybody knows to have so many rows.

    A value is moved into what is possible, and its error reaches to the farther end of what is left of its
    interval; the table as a whole has no error. The truth is possible, so that an interval which held it still
    does. One that holds nothing possible keeps its length, and an answer without an error gets none.
    """
    return tuple(_within(answer, float(rows)) for answer in answers)


def _within(answer: MarginalAnswer, rows: float) -> MarginalAnswer:
    if not answer.clique:
        basis = "certified" if answer.basis == "uncertified" else answer.basis
        return replace(answer, counts=np.array(rows), error=np.array(0.0), basis=basis)
    value = np.clip(answer.counts, 0.0, rows)
    low, high = np.maximum(answer.counts - answer.error, 0.0), np.minimum(answer.counts + answer.error, rows)
    known = np.isfinite(answer.error) & (low <= high)
    reach = np.maximum(high - value, value - low)
    changed = known & ((value != answer.counts) | (reach < answer.error))
    return replace(answer, counts=value, error=np.where(changed, reach, answer.error))
