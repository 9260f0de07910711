"""The loops over a set of small databases, compiled. Import this module late: it brings in numba.

Databases are columns: `parts[j, i]` is the j-th number of database i, either how many of its rows are in cell j or
which cell its j-th row is in. `masses[i]` is what the database weighs, 0 once it is dropped.
"""

from __future__ import annotations

import numpy as np

from understudy.standin.dense.kernels import compiled

BLOCK = 4096


@compiled
def compositions(counts, size):
    """Every way to write `size` as an ordered sum of as many numbers as `counts` has rows, one in each column.

    In lexicographic order: where all but the last two numbers stay, these run against each other.
    """
    cells = counts.shape[0]
    if cells == 1:
        counts[0, 0] = size
        return
    first, last = counts[cells - 2], counts[cells - 1]
    now = np.zeros(cells - 2, np.int64)
    start, rest = 0, size
    while True:
        end = start + rest + 1
        for j in range(cells - 2):
            counts[j, start:end] = now[j]
        for k in range(rest + 1):
            first[start + k] = k
            last[start + k] = rest - k
        start = end
        # The successor of the others: the last one that can take a row from its right does.
        j = cells - 3
        while j >= 0 and rest == 0:
            rest = now[j]
            now[j] = 0
            j -= 1
        if j < 0:
            return
        now[j] += 1
        rest -= 1


@compiled
def selections(rows, cells):
    """Every non-decreasing sequence of cells, one in each column: in order, so that the last one runs."""
    size = rows.shape[0]
    last = rows[size - 1]
    now = np.zeros(size - 1, np.int64)
    start = 0
    while True:
        least = now[size - 2] if size > 1 else 0
        end = start + cells - least
        for j in range(size - 1):
            rows[j, start:end] = now[j]
        for k in range(cells - least):
            last[start + k] = least + k
        start = end
        j = size - 2
        while j >= 0 and now[j] == cells - 1:
            j -= 1
        if j < 0:
            return
        now[j:] = now[j] + 1


@compiled
def add_columns(parts, chosen, values):
    """values[i] = Σ parts[j, i] over the chosen j, block by block, so that the sums stay in the cache."""
    total = values.size
    for start in range(0, total, BLOCK):
        end = min(start + BLOCK, total)
        block = values[start:end]
        block[:] = 0
        for c in range(chosen.size):
            column = parts[chosen[c], start:end]
            for i in range(block.size):
                block[i] += column[i]


@compiled
def add_weighted(parts, weights, values):
    """values[i] = Σ weights[j] · parts[j, i]."""
    total = values.size
    for start in range(0, total, BLOCK):
        end = min(start + BLOCK, total)
        block = values[start:end]
        block[:] = 0
        for j in range(parts.shape[0]):
            column, weight = parts[j, start:end], weights[j]
            for i in range(block.size):
                block[i] += weight * column[i]


@compiled
def look_up(parts, table, values):
    """values[i] = Σ table[parts[j, i]] over all j."""
    total = values.size
    for start in range(0, total, BLOCK):
        end = min(start + BLOCK, total)
        block = values[start:end]
        block[:] = 0
        for j in range(parts.shape[0]):
            column = parts[j, start:end]
            for i in range(block.size):
                block[i] += table[column[i]]


@compiled
def tally(values, masses, sums):
    """sums[·, v] += the mass of the databases of value v; four rows, so that equal neighbours do not wait."""
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        sums[0, values[i]] += masses[i]
        sums[1, values[i + 1]] += masses[i + 1]
        sums[2, values[i + 2]] += masses[i + 2]
        sums[3, values[i + 3]] += masses[i + 3]
    for i in range(whole, values.size):
        sums[0, values[i]] += masses[i]


@compiled
def within(values, masses, low, high):
    """How many databases that were not dropped have a value in [low, high], and their mass."""
    count = 0
    total = 0.0
    for i in range(values.size):
        held = masses[i] if (values[i] >= low) & (values[i] <= high) else masses.dtype.type(0)
        count += 1 if held > 0 else 0
        total += np.float64(held)
    return count, total


@compiled
def drop(values, masses, low, high):
    """Drop the databases whose value is not in [low, high]."""
    for i in range(values.size):
        masses[i] = masses[i] if (values[i] >= low) & (values[i] <= high) else masses.dtype.type(0)


@compiled
def positions(masses, kept):
    """Where the databases are that are not dropped; `kept` has one place more, so that no branch is needed."""
    at = 0
    for i in range(masses.size):
        kept[at] = i
        at += 1 if masses[i] > 0 else 0


@compiled
def gather(parts, kept, left):
    """left[·, i] = parts[·, kept[i]]."""
    for j in range(parts.shape[0]):
        column, to = parts[j], left[j]
        for i in range(kept.size):
            to[i] = column[kept[i]]


@compiled
def total_counts(parts, masses, sums):
    """sums[j] = Σ mass · parts[j, ·]."""
    for j in range(parts.shape[0]):
        column = parts[j]
        total = 0.0
        for i in range(column.size):
            total += np.float64(column[i]) * np.float64(masses[i])
        sums[j] = total


@compiled
def total_rows(parts, masses, sums):
    """sums[c] = Σ mass · how many rows are in cell c."""
    for j in range(parts.shape[0]):
        column = parts[j]
        for i in range(column.size):
            sums[column[i]] += masses[i]


@compiled
def exchange(points, queries, bounds, rounds, generator):
    """`rounds` times as many steps as there are cells, for every point: some of one cell's rate goes to another.

    To a uniform place among those that all cuts allow. Only two cells change, so a step costs a look at each cut,
    and what the cuts say of one cell lies side by side.
    """
    count, cells = points.shape
    cuts = len(bounds)
    answers = points @ queries.T
    columns = np.ascontiguousarray(queries.T)
    speeds = np.empty(cuts)
    for i in range(count):
        point, answer = points[i], answers[i]
        for _ in range(rounds * cells):
            one = min(int(generator.random() * cells), cells - 1)
            other = min(int(generator.random() * cells), cells - 1)
            low, high = -point[one], point[other]
            here, there = columns[one], columns[other]
            for j in range(cuts):
                speed = here[j] - there[j]
                speeds[j] = speed
                if abs(speed) > 1e-15:
                    first = (bounds[j, 0] - answer[j]) / speed
                    last = (bounds[j, 1] - answer[j]) / speed
                    low = max(low, min(first, last))
                    high = min(high, max(first, last))
            share = generator.random()
            if one == other or high <= low:
                continue
            moved = low + (high - low) * share
            point[one] = max(point[one] + moved, 0.0)
            point[other] = max(point[other] - moved, 0.0)
            for j in range(cuts):
                answer[j] += moved * speeds[j]


@compiled
def chord(points, queries, bounds, generator):
    """One step of hit-and-run for every point: to a uniform place of a random chord through it."""
    count, cells = points.shape
    direction = np.empty(cells)
    for i in range(count):
        mean = 0.0
        for k in range(cells):
            direction[k] = generator.standard_normal()
            mean += direction[k]
        direction -= mean / cells
        low, high = -np.inf, np.inf
        for k in range(cells):
            if abs(direction[k]) > 1e-15:
                end = -points[i, k] / direction[k]
                if direction[k] > 0:
                    low = max(low, end)
                else:
                    high = min(high, end)
        for j in range(len(bounds)):
            speed = queries[j] @ direction
            if abs(speed) > 1e-15:
                now = queries[j] @ points[i]
                first, last = (bounds[j, 0] - now) / speed, (bounds[j, 1] - now) / speed
                low = max(low, min(first, last))
                high = min(high, max(first, last))
        share = generator.random()
        if high > low:
            moved = low + (high - low) * share
            for k in range(cells):
                points[i, k] = max(points[i, k] + moved * direction[k], 0.0)
