"""A run that goes on under its name: what it bought before is paid, and only the rest is asked of the ledger.

A run that was finished has no rest, whatever it left of its price and whoever spent that since: where its terms,
its table and its method's steps are as they were, all of its steps come back from the ledger. Whether it was
finished is not known beforehand, since a method decides the next step by the answers to those before. So a run
whose rest cannot be paid goes through the steps that it bought, and is refused at the first one that it did not
buy, with nothing spent. A version of Understudy whose method begins with another step, or asks for a step that
was bought with other noise, meets a `RequestConflictError`: the ledger holds one answer for each request, and
sells no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import InsufficientBudgetError, RequestConflictError
from understudy.privacy.cost import Cost
from understudy.releases.purchases import purchases
from understudy.releases.run import Run


@dataclass(eq=False)
class ResumableRun(Run):
    """A run that may have bought some of its steps before: those are paid, and ask for nothing more."""

    _unpaid: InsufficientBudgetError | None = None
    """Why no step can be bought beside those that were; None where the ledger pays for the rest."""

    def check_affordable(self, worst: Cost) -> None:
        """Refuse before the first step what the ledger could not pay to the last one.

        A run that bought something before is not refused here but at the first step that it did not buy
        (`request`), as it may have bought them all.
        """
        self._unpaid = None
        try:
            super().check_affordable(worst)
        except InsufficientBudgetError as refusal:
            bought = purchases(self.curator.ledger, self.name).units
            if not bought:
                raise
            rest = type(worst)(max(worst.units - bought, 0))
            left = self.curator.ledger.available(self.analyst)
            if rest.units > left.units:
                self._unpaid = InsufficientBudgetError(
                    requested=rest.amount,
                    remaining=left.amount,
                    currency=rest.currency,
                    limit=refusal.limit,
                    remedy=f"This is the rest of {self.name}, which bought a part; another release may cost less",
                )

    def request(self, step: str) -> str:
        """The name of a step's request to the ledger.

        Raises a `RequestConflictError` where the run bought other steps before, but not its first one: the name is
        another release's. Raises an `InsufficientBudgetError` for a step that was not bought before where the
        ledger cannot pay for the rest of the run.
        """
        request = super().request(step)
        if self.steps and self._unpaid is None:
            return request
        before = purchases(self.curator.ledger, self.name)
        if not self.steps and before.requests and request not in before.requests:
            raise RequestConflictError(before.conflict(self.analyst))
        if self._unpaid is not None and request not in before.requests:
            raise self._unpaid
        return request
