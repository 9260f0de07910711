"""One sweep over the table of a clique in joint accounting: new messages, and new divisions of single counts.

Max-product message passing for an upper bound of a maximum (`privacy.joint`): what the table and the messages that
arrive say of each cell is taken together, and every attribute of the clique is given an equal share of its maxima
[Globerson, Jaakkola 2007: MPLP]. Before that, where it is asked for, each single count of the table is divided
anew between the rows of its region and everybody.

Division    A count of price p may cost the rows of its region w, and everybody (p - w)/2, for any w from 0 to p
            (`privacy.joint`, Why). Let I be the largest sum of a cell inside without w, and O of one outside. The
            bound is (p - w)/2 + max(I + w, O), which is least for w = O - I, cut to what is allowed.
Exact       All numbers are whole, so that whoever repeats a sweep finds the same, on any machine, compiled or not.
            An odd p - w is rounded up for everybody.
Cost        O(cells of the axes + table), and O(table) more for each count that is divided.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

Numbers = MutableSequence[int]
"""Whole numbers of 64 bits: an array where the loop is compiled, else a list."""

_LEAST = -(1 << 63)


def sweep(
    table: Numbers,
    sizes: tuple[int, int, int],
    axes: int,
    labels: Sequence[int],
    messages: Numbers,
    beliefs: tuple[Numbers, Numbers, Numbers],
    prices: Sequence[int],
    weights: Numbers,
    members: Sequence[int],
    memory: Numbers,
) -> tuple[int, int]:
    """Sweep in place; return the largest of what remains of the table, and what everybody pays more than before.

    `table` has three axes of `sizes` classes, of which the last ones have one class where a clique has fewer
    attributes than three. `labels` and `messages` belong to the cells of its `axes` attributes, one axis after the
    other, and `beliefs` to those of each. `prices` and `weights` are those of the counts to divide, and `members`
    says for each of them which classes of all axes it contains. `memory` is room for the table and, twice, for all
    classes.
    """
    first, second, third = sizes
    classes, size = first + second + third, first * second * third
    tops, most = size, size + classes  # where they begin in the memory, behind the table and all that arrives
    for name in range(size, size + 2 * classes):
        memory[name] = _LEAST
    cell, start = 0, tops
    for axis in range(3):
        if axis < axes:
            for belief in beliefs[axis]:
                value = belief - messages[cell]
                if value > memory[start + labels[cell]]:
                    memory[start + labels[cell]] = value
                cell += 1
        else:
            memory[start] = 0
        start += sizes[axis]
    at = 0
    for i in range(tops, tops + first):
        for j in range(tops + first, tops + first + second):
            for k in range(tops + first + second, tops + classes):
                memory[at] = table[at] + memory[i] + memory[j] + memory[k]
                at += 1
    raised = 0
    for count in range(len(prices)):
        start = count * classes
        inside, outside, at = _LEAST, _LEAST, 0
        for i in range(start, start + first):
            for j in range(start + first, start + first + second):
                pair = members[i] and members[j]
                for k in range(start + first + second, start + classes):
                    value = memory[at]
                    at += 1
                    if pair and members[k]:
                        if value > inside:
                            inside = value
                    elif value > outside:
                        outside = value
        price, old, new = prices[count], weights[count], 0
        if outside != _LEAST:
            new = min(max(outside - inside + old, 0), price)
        if new == old:
            continue
        weights[count] = new
        raised += (price - new + 1) // 2 - (price - old + 1) // 2
        at = 0
        for i in range(start, start + first):
            for j in range(start + first, start + first + second):
                pair = members[i] and members[j]
                for k in range(start + first + second, start + classes):
                    if pair and members[k]:
                        memory[at] += new - old
                        table[at] += new - old
                    at += 1
    at = 0
    for i in range(most, most + first):
        for j in range(most + first, most + first + second):
            for k in range(most + first + second, most + classes):
                value = memory[at]
                at += 1
                if value > memory[i]:
                    memory[i] = value
                if value > memory[j]:
                    memory[j] = value
                if value > memory[k]:
                    memory[k] = value
    cell, start = 0, tops
    for axis in range(axes):
        own = beliefs[axis]
        for place in range(len(own)):
            name = start + labels[cell]
            arriving = own[place] - messages[cell]
            own[place] = (arriving + memory[name + classes] - memory[name]) // axes
            messages[cell] = own[place] - arriving
            cell += 1
        start += sizes[axis]
    for name in range(tops, tops + first + second + third):
        memory[name] = _LEAST
    cell, start = 0, tops
    for axis in range(3):
        if axis < axes:
            for _ in beliefs[axis]:
                if -messages[cell] > memory[start + labels[cell]]:
                    memory[start + labels[cell]] = -messages[cell]
                cell += 1
        else:
            memory[start] = 0
        start += sizes[axis]
    largest, at = _LEAST, 0
    for i in range(tops, tops + first):
        for j in range(tops + first, tops + first + second):
            for k in range(tops + first + second, tops + classes):
                value = table[at] + memory[i] + memory[j] + memory[k]
                at += 1
                if value > largest:
                    largest = value
    return largest, raised


@lru_cache(maxsize=1)
def compiled() -> Callable[..., tuple[int, int]]:
    """The same loop as machine code. Whoever charges little does without it, and without the compiler's start."""
    import numba

    try:
        machine_code: Any = numba.njit(cache=True)(sweep)
    except RuntimeError:  # no place on disk can be written: compiled afresh in each process
        machine_code = numba.njit(sweep)
    return machine_code


@lru_cache(maxsize=1)
def load() -> None:
    """Load the compiled loop, which takes a third of a second of CPU time, before anybody waits for a sweep."""
    one, none = np.zeros(1, np.int64), np.zeros(0, np.int64)
    memory = np.zeros(7, np.int64)
    nobody = np.zeros(0, np.bool_)
    compiled()(one, (1, 1, 1), 1, one.copy(), one.copy(), (one.copy(),) * 3, none, none, nobody, memory)
