"""Numbers that take long to find and depend on their arguments alone: found once, and not while others wait.

Bands that are simulated, and the weights of a class, take a tenth of a second; a plan for which all of them are
known takes milliseconds. Plans of a session are made one at a time. So whoever plans finds no such number: the
plan ends with `Unfound`, the lock of plans is let go, the number is found, and the plan is made anew.

Promise     What a plan says does not depend on where its numbers were found, and one that needs no new number
            waits for nobody who finds one.
Why         A number is a function of its arguments alone, and whoever plans changes nothing before the plan is
            made: the plan that is made anew is the one that would have been made at once, of what is known then.
Cost        What comes before the number in a plan is done twice. Of several threads that need it, one finds it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from threading import Lock, local
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

from understudy.ledger.asking_lock import AskingLock

Given = ParamSpec("Given")
Found = TypeVar("Found")
Plan = TypeVar("Plan")

MOST_TRIES = 64
"""Numbers that one plan leaves its lock for; what it needs beyond them it finds while others wait."""

_here = local()


class Unfound(Exception):
    """A plan needs a number that nobody has found yet; `find` finds it."""

    def __init__(self, find: Callable[[], object]) -> None:
        super().__init__("a number that takes long to find is not known yet")
        self.find = find


class FoundOnce(Generic[Given, Found]):
    """A function whose last results are kept, each found by one thread; made by `found_once`."""

    def __init__(self, function: Callable[Given, Found], most: int) -> None:
        self._function = function
        self._most = most
        self.begin()
        _ALL.add(self)

    def begin(self) -> None:
        """Forget everything; `times` counts from here how often the function was called."""
        self.times = 0
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()
        self._finding: dict[Hashable, Lock] = {}

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Found:
        """The function's result; raises `Unfound` for whoever plans where it is not known."""
        key = (args, tuple(kwargs.items()))
        is_known, found = self._known(key)
        if is_known:
            return found
        if getattr(_here, "is_planning", False):
            raise Unfound(lambda: self(*args, **kwargs))
        with self._lock:
            finding = self._finding.setdefault(key, Lock())
        with finding:  # another thread may be finding it
            is_known, found = self._known(key)
            if not is_known:
                self.times += 1
                found = self._function(*args, **kwargs)
                self._keep(key, found)
        return found

    def _known(self, key: Hashable) -> tuple[bool, Any]:
        with self._lock:
            if key not in self._kept:
                return False, None
            self._kept.move_to_end(key)
            return True, self._kept[key]

    def _keep(self, key: Hashable, found: Any) -> None:
        with self._lock:
            self._kept[key] = found
            self._finding.pop(key, None)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def after_fork_in_child(self) -> None:
        """Wait for no thread of the parent's: what it was finding is found here anew."""
        self._lock, self._finding = Lock(), {}


def found_once(most: int) -> Callable[[Callable[Given, Found]], FoundOnce[Given, Found]]:
    """A decorator for functions that take long and depend on their arguments alone: the last `most` are kept."""
    return lambda function: FoundOnce(function, most)


def planned(lock: AskingLock, plan: Callable[[], Plan], *, before: Callable[[], None]) -> Plan:
    """Make a plan under its lock, which is let go while a number is found that takes long.

    `plan` may be called several times: nothing that it changes may matter before it returns. `before` is called
    under the lock each time before it, and is never broken off.
    """
    for _ in range(MOST_TRIES):
        try:
            with lock:
                before()
                with _planning():
                    return plan()
        except Unfound as missing:
            missing.find()
    with lock:
        before()
        return plan()


@contextmanager
def _planning() -> Generator[None]:
    """Have this thread end with `Unfound` where something takes long to find."""
    before, _here.is_planning = getattr(_here, "is_planning", False), True
    try:
        yield
    finally:
        _here.is_planning = before


_ALL: WeakSet[FoundOnce[..., Any]] = WeakSet()


def _after_fork_in_child() -> None:
    for function in list(_ALL):
        function.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
