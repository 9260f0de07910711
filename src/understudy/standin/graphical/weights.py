"""Multiplicative weights on a graphical stand-in: the same update as on a histogram, on universes of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from understudy.domain.domain import Domain
from understudy.query.linear import LinearQuery
from understudy.rational import Number
from understudy.standin.graphical.model import GraphicalStandIn
from understudy.standin.multiplicative import MultiplicativeWeights


@dataclass(frozen=True, kw_only=True)
class GraphicalWeights:
    """Multiplicative weights Dᵗ⁺¹(x) ∝ Dᵗ(x) exp(±s Q(x)), kept as log factors on the cliques of the queries.

    `domain`, `alpha`, `step`, signs and the bound B(α) are those of `MultiplicativeWeights`, whose hypotheses
    these are: only the way they are held differs. `total` is what the weights add up to. Raises a `ParameterError`
    as that does. Each new clique joins the tree, and an update that would make the tree too large to hold is
    refused (`TooLargeError`).

    Complexity  One belief pass over the tree's cells for the next answer; nothing grows with |X|.
    Privacy     Post-processing of v.
    """

    domain: Domain
    alpha: Number
    step: Literal["tight", "textbook"] = "tight"
    total: float = 1.0

    def __post_init__(self) -> None:
        _ = self._rule

    @property
    def _rule(self) -> MultiplicativeWeights:
        return MultiplicativeWeights(domain=self.domain, alpha=self.alpha, step=self.step)

    def start(self) -> GraphicalStandIn:
        """The hypothesis before any update: the same weight on every cell."""
        return GraphicalStandIn(self.domain, self.total)

    def update(self, hypothesis: GraphicalStandIn, query: LinearQuery, value: float) -> GraphicalStandIn:
        """The `hypothesis` after one `query` and its `value`, a share of rows: it answers closer to the value.

        The given one stays as it is. Raises a `TooLargeError` where the tree would become too large to
        hold.
        """
        sign = 1 if value > hypothesis.answer(query) else -1
        return hypothesis.reweight(query.clique, sign * float(self._rule.log_factor) * query.weights())

    def most_updates(self, alpha: Number) -> int:
        """B(α), the most updates against gaps of α = `alpha`, a share of rows: that of `MultiplicativeWeights`."""
        return self._rule.most_updates(alpha)
