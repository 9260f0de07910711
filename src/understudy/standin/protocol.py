"""A stand-in answers in the table's place; an update algorithm mends it where it was found wrong.

Stand-ins are made of public numbers alone, so whatever is done with them is post-processing and costs nothing.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from understudy.query.linear import LinearQuery
from understudy.query.projection import Projection
from understudy.rational import Number


class StandIn(Projection, Protocol):
    """A projection that also answers queries itself, without expanding what it need not."""

    def answer(self, query: LinearQuery) -> float:
        """The rate of a query."""
        ...


Hypothesis = TypeVar("Hypothesis", bound=StandIn)


class DatabaseUpdate(Protocol[Hypothesis]):
    """A database update algorithm U: (D, Q, v) → D. [Lecture 7, Definition 2]

    Whenever |Q(D) - Q(Dᵗ)| ≥ α and |Q(D) - v| < α along a sequence of updates, there are at most B(α) of them
    (`most_updates`). Rates throughout: Q(D) and v are fractions of the rows.
    """

    def start(self) -> Hypothesis:
        """U(∅): the hypothesis before anything is known."""
        ...

    def update(self, hypothesis: Hypothesis, query: LinearQuery, value: float) -> Hypothesis:
        """The hypothesis after learning that the query's answer is near `value`.

        It may take over the memory of the old one, which must not be used again.
        """
        ...

    def most_updates(self, alpha: Number) -> int:
        """B(α)."""
        ...
