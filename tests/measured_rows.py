"""A table of measured values that is summed in Python, by the rule and in exact numbers: no engine, no float."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment
from understudy.query.quantile_end import QuantileEnd


class MeasuredRows:
    """As much of `table.truth` as a Curator asks for, of rows of plain values: one tuple for each row."""

    is_file = False
    former_version = None

    def __init__(
        self, domain: Domain, rows: Sequence[tuple[object, ...]], *, version: str | None = "0"
    ) -> None:
        self.domain, self.version = domain, version
        self.looks = 0
        self._values = list(rows)

    @property
    def rows(self) -> int:
        return len(self._values)

    def check_unchanged(self) -> None:
        """Nobody can change it."""

    def check_size(self, marginals: Sequence[Marginal]) -> None:
        """What a test asks for fits."""

    def sums_of(self, marginals: Sequence[Marginal], *, resolution: int = 1) -> list[NDArray[np.int64]]:
        self.looks += 1
        return [self._sums(marginal, resolution) for marginal in marginals]

    def _sums(self, marginal: Marginal, resolution: int) -> NDArray[np.int64]:
        cells = prod(marginal.shape)
        if marginal.moment is None:
            found = np.zeros(cells, np.int64)
            for row in self._values:
                cell, weight = self._placed(marginal, row)
                found[cell] += round(weight * resolution)
            return found.reshape(marginal.shape)
        moment = marginal.moment
        assert isinstance(moment, Moment)
        sums = {exponents: [0] * cells for exponents in moment.polynomial}
        for row in self._values:
            cell, weight = self._placed(marginal, row)
            if weight:
                steps = [self._step(name, row) for name in moment.names]
                for exponents, column in sums.items():
                    column[cell] += prod(k**e for k, e in zip(steps, exponents, strict=True))
        return np.array(moment.steps(self.domain, sums, resolution), np.int64).reshape(marginal.shape)

    def step_tables(self, marginal: Marginal) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each cell the steps of the measure of a quantile, and how many rows lie at each."""
        self.looks += 1
        assert isinstance(marginal.moment, QuantileEnd)
        found: list[list[int]] = [[] for _ in range(marginal.size)]
        for row in self._values:
            cell, weight = self._placed(marginal, row)
            if weight:
                found[cell].append(self._step(marginal.moment.name, row))
        tables = (np.unique(np.array(steps, np.int64), return_counts=True) for steps in found)
        return [(steps, counts.astype(np.int64)) for steps, counts in tables]

    def _step(self, name: str, row: tuple[object, ...]) -> int:
        measure = self.domain[name]
        assert isinstance(measure, Bins)
        return measure.step_of(row[self.domain.position(name)])

    def _placed(self, marginal: Marginal, row: tuple[object, ...]) -> tuple[int, float]:
        """The cell of a row among the marginal's, and its weight under the condition."""
        codes = {a.name: np.array([a.code(v)]) for a, v in zip(self.domain, row, strict=True)}
        cell = 0
        for name in marginal.by:
            cell = cell * self.domain[name].size + int(codes[name][0])
        return cell, float(np.ravel(marginal.where.row_weights(codes))[0])
