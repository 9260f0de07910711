"""What a session can buy: the interface of purchases, the request that pays for one, and what it brings.

There are nine kinds: the number of rows and a histogram (`histogram`), the counts of one question in one look
(`direct`), in two (`looks`) or beside what two others tell (`completing`), the count of a group (`small_groups`),
sums within an error of their own (`within_error`), a product class (`product_class`) and all marginals up to an
order (`marginals_class`). Everything that decides a purchase is public or was released before. Its plan is
written into the ledger in the transaction that pays for it, before the table is looked at: so any process can
carry it out, and the noise is independent of the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.ledger.interface import JournalStep
from understudy.mechanism.look import Look
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.knowledge import Knowledge


@dataclass(frozen=True)
class PurchaseRequest:
    """The name that a purchase is charged under, the analyst who pays, and the step written with the debit.

    Promise     A name is charged once. Under a name that was charged before, the same numbers come back for
                nothing.
    Why         The ledger keeps a released answer with its request, and the debit and the step are one
                transaction.

    Without a `step` the purchase stands in the journal already, and is carried out or read back.
    """

    name: str
    analyst: str
    step: JournalStep | None = None

    def measure(self, curator: Curator, marginal: Marginal, price: Price, *, certain: bool = False) -> Answer:
        """Noisy counts of a marginal's cells at a price, and what the ledger charged for them.

        With `certain` the noise is bounded.

        Raises an `InsufficientBudgetError`, or an `OvertakenError` where the step is no longer the next; then
        nothing was written or charged.
        """
        prepared = curator.calibration.prepare([marginal], price, certain=certain)
        return curator.perform(prepared, request=self.name, analyst=self.analyst, step=self.step)[0]

    def run(self, curator: Curator, look: Look) -> tuple[Any, Cost]:
        """What a look releases, and what the ledger charged for it. Raises as `measure` does."""
        paid = curator._buy(look, request=self.name, analyst=self.analyst, step=self.step)
        return paid.released, paid.debit.cost


@dataclass(frozen=True, eq=False)
class PurchaseResult:
    """What the ledger charged for a purchase; the marginal and its answer too, where it is for one question."""

    cost: Cost
    marginal: Marginal | None = None
    answer: Answer | None = None


class Purchase(Protocol):
    """One purchase: `kind` and `plain` are what the ledger keeps of it, and `read` of its class reads them back.

    Promise     The band that the purchase adds to the knowledge holds with probability 1 - `share`, whatever was
                released before and whatever is asked later.
    Cost        `event`, charged once.
    """

    kind: ClassVar[str]

    @property
    def share(self) -> float:
        """The part of β, as a probability, that the band of the purchase may fail with."""
        ...

    def plain(self) -> dict[str, Any]:
        """The plan of the purchase in plain values, as the ledger keeps it beside its kind."""
        ...

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """What of the band takes long to find, in plain values: kept with the plan, so that nobody finds it again.

        It follows from the plan, and `read` takes it where it is there. Nothing for most kinds.
        """
        ...

    def event(self, calibrator: Calibrator) -> Event:
        """The event that will be charged."""
        ...

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge the request, look at the table, and add what was released to the knowledge.

        Under a request that was charged before, the same numbers are read back for nothing. Raises an
        `InsufficientBudgetError` where the budget cannot pay and an `OvertakenError` where the request's step is
        no longer the next one; then nothing was written or charged.
        """
        ...
