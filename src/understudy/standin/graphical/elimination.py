"""Triangulation: the loops that decide how large a model is, fast enough to ask about every candidate."""

from __future__ import annotations

import numpy as np

from understudy.standin.graphical.compile import compiled


@compiled
def absorbed(cliques, sizes, order):
    """Which cliques of an elimination are part of another.

    Clique p is, exactly when some clique t whose first neighbour to go went at step p has |t| - 1 = |p|: then t
    without its own attribute is p.
    """
    n = order.size
    contained = np.zeros(n, np.bool_)
    for t in range(n):
        parent = n
        for i in range(1, sizes[t]):
            parent = min(parent, order[cliques[t, i]])
        if parent < n and sizes[parent] == sizes[t] - 1:
            contained[parent] = True
    return contained


@compiled
def maximal_cells(logs, cliques, sizes, order):
    """Cells of the maximal cliques of an elimination."""
    total = 0.0
    contained = absorbed(cliques, sizes, order)
    for t in range(order.size):
        if not contained[t]:
            cells = 0.0
            for i in range(sizes[t]):
                cells += logs[cliques[t, i]]
            total += np.rint(np.exp(cells)) if cells < 30.0 else np.exp(cells)
    return total


@compiled
def eliminate(adjacent, cost, logs, cliques, sizes, order):
    """Eliminate the attribute with the smallest table of neighbours until none is left.

    Row t of `cliques` gets the eliminated attribute and its `sizes[t]` - 1 neighbours, `order` the step at which
    each attribute went. `adjacent` is filled in, and `cost`, the logarithms of the tables, is used up. Returns the
    cells of all maximal cliques, inf beyond floats.
    """
    n = adjacent.shape[0]
    left = np.empty(n, np.int64)
    for v in range(n):
        left[v] = v
    for t in range(n):
        best = 0
        for i in range(1, n - t):
            if cost[left[i]] < cost[left[best]] - 1e-9:
                best = i
        v = left[best]
        order[v] = t
        for i in range(best, n - t - 1):
            left[i] = left[i + 1]
        cliques[t, 0] = v
        k = 1
        for i in range(n - t - 1):
            if adjacent[v, left[i]]:
                cliques[t, k] = left[i]
                k += 1
        sizes[t] = k
        for i in range(1, k):
            u = cliques[t, i]
            cost[u] -= logs[v]
            for j in range(1, k):
                w = cliques[t, j]
                if w != u and not adjacent[u, w]:
                    adjacent[u, w] = True
                    cost[u] += logs[w]
    return maximal_cells(logs, cliques, sizes, order)


@compiled
def costs(adjacent, logs):
    """For each attribute, the logarithm of the cells of the table over it and its neighbours."""
    n = logs.size
    cost = np.empty(n)
    for v in range(n):
        cost[v] = logs[v]
        for u in range(n):
            if adjacent[v, u]:
                cost[v] += logs[u]
    return cost


@compiled
def cells_with_each(adjacent, logs, starts, members):
    """The model's cells when candidate c, of attributes members[starts[c] : starts[c + 1]], joins it alone."""
    n = adjacent.shape[0]
    cliques = np.empty((n, n), np.int64)
    sizes, order = np.empty(n, np.int64), np.empty(n, np.int64)
    trial, cost = np.empty((n, n), np.bool_), np.empty(n)
    flat, flat_trial, cost_before = adjacent.reshape(-1), trial.reshape(-1), costs(adjacent, logs)
    cells = np.empty(starts.size - 1)
    known = -1.0
    for c in range(starts.size - 1):
        for i in range(flat.size):
            flat_trial[i] = flat[i]
        for i in range(n):
            cost[i] = cost_before[i]
        added = False
        for i in range(starts[c], starts[c + 1]):
            u = members[i]
            for j in range(starts[c], starts[c + 1]):
                v = members[j]
                if u != v and not trial[u, v]:
                    trial[u, v] = True
                    cost[u] += logs[v]
                    added = True
        if added or known < 0:
            cells[c] = eliminate(trial, cost, logs, cliques, sizes, order)
        else:
            cells[c] = known
        if not added:
            known = cells[c]
    return cells
