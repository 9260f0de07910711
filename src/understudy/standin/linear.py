"""Frieze and Kannan's linear stand-in: a sum of multiples of the queries that were learnt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, ParameterError
from understudy.query.linear import LinearQuery
from understudy.rational import Number, exact, positive


class LinearHypothesis:
    """A number for every cell, of either sign, whose sum need not be 1: no distribution, but it answers queries.

    `answer` and `project` are those of the numbers as they are. `distribution` is the nearest histogram, in the
    Euclidean norm; it is nearer to the table than the numbers are, for the table is a histogram, but one query's
    answer may be further off.
    """

    def __init__(self, domain: Domain, cells: NDArray[np.float64] | None = None) -> None:
        shape = domain.allocatable_shape(domain.names)
        self.domain = domain
        self.cells = np.zeros(shape) if cells is None else np.array(cells, dtype=np.float64)
        if self.cells.shape != shape or not np.isfinite(self.cells).all():
            raise DomainError(f"the numbers must be finite, and of shape {shape}")

    def copy(self) -> LinearHypothesis:
        return LinearHypothesis(self.domain, self.cells)

    def answer(self, query: LinearQuery) -> float:
        """Σ Q(x)·cell(x), which may lie outside [0, 1]."""
        if query.domain is not self.domain and query.domain != self.domain:
            raise DomainError("the query and the stand-in have different domains")
        return query.answer(self)

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """Sums over the other attributes, as they are: not rates, for some may be negative."""
        clique = self.domain.clique(clique)
        return self.cells.sum(axis=tuple(i for i, name in enumerate(self.domain.names) if name not in clique))

    def add(self, query: LinearQuery, amount: float) -> None:
        """Add `amount`·Q, in place; the query is expanded over its own attributes only."""
        sizes = dict(zip(query.clique, self.domain.shape(query.clique), strict=True))
        self.cells += amount * query.weights().reshape([sizes.get(name, 1) for name in self.domain.names])

    def distribution(self) -> NDArray[np.float64]:
        """The nearest histogram: subtract one number from all cells, and set what falls below 0 to 0."""
        flat = np.sort(self.cells, axis=None)[::-1]
        excess = (np.cumsum(flat) - 1) / np.arange(1, flat.size + 1)
        return np.maximum(self.cells - excess[np.flatnonzero(flat > excess)[-1]], 0)


@dataclass(frozen=True, kw_only=True)
class FriezeKannan:
    """Frieze and Kannan's update: Dᵗ⁺¹ = Dᵗ ± (a/‖Q‖₂²)Q or Dᵗ ± (α/|X|)Q, plus if v > Q(Dᵗ), from D⁰ = 0.

    Q is a query and v its value, near the Q(D) of the table's histogram D, whose cells are those of `domain`; a is
    the step of a line search. `alpha` is the least gap that is updated on, a share of rows. Raises a
    `ParameterError` where `alpha` or `squared_norm` is not in (0, 1], or where `margin` is negative.

    Units       Rates: cells of D are shares of the rows, and so are α and v. [Lecture 7]'s are counts; B(α) is
                the same in both, since n² cancels in ‖D‖₂²|X|/α².
    Accuracy    The potential ‖D - Dᵗ‖₂² starts at ‖D‖₂². The fixed step α/|X| against a gap of α or more lowers
                it by 2α²/|X| - α²‖Q‖₂²/|X|² ≥ α²/|X|, so B(α) = ⌊‖D‖₂²|X|/α²⌋ [GRU12]. The line search, with a
                margin: a = |v - Q(Dᵗ)| - margin is no more than the gap g while |Q(D) - v| ≤ margin, and at least
                g - 2·margin, so the potential falls by (g² - (g - a)²)/‖Q‖₂² ≥ (α² - 4·margin²)/|X|; at margin 0
                by g²/‖Q‖₂², which for a query of few cells is far more. Where a ≤ 0 nothing is learnt.
                [Lecture 7, Definition 2]
    Gap         `squared_norm` must be public: ‖D‖₂² ≤ 1 always, and ≤ m if no cell holds more than a share m of
                the rows. The bound is of use for flat tables only: ‖D‖₂² ≥ 1/|X|.
    Privacy     Post-processing of v.
    """

    domain: Domain
    alpha: Number
    squared_norm: Number = 1
    margin: Number | None = None
    """How far v may be from Q(D), which makes the step a line search; None for the fixed step."""

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha", at_most=1)
        positive(self.squared_norm, "squared_norm", at_most=1)
        if self.margin is not None and exact(self.margin, "margin") < 0:
            raise ParameterError(f"margin must not be negative, not {self.margin}")

    def start(self) -> LinearHypothesis:
        """The hypothesis before any update: one that answers every query with 0."""
        return LinearHypothesis(self.domain)

    def update(self, hypothesis: LinearHypothesis, query: LinearQuery, value: float) -> LinearHypothesis:
        """The `hypothesis` after one `query` and its `value`, a share of rows: it answers closer to the value.

        It is changed in place and returned.
        """
        now = hypothesis.answer(query)
        if self.margin is None:
            amount = float(self.alpha) / self.domain.size()
        else:
            norm = float((query.weights() ** 2).sum()) * self.domain.size() / self.domain.size(query.clique)
            amount = max(abs(value - now) - float(self.margin), 0.0) / norm if norm else 0.0
        hypothesis.add(query, amount if value > now else -amount)
        return hypothesis

    def most_updates(self, alpha: Number) -> int:
        """B(α), the most updates against gaps of α = `alpha`, a share of rows.

        With the fixed step of this one's α₀ it is ‖D‖₂²|X|/(2α₀α - α₀²). Raises a `ParameterError` where steps
        need not come nearer against such gaps.
        """
        gap, own = positive(alpha, "alpha"), positive(self.alpha, "alpha")
        square = 2 * own * gap - own**2 if self.margin is None else gap**2 - 4 * exact(self.margin) ** 2
        if square <= 0:
            raise ParameterError(f"these steps need not come nearer against gaps of {alpha}")
        return int(exact(self.squared_norm) * self.domain.size() / square)
