"""The passes over all small databases, compiled. Import this module late: it brings in numba.

A database is a composition of m units into K classes. The last two classes are handled together: when j of their r
units move from the last to the last but one, each query's difference d = n·(count in y) - m·(count in x) either
stays (queries of the first group) or grows by n·j (the second group; complementing a query turns a fall into a
rise). So the largest |d| over all queries is the largest of

    c0              the largest |d| of the first group,
    high + n·j      from the largest d of the second group,
    -low - n·j      from its smallest d,

and all r + 1 databases are counted in constant time once those three are known. The units of the other classes
and r are a composition of m into K - 1 parts; from one to the next a few units move, and the differences follow by
one vector operation. A key holds a difference and, in its lowest bits, the query that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Keys = NDArray[np.int32 | np.int64]
Key = np.int32 | np.int64
Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def _compiled(function: Compiled) -> Compiled:
    """Compiled code is kept beside the source or in the user's cache, where there is one."""
    try:
        return cast("Compiled", numba.njit(cache=True, nogil=True)(function))  # called as the function is
    except RuntimeError:
        return cast("Compiled", numba.njit(nogil=True)(function))


@_compiled
def _advance(parts: Whole, state: Whole, keys: Keys, turns: Keys, moves: Keys) -> None:
    """The next composition [first non-empty part h of t units: one unit to part h + 1, the others to part 0]."""
    h = 0 if state[1] > 1 else state[0] + 1
    t = parts[h]
    parts[h] = 0
    parts[0] = t - 1
    parts[h + 1] += 1
    state[0] = h
    state[1] = t
    turn, move = turns[h], moves[h]
    for q in range(keys.size):
        keys[q] += t * turn[q] + move[q]


@_compiled
def _extremes(keys: Keys) -> tuple[Key, Key]:
    low = keys[0]
    high = keys[0]
    for q in range(keys.size):
        key = keys[q]
        low = min(low, key)
        high = max(high, key)
    return low, high


@_compiled
def _pieces(
    keys: Keys, group: int, rows: int, shift: int, rest: int
) -> tuple[Key, Key, int, Key | int, int, int]:
    """Where j of 0..rest falls: below `first` -low wins, from `last` on high does, and c0 between."""
    low, high = _extremes(keys[group:])
    still, steady = -1, 0
    if group > 0:
        least, most = _extremes(keys[:group])
        still, steady = int(most) >> shift, most
        if -(int(least) >> shift) > still:
            still, steady = -(int(least) >> shift), least
    falls, rises = int(low) >> shift, int(high) >> shift
    first = min(max(-((still + falls) // rows), 0), rest + 1)  # falling while j·n < -low - c0
    last = min(max((still - rises) // rows + 1, 0), rest + 1)  # rising once j·n > c0 - high
    if first > last:  # c0 never wins: the two lines meet
        meet = -(falls + rises) // (2 * rows) + 1
        first = last = min(max(meet, last), first)
    return low, high, still, steady, first, last


@_compiled
def tally(
    parts: Whole,
    keys: Keys,
    turns: Keys,
    moves: Keys,
    group: int,
    rows: int,
    shift: int,
    offsets: Whole,
    points: Whole,
    ranges: Whole,
) -> None:
    """Count every database at the pair (query, its count) that its level comes from.

    Into `points`, or as +1 and -1 at the ends of a range of counts into `ranges`.
    """
    mask = (1 << shift) - 1
    total = parts[0]
    rest_part = parts.size - 1
    state = np.array([-1, total])
    while True:
        rest = parts[rest_part]
        low, high, _, steady, first, last = _pieces(keys, group, rows, shift, rest)
        q = low & mask
        a = ((int(low) >> shift) + offsets[q]) // rows
        ranges[q, a] += 1
        ranges[q, a + first] -= 1
        q = steady & mask
        a = ((int(steady) >> shift) + offsets[q]) // rows
        points[q, a] += last - first
        q = high & mask
        a = ((int(high) >> shift) + offsets[q]) // rows
        ranges[q, a + last] += 1
        ranges[q, a + rest + 1] -= 1
        if rest == total:
            return
        _advance(parts, state, keys, turns, moves)


@_compiled
def find(
    parts: Whole,
    keys: Keys,
    turns: Keys,
    moves: Keys,
    group: int,
    rows: int,
    shift: int,
    level: int,
    rank: int,
    found: Whole,
) -> None:
    """The database of this rank among those of this level, into `found`: its parts, then j.

    The pass goes to the end wherever it finds it.
    """
    total = parts[0]
    rest_part = parts.size - 1
    state = np.array([-1, total])
    seen = 0
    while True:
        rest = parts[rest_part]
        low, high, still, _, first, last = _pieces(keys, group, rows, shift, rest)
        falls, rises = int(low) >> shift, int(high) >> shift
        down, up = (-falls - level) // rows, (level - rises) // rows
        on_down = 0 <= down < first and -falls - down * rows == level
        on_up = last <= up <= rest and rises + up * rows == level
        between = last - first if still == level else 0
        place = rank - seen
        if 0 <= place < on_down + between + on_up:
            for k in range(parts.size):  # an assignment of a slice takes longer to compile
                found[k] = parts[k]
            if on_down and place == 0:
                found[parts.size] = down
            elif place < on_down + between:
                found[parts.size] = first + place - on_down
            else:
                found[parts.size] = up
        seen += on_down + between + on_up
        if rest == total:
            return
        _advance(parts, state, keys, turns, moves)
