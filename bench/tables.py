"""Tables of codes: the real ones, where they are at hand, and one that is generated.

A real table is NAME.csv, a column of codes for each attribute, with NAME-domain.json, the attributes' sizes. They
are looked for in the folder named by UNDERSTUDY_BENCH_DATA, else in one beside the project, else in bench/data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain

VARIABLE = "UNDERSTUDY_BENCH_DATA"
ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "bench" / "data"
"""Where tables that are generated once are kept."""

BESIDE = ROOT.parent / "shared" / "data"
REAL = ("adult", "nltcs", "titanic")
GENERATED = "generated"

Codes = Mapping[str, NDArray[np.int64]]


class NotAtHand(Exception):
    """A table that is not there, and what to set."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of codes with its domain."""

    name: str
    domain: Domain
    codes: Codes

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    @property
    def frame(self) -> pa.Table:
        return pa.table(dict(self.codes))

    def select(self, names: Iterable[str]) -> Table:
        """Only some attributes, in this order."""
        kept = tuple(names)
        domain = Domain(tuple(self.domain[name] for name in kept))
        return Table(self.name, domain, {name: self.codes[name] for name in kept})

    def drawn(self, rows: NDArray[np.int64]) -> Table:
        """The rows at these places."""
        return Table(self.name, self.domain, {name: column[rows] for name, column in self.codes.items()})

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """How many rows are in each cell."""
        return counted(self.domain, clique, self.codes)


def counted(
    domain: Domain, clique: Clique, codes: Codes, counts: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """How many rows are in each cell of a clique; `counts` says how often each row is there, if not once."""
    flat = flat_cells(domain, clique, codes)
    made = np.bincount(flat, weights=counts, minlength=domain.size(clique))  # exact: far below 2^53 rows
    return made.astype(np.int64).reshape(domain.shape(clique))


def flat_cells(domain: Domain, clique: Clique, codes: Codes) -> NDArray[np.int64]:
    """The cell of each row."""
    flat = np.zeros(len(next(iter(codes.values()))), np.int64)
    for name in clique:
        flat = flat * domain[name].size + codes[name]
    return flat


def folder() -> Path:
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    return BESIDE if BESIDE.is_dir() else KEPT


def real_tables() -> tuple[str, ...]:
    """The names of all tables that are at hand, the usual ones first whether they are at hand or not."""
    named = sorted(path.name.removesuffix("-domain.json") for path in folder().glob("*-domain.json"))
    return (*REAL, *(name for name in named if name not in REAL and (folder() / f"{name}.csv").is_file()))


def load(name: str) -> Table:
    """A table by its name; every attribute counts from 0."""
    if name == GENERATED:
        return generated()
    try:
        sizes = json.loads((folder() / f"{name}-domain.json").read_text())
        rows = csv.read_csv(folder() / f"{name}.csv")
    except FileNotFoundError as missing:
        where = f"{name}.csv and {name}-domain.json are not both in {folder()}"
        raise NotAtHand(f"{where}: set {VARIABLE} to the folder that holds them") from missing
    domain = Domain(tuple(Bins.integers(column, 0, size - 1) for column, size in sizes.items()))
    return Table(name, domain, {column: rows[column].to_numpy().astype(np.int64) for column in sizes})


def generated(rows: int = 21_574) -> Table:
    """Sixteen yes-or-no questions that eight kinds of people answer each in their way."""
    rng = np.random.default_rng(0)
    kind = rng.choice(8, rows, p=rng.dirichlet(np.ones(8)))
    answers = (rng.random((rows, 16)) < rng.beta(0.6, 0.9, (8, 16))[kind]).astype(np.int64)
    names = [f"q{i}" for i in range(16)]
    domain = Domain(tuple(Bins.integers(name, 0, 1) for name in names))
    return Table(GENERATED, domain, dict(zip(names, answers.T, strict=True)))


def at_hand(names: Sequence[str]) -> tuple[list[Table], dict[str, str]]:
    """The tables that are there; of the others, why not."""
    found, missing = [], {}
    for name in names:
        try:
            found.append(load(name))
        except NotAtHand as error:
            missing[name] = str(error)
    return found, missing
