"""Eight ways to question the Adult table (48,842 rows, 15 attributes), with fixed seeds.

An analyst is a generator: it yields a question and is sent the answer, in rates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.curating import CellTruth
from bench.tables import Table, load
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

ORDERED = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
LABEL = "income>50K"

Analyst = Generator[Marginal, NDArray[np.float64], None]
Mask = NDArray[np.bool_]


def attributes(sizes: dict[str, int]) -> Domain:
    """Ordered attributes as bins, the others as categories, of which the last is `other`."""
    return Domain(
        tuple(
            Bins.integers(name, 0, size - 1)
            if name in ORDERED
            else Categories(name=name, values=tuple(f"v{i}" for i in range(size - 1)))
            for name, size in sizes.items()
        )
    )


def adult(names: Sequence[str] | None = None) -> CellTruth:
    """The Adult table, or some of its attributes."""
    table = load("adult")
    kept = table if names is None else table.select(names)
    sizes = dict(zip(kept.domain.names, kept.domain.shape(), strict=True))
    return CellTruth(replace(kept, domain=attributes(sizes)))


def clinic(rows: int = 48_842) -> CellTruth:
    """A table of 128 cells: positive tests, by sex, age group and ethnicity, that depend on each other."""
    draw = np.random.default_rng(66)
    sex = draw.integers(0, 2, rows)
    age = draw.choice(4, rows, p=[0.22, 0.41, 0.25, 0.12])
    group = np.minimum(draw.geometric(0.35, rows) - 1 + (age == 0) * draw.integers(0, 3, rows), 7)
    positive = draw.random(rows) < 0.04 + 0.03 * age + 0.015 * group + 0.02 * sex
    domain = attributes({"positive": 2, "sex": 2, "age-group": 4, "ethnicity": 8})
    columns = (positive.astype(np.int64), sex, age, group)
    return CellTruth(Table("clinic", domain, dict(zip(domain.names, columns, strict=True))))


# ---- conditions


def condition(draw: np.random.Generator, domain: Domain, name: str) -> Mask:
    """A range of an ordered attribute; a value, or a few, of another."""
    size = domain[name].size
    if name in ORDERED:
        low, high = np.sort(draw.integers(0, size, 2))
        return (np.arange(size) >= low) & (np.arange(size) <= high)
    if size == 2 or draw.random() < 0.5:
        return np.arange(size) == draw.integers(size)
    return np.isin(np.arange(size), draw.choice(size, draw.integers(2, max(3, size // 2 + 1)), replace=False))


def where(domain: Domain, sides: dict[str, Mask]) -> LinearQuery:
    return LinearQuery.conjunction(domain, sides)


# ---- the six


def conjunctions(domain: Domain, k: int, seed: int) -> Analyst:
    """W1: random conjunctions on one to three attributes."""
    draw = np.random.default_rng(100 + seed)
    for _ in range(k):
        names = draw.choice(domain.names, draw.integers(1, 4), replace=False)
        yield Marginal.of(where(domain, {str(name): condition(draw, domain, str(name)) for name in names}))


def dashboards(domain: Domain, k: int, seed: int, panels: int = 200) -> Analyst:
    """W2: panels by one or two attributes with up to two filters, and drill-downs into them."""
    draw = np.random.default_rng(200 + seed)
    made: list[tuple[dict[str, Mask], list[str]]] = []
    for _ in range(panels):
        names = [str(name) for name in draw.permutation(domain.names)]
        by, filters = names[: draw.integers(1, 3)], names[2 : 2 + draw.integers(0, 3)]
        made.append(({name: condition(draw, domain, name) for name in filters}, by))
    chances = 1 / np.arange(1, panels + 1)
    for i in draw.choice(panels, k, p=chances / chances.sum()):
        sides, by = made[i]
        if draw.random() < 0.2:
            free = [name for name in domain.names if name not in sides and name not in by]
            name = str(draw.choice(free))
            weight = 1 / np.arange(1, domain[name].size + 1)
            cell = draw.choice(domain[name].size, p=weight / weight.sum())
            sides = {**sides, name: np.arange(domain[name].size) == cell}
        yield Marginal(domain, domain.clique(by), where(domain, sides))


def group_bys(domain: Domain, k: int, seed: int) -> Analyst:
    """W3: marginals of one to three attributes."""
    draw = np.random.default_rng(300 + seed)
    for _ in range(k):
        names = draw.choice(domain.names, draw.integers(1, 4), replace=False)
        yield Marginal(domain, domain.clique(str(name) for name in names))


def rectangles(domain: Domain, k: int, seed: int) -> Analyst:
    """W4: thresholds and ranges of age, of hours, and of both."""
    draw = np.random.default_rng(400 + seed)

    def side(size: int) -> Mask:
        if draw.random() < 0.5:
            return np.arange(size) < draw.integers(1, size)
        low, high = np.sort(draw.integers(0, size, 2))
        return (np.arange(size) >= low) & (np.arange(size) <= high)

    for _ in range(k):
        names = [("age",), ("hours-per-week",), ("age", "hours-per-week")][draw.integers(3)]
        yield Marginal.of(where(domain, {name: side(domain[name].size) for name in names}))


def tree(domain: Domain, k: int, *, alpha: float) -> Analyst:
    """W5: a decision tree grown breadth first, from counts of every possible split of every node.

    A side of a split with no more than `alpha` of the rows, the error of the answers, is not cut off.
    """
    label = {LABEL: np.arange(2) == 1}
    waiting: deque[tuple[dict[str, Mask], float, int]] = deque([({}, 1.0, 0)])
    asked = 0
    while waiting:
        path, size, depth = waiting.popleft()
        best: tuple[float, Any] = (0.0, None)
        for name in domain.names:
            if name == LABEL:
                continue
            for mask in _splits(domain, name):
                inside = path.get(name, np.ones(mask.size, bool)) & mask
                if not inside.any():
                    continue
                if asked + 2 > k:
                    return
                sides = {**path, name: inside}
                count = float((yield Marginal.of(where(domain, sides))))
                positive = float((yield Marginal.of(where(domain, sides | label))))
                asked += 2
                rest = max(size - count, 1e-6)
                gain = abs(min(max(positive / max(count, 1e-6), 0), 1) - 0.24) * min(count, rest)
                if gain > best[0] and count > alpha and rest > alpha:
                    best = (gain, (name, mask, count, rest))
        if best[1] is not None and depth < 8:
            name, mask, count, rest = best[1]
            before = path.get(name, np.ones(mask.size, bool))
            for cells, left in ((before & mask, count), (before & ~mask, rest)):
                if cells.any():
                    waiting.append(({**path, name: cells}, left, depth + 1))


def _splits(domain: Domain, name: str) -> list[Mask]:
    size = domain[name].size
    if name in ORDERED:
        return [np.arange(size) < cut for cut in range(1, size)]
    return [np.arange(size) == cell for cell in range(size)]


def pool(domain: Domain, k: int, seed: int) -> Analyst:
    """W6: conjunctions on the 128 cells of `clinic`, a few of them asked often."""
    draw = np.random.default_rng(600 + seed)
    sizes = [attribute.size for attribute in domain]
    members = int(np.prod([2**size - 1 for size in sizes]))
    order = draw.permutation(members)
    chances = 1 / np.arange(1, members + 1)
    for i in order[draw.choice(members, k, p=chances / chances.sum())]:
        codes = np.unravel_index(int(i), [2**size - 1 for size in sizes])
        sides = {
            name: (int(code) + 1) >> np.arange(size) & 1 == 1
            for name, code, size in zip(domain.names, codes, sizes, strict=True)
        }
        yield Marginal.of(where(domain, sides))


def comparisons(domain: Domain, k: int, seed: int) -> Analyst:
    """W8: a large group, the part of it that meets one more condition, and the others; then another group."""
    draw = np.random.default_rng(800 + seed)
    for _ in range(-(-k // 3)):
        names = [str(name) for name in draw.choice(domain.names, 3, replace=False)]
        group = {name: np.arange(domain[name].size) != draw.integers(domain[name].size) for name in names[:2]}
        part = condition(draw, domain, names[2])
        sides = [{}] if part.all() else [{}, {names[2]: part}, {names[2]: ~part}]
        for side in sides:
            yield Marginal.of(where(domain, group | side))


def agent(domain: Domain, k: int, seed: int) -> Analyst:
    """W7: somebody who looks at one attribute after the other and follows what stands out.

    A breakdown by one attribute; within the group that stands out, counts by ranges or values of two others; then
    a breakdown of that group by the next attribute, and so on for a few steps before something new is looked at.
    """
    draw = np.random.default_rng(700 + seed)
    asked = 0
    while asked < k:
        path: dict[str, Mask] = {}
        for _ in range(int(draw.integers(2, 5))):
            free = [name for name in domain.names if name not in path]
            if not free:
                break
            name = str(draw.choice(free))
            found = yield Marginal(domain, (name,), where(domain, path))
            asked += 1
            cell = int(np.argmax(np.abs(found - found.mean()) * draw.uniform(0.5, 1.0, found.shape)))
            path = {**path, name: np.arange(domain[name].size) == cell}
            others = [other for other in free if other != name]
            for other in draw.choice(others, min(2, len(others)), replace=False) if others else ():
                yield Marginal.of(where(domain, {**path, str(other): condition(draw, domain, str(other))}))
                asked += 1
