"""A small machine for tables: programs of sweeps over flat arrays, compiled once for every shape.

A *program* is a list of operations on one block of memory, written by `graphical_program` and run here by one
call, so that a belief pass crosses from Python once.
"""

from __future__ import annotations

import numpy as np

from understudy.standin.graphical.compile import compiled

SWEEP, EXPONENTIATE, NORMALISE, RATIO, FINITE, LOGARITHM, COUNT = range(7)
"""Operations of a program."""

PRODUCT, SUM, MAXIMUM = range(3)
"""How a sweep combines what it reads; after MAXIMUM it writes maxima in place of sums."""

CONSTANT, CONTIGUOUS, GATHERED = range(3)
"""How an operand lies along a run of cells."""


@compiled
def sweep(pool, scales, at, work, scratch, counter):
    """Combine operands along a large table and project it, block by block while the block is in cache.

    The pool holds at `at`: the axes between blocks, the cells of a block, the operands read and those written,
    where the table starts, whether it is resumed and stored, and how it combines; then the sizes of those axes;
    then for each operand where it starts, how many cells are cleared first, where its scale and its plan are, and
    its strides along those axes.
    """
    n_outer, block, n_in, n_out = pool[at], pool[at + 1], pool[at + 2], pool[at + 3]
    target, resume, store, combine = pool[at + 4], pool[at + 5], pool[at + 6], pool[at + 7]
    sizes, first, width = at + 8, at + 8 + n_outer, 4 + n_outer
    offsets = np.empty(n_in + n_out, np.int64)
    digits = np.zeros(n_outer, np.int64)
    blocks = 1
    for d in range(n_outer):
        blocks *= pool[sizes + d]
    for k in range(n_in + n_out):
        offsets[k] = pool[first + k * width]
        for i in range(pool[first + k * width + 1]):
            work[offsets[k] + i] = 0.0 if combine != MAXIMUM else -np.inf
    for index in range(blocks):
        base = target + index * block
        table, p = (work, base) if store or (resume and n_in == 0) else (scratch, 0)
        if resume and p != base:
            for i in range(block):
                scratch[i] = work[base + i]
        if n_in == 0 and not resume:
            for i in range(p, p + block):
                table[i] = 1.0 if combine == PRODUCT else 0.0
        for k in range(n_in + n_out):
            operand = first + k * width
            scale, plan = scales[pool[operand + 2]], pool[operand + 3]
            if k >= n_in:
                action = PROJECT if combine != MAXIMUM else _MAXIMUM
            elif k == 0 and not resume:
                action = _SET
            else:
                action = _MULTIPLY if combine == PRODUCT else _ADD
            _walk(action, table, p, block, work, offsets[k], scale, pool, plan, counter)
        d = n_outer - 1
        while d >= 0:
            digits[d] += 1
            back = digits[d] == pool[sizes + d]
            for k in range(n_in + n_out):
                stride = pool[first + k * width + 4 + d]
                offsets[k] += stride - (stride * digits[d] if back else 0)
            if not back:
                break
            digits[d] = 0
            d -= 1


_SET, _MULTIPLY, _ADD, PROJECT, _MAXIMUM = range(5)


@compiled
def _walk(action, table, p, cells, work, o, scale, pool, plan, counter):
    """One operand along one block: runs of `length` cells, between which the operand moves by its strides."""
    axes, length, kind = pool[plan], pool[plan + 1], pool[plan + 2]
    sizes, strides, pattern = plan + 3, plan + 3 + axes, plan + 3 + 2 * axes
    # The last axis is walked inside the loops below, so that short runs do not pay for a call each.
    runs, stride = (pool[sizes + axes - 1], pool[strides + axes - 1]) if axes > 0 else (1, 0)
    for d in range(axes):
        counter[d] = 0
    end = p + cells
    while p < end:
        if kind == CONSTANT:
            _constant(action, table, p, length, runs, work, o, stride, scale)
        elif kind == CONTIGUOUS:
            _contiguous(action, table, p, length, runs, work, o, stride, scale)
        else:
            _gathered(action, table, p, length, runs, work, o, stride, scale, pool, pattern)
        p += length * runs
        d = axes - 2
        while d >= 0:
            counter[d] += 1
            o += pool[strides + d]
            if counter[d] < pool[sizes + d]:
                break
            o -= pool[strides + d] * pool[sizes + d]
            counter[d] = 0
            d -= 1


@compiled
def _constant(action, table, start, cells, runs, work, place, stride, scale):
    # Unsigned: an index that may be negative would be wrapped around, which keeps loops from being vectorised.
    p, length, o, by = np.uint64(start), np.uint64(cells), np.uint64(place), np.uint64(stride)
    for _ in range(runs):
        value = work[o]
        if action == _MULTIPLY:
            for i in range(length):
                table[p + i] *= value
        elif action == PROJECT:
            total = 0.0
            for i in range(length):
                total += table[p + i]
            work[o] = value + total * scale
        elif action == _MAXIMUM:
            for i in range(length):
                value = max(value, table[p + i])
            work[o] = value
        elif action == _ADD:
            for i in range(length):
                table[p + i] += value * scale
        else:
            for i in range(length):
                table[p + i] = value * scale
        p += length
        o += by


@compiled
def _contiguous(action, table, start, cells, runs, work, place, stride, scale):
    p, length, o, by = np.uint64(start), np.uint64(cells), np.uint64(place), np.uint64(stride)
    for _ in range(runs):
        if action == _MULTIPLY:
            for i in range(length):
                table[p + i] *= work[o + i]
        elif action == PROJECT:
            for i in range(length):
                work[o + i] += table[p + i] * scale
        elif action == _MAXIMUM:
            for i in range(length):
                work[o + i] = max(work[o + i], table[p + i])
        elif action == _ADD:
            for i in range(length):
                table[p + i] += work[o + i] * scale
        else:
            for i in range(length):
                table[p + i] = work[o + i] * scale
        p += length
        o += by


@compiled
def _gathered(action, table, start, cells, runs, work, place, stride, scale, pool, pattern):
    p, length, o, by = np.uint64(start), np.uint64(cells), np.uint64(place), np.uint64(stride)
    q = np.uint64(pattern)
    for _ in range(runs):
        if action == _MULTIPLY:
            for i in range(length):
                table[p + i] *= work[o + np.uint64(pool[q + i])]
        elif action == PROJECT:
            for i in range(length):
                work[o + np.uint64(pool[q + i])] += table[p + i] * scale
        elif action == _MAXIMUM:
            for i in range(length):
                to = o + np.uint64(pool[q + i])
                work[to] = max(work[to], table[p + i])
        elif action == _ADD:
            for i in range(length):
                table[p + i] += work[o + np.uint64(pool[q + i])] * scale
        else:
            for i in range(length):
                table[p + i] = work[o + np.uint64(pool[q + i])] * scale
        p += length
        o += by


@compiled
def _exponentiate(work, source, size, to):
    s, t, n = np.uint64(source), np.uint64(to), np.uint64(size)
    largest = -np.inf
    for i in range(n):
        largest = max(largest, work[s + i])
    if largest > -np.inf:
        for i in range(n):
            work[t + i] = np.exp(work[s + i] - largest)
    return largest


@compiled
def _normalise(work, source, size, to):
    s, n = np.uint64(source), np.uint64(size)
    total = 0.0
    for i in range(n):
        total += work[s + i]
    if total > 0:
        share = 1 / total
        for i in range(n):
            work[s + i] *= share
    work[to] = total
    return total


@compiled
def run(ops, pool, scales, work, scratch, counter):
    """Run a program; returns the sum of the logarithms that were taken out, and the smallest mass that was met.

    EXPONENTIATE  to ← exp(from - max from), and max from is counted
    NORMALISE     from ← from / Σ from, Σ from is kept in `to`, and its logarithm is counted
    RATIO         to ← from / (third · scalar), where 0 / 0 is 0
    FINITE        from ← 0 where it is log 0
    LOGARITHM     to ← log from + third
    COUNT         the single number `from` is counted
    """
    logarithms = 0.0
    smallest = np.inf
    for step in range(ops.shape[0]):
        op, source, size, to, third, scalar = ops[step]
        if op == SWEEP:
            sweep(pool, scales, source, work, scratch, counter)
        elif op == EXPONENTIATE:
            largest = _exponentiate(work, source, size, to)
            if largest == -np.inf:
                return logarithms, 0.0
            logarithms += largest
        elif op == NORMALISE:
            total = _normalise(work, source, size, to)
            if not total > 0:
                return logarithms, 0.0
            smallest = min(smallest, total)
            logarithms += np.log(total)
        elif op == RATIO:
            for i in range(size):
                old = work[third + i] * work[scalar]
                work[to + i] = work[source + i] / old if old > 0 else 0.0
        elif op == FINITE:
            for i in range(source, source + size):
                work[i] = work[i] if work[i] > -np.inf else 0.0
        elif op == LOGARITHM:
            for i in range(size):
                mass = work[source + i]
                work[to + i] = np.log(mass) + work[third + i] if mass > 0 else -np.inf
        else:
            if work[source] == -np.inf:
                return logarithms, 0.0
            logarithms += work[source]
    return logarithms, smallest


@compiled
def walk(action, table, out, plan, start):
    """One operand along a whole table, as `plan` says; `start` is 0 (a literal would be compiled for itself)."""
    _walk(action, table, start, table.size, out, start, 1.0, plan, start, np.empty(plan[0], np.int64))
