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
    """The marginals that a release is judged by: `cliques` of a `domain`, with positive `weights`, one for each.

    `Workload.of` makes one of listed cliques, and `Workload.all_marginals` of all with so many attributes. Its
    length is the number of marginals. Raises a `QueryError` where there is no marginal, or where one is listed
    twice.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    weights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.cliques:
            raise QueryError("a workload needs at least one marginal")
        if len(self.cliques) != len(self.weights):
            raise QueryError("a workload needs one weight for each marginal")
        if len(set(self.cliques)) != len(self.cliques):
            raise QueryError("a workload lists a marginal twice", remedy="give it a larger weight instead")

    @classmethod
    def of(
        cls, domain: Domain, cliques: Iterable[Iterable[str]], weights: Sequence[Number] | None = None
    ) -> Workload:
        """The marginals of a `domain` over the listed sets of attributes' names, `cliques`.

        `weights` are numbers above 0, one for each; without them all weigh the same. Raises a `QueryError` where
        none is listed, or one twice. Raises a `DomainError` for a name that the domain lacks, and a
        `ParameterError` for a weight that is not positive.
        """
        named = tuple(domain.clique(names) for names in cliques)
        given = (1,) * len(named) if weights is None else weights
        return cls(domain, named, tuple(positive(weight, "a workload's weight") for weight in given))

    @classmethod
    def all_marginals(cls, domain: Domain, order: int) -> Workload:
        """Every marginal of a `domain` over `order` attributes, equally weighted.

        Raises a `QueryError` where the domain has fewer attributes, or more than `MOST_MARGINALS` such marginals.

        >>> from understudy.domain.attribute import Boolean
        >>> Workload.all_marginals(Domain((Boolean(name="a"), Boolean(name="b"), Boolean(name="c"))), 2)
        Workload(3 marginals, 12 queries)
        """
        if not 0 <= order <= len(domain):
            attributes = "1 attribute" if len(domain) == 1 else f"{len(domain)} attributes"
            raise QueryError(
                f"a domain of {attributes} has no {order}-way marginals",
                remedy=f"take all-{len(domain)}-way, or a lower order",
            )
        if (many := comb(len(domain), order)) > MOST_MARGINALS:
            raise QueryError(
                f"{len(domain)} attributes have {many:,} marginals of order {order}",
                remedy=f"a workload lists at most {MOST_MARGINALS:,}. Take a lower order, or list the "
                "marginals that matter",
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
        """These marginals of a `domain`, as a `Workload`; raises as `Workload.all_marginals` does."""
        return Workload.all_marginals(domain, self.order)


def marginals(order: int) -> AllMarginals:
    """All marginals over `order` attributes of whatever domain they are taken of.

    `release` takes them for a workload, and `session` for a class of questions that is announced. Nothing is
    refused here: whoever takes them raises a `QueryError` where its domain has fewer attributes.
    """
    return AllMarginals(order)
