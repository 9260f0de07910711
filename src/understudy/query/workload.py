"""Workloads: the questions that a release is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb

from understudy.domain.domain import Clique, Domain
from understudy.errors import QueryError
from understudy.rational import Number, positive

MOST_MARGINALS = 1 << 20
"""Marginals of one workload: more are not worked out one by one in any time that people wait."""


@dataclass(frozen=True, repr=False)
class Workload:
    """Cliques whose marginals matter, with the weight of each."""

    domain: Domain
    cliques: tuple[Clique, ...]
    weights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.cliques:
            raise QueryError("a workload needs at least one marginal")
        if len(self.cliques) != len(self.weights):
            raise QueryError("a workload needs one weight for each marginal")
        if len(set(self.cliques)) != len(self.cliques):
            raise QueryError("a workload lists a marginal twice; give it a larger weight instead")

    @classmethod
    def of(
        cls, domain: Domain, cliques: Iterable[Iterable[str]], weights: Sequence[Number] | None = None
    ) -> Workload:
        """The listed marginals, equally weighted unless weights are given."""
        named = tuple(domain.clique(names) for names in cliques)
        given = (1,) * len(named) if weights is None else weights
        return cls(domain, named, tuple(positive(weight, "a workload's weight") for weight in given))

    @classmethod
    def all_marginals(cls, domain: Domain, order: int) -> Workload:
        """Every marginal over `order` attributes."""
        if not 0 <= order <= len(domain):
            raise QueryError(f"a domain of {len(domain)} attributes has no {order}-way marginals")
        if (many := comb(len(domain), order)) > MOST_MARGINALS:
            raise QueryError(
                f"{len(domain)} attributes have {many:,} marginals of order {order}; a workload lists at most "
                f"{MOST_MARGINALS:,}. Take a lower order, or list the marginals that matter"
            )
        return cls.of(domain, combinations(domain.names, order))

    @property
    def queries(self) -> int:
        """|Q|: the number of linear queries, one for each cell, as an exact integer."""
        return sum(self.domain.size(clique) for clique in self.cliques)

    def __repr__(self) -> str:
        return f"Workload({len(self.cliques):,} marginals, {self.queries:,} queries)"

    def __len__(self) -> int:
        return len(self.cliques)

    def __iter__(self) -> Iterator[Clique]:
        return iter(self.cliques)


@dataclass(frozen=True)
class AllMarginals:
    """Every marginal over `order` attributes, of whatever domain it meets."""

    order: int

    def over(self, domain: Domain) -> Workload:
        return Workload.all_marginals(domain, self.order)


def marginals(order: int) -> AllMarginals:
    """All `order`-way marginals, to be taken over a project's domain."""
    return AllMarginals(order)
