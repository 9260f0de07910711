"""What a public number of rows says of every answer of a release: no cell holds more people, and all hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from understudy.releases.run import MarginalAnswer


def within_rows(answers: Iterable[MarginalAnswer], rows: int) -> tuple[MarginalAnswer, ...]:
    """Answers about a table that everybody knows to have so many rows.

    A value and the ends of its interval are moved into what is possible; the table as a whole has no error. The
    truth is possible, so that an interval which held it still does. One that holds nothing possible keeps its
    error, around the value, and an answer without an error gets none.
    """
    return tuple(_within(answer, float(rows)) for answer in answers)


def _within(answer: MarginalAnswer, rows: float) -> MarginalAnswer:
    if not answer.clique:
        basis = "certified" if answer.basis == "uncertified" else answer.basis
        everybody = np.array(rows)
        return MarginalAnswer(answer.clique, everybody, everybody, everybody, basis)
    value = np.clip(answer.counts, 0.0, rows)
    low, high = np.maximum(answer.low, 0.0), np.minimum(answer.high, rows)
    known = np.isfinite(answer.error) & (low <= high)
    around = MarginalAnswer.around(answer.clique, value, answer.error, answer.basis)
    return replace(around, low=np.where(known, low, around.low), high=np.where(known, high, around.high))
