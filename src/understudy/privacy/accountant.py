"""What a list of events costs together, worked out one event at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event

State = TypeVar("State")


class Accountant(Protocol[State]):
    """A deterministic function of the list of events, as a fold.

    The state is an immutable value. A family that is priced jointly keeps in it what a sum forgets (a curve for
    each neighbour pair, of which `cost` takes the maximum); `cost` must never fall when an event is added.
    """

    def start(self) -> State:
        """The state of an empty list."""
        ...

    def after(self, state: State, event: Event) -> State:
        """The state of the list with one more event; an event that has no price is refused."""
        ...

    def cost(self, state: State) -> Cost:
        """What the whole list costs."""
        ...


@dataclass(frozen=True, slots=True)
class Additive:
    """Prices add up: always valid, also when events are chosen after seeing answers (`Budget.total`)."""

    budget: Budget

    def start(self) -> Cost:
        return self.budget.total([])

    def after(self, state: Cost, event: Event) -> Cost:
        return state + _price(self.budget, event)  # type: ignore[operator]  # one currency throughout

    def cost(self, state: Cost) -> Cost:
        return state


@lru_cache(maxsize=4096)
def _price(budget: Budget, event: Event) -> Cost:
    """Real tables see the same few prices again and again, and every opening of a ledger prices them all."""
    return budget.price(event)
