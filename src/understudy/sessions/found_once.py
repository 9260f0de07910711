"""Numbers that take long to find and depend on their arguments alone: found once, and not while others wait.

Bands that are simulated, and the weights of a class, take a tenth of a second; a plan for which all of them are
known takes milliseconds. Plans of a session are made one at a time. So whoever plans lets go of the lock of plans
while such a number is found, and goes on; where somebody else was inside meanwhile, the plan is made anew.

Promise     What a plan says does not depend on where its numbers were found, and one that needs no new number
            waits for nobody who finds one.
Why         A number is a function of its arguments alone, and all that plans read is changed under their lock
            alone: where nobody was inside, the plan goes on as if it had never let go. Else it is given up, as if
            the question had been priced and not asked, and is made of what is known then.
Cost        Of several threads that need a number, one finds it. A plan that was given up is made twice.
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

MOST_TRIES = 16
"""How often a plan is made anew; the last time it finds its numbers while others wait."""

_here = local()


class Interrupted(Exception):
    """Somebody else was inside the lock of plans while a number was found: the plan has to be made anew."""


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
        """The function's result; raises `Interrupted` where a plan that needs it has to be made anew."""
        key = (args, tuple(kwargs.items()))
        is_known, found = self._known(key)
        if is_known:
            return found
        held: list[Found] = []  # the cache may forget it before it is read there
        find_apart(lambda: held.append(self._find(key, lambda: self._function(*args, **kwargs))))
        return held[0]

    def _find(self, key: Hashable, call: Callable[[], Found]) -> Found:
        with self._lock:
            finding = self._finding.setdefault(key, Lock())
        with finding:  # another thread may be finding it
            is_known, found = self._known(key)
            if not is_known:
                self.times += 1
                found = call()
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

    `plan` may be given up and called again, as if the question had been priced before. `before` is called under
    the lock each time before it, and never lets go of it.
    """
    for _ in range(MOST_TRIES):
        with lock:
            before()
            try:
                with _leaving(lock):
                    return plan()
            except Interrupted:
                continue
    with lock:
        before()
        return plan()


def find_apart(find: Callable[[], object]) -> None:
    """Find a number outside the lock of the plan that this thread makes, if it makes one."""
    lock: AskingLock | None = getattr(_here, "lock", None)
    if lock is None:
        find()
        return
    with _leaving(None):  # what the number needs is found with it
        nobody_entered = lock.without(find)
    if not nobody_entered:
        raise Interrupted


@contextmanager
def _leaving(lock: AskingLock | None) -> Generator[None]:
    """Have this thread let go of the lock where something takes long to find; of none with None."""
    before, _here.lock = getattr(_here, "lock", None), lock
    try:
        yield
    finally:
        _here.lock = before


_ALL: WeakSet[FoundOnce[..., Any]] = WeakSet()


def _after_fork_in_child() -> None:
    for function in list(_ALL):
        function.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
