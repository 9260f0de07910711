"""The session of a served table: its promise, and questions that are asked within it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from understudy.client.told import ServerQuote
from understudy.pages import notebook

if TYPE_CHECKING:
    from understudy.client.remote_table import RemoteTable, Told


@dataclass(frozen=True, repr=False)
class RemoteSession:
    """The session of a served table in which questions without a price are asked.

    name          of the session
    is_shared     whether all analysts share it, and what one bought all know
    alpha         the promised half-width of every count, as a part of all rows
    width         the same in people
    beta          the probability with which some answer of the session is not within it
    queries       how many questions were expected when it was opened
    purchases     how often something was bought in it
    contradicted  whether what was released contradicts itself, which beta allows for
    """

    name: str
    is_shared: bool
    alpha: float
    beta: float
    queries: int
    width: int
    purchases: int
    contradicted: bool
    _table: RemoteTable = field(repr=False, compare=False)

    @classmethod
    def from_plain(cls, table: RemoteTable, plain: Mapping[str, Any]) -> RemoteSession:
        """The session of a `table` in a server's reply, `plain`."""
        same = ("name", "alpha", "beta", "queries", "width", "purchases", "contradicted")
        return cls(**{name: plain[name] for name in same}, is_shared=plain["shared"], _table=table)

    def ask(
        self,
        question: str,
        *,
        error: float | None = None,
        most: float | None = None,
        uncertified: bool = True,
        why: str = "",
        request: str | None = None,
        wait: bool | float = False,
    ) -> Told:
        """Answer a `question` within the promise of the session, as `RemoteTable.ask` does without a price.

        With an `error`, in people or in the unit of the numbers, it is within that; see `Session.ask`. `most`,
        `uncertified`, `why`, `request` and `wait` are those of `RemoteTable.ask`, and so is what is raised. What
        the question buys is charged to the table's budget; what follows from earlier purchases is free.
        """
        return self._table.ask(
            question,
            error=error,
            in_session=error is not None,
            most=most,
            uncertified=uncertified,
            why=why,
            request=request,
            wait=wait,
        )

    def price(self, question: str, *, error: float | None = None) -> ServerQuote:
        """The most that a `question` would cost in the session at this moment; nothing is asked or charged.

        `error` is that of `ask`. Returns a `ServerQuote`. Raises as `RemoteTable.quote` does.
        """
        return self._table.quote(question, error=error, in_session=error is not None)

    def __repr__(self) -> str:
        whose = "shared" if self.is_shared else "own"
        so_far = f"± {self.width:,} people, {self.purchases:,} purchases"
        return f"RemoteSession({self._table.name!r}, {whose}, {so_far})"

    def _repr_html_(self) -> str:
        sure = notebook.certainty(self.beta)
        known = {
            "promise": f"every answer within {self.width:,} people, all with probability {sure}",
            "shared": "by all analysts: what one bought, all know" if self.is_shared else "with nobody",
            "so far": f"{self.purchases:,} purchases",
        }
        contradiction = "What was released contradicts itself: a band failed, which beta allows for."
        parts = [notebook.warning(contradiction)] if self.contradicted else []
        return notebook.panel(f"Session of {self._table.name}", notebook.facts(known), *parts)
