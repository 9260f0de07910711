"""What a list of events costs together, worked out one event at a time."""

from __future__ import annotations

from typing import Protocol, TypeVar

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
