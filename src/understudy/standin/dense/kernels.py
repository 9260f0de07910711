"""The loops over a dense histogram, compiled. Import this module late: it brings in numba.

What a query says about a row of cells is one of a few patterns over the columns; `ids` names it, -1 where there is
nothing to do. `spans` are the ranges of columns where any pattern has something to say, so that the rest is never
read; a pattern that is `flat` says the same in all columns of a span (`weights_layout`).

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
def mass(cells, first, last, left, right):
    """The sum of the cells."""
    total = 0.0
    for r in range(first, last):
        total += _sum(cells[r, left:right])
    return total


@compiled
def answer(cells, first, last, left, right, ids, patterns, spans, flat):
    """Σ weight · cell over the rows and columns given."""
    total = 0.0
    for r in range(first, last):
        k = ids[r]
        if k >= 0:
            for s in range(spans.shape[0]):
                a, b = max(left, spans[s, 0]), min(right, spans[s, 1])
                if a < b and flat:
                    total += _sum(cells[r, a:b]) * patterns[k, a]
                elif a < b:
                    total += _dot(cells[r, a:b], patterns[k, a:b])
    return total


@compiled
def scale(cells, first, last, left, right, ids, factors, spans, flat, floor, counting):
    """Multiply in place; if `counting`, what the mass grew by."""
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
def scale_then_answer(
    cells,
    first,
    last,
    left,
    right,
    ids,
    factors,
    spans,
    flat,
    floor,
    counting,
    next_ids,
    patterns,
    next_spans,
    next_flat,
    same,
):
    """`scale`, and `answer` of the new cells, block by block: the answer finds each block in the cache.

    With the `same` single span for both, and neither flat, one loop does both.
    """
    grown = 0.0
    total = 0.0
    block = max(1, BLOCK // (right - left))
    for r in range(first, last, block):
        end = min(r + block, last)
        if same:
            more, part = _joined(cells, r, end, left, right, ids, factors, spans, floor, next_ids, patterns)
        else:
            more = scale(cells, r, end, left, right, ids, factors, spans, flat, floor, counting)
            part = answer(cells, r, end, left, right, next_ids, patterns, next_spans, next_flat)
        grown += more
        total += part
    return grown, total


@compiled
def _joined(cells, first, last, left, right, ids, factors, spans, floor, next_ids, patterns):
    grown = 0.0
    total = 0.0
    a, b = max(left, spans[0, 0]), min(right, spans[0, 1])
    if a >= b:
        return grown, total
    for r in range(first, last):
        k, n = ids[r], next_ids[r]
        if k >= 0 and n >= 0:
            more, part = _scale_dot(cells[r, a:b], factors[k, a:b], floor, patterns[n, a:b])
            grown += more
            total += part
        elif k >= 0:
            grown += _scale_counting(cells[r, a:b], factors[k, a:b], floor)
        elif n >= 0:
            total += _dot(cells[r, a:b], patterns[n, a:b])
    return grown, total


@compiled
def rescale(cells, first, last, left, right, factor, floor):
    """Multiply every cell; the mass afterwards."""
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
def project(cells, first, last, left, right, ids, sums):
    """Add each row to the row of `sums` that `ids` names."""
    for r in range(first, last):
        row, to = cells[r, left:right], sums[ids[r], left:right]
        for j in range(row.size):
            to[j] += np.float64(row[j])
