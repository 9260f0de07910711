"""The loops over a dense histogram, compiled. Import this module late: it brings in numba.

What a query says about a row of cells is one of a few patterns over the columns; `ids` names it, -1 where there is
nothing to do. `spans` are the ranges of columns where any pattern has something to say, so that the rest is never
read; a pattern that is `flat` says the same in all columns of a span (`layout.Patterns`). Kernels take these four
as one tuple (ids, values, spans, flat), and a `window` of cells as (first row, row after the last, first column,
column after the last).

Every kernel releases the interpreter's lock and works on some rows and columns, so that plain threads share a
pass: numba's own thread pools may not be entered from two threads at once, and a server does that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

# Sums may be reordered, which vectorises them; infinities and not-a-numbers keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}

BLOCK = 2**15
"""Cells of a block that is still in the cache when it is read again."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, compiled when it is first called, and kept for the next process."""
    try:
        return numba.njit(cache=True, nogil=True, fastmath=REORDER)(function)
    except RuntimeError:  # no folder that can be written to: compile in each process
        return numba.njit(nogil=True, fastmath=REORDER)(function)


@compiled
def _sum(row):
    total = 0.0
    for j in range(row.size):
        total += np.float64(row[j])
    return total


@compiled
def _dot(row, pattern):
    total = 0.0
    for j in range(row.size):
        total += np.float64(row[j]) * pattern[j]
    return total


@compiled
def _scale(row, factors, floor):
    """A cell above the floor stops there, one below it does not grow."""
    for j in range(row.size):
        old = row[j]
        new = old * factors[j]
        row[j] = new if new > floor else min(old, floor)


@compiled
def _scale_flat(row, factor, floor):
    for j in range(row.size):
        old = row[j]
        new = old * factor
        row[j] = new if new > floor else min(old, floor)


@compiled
def _scale_counting(row, factors, floor):
    """`_scale`, and what the row grew by."""
    grown = 0.0
    for j in range(row.size):
        old = row[j]
        new = old * factors[j]
        new = new if new > floor else min(old, floor)
        row[j] = new
        grown += np.float64(new - old)
    return grown


@compiled
def _scale_flat_counting(row, factor, floor):
    grown = 0.0
    for j in range(row.size):
        old = row[j]
        new = old * factor
        new = new if new > floor else min(old, floor)
        row[j] = new
        grown += np.float64(new - old)
    return grown


@compiled
def _scale_dot(row, factors, floor, pattern):
    """`_scale_counting`, and the dot product of the new row with a pattern."""
    grown = 0.0
    total = 0.0
    for j in range(row.size):
        old = row[j]
        new = old * factors[j]
        new = new if new > floor else min(old, floor)
        row[j] = new
        grown += np.float64(new - old)
        total += np.float64(new) * pattern[j]
    return grown, total


@compiled
def mass(cells, window):
    """The sum of the cells."""
    first, last, left, right = window
    total = 0.0
    for r in range(first, last):
        total += _sum(cells[r, left:right])
    return total


@compiled
def answer(cells, window, asked):
    """Σ weight · cell over the window, `asked` being the weights."""
    first, last, left, right = window
    ids, weights, spans, flat = asked
    total = 0.0
    for r in range(first, last):
        k = ids[r]
        if k >= 0:
            for s in range(spans.shape[0]):
                a, b = max(left, spans[s, 0]), min(right, spans[s, 1])
                if a < b and flat:
                    total += _sum(cells[r, a:b]) * weights[k, a]
                elif a < b:
                    total += _dot(cells[r, a:b], weights[k, a:b])
    return total


@compiled
def scale(cells, window, said, floor, counting):
    """Multiply in place by the factors that are `said`; if `counting`, what the mass grew by."""
    first, last, left, right = window
    ids, factors, spans, flat = said
    grown = 0.0
    for r in range(first, last):
        k = ids[r]
        if k >= 0:
            for s in range(spans.shape[0]):
                a, b = max(left, spans[s, 0]), min(right, spans[s, 1])
                if a >= b:
                    continue
                if counting and flat:
                    grown += _scale_flat_counting(cells[r, a:b], factors[k, a], floor)
                elif counting:
                    grown += _scale_counting(cells[r, a:b], factors[k, a:b], floor)
                elif flat:
                    _scale_flat(cells[r, a:b], factors[k, a], floor)
                else:
                    _scale(cells[r, a:b], factors[k, a:b], floor)
    return grown


@compiled
def scale_then_answer(cells, window, said, floor, counting, asked, joined):
    """`scale`, and `answer` of the new cells, block by block: the answer finds each block in the cache.

    Where they are `joined` (one span, the same for both, and neither flat), one loop does both.
    """
    first, last, left, right = window
    grown = 0.0
    total = 0.0
    block = max(1, BLOCK // (right - left))
    for r in range(first, last, block):
        part = (r, min(r + block, last), left, right)
        if joined:
            more, found = _joined(cells, part, said, floor, asked)
        else:
            more = scale(cells, part, said, floor, counting)
            found = answer(cells, part, asked)
        grown += more
        total += found
    return grown, total


@compiled
def _joined(cells, window, said, floor, asked):
    first, last, left, right = window
    ids, factors, spans, _ = said
    next_ids, weights, _, _ = asked
    grown = 0.0
    total = 0.0
    a, b = max(left, spans[0, 0]), min(right, spans[0, 1])
    if a >= b:
        return grown, total
    for r in range(first, last):
        k, n = ids[r], next_ids[r]
        if k >= 0 and n >= 0:
            more, part = _scale_dot(cells[r, a:b], factors[k, a:b], floor, weights[n, a:b])
            grown += more
            total += part
        elif k >= 0:
            grown += _scale_counting(cells[r, a:b], factors[k, a:b], floor)
        elif n >= 0:
            total += _dot(cells[r, a:b], weights[n, a:b])
    return grown, total


@compiled
def rescale(cells, window, factor, floor):
    """Multiply every cell; the mass afterwards."""
    first, last, left, right = window
    total = 0.0
    for r in range(first, last):
        row = cells[r, left:right]
        for j in range(row.size):
            old = row[j]
            new = old * factor
            row[j] = new if new > floor else min(old, floor)
        total += _sum(row)
    return total


@compiled
def project(cells, window, ids, sums):
    """Add each row to the row of `sums` that `ids` names."""
    first, last, left, right = window
    for r in range(first, last):
        row, to = cells[r, left:right], sums[ids[r], left:right]
        for j in range(row.size):
            to[j] += np.float64(row[j])
