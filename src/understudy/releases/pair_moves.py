"""The loops that move synthetic rows whose targets are pairs and columns (`pair_agreement`), compiled.

Where no target is larger than a pair, what a value of an attribute weighs for a row is a sum of one slope for each
of the row's other values. Those slopes stand side by side for the values of all other attributes: in a line for
each value. Adding up the lines of a row weighs all its moves at once, in about the time that it takes to try two
attributes alone (`row_moves`); after a move, two lines are exchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.standin.graphical.compile import compiled

ROWS_AT_ONCE = 256
"""Rows that are read together: those of a table stand attribute by attribute."""

ONE, MOST = np.float32(1), np.int16(32_767)

NOTHING = np.int64(0)
"""What a move gains that changes nothing. Of a plain 0 numba would compile for a constant, too (`row_moves`)."""


class PairTables(NamedTuple):
    """Where the targets of pairs and columns stand, and the lines of slopes.

    places        where the values of each attribute begin among those of all, and one number more: the end
    lines         where the lines of each attribute begin in the slopes, and the end: one for each of its values,
                  with the values of all attributes that it has a pair with
    length        of such a line
    own_runs      where the runs of each attribute begin, and the end: a run is a part of a line whose values stand
                  side by side in `places`, too
    runs          of each run where it begins among the values of all attributes, where in a line, and its length
    own           where the pairs of each attribute begin, and the end: each pair stands there once for the one and
                  once for the other of its attributes
    others        the other attribute of each pair
    cells         where the cells of a pair begin in `off`
    steps         how far a step of the own attribute reaches there
    other_steps   how far a step of the other one does
    inside        where the values of the other attribute begin in a line of the own one
    back          where the values of the own attribute begin in a line of the other one
    columns       where the cells of the column of each attribute begin in `off`; -1 where it is no target
    """

    places: NDArray[np.int64]
    lines: NDArray[np.int64]
    length: NDArray[np.int64]
    own_runs: NDArray[np.int64]
    runs: NDArray[np.int64]
    own: NDArray[np.int64]
    others: NDArray[np.int64]
    cells: NDArray[np.int64]
    steps: NDArray[np.int64]
    other_steps: NDArray[np.int64]
    inside: NDArray[np.int64]
    back: NDArray[np.int64]
    columns: NDArray[np.int64]


class PairLosses(NamedTuple):
    """How steep the losses of pairs and columns are, in the steps that slopes are told in.

    steep, most                of a pair, as it stands in `PairTables.own`: for each row that a cell is off, and at
                               most
    steep_column, most_column  the same of the column of each attribute
    least                      what a move of each attribute must gain more than: the row itself changes the cells
                               that it leaves and enters
    """

    steep: NDArray[np.float32]
    most: NDArray[np.float32]
    steep_column: NDArray[np.float32]
    most_column: NDArray[np.float32]
    least: NDArray[np.int64]


@compiled
def _slope(off, steep, most):
    """The slope of a cell's loss, as a whole number of steps."""
    return np.int16(min(max(off * steep, -most), most))


@compiled
def write_slopes(off, tables, losses, slopes, column_slopes):
    """Tell the slopes of all cells anew: each stands in the lines of both of its values."""
    places, lines, length, columns = tables.places, tables.lines, tables.length, tables.columns
    for a in range(columns.size):
        size = places[a + 1] - places[a]
        for h in range(tables.own[a], tables.own[a + 1]):
            b, steep, most, step = tables.others[h], losses.steep[h], losses.most[h], tables.other_steps[h]
            for u in range(size):
                begin, line = (
                    tables.cells[h] + u * tables.steps[h],
                    lines[a] + u * length[a] + tables.inside[h],
                )
                for v in range(places[b + 1] - places[b]):
                    slopes[line + v] = _slope(off[begin + v * step], steep, most)
        if columns[a] >= 0:
            steep, most = losses.steep_column[a], losses.most_column[a]
            for u in range(size):
                column_slopes[places[a] + u] = _slope(off[columns[a] + u], steep, most)


@compiled
def _add(weighed, line, a, tables, slopes):
    """Add the line of a value of attribute a to what the values of all others weigh."""
    runs, own_runs = tables.runs, tables.own_runs
    for r in range(own_runs[a], own_runs[a + 1]):
        count = runs[r, 2]
        found, told = weighed[runs[r, 0] : runs[r, 0] + count], slopes[line + runs[r, 1] :]
        for c in range(count):
            found[c] += told[c]


@compiled
def _take(weighed, line, a, tables, slopes):
    """Take the line of a value of attribute a away from what the values of all others weigh."""
    runs, own_runs = tables.runs, tables.own_runs
    for r in range(own_runs[a], own_runs[a + 1]):
        count = runs[r, 2]
        found, told = weighed[runs[r, 0] : runs[r, 0] + count], slopes[line + runs[r, 1] :]
        for c in range(count):
            found[c] -= told[c]


@compiled
def _best(weighed, row, places, least, barred):
    """The attribute and the place of the value by which a row gains most; an attribute of -1 where none gains."""
    attribute, place, most = NOTHING - 1, NOTHING - 1, NOTHING
    for a in range(row.size):
        low = MOST
        for v in range(places[a], places[a + 1]):
            low = min(low, MOST if barred[v] else weighed[v])
        gain = np.int64(weighed[places[a] + row[a]]) - least[a] - low
        if gain > most:
            attribute, most = a, gain
    if attribute >= 0:
        low = MOST
        for v in range(places[attribute], places[attribute + 1]):
            if weighed[v] < low and not barred[v]:
                low, place = weighed[v], v
    return attribute, place


@compiled
def _allowed(a, u, row, constrained):
    """Whether a row may have the value u of attribute a: whether all cells that it would be in may hold rows."""
    members, width, starts, strides = constrained.places
    held_at, held = constrained.held
    for h in range(held_at[a], held_at[a + 1]):
        t = held[h]
        at = starts[t]
        for k in range(width[t]):
            at += strides[t, k] * (u if members[t, k] == a else row[members[t, k]])
        if not constrained.allowed[at]:
            return False
    return True


@compiled
def _change(a, u, v, row, off, tables, losses, slopes, column_slopes, weighed):
    """Count a row under the value v of attribute a in place of u, and tell the slopes of these cells anew.

    What the values of other attributes weigh changes by whole lines, and is left to `move_in_pairs`.
    """
    lines, length = tables.lines, tables.length
    left, entered = tables.places[a] + u, tables.places[a] + v
    line, other_line = lines[a] + u * length[a], lines[a] + v * length[a]
    for h in range(tables.own[a], tables.own[a + 1]):
        b, steep, most = tables.others[h], losses.steep[h], losses.most[h]
        begin = tables.cells[h] + row[b] * tables.other_steps[h]
        from_cell, to_cell = begin + u * tables.steps[h], begin + v * tables.steps[h]
        across, back = tables.inside[h] + row[b], lines[b] + row[b] * length[b] + tables.back[h]
        off[from_cell] -= ONE
        off[to_cell] += ONE
        before, after = _slope(off[from_cell], steep, most), _slope(off[to_cell], steep, most)
        weighed[left] += before - slopes[line + across]
        weighed[entered] += after - slopes[other_line + across]
        slopes[line + across], slopes[back + u] = before, before
        slopes[other_line + across], slopes[back + v] = after, after
    if tables.columns[a] >= 0:
        steep, most = losses.steep_column[a], losses.most_column[a]
        off[tables.columns[a] + u] -= ONE
        off[tables.columns[a] + v] += ONE
        before = _slope(off[tables.columns[a] + u], steep, most)
        after = _slope(off[tables.columns[a] + v], steep, most)
        weighed[left] += before - column_slopes[left]
        weighed[entered] += after - column_slopes[entered]
        column_slopes[left], column_slopes[entered] = before, after


@compiled
def move_in_pairs(rows, start, looks, tries, off, tables, losses, slopes, column_slopes, constrained):
    """Look at rows one after another from `start` on, and make up to `tries` moves of each; how many were made.

    Each move is the one by which the row gains most, and the next row finds all cells as they are then.
    """
    attributes, places, lines, length = rows.shape[0], tables.places, tables.lines, tables.length
    block, weighed = np.empty((ROWS_AT_ONCE, attributes), np.int64), np.empty(places[attributes], np.int16)
    barred, limited, moved = np.zeros(places[attributes], np.bool_), constrained.held.tables.size > 0, 0
    for done in range(0, looks, ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, looks - done)
        for a in range(attributes):
            for i in range(count):
                block[i, a] = rows[a, (start + done + i) % rows.shape[1]]
        for i in range(count):
            row = block[i]
            for c in range(weighed.size):
                weighed[c] = column_slopes[c]
            for a in range(attributes):
                _add(weighed, lines[a] + row[a] * length[a], a, tables, slopes)
            made = 0
            while made < tries:
                a, place = _best(weighed, row, places, losses.least, barred)
                if a < 0:
                    break
                u, v = row[a], place - places[a]
                if limited and not _allowed(a, v, row, constrained):
                    barred[place] = True
                    continue
                _take(weighed, lines[a] + u * length[a], a, tables, slopes)
                _change(a, u, v, row, off, tables, losses, slopes, column_slopes, weighed)
                _add(weighed, lines[a] + v * length[a], a, tables, slopes)
                row[a] = v
                rows[a, (start + done + i) % rows.shape[1]] = v
                made += 1
            moved += made
            if limited:
                barred[:] = False
    return moved
