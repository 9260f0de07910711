"""One memory of what was said: a copy is the object itself, and another process goes on with its file.

scikit-learn copies what it is given and sends it to other processes. Two memories of one promise would count
every score once each, and the promise would cover half of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from secrets import token_hex
from typing import Any, Self
from weakref import WeakValueDictionary


class OneMemory:
    """An object with one memory: a copy shares it, and what is sent to another process opens the same file there.

    `made_of` are those arguments by their names, with X and y and a `path`; `is_repeatable` says that its noise
    would be drawn again, the same, in another process.
    """

    def __init__(self, made_of: dict[str, Any], *, is_repeatable: bool) -> None:
        self._made_of = made_of
        self._is_repeatable = is_repeatable
        self._token = token_hex(8)
        _LIVE[self._token] = self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """scikit-learn copies what it is given; there is one memory of what was said, so this is no copy."""
        return self

    def __reduce__(self) -> tuple[Callable[..., OneMemory], tuple[type[OneMemory], str, dict[str, Any]]]:
        """A holdout with a file goes to other processes with its rows, and all of them count in the file.

        Whoever can read what is sent, as a pickle in a file, can read the sealed rows. Without a file there would
        be two memories, so it is refused.
        """
        if self._made_of["path"] is None:
            raise TypeError(
                "a Holdout without a file cannot be sent to another process: every score must be counted in one "
                "place. Give it one, Holdout(…, path='holdout.db'), and n_jobs=2 works; or use threads "
                "(`joblib.parallel_backend('threading')`), or n_jobs=1"
            )
        if self._is_repeatable:
            raise TypeError(
                "a Holdout with a `noise` of its own cannot be sent to another process, which would draw the same "
                "noise again: leave `noise` out"
            )
        return _reopened, (type(self), self._token, self._made_of)


_LIVE: WeakValueDictionary[str, OneMemory] = WeakValueDictionary()
_KEPT: deque[OneMemory] = deque(maxlen=4)
"""Holdouts that this process has, by their tokens; and those that came from another one, for its next task."""


def _reopened(kind: Callable[..., OneMemory], token: str, made_of: dict[str, Any]) -> OneMemory:
    """A holdout that was sent: the one of this process, or one over the same rows and the same file."""
    found = _LIVE.get(token)
    if found is None:
        named = {key: value for key, value in made_of.items() if key not in ("X", "y")}
        found = kind(made_of["X"], made_of["y"], **named)
        found._token = token
        _LIVE[token] = found
        _KEPT.append(found)
    return found
