"""Processes that die in the middle of what they do, as when the power goes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def dying(call: Callable[..., Any], lives: int, *, after: bool = False) -> Callable[..., Any]:
    """A function that may be called so many times; at the next call, or right after it, the process is gone."""
    left = [lives]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            return call(*args, **kwargs)
        if after:
            call(*args, **kwargs)
        os._exit(9)

    return wrapped
