"""One soft sweep over the tables of all cliques in joint accounting: rule 5's messages and divisions of counts.

`message_passing` gives every attribute a share of the maxima of a clique, and divides a count where the largest
sums inside and outside of its region are equal. Taken one after the other such steps get stuck where several of
them would have to be made at once: a count whose region holds one of two largest cells is left as it is. Here
maxima are soft: of values v, max v + τ·ln Σ exp((v - max v)/τ), where the τ is a small part of the bound. They
move with every value that is near the largest, and the bound comes much closer to the least one.
[soft or entropic message passing: Johnson, Malioutov, Willsky 2007; Hazan, Shashua 2010]

Soundness   The bound holds for any messages and any divisions (`privacy.joint`): how they were found, and how
            coarsely exp and ln were taken, costs accuracy alone. The `largest` that a sweep leaves is a hard
            maximum.
Division    Of a count of price p cells inside pay w, and everybody (p - w)/2, for a w from 0 to p. w is moved by
            τ·ln(outside/inside), of the masses Σ exp((v - max v)/τ) outside and inside: where these are equal, it
            stays. Where one of them is too small to be told, w is moved by a quarter of the difference of the
            largest values: what is far off comes near in a few sweeps, and no count takes all at once.
Exact       All numbers are whole: exp and ln are read from tables of whole numbers (`POWERS`, `LOGS`), masses are
            in 2^-16, and τ is a power of two. So whoever repeats a sweep finds the same, on any machine.
Cost        O(cells of the axes + table) for each clique, and for each count as many steps as its table has classes
            and its region numbers in the table: the mass outside is what is left of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp, log
from typing import Any

import numpy as np

from understudy.privacy.message_passing import FIELDS, Numbers

STEPS = 16
"""Masses are told apart in steps of a 16th of the temperature,"""

REACH = 11 * STEPS
"""from 11 temperatures below the largest value, where the mass is less than one unit, to 11 above it."""

POWERS = tuple(round((1 << 16) * exp(-step / STEPS)) for step in range(-REACH, REACH))
"""The mass of a value that is so many steps, less REACH, below the largest one."""

LEAST_MASS = 64
"""A smaller mass is not told from its largest value."""

FINE = 256
"""Logarithms are in parts of so many."""

LOGS = tuple(round(FINE * log(1 + (part + 0.5) / 64)) for part in range(64))
"""ln of a number from 1 to 2, by its first six binary places."""

DOUBLINGS = tuple(round(FINE * log(2) * power) for power in range(63))
"""ln of a power of two."""

LEAST_SHIFT = 4
"""A step is at least 2^4 units, so that a FINE-th of the temperature is one at least."""

_LEAST = -(1 << 63)


def shift_of(bound: int, soft: int) -> int:
    """The binary logarithm of a step at a temperature between 2^-soft and 2^(1 - soft) of a bound."""
    return max(LEAST_SHIFT, bound.bit_length() - soft - LEAST_SHIFT)


def sweep(
    cliques: Sequence[int],
    tables: Numbers,
    labels: Sequence[int],
    messages: Numbers,
    beliefs: Numbers,
    prices: Sequence[int],
    weights: Numbers,
    members: Sequence[int],
    largest: Numbers,
    memory: Numbers,
    divide: int,
    shift: int,
    powers: Sequence[int],
    logs: Sequence[int],
    doublings: Sequence[int],
) -> int:
    """Sweep in place, and write the largest of what remains of each table; return what everybody pays more.

    The arguments are those of `message_passing.sweep`, beside the size of a step, 2^shift, and the tables of this
    module. `memory` is room for the largest table twice and, four times, for all its classes.
    """
    table, cells, counts, member, everybody = 0, 0, 0, 0, 0
    for clique in range(len(largest)):
        at = clique * FIELDS
        axes, first, second, third, some = (
            cliques[at],
            cliques[at + 1],
            cliques[at + 2],
            cliques[at + 3],
            cliques[at + 4],
        )
        classes, size = first + second + third, first * second * third
        masses, tops = size, 2 * size  # where they begin in the memory, behind the values
        most, sums, own_classes = tops + classes, tops + 2 * classes, tops + 3 * classes
        for name in range(tops, sums):
            memory[name] = _LEAST
        for name in range(sums, sums + classes):
            memory[name] = 0
        cell, start = cells, tops
        for axis in range(3):
            if axis < axes:
                own = cliques[at + 8 + axis]
                for place in range(own, own + cliques[at + 5 + axis]):
                    value = beliefs[place] - messages[cell]
                    if value > memory[start + labels[cell]]:
                        memory[start + labels[cell]] = value
                    cell += 1
            else:
                memory[start] = 0
            start += cliques[at + 1 + axis]
        here, peak = 0, _LEAST
        for i in range(tops, tops + first):
            for j in range(tops + first, tops + first + second):
                for k in range(tops + first + second, tops + classes):
                    value = tables[table + here] + memory[i] + memory[j] + memory[k]
                    memory[here] = value
                    if value > peak:
                        peak = value
                    here += 1
        whole, here = 0, 0
        for i in range(most, most + first):
            for j in range(most + first, most + first + second):
                for k in range(most + first + second, most + classes):
                    value = memory[here]
                    below = (peak - value) >> shift
                    mass = powers[REACH + below] if below < REACH else 0
                    memory[masses + here] = mass
                    whole += mass
                    here += 1
                    if value > memory[i]:
                        memory[i] = value
                    if value > memory[j]:
                        memory[j] = value
                    if value > memory[k]:
                        memory[k] = value
        for count in range(some * divide):
            in_first = member + count * first
            in_second = member + some * first + count * second
            in_third = member + some * (first + second) + count * third
            rows = own_classes
            for name in range(first):
                if members[in_first + name]:
                    memory[rows], rows = name * second * third, rows + 1
            columns = places = rows
            for name in range(second):
                if members[in_second + name]:
                    memory[columns], columns = name * third, columns + 1
            places = columns
            for name in range(third):
                if members[in_third + name]:
                    memory[places], places = name, places + 1
            inside, top = 0, _LEAST
            for i in range(own_classes, rows):
                for j in range(rows, columns):
                    for k in range(columns, places):
                        here = memory[i] + memory[j] + memory[k]
                        inside += memory[masses + here]
                        if memory[here] > top:
                            top = memory[here]
            price, old = prices[counts + count], weights[counts + count]
            new = 0
            if (rows - own_classes) * (columns - rows) * (places - columns) < size:
                more = 0
                if min(inside, whole - inside) >= LEAST_MASS:
                    for sign in range(-1, 2, 2):
                        mass = inside if sign < 0 else whole - inside
                        power = 0
                        while mass >> power > 1:
                            power += 1
                        more += sign * (doublings[power] + logs[(mass << 6 >> power) - 64])
                    more <<= shift - LEAST_SHIFT
                else:  # one side is far below the other: the difference of their largest values
                    outside = _LEAST
                    for name in range(first):
                        if not members[in_first + name] and memory[most + name] > outside:
                            outside = memory[most + name]
                    for name in range(second):
                        if not members[in_second + name] and memory[most + first + name] > outside:
                            outside = memory[most + first + name]
                    for name in range(third):
                        if not members[in_third + name] and memory[most + first + second + name] > outside:
                            outside = memory[most + first + second + name]
                    more = (outside - top) >> 2
                new = min(max(old + more, 0), price)
            if new == old:
                continue
            weights[counts + count] = new
            everybody += (price - new + 1) // 2 - (price - old + 1) // 2
            for i in range(own_classes, rows):
                for j in range(rows, columns):
                    for k in range(columns, places):
                        here = memory[i] + memory[j] + memory[k]
                        tables[table + here] += new - old
                        memory[here] += new - old
                        below = (peak - memory[here]) >> shift
                        mass = powers[REACH + max(below, -REACH)] if below < REACH else 0
                        whole += mass - memory[masses + here]
                        memory[masses + here] = mass
        for name in range(most, most + classes):
            memory[name] = _LEAST
        here = 0
        for i in range(first):
            for j in range(first, first + second):
                for k in range(first + second, classes):
                    value, mass = memory[here], memory[masses + here]
                    here += 1
                    if value > memory[most + i]:
                        memory[most + i] = value
                    if value > memory[most + j]:
                        memory[most + j] = value
                    if value > memory[most + k]:
                        memory[most + k] = value
                    memory[sums + i] += mass
                    memory[sums + j] += mass
                    memory[sums + k] += mass
        for name in range(classes):
            mass = memory[sums + name]
            if mass >= LEAST_MASS:
                power = 0
                while mass >> power > 1:
                    power += 1
                more = doublings[power] + logs[(mass << 6 >> power) - 64] - doublings[16]
                memory[most + name] = peak + (more << (shift - LEAST_SHIFT))
        cell, start = cells, tops
        for axis in range(axes):
            own = cliques[at + 8 + axis]
            for place in range(own, own + cliques[at + 5 + axis]):
                name = start + labels[cell]
                arriving = beliefs[place] - messages[cell]
                beliefs[place] = (arriving + memory[name + classes] - memory[name]) // axes
                messages[cell] = beliefs[place] - arriving
                cell += 1
            start += cliques[at + 1 + axis]
        for name in range(tops, tops + classes):
            memory[name] = _LEAST
        cell, start = cells, tops
        for axis in range(3):
            if axis < axes:
                for _ in range(cliques[at + 5 + axis]):
                    if -messages[cell] > memory[start + labels[cell]]:
                        memory[start + labels[cell]] = -messages[cell]
                    cell += 1
            else:
                memory[start] = 0
            start += cliques[at + 1 + axis]
        top, here = _LEAST, 0
        for i in range(tops, tops + first):
            for j in range(tops + first, tops + first + second):
                for k in range(tops + first + second, tops + classes):
                    value = tables[table + here] + memory[i] + memory[j] + memory[k]
                    here += 1
                    if value > top:
                        top = value
        largest[clique] = top
        table, cells = table + size, cell
        counts, member = counts + some, member + some * classes
    return everybody


@lru_cache(maxsize=1)
def compiled() -> Callable[..., int]:
    """The same loop as machine code."""
    import numba

    try:
        machine_code: Any = numba.njit(cache=True)(sweep)
    except RuntimeError:  # no place on disk can be written: compiled afresh in each process
        machine_code = numba.njit(sweep)
    return machine_code


_ARRAYS = tuple(np.array(numbers, np.int64) for numbers in (POWERS, LOGS, DOUBLINGS))


def sweep_with(given: tuple[Any, ...], shift: int, *, fast: bool) -> int:
    """The loop with its tables, as machine code or not."""
    loop: Any = compiled() if fast else sweep
    tables: tuple[Any, ...] = _ARRAYS if fast else (POWERS, LOGS, DOUBLINGS)
    return int(loop(*given, shift, *tables))
