"""Ranges of ordered attributes, answered from noisy residuals: with their own error, not the sum of their cells'.

A release that measured in a basis for ranges keeps what it measured. A question is one of the family if each
ordered attribute that the release was told of is cut to a range, or grouped by, and every other one to a single
cell, grouped by, or left open. The family is finite and public, so its errors hold together with those of cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import SourceError
from understudy.mechanism.matrix.bases import Basis, RangeBasis
from understudy.mechanism.matrix.many_marginals import Combinations, JointStrategy, StrategyPart
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.releases.residual.tables import ResidualTables

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RangeSums:
    """Everything that was measured, and the failure probability of each question of the family."""

    tables: ResidualTables
    share: Fraction

    @staticmethod
    def questions(residuals: Residuals) -> int:
        """How many there are: ranges, or cells and all of them, of each attribute of each marginal."""
        choices = {name: _choices(one) for name, one in residuals.bases.items()}
        return sum(prod(choices[name] for name in clique) for clique in residuals.workload)

    def answer(self, marginal: Marginal) -> tuple[Values, Values] | None:
        """Counts and errors of a question of the family; None of any other."""
        residuals = self.tables.residuals
        if not any(set(marginal.clique) <= set(asked) for asked in residuals.workload):
            return None
        weights: dict[str, Values] = {name: np.eye(residuals.domain[name].size) for name in marginal.by}
        for factor in marginal.where.factors:
            name = factor.clique[0]
            if (
                len(factor.clique) > 1
                or name in weights
                or not _in_family(residuals.bases[name], factor.weights)
            ):
                return None
            weights[name] = factor.weights[None, :]
        value, error = self.tables.sums(weights, self.share)
        cut = tuple(i for i, name in enumerate(residuals.domain.clique(weights)) if name not in marginal.by)
        return value.sum(axis=cut), error.sum(axis=cut)

    # ---- as arrays, and back

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """What it takes to answer again: plain arrays."""
        tables, residuals = self.tables, self.tables.residuals
        precisions = [part.precision for part in tables.look.parts]
        arrays: dict[str, NDArray[Any]] = {
            "released": tables.released,
            "precisions": np.array([[str(p.numerator), str(p.denominator)] for p in precisions]).reshape(
                -1, 2
            ),
            "rows": np.array([] if tables.rows is None else [tables.rows]),
            "share": np.array([str(self.share.numerator), str(self.share.denominator)]),
            "rows_of_a_person": np.array(tables.look.relation.max_rows),
            "rounded": np.array(tables.look.rounded),
        }
        for name, one in residuals.bases.items():
            if isinstance(one, RangeBasis):
                arrays[f"ranges {residuals.domain.position(name)}"] = one.factor.matrix
        return arrays

    @classmethod
    def from_arrays(cls, domain: Domain, cliques: tuple[Clique, ...], arrays: Mapping[str, Any]) -> RangeSums:
        """The inverse of `as_arrays`, for the workload with these marginals."""
        places = [int(key.split()[1]) for key in arrays if key.startswith("ranges ")]
        bases = {domain.names[i]: RangeBasis(Combinations(arrays[f"ranges {i}"])) for i in places}
        public = arrays["rows"].size > 0
        workload = Workload.of(domain, cliques)
        residuals = Residuals.of(workload, tuple(bases), total=not public).with_bases(bases)
        precisions = [Fraction(int(p), int(q)) for p, q in arrays["precisions"]]
        if len(precisions) != len(residuals.cliques):
            raise SourceError("the stored sums are about another workload")
        parts = tuple(StrategyPart(c, p) for c, p in zip(residuals.cliques, precisions, strict=True))
        factors = {name: residuals.bases[name].factor for clique in residuals.cliques for name in clique}
        kind = Neighbours.REPLACE if public else Neighbours.ADD_REMOVE
        rounded = bool(
            arrays.get("rounded", False)
        )  # a folder of 0.1 has discrete noise, and does not say so
        look = JointStrategy(domain, factors, parts, Relation(kind, int(arrays["rows_of_a_person"])), rounded)
        rows = float(arrays["rows"][0]) if public else None
        tables = ResidualTables(residuals, look, np.asarray(arrays["released"], np.int64), rows)
        return cls(tables, Fraction(*(int(part) for part in arrays["share"])))


def _choices(basis: Basis) -> int:
    return basis.queries if isinstance(basis, RangeBasis) else basis.queries + 1


def _in_family(basis: Basis, weights: Values) -> bool:
    """A range of an attribute with a basis for ranges; a single cell of any other."""
    chosen = np.flatnonzero(weights)
    if not (weights[chosen] == 1).all() or not chosen.size:
        return False
    if isinstance(basis, RangeBasis):
        return int(chosen[-1] - chosen[0]) == chosen.size - 1
    return chosen.size == 1
