"""One sweep over the tables of all cliques in joint accounting: new messages, and new divisions of single counts.

Max-product message passing for an upper bound of a maximum (`privacy.joint`): one clique after the other, what its
table and the messages that arrive say of each cell is taken together, and every attribute of the clique is given
an equal share of its maxima [Globerson, Jaakkola 2007: MPLP]. Before that, where it is asked for, each single
count of the table is divided anew between the rows of its region and everybody.

Division    A count of price p may cost the rows of its region w, and everybody (p - w)/2, for any w from 0 to p
            (`privacy.joint`, Why). Let I be the largest sum of a cell inside without w, and O of one outside. The
            bound is (p - w)/2 + max(I + w, O), which is least for w = O - I, cut to what is allowed.
Exact       All numbers are whole, so that whoever repeats a sweep finds the same, on any machine, compiled or not.
            An odd p - w is rounded up for everybody.
Cost        O(cells of the axes + table) for each clique, and O(table) more for each count that is divided. All
            cliques are swept by one call: most are small, and a call for each would take longer than its sweep.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from functools import lru_cache
from typing import Any

Numbers = MutableSequence[int]
"""Whole numbers of 64 bits: an array where the loop is compiled, else a list."""

FIELDS = 11
"""How many numbers describe a clique: how many attributes it has; along each of three axes the number of classes;
the number of its counts; along each axis the number of cells, and where the beliefs of its attribute begin."""

_LEAST = -(1 << 63)


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
) -> int:
    """Sweep in place, and write the largest of what remains of each table; return what everybody pays more.

    `cliques` are described by `FIELDS` numbers each, and all else that is theirs lies one clique after the other.
    A table has three axes, of which the last ones have one class, and no cells, where a clique has fewer than
    three attributes. `labels` and `messages` belong to the cells of its attributes, one axis after the other;
    `beliefs` to the cells of all attributes, which cliques share. `prices` and `weights` are those of its counts,
    which are divided anew if `divide` is 1 and not 0, and `members` says, one axis after the other, for each count
    which classes of the axis it contains. `memory` is room for the largest table and, twice, for all its classes.
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
        tops, most = (
            size,
            size + classes,
        )  # where they begin in the memory, behind the table and all that arrives
        for name in range(size, size + 2 * classes):
            memory[name] = _LEAST
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
        here = 0
        for i in range(tops, tops + first):
            for j in range(tops + first, tops + first + second):
                for k in range(tops + first + second, tops + classes):
                    memory[here] = tables[table + here] + memory[i] + memory[j] + memory[k]
                    here += 1
        for count in range(some * divide):
            in_first = member + count * first
            in_second = member + some * first + count * second
            in_third = member + some * (first + second) + count * third
            inside, outside, here = _LEAST, _LEAST, 0
            for i in range(in_first, in_first + first):
                for j in range(in_second, in_second + second):
                    pair = members[i] and members[j]
                    for k in range(in_third, in_third + third):
                        value = memory[here]
                        here += 1
                        if pair and members[k]:
                            if value > inside:
                                inside = value
                        elif value > outside:
                            outside = value
            price, old, new = prices[counts + count], weights[counts + count], 0
            if outside != _LEAST:
                new = min(max(outside - inside + old, 0), price)
            if new == old:
                continue
            weights[counts + count] = new
            everybody += (price - new + 1) // 2 - (price - old + 1) // 2
            here = 0
            for i in range(in_first, in_first + first):
                for j in range(in_second, in_second + second):
                    pair = members[i] and members[j]
                    for k in range(in_third, in_third + third):
                        if pair and members[k]:
                            memory[here] += new - old
                            tables[table + here] += new - old
                        here += 1
        here = 0
        for i in range(most, most + first):
            for j in range(most + first, most + first + second):
                for k in range(most + first + second, most + classes):
                    value = memory[here]
                    here += 1
                    if value > memory[i]:
                        memory[i] = value
                    if value > memory[j]:
                        memory[j] = value
                    if value > memory[k]:
                        memory[k] = value
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
    """The same loop as machine code. Whoever charges little does without it, and without the compiler's start."""
    import numba

    try:
        machine_code: Any = numba.njit(cache=True)(sweep)
    except RuntimeError:  # no place on disk can be written: compiled afresh in each process
        machine_code = numba.njit(sweep)
    return machine_code


def is_loaded() -> bool:
    """Whether the compiler was loaded before, so that nobody waits for it any more."""
    return compiled.cache_info().currsize > 0
