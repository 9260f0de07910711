"""Neighbouring tables on which mechanisms are likely to be at their worst, and Curators over them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.ledger.interface import Debit
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import NoiseSource
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DOMAIN = Domain((Bins.integers("a", 0, 1), Bins.integers("b", 0, 2)))
"""Six cells: small enough for a hundred thousand runs, large enough to have empty ones."""

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TablePair:
    """Two neighbouring tables, as rows of codes."""

    name: str
    first: Rows
    second: Rows
    neighbours: Neighbours


def _filled(*groups: tuple[int, tuple[int, ...]]) -> Rows:
    return tuple(row for count, row in groups for _ in range(count))


def table_pairs(neighbours: Neighbours, *, rows: int = 12, seed: int = 0) -> Iterator[TablePair]:
    """Hand-made pairs first: a rare row that appears, an even table, the fullest cell; then random ones."""
    for name, first, second in _replaced(rows, seed):
        if neighbours is Neighbours.REPLACE:
            yield TablePair(name, first, second, neighbours)
        else:
            yield TablePair(name, first, first[:-1], neighbours)


def _replaced(rows: int, seed: int) -> Iterator[tuple[str, Rows, Rows]]:
    n = rows - 1
    yield "everybody alike, then one who is not", _filled((n + 1, (0, 0))), _filled((n, (0, 0)), (1, (1, 2)))
    yield (
        "a lone row moves one cell",
        _filled((n, (0, 0)), (1, (1, 1))),
        _filled((n, (0, 0)), (1, (1, 2))),
    )
    half = n // 2
    yield (
        "an even table tips",
        _filled((half, (0, 0)), (n - half, (1, 1)), (1, (0, 0))),
        _filled((half, (0, 0)), (n - half, (1, 1)), (1, (1, 1))),
    )
    spread = tuple((i % 2, i % 3) for i in range(n))
    yield "one of a spread-out table", (*spread, (0, 0)), (*spread, (1, 2))
    yield (
        "the fullest cell loses one",
        _filled((n, (1, 2)), (1, (1, 2))),
        _filled((n, (1, 2)), (1, (0, 2))),
    )
    last = tuple((i % 2, i % 3) for i in range(5)) * (n // 5) + ((0, 0),) * (n % 5)
    yield "the last of its kind", (*last, (1, 2)), (*last, (0, 0))
    draw = np.random.default_rng(seed)
    cells = [(a, b) for a in range(2) for b in range(3)]
    for i in range(24):
        shares = draw.dirichlet(np.full(6, 0.3))
        body = tuple(cells[k] for k in draw.choice(6, n, p=shares))
        one, two = draw.choice(6, 2, replace=False)
        yield f"random table {i + 1}", (*body, cells[one]), (*body, cells[two])


def around(edge: int) -> list[TablePair]:
    """Tables of 400 rows, with about as many in the first cell as a guess bears before it is called wrong."""
    found = []
    for off in (-14, -10, -6, -3, 0, 3, 6, 10, 14, 20):
        for name, other in (("the next cell", (1, 1)), ("an empty cell", (1, 2))):
            kept = ((0, 0),) * (edge + off) + ((1, 1),) * (399 - edge - off)
            found.append(
                TablePair(
                    f"{off:+d} from the edge, one moves to {name}",
                    (*kept, (0, 0)),
                    (*kept, other),
                    Neighbours.REPLACE,
                )
            )
    return found


class TellingLedger(MemoryLedger):
    """A ledger in memory that lists everything the Curator released, in order."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        self.told: list[int] = []

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        kept = super().settle(debit, answer, hidden=hidden)
        if hidden is None:
            self.told.extend(whole_numbers(json.loads(kept)))
        return kept

    def advance(self, debit: Debit, *, step: int, question: str, answer: bytes, state: bytes) -> bool:
        done = super().advance(debit, step=step, question=question, answer=answer, state=state)
        if done and state != b"-":
            self.told.extend(whole_numbers(json.loads(answer)))
        return done


def whole_numbers(answer: object) -> Iterator[int]:
    """The numbers of an answer: lists are opened, `false` and `null` are 0, a number is itself."""
    if isinstance(answer, list):
        for part in answer:
            if type(part) is int:
                yield part
            else:
                yield from whole_numbers(part)
    elif isinstance(answer, bool) or answer is None:
        yield int(bool(answer))
    elif isinstance(answer, int):
        yield answer


@dataclass(frozen=True)
class Setting:
    """What is declared about the tables of a pair: everything about them that is public."""

    budget: Budget
    neighbours: Neighbours = Neighbours.REPLACE
    domain: Domain = field(default=DOMAIN)
    rows_at_least: int | None = None
    rows_at_most: int | None = None

    @cached_property
    def declaration(self) -> Declaration:
        return Declaration(
            name="audited",
            source=SourceSpec("-"),
            domain=self.domain,
            budget=self.budget,
            neighbours=self.neighbours,
            rows_at_least=self.rows_at_least,
            rows_at_most=self.rows_at_most,
        )

    def curator(self, rows: Rows, *, noise: NoiseSource, ledger: MemoryLedger | None = None) -> Curator:
        """A fresh Curator with a fresh budget over a table; the table itself is opened once."""
        books = TellingLedger(self.budget) if ledger is None else ledger
        truth: Any = _truth(self.domain, rows)
        return Curator(truth, books, self.declaration, noise=noise)


class RememberedTruth:
    """The counts of a table, each found once by the truth itself: they are the same in every run."""

    version = "0" * 16
    is_file = False
    """Neighbouring tables are two ways in which one file may be: from outside it is the same one."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.domain = truth.domain
        self.rows = truth.rows
        self._sums: dict[tuple[int, str], NDArray[np.int64]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._truth, name)

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> NDArray[np.int64]:
        return self.sums_of([marginal], resolution=resolution)[0]

    def sums_of(self, marginals: Sequence[Marginal], *, resolution: int = 1) -> list[NDArray[np.int64]]:
        """Copies, so that no run can spoil the next one's."""
        keys = [(resolution, marginal.key) for marginal in marginals]
        if any(key not in self._sums for key in keys):
            found = self._truth.sums_of(marginals, resolution=resolution)
            self._sums.update(zip(keys, found, strict=True))
        return [self._sums[key].copy() for key in keys]


@lru_cache(maxsize=256)
def _truth(domain: Domain, rows: Rows) -> RememberedTruth:
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(domain.names)}
    return RememberedTruth(Truth(in_memory(pa.table(columns)), domain))
