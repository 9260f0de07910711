"""Stand-ins as arrays, and back: what `standin.npz` holds.

A small table, a graphical model, alone or as the adaptive release holds it, and a histogram of not too many cells
are stored as they are. Of any other stand-in rows are stored: as many as there are people, drawn from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import SourceError
from understudy.query.merging import Merging
from understudy.query.projection import Projection
from understudy.releases.adaptive.rows import AdaptiveStandIn
from understudy.standin.graphical.model import Constraint, GraphicalStandIn, LogFactor
from understudy.standin.local_fit import EVEN, LocalSlack
from understudy.standin.measurement import Measurement
from understudy.standin.table import SmallTable

DENSE_CELLS = 1 << 24
"""Up to here the rates of all cells are stored."""

ADAPTIVE_FORMAT = 2
"""Of what is stored of an adaptive release's stand-in; one that a later program wrote is refused.

Format 1 names no slack: all its cells have the same.
"""

Arrays = Mapping[str, NDArray[Any]]
Codes = Mapping[str, NDArray[np.integer]]


@dataclass(frozen=True, eq=False)
class StoredRates:
    """A stand-in that was stored as the rates of all cells."""

    domain: Domain
    rates: NDArray[np.float64]

    def project(self, clique: Clique) -> NDArray[np.float64]:
        kept = set(self.domain.clique(clique))
        return self.rates.sum(axis=tuple(i for i, name in enumerate(self.domain.names) if name not in kept))


def as_arrays(standin: Projection, draw: Callable[[], Codes]) -> dict[str, NDArray[Any]]:
    """The stand-in as named arrays; `draw` gives rows of it, where those are what is stored."""
    if isinstance(standin, AdaptiveStandIn):
        return _adaptive(standin)
    if isinstance(standin, GraphicalStandIn):
        return _graphical(standin)
    if isinstance(standin, SmallTable):
        return _table(standin)
    if standin.domain.size() <= DENSE_CELLS:
        return {"rates": np.asarray(standin.project(standin.domain.names), np.float64)}
    codes = draw()
    return _table(
        SmallTable.of_rows(standin.domain, np.column_stack([codes[n] for n in standin.domain.names]))
    )


def from_arrays(domain: Domain, arrays: Arrays) -> Projection:
    """The inverse of `as_arrays`."""
    if "rates" in arrays:
        rates = arrays["rates"]
        if rates.shape != domain.shape():
            raise SourceError("the stored stand-in is about another domain")
        return StoredRates(domain, rates)
    if "adaptive" in arrays:
        return _adaptive_from(domain, arrays)
    if "total" in arrays:
        return _graphical_from(domain, arrays)
    return SmallTable(domain, arrays["codes"], arrays["counts"])


def _table(table: SmallTable) -> dict[str, NDArray[Any]]:
    narrow = np.min_scalar_type(max(table.domain.shape()) - 1)
    return {"codes": table.codes.astype(narrow), "counts": table.counts}


def _graphical(model: GraphicalStandIn) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"total": np.array(model.total)}
    tables = [("factor", factor.clique, factor.logs) for factor in model.factors]
    tables += [("constraint", constraint.clique, constraint.allowed) for constraint in model.constraints]
    for i, (kind, clique, table) in enumerate(tables):
        arrays[f"{kind} {i}"] = table
        arrays[f"{kind} {i} over"] = np.array([model.domain.position(name) for name in clique], np.int64)
    return arrays


def _graphical_from(domain: Domain, arrays: Arrays) -> GraphicalStandIn:
    factors = tuple(LogFactor(c, table) for c, table in _tables(domain, arrays, "factor"))
    constraints = tuple(Constraint(c, table) for c, table in _tables(domain, arrays, "constraint"))
    return GraphicalStandIn(domain, float(arrays["total"]), factors, constraints)


def _adaptive(standin: AdaptiveStandIn) -> dict[str, NDArray[Any]]:
    """The groups of values, the model over them, and what was measured outside of its tree."""
    arrays = {"adaptive": np.array(ADAPTIVE_FORMAT), **_graphical(standin.model)}
    for i, (starts, shares) in enumerate(zip(standin.merging.starts, standin.merging.shares, strict=True)):
        arrays[f"starts {i}"], arrays[f"shares {i}"] = starts, shares
    for i, m in enumerate(standin.outside):
        arrays[f"outside {i}"] = m.counts
        arrays[f"outside {i} over"] = np.array([standin.domain.position(name) for name in m.clique], np.int64)
    arrays["variances"] = np.array([m.variance for m in standin.outside], np.float64)
    arrays["slack"] = np.array([standin.slack.share, standin.slack.sparse])
    return arrays


def _adaptive_from(domain: Domain, arrays: Arrays) -> AdaptiveStandIn:
    version = int(arrays["adaptive"])
    if not 1 <= version <= ADAPTIVE_FORMAT:
        raise SourceError(
            f"the stored stand-in has format {version}, and this program reads 1 to {ADAPTIVE_FORMAT}: it was "
            "written by another version"
        )
    places = range(len(domain))
    if f"starts {len(domain) - 1}" not in arrays or any(
        arrays[f"shares {i}"].shape != (size,) for i, size in zip(places, domain.shape(), strict=True)
    ):
        raise SourceError("the stored stand-in is about another domain")
    shares = tuple(arrays[f"shares {i}"] for i in places)
    merging = Merging(domain, tuple(arrays[f"starts {i}"] for i in places), shares)
    told = list(zip(_tables(domain, arrays, "outside"), arrays["variances"], strict=True))
    slack = EVEN if version == 1 else LocalSlack(*map(float, arrays["slack"]))
    if (
        not all((share >= 0).all() and np.isfinite(share).all() for share in shares)
        or any(counts.shape != merging.coarse.shape(clique) for (clique, counts), _ in told)
        or any(not 0 < variance < np.inf for _, variance in told)
        or not (0 <= slack.share < np.inf and 1 <= slack.sparse < np.inf)
    ):
        raise SourceError("the stored stand-in is damaged")
    outside = tuple(Measurement(clique, counts, float(variance)) for (clique, counts), variance in told)
    return AdaptiveStandIn(merging, _graphical_from(merging.coarse, arrays), outside, slack)


def _tables(domain: Domain, arrays: Arrays, kind: str) -> list[tuple[Clique, NDArray[Any]]]:
    """The tables of one kind, in the order in which they were stored."""
    found = sorted(
        (int(name.split()[1]), name)
        for name in arrays
        if name.split()[0] == kind and not name.endswith("over")
    )
    return [
        (tuple(domain.names[place] for place in arrays[f"{name} over"]), arrays[name]) for _, name in found
    ]
