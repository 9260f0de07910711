"""A small table that sessions are tried on, and questions about it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from counted import curator_of
from understudy.curator.curator import Curator
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DOMAIN = Domain(
    (
        Bins.integers("age", 0, 9),
        Categories(name="sex", values=("F", "M")),
        Categories(name="town", values=("a", "b", "c", "d", "e")),
    )
)
_R = np.random.default_rng(1)
ROWS = 4000
AGE = np.minimum(_R.geometric(0.25, ROWS) - 1, 9)
TABLE = pa.table(
    {
        "age": AGE,
        "sex": np.where(_R.random(ROWS) < 0.3 + 0.04 * AGE, "F", "M"),
        "town": np.array(list("abcde"))[_R.integers(0, 5, ROWS)],
    }
)


def curator(*, epsilon=500.0, delta=1e-6, source=None, **given) -> Curator:
    truth = Truth(in_memory(TABLE) if source is None else source, DOMAIN)
    return curator_of(truth, epsilon=epsilon, delta=delta, **given)


def conjunction(**sides) -> Marginal:
    return Marginal.of(LinearQuery.conjunction(DOMAIN, sides))


def random_question(generator) -> Marginal:
    names = generator.choice(DOMAIN.names, generator.integers(1, 4), replace=False)
    sides = {}
    for name in names:
        size = DOMAIN[name].size
        if name == "age":
            low, high = np.sort(generator.integers(0, size, 2))
            sides[str(name)] = (np.arange(size) >= low) & (np.arange(size) <= high)
        else:
            cells = generator.random(size) < 0.5
            cells[generator.integers(size)] = True
            sides[str(name)] = cells
    where = LinearQuery.conjunction(DOMAIN, sides)
    free = [name for name in DOMAIN.names if name not in sides]
    by = (free[0],) if free and generator.random() < 0.2 else ()
    return Marginal(DOMAIN, by, where)
