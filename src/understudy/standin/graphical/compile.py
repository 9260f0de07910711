"""How loops are compiled.

Functions that call each other stand in one file: what is kept on disk is renewed when a function's own file
changes, and not when another does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Sums may be reordered for speed; infinities and NaN keep their meaning, for forbidden cells are log 0.
_RELAXED = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function as machine code, kept on disk between processes where any place for it can be written.

    numba looks beside the source and then in the user's cache; with neither (a read-only install without a home)
    it refuses, and the code is compiled afresh in each process instead.
    """
    try:
        machine_code: Any = numba.njit(cache=True, fastmath=_RELAXED)(function)
    except RuntimeError:
        machine_code = numba.njit(fastmath=_RELAXED)(function)
    return cast(Callable[Arguments, Result], machine_code)
