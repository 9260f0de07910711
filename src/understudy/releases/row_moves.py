"""The loops that count synthetic rows and move their values (`agreement`), compiled.

Tables of many targets stand in one array. What is read of a target while a block of rows is looked at is one table
of a few thousand numbers, which stays in the fast memory of a processor; places in it are 32-bit numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.releases.table_places import AttributeTables, TablePlaces
from understudy.standin.graphical.compile import compiled

MOST_BLOCK = 16_384
"""Rows that are looked at together, at most."""

LANES, FEW_CELLS = 4, 64
"""In so many lanes rows are counted in tables of few cells."""

TRIES = 2
"""Attributes of a row that are tried, those first whose cells have most rows too many."""

ONE, HALF = np.float32(1.0), np.float32(0.5)

NONE = np.int64(0)
"""Where a number begins that is counted and handed on.

Of a plain 0 numba would compile all that takes it twice, for the constant and for numbers. What a loop says is
compiled in less time than an array that is copied into another, or its `max`, by seconds.
"""

CHUNK = 1024
"""Rows whose places in a table are worked out at once, so that they stay in the fastest memory."""

MOST_PUSH, NO_PUSH = 32_000, -32_768
"""What slopes are scaled to, so that the sum over all targets that hold an attribute fits 16 bits; and less than
that, for what is not tried any more."""


class Targets(NamedTuple):
    """What rows should be like: tables of targets, in one array or in several copies of each target.

    off        how far each cell of all tables is off, in rows: the loops change it as they move rows
    weights    of each target's losses
    steepness  of each target's losses, in 1/rows
    first      the first table of each target, and one number more: the end
    owner      the target that each table is of
    places     where the tables stand in `off`
    held       the tables by whose cells the values of each attribute are chosen
    """

    off: NDArray[np.float32]
    weights: NDArray[np.float32]
    steepness: NDArray[np.float32]
    first: NDArray[np.int64]
    owner: NDArray[np.int64]
    places: TablePlaces
    held: AttributeTables


class Constrained(NamedTuple):
    """Which cells rows may enter: `allowed` for each cell of tables that stand at `places`."""

    allowed: NDArray[np.bool_]
    places: TablePlaces
    held: AttributeTables


class Looks(NamedTuple):
    """Which rows are looked at, and how many of them at a time.

    start     the row that comes first; after the last row comes the first of all
    rows      how many are looked at
    block     how many of them are compared with all targets at once
    together  how many choose their moves at once, before any of them moves, if all of a block are tried
    part      the part of a block that is tried, those rows that are most in the way
    least     what a move of each attribute must gain more than
    """

    start: int
    rows: int
    block: int
    together: int
    part: float
    least: NDArray[np.float32]


@compiled
def count_rows(rows, places, found):
    """Count the rows in the cells of all tables, a block of rows at a time.

    Tables of few cells are counted in `LANES` that are added up: a processor waits where it adds to one place
    again and again.
    """
    members, width, starts, strides = places
    at, lanes = np.empty(MOST_BLOCK, np.uint32), np.empty((LANES, FEW_CELLS), np.int64)
    for begin in range(0, rows.shape[1], at.size):
        count = min(at.size, rows.shape[1] - begin)
        for t in range(width.size):
            table = found[starts[t] :]
            for i in range(count):
                at[i] = 0
            for k in range(width[t]):
                line, step = rows[members[t, k], begin : begin + count], np.uint32(strides[t, k])
                for i in range(count):
                    at[i] += step * line[i]
            cells = (starts[t + 1] if t + 1 < width.size else found.size) - starts[t]
            if cells > FEW_CELLS:
                for i in range(count):
                    table[at[i]] += 1
            else:
                lanes[:, :cells] = 0
                for i in range(count):
                    lanes[i % LANES, at[i]] += 1
                for lane in range(LANES):
                    for cell in range(cells):
                        table[cell] += lanes[lane, cell]


@compiled
def _push(off, weight, steepness):
    """The slope of a cell's loss. In single precision, without branches: many are worked out at once."""
    return weight * min(max(off * steepness, -ONE), ONE)


@compiled
def move_rows(rows, sizes, asked, targets, constrained):
    """Look at rows as `asked` (a `Looks`), and move values of those in the way; how many values were moved.

    Rows stand in random order, so that those of a block, which are read one after another, are like any others.
    Which values are in the way is told by how far the cells were off before the block. Some of its rows then
    choose their moves at once, target by target, before any of them moves.
    """
    start, looks, length, together, part, least = asked
    attributes = rows.shape[0]
    block, push = np.empty((attributes, length), rows.dtype), np.empty((attributes, length), np.int16)
    at, top, tried = np.empty(length, np.uint32), np.empty(length, np.int16), np.empty(length, np.int64)
    chosen, own, best = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    widest = NONE
    for a in range(attributes):
        widest = max(widest, sizes[a])
    gain, chosen_rows = np.empty((length, widest), np.float32), np.empty((attributes, length), np.uint32)
    scale = _scale(attributes, targets)
    at_once, moved = max(int(together * part), 1), 0
    for done in range(0, looks, length):
        begin, count = (start + done) % rows.shape[1], min(length, looks - done)
        last = rows.shape[1] - begin
        for a in range(attributes):
            for i in range(count):
                block[a, i] = rows[a, begin + i if i < last else i - last]
        _compare(block, count, targets, scale, push)
        for i in range(count):
            top[i] = push[0, i]
        for a in range(1, attributes):
            for i in range(count):
                top[i] = max(top[i], push[a, i])
        lowest = _ranked(top, count, count - max(int(part * count), 1))
        worth = 0
        for i in range(count):
            if top[i] >= lowest:
                tried[worth] = i
                worth += 1
        for near in range(0, worth, at_once):
            far = min(near + at_once, worth)
            for _ in range(TRIES):
                for j in range(near, far):
                    i, chosen[j] = tried[j], -1
                    if top[i] > NO_PUSH:
                        chosen[j] = 0
                        for a in range(attributes):
                            if push[a, i] > push[chosen[j], i]:
                                chosen[j] = a
                        push[chosen[j], i] = NO_PUSH
                for a in range(attributes):
                    some = NONE
                    for j in range(near, far):
                        if chosen[j] == a:
                            own[some] = tried[j]
                            some += 1
                    if some:
                        _gather(block, own, some, chosen_rows)
                        _choose(a, least[a], chosen_rows, some, sizes, targets, constrained, gain, at, best)
                        some = _changed(own, best, some)
                        _gather(block, own, some, chosen_rows)
                        _move(a, chosen_rows, best, some, at, targets)
                        for j in range(some):
                            block[a, own[j]] = best[j]
                            rows[a, begin + own[j] if own[j] < last else own[j] - last] = best[j]
                            top[own[j]] = NO_PUSH
                        moved += some
    return moved


@compiled
def _ranked(numbers, count, rank):
    """The number of this rank, from 0 for the least, among the first so many 16-bit numbers.

    Their upper halves are counted, and then the lower halves of those that have the upper half in question. numba
    takes six seconds to compile what `np.partition` stands for.
    """
    many, high, low = np.zeros(256, np.int64), 0, 0
    for i in range(count):
        many[(numbers[i] >> 8) + 128] += 1
    while rank >= many[high]:
        rank -= many[high]
        high += 1
    many[:] = 0
    for i in range(count):
        if (numbers[i] >> 8) + 128 == high:
            many[numbers[i] & 255] += 1
    while rank >= many[low]:
        rank -= many[low]
        low += 1
    return ((high - 128) << 8) + low


@compiled
def table_sums(off, starts, first):
    """Of each target, the sum of what its cells are off, whatever their signs, and the sum of the squares."""
    found = np.zeros((2, first.size - 1), np.float64)
    for c in range(first.size - 1):
        t = first[c]
        for cell in off[starts[t] : starts[t + 1] if t + 1 < starts.size else off.size]:
            found[0, c] += abs(cell)
            found[1, c] += cell * cell
    return found


@compiled
def _scale(attributes, targets):
    """What slopes are multiplied by: no attribute has targets whose slopes add up to more than `MOST_PUSH`."""
    weights, first = targets.weights, targets.first
    members, width = targets.places.members, targets.places.width
    most = np.zeros(attributes, np.float32)
    for c in range(weights.size):
        for k in range(width[first[c]]):
            most[members[first[c], k]] += weights[c]
    largest = np.float32(1e-9)
    for a in range(attributes):
        largest = max(largest, most[a])
    return np.float32(MOST_PUSH) / largest


@compiled
def _compare(block, count, targets, scale, push):
    """How much the rows of a block are in the way of all targets, by each of their attributes, as 16-bit numbers.

    Targets that differ in their last attribute alone, which follow each other where targets are in order, have one
    place without it, and one sum for their other attributes. Of a table with fewer cells than the block has rows
    the slopes of all cells are worked out before.
    """
    off, weights, steepness, first = targets.off, targets.weights, targets.steepness, targets.first
    members, width, starts, strides = targets.places
    base, shared = np.zeros(count, np.uint32), np.zeros(count, np.int16)
    at, slope, slopes = np.empty(CHUNK, np.uint32), np.empty(CHUNK, np.int16), np.empty(count, np.int16)
    push[:, :count] = 0
    before = NONE - 1
    for c in range(weights.size):
        t = first[c]
        rest = width[t] - 1
        same = before >= 0 and width[before] == width[t]
        for k in range(rest):
            same = same and members[before, k] == members[t, k]
        if not same:
            if before >= 0:
                _share(shared, before, count, targets.places, push)
            base[:] = 0
            for k in range(rest):
                line, step = block[members[t, k]], np.uint32(strides[t, k] // strides[t, rest - 1])
                for i in range(count):
                    base[i] += step * np.uint32(line[i])
        before = t
        table = off[starts[t] : starts[t + 1] if t + 1 < starts.size else off.size]
        size, weight = np.uint32(strides[t, rest - 1] if rest else 0), weights[c] * scale
        ready = table.size <= count
        if ready:
            for cell in range(table.size):
                slopes[cell] = np.int16(_push(table[cell] - HALF, weight, steepness[c]))
        for begin in range(0, count, CHUNK):
            end = min(begin + CHUNK, count)
            near, line = base[begin:end], block[members[t, rest], begin:end]
            pushed, sums = push[members[t, rest], begin:end], shared[begin:end]
            for i in range(end - begin):
                at[i] = near[i] * size + np.uint32(line[i])
            if ready:
                for i in range(end - begin):
                    slope[i] = slopes[at[i]]
            else:
                for i in range(end - begin):
                    slope[i] = np.int16(_push(table[at[i]] - HALF, weight, steepness[c]))
            for i in range(end - begin):
                sums[i] += slope[i]
                pushed[i] += slope[i]
    if before >= 0:
        _share(shared, before, count, targets.places, push)


@compiled
def _share(shared, t, count, places, push):
    """Add what targets had in common to all attributes of table t but its last, and begin anew."""
    for k in range(places.width[t] - 1):
        pushed = push[places.members[t, k]]
        for i in range(count):
            pushed[i] += shared[i]
    shared[:] = 0


@compiled
def _place(t, without, block, count, members, width, strides, at):
    """Where the first `count` rows of a block stand in table t, as if their attribute `without` had the code 0.

    Returns how far a step of that attribute reaches.
    """
    reach = np.uint32(0)
    for i in range(count):
        at[i] = 0
    for k in range(width[t]):
        line, step = block[members[t, k]], np.uint32(strides[t, k])
        if members[t, k] != without:
            for i in range(count):
                at[i] += step * line[i]
        else:
            reach = step
    return reach


@compiled
def _gather(block, own, some, rows):
    """Some rows of a block, side by side."""
    for a in range(block.shape[0]):
        line, found = block[a], rows[a]
        for j in range(some):
            found[j] = line[own[j]]


@compiled
def _choose(a, least, block, some, sizes, targets, constrained, gain, at, best):
    """For each of some rows the code of attribute a that lowers the losses most, given its others; -1 for none.

    Where there are many rows, slopes are worked out for all cells of a table, with the codes of a side by side.
    """
    off, weights, steepness, owner = targets.off, targets.weights, targets.steepness, targets.owner
    members, width, starts, strides = targets.places
    held_at, held = targets.held
    size, stays, line = sizes[a], np.zeros(some, np.float32), np.empty(some, np.uint32)
    for j in range(some):
        for v in range(size):
            gain[j, v] = 0.0
    for h in range(held_at[a], held_at[a + 1]):
        t = held[h]
        weight, steep, cells = weights[owner[t]], steepness[owner[t]], strides[t, 0] * sizes[members[t, 0]]
        table = off[starts[t] : starts[t] + cells]
        step = _place(t, a, block, some, members, width, strides, at)
        for j in range(some):
            stays[j] += _push(table[at[j] + step * block[a, j]] - HALF, weight, steep)
        if cells <= some * size:  # the slopes of all cells are fewer than those that the rows ask for
            slopes = np.empty(cells, np.float32)
            for before in range(0, cells, step * size):
                for after in range(step):
                    begin = before + after * size
                    for v in range(size):
                        slopes[begin + v] = _push(table[before + v * step + after] + HALF, weight, steep)
            for j in range(some):
                line[j] = at[j] if step == 1 else at[j] - at[j] % step + at[j] % step * size
            for j in range(some):
                begin = line[j]
                for v in range(size):
                    gain[j, v] += slopes[begin + v]
        else:
            for j in range(some):
                begin = at[j]
                for v in range(size):
                    gain[j, v] += _push(table[begin + v * step] + HALF, weight, steep)
    if constrained.held.tables.size:
        _forbid(a, block, some, size, constrained, gain, at)
    for j in range(some):
        best[j], lowest = -1, stays[j] - least
        for v in range(size):
            if gain[j, v] < lowest and v != block[a, j]:
                best[j], lowest = v, gain[j, v]


@compiled
def _forbid(a, block, some, size, constrained, gain, at):
    """Have no row gain by a code of attribute a that puts it into a cell where no row may be."""
    allowed = constrained.allowed
    members, width, starts, strides = constrained.places
    held_at, held = constrained.held
    for h in range(held_at[a], held_at[a + 1]):
        t = held[h]
        step = _place(t, a, block, some, members, width, strides, at)
        for j in range(some):
            for v in range(size):
                if not allowed[starts[t] + at[j] + step * v]:
                    gain[j, v] = np.inf


@compiled
def _changed(own, best, some):
    """Keep the rows that have something better, in place; how many there are."""
    kept = 0
    for j in range(some):
        if best[j] >= 0:
            own[kept], best[kept] = own[j], best[j]
            kept += 1
    return kept


@compiled
def _move(a, block, best, some, at, targets):
    """Count some rows under other codes of attribute a, in all copies of the targets that hold it."""
    off, first, owner = targets.off, targets.first, targets.owner
    members, width, starts, strides = targets.places
    held_at, held = targets.held
    for h in range(held_at[a], held_at[a + 1]):
        c = owner[held[h]]
        for t in range(first[c], first[c + 1]):
            table = off[starts[t] :]
            step = _place(t, a, block, some, members, width, strides, at)
            for j in range(some):
                table[at[j] + step * block[a, j]] -= ONE
                table[at[j] + step * np.uint32(best[j])] += ONE
