"""The truth: exact integer counts of the sensitive table. Only a Curator may hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.declaration.declaration import Unit
from understudy.domain.domain import CELL_LIMIT, Clique, Domain
from understudy.errors import ClosedError, QueryError, TooLargeError
from understudy.query.marginal import Marginal
from understudy.query.tables import RememberedTables
from understudy.query.told_cells import grouped_by
from understudy.table.coded_copy import CodedCopy
from understudy.table.counts import MarginalCounter
from understudy.table.fork import look_lock
from understudy.table.kept_counts import Counts, KeptCounts
from understudy.table.source import Source

if TYPE_CHECKING:
    from understudy.table.moments import StepTable
    from understudy.table.view_reader import Codes, ViewReader

CACHE_BYTES = 1 << 30
"""Codes are kept in memory from the second look on when they fit into this."""

DENSE_CELLS = 1 << 20
"""Up to here counting a clique and weighing its cells is cheaper than weighing every row."""


class Truth:
    """Exact counts over cliques of a domain, one pass over the source for any number of them.

    Complexity  One pass of the engine for each look, or one GROUP BY for each clique of a cover; from the
                second look on, or from the first where there is a coded copy of the table (`copy`), one pass
                over the codes in memory where the table is local, its changes are noticed, and rows ×
                attributes fit into `CACHE_BYTES`; none for cliques that were counted before, of a file or a
                frame.
                Memory is bounded by the accumulators of the clique cover, one batch and what is kept.
    Gap         The time of a look grows with the number of rows, also where that number is private.
    """

    def __init__(
        self, source: Source, domain: Domain, unit: Unit | None = None, *, copy: CodedCopy | None = None
    ) -> None:
        self.source = source
        self.domain = domain
        self.unit = unit
        self._lock = look_lock()  # an engine's connection serves one thread at a time
        self._looks = 0
        self.is_file = source.stamps is not None and source.pinned
        """Whether the rows are in a file, whose versions can be told apart."""
        self._is_lasting = source.version is not None
        """Whether what was read once may be kept: every change of the rows is noticed before the next look."""
        self._copy = copy if self.is_file else None
        self._kept: list[Codes] | None = None
        self._unsaved = False
        if self._copy is not None and self.version is not None:
            self._kept = self._copy.load(self.version, domain)
        if self._kept is None:  # a table of which there is a copy was checked when that was made
            source.check(domain, unit)
        self._rows: int | None = None  # of rows that cannot change unnoticed, once they were counted
        self._counted = KeptCounts(domain, lasting=self._is_lasting)
        self._places: tuple[Clique, NDArray[np.intp]] | None = None
        self._finer: Truth | None = None
        self._tables = RememberedTables(
            domain, lambda clique: self._count_codes([clique], iter(self._kept or ()))[clique]
        )
        self._closed = False

    @cached_property
    def rows(self) -> int:
        """The number of rows that count. Public under `replace` only."""
        with self._lock:
            if self._kept:
                self.source.check_unchanged()
                return sum(_rows(batch) for batch in self._kept)
            if self._rows is not None:
                return self._rows
            return self.source.rows(self.domain, self.unit)

    @cached_property
    def version(self) -> str | None:
        """A name for the rows and how they are cut; None where changes of the rows cannot be noticed."""
        return self._named(self.source.version)

    @cached_property
    def former_version(self) -> str | None:
        """The name that version 0.1 would have given to the same file; None for what is no file."""
        return self._named(self.source.former_version)

    def _named(self, rows: str | None) -> str | None:
        if rows is None:
            return None
        meaning = repr((rows, self.domain.attributes, self.unit))
        if any(attribute.intake for attribute in self.domain):  # without any, it is what version 0.1 said
            meaning += repr([attribute.intake for attribute in self.domain])
        return sha256(meaning.encode()).hexdigest()[:16]

    @property
    def column_types(self) -> dict[str, str]:
        """The names of the columns' types, as the schema of the source has them; see `Source.told_types`."""
        self._check_open()
        return self.source.told_types

    @property
    def column_storage(self) -> dict[str, str]:
        """How the columns are stored, as the schema of the source has it; see `Source.told_storage`."""
        self._check_open()
        return self.source.told_storage

    def check_unchanged(self) -> None:
        """Refuse to go on with another table than the one that was opened, or after `close`. Reads no data."""
        self._check_open()
        self.source.check_unchanged()

    def close(self) -> None:
        """Let go of the engine, of the codes and of every count, once the look under way has ended."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._kept, self._places, self._finer = None, None, None
            self._counted.forget()
            self._tables.forget()
            self.source.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(
                "the project was closed, and its table cannot be asked any more",
                remedy="open it again; what was charged before is in the ledger, under its request",
            )

    def count(self, clique: Clique) -> Counts:
        """The number of rows in each cell of a clique."""
        return self.counts([clique])[self.domain.clique(clique)]

    def counts(self, cliques: Iterable[Clique]) -> dict[Clique, Counts]:
        """Exact counts over many cliques, in one pass."""
        wanted = [self.domain.clique(clique) for clique in cliques]
        self._check_cells(wanted)
        with self._look() as look:
            return self._counts(look, wanted)

    def _known(self, marginal: Marginal, resolution: int) -> Counts | None:
        """The sums of one marginal from the codes in memory; None where that is not cheaper than a look.

        A small clique is counted once. One table of weights on more cells than there are rows is looked up at the
        rows' own cells, which are found once.
        """
        with self._lock:
            self.check_unchanged()
            table = self._tables.over(marginal.clique)
            if table is not None:
                return self._weigh(marginal, table, resolution)
            if (
                marginal.by
                or len(marginal.where.factors) != 1
                or self.domain.size(marginal.clique) > CELL_LIMIT
            ):
                return None
            if self._places is None or self._places[0] != marginal.clique:
                self._places = marginal.clique, self._cells_of(marginal.clique)
            weights = marginal.where.factors[0].weights.reshape(-1)[self._places[1]]
            return np.array(np.rint(weights * resolution).astype(np.int64).sum())

    def _in_memory(self) -> bool:
        """Whether the codes are; from the second look on they are, where they fit."""
        if self._kept is None and (self._looks or self._copy is not None) and self._is_lasting:
            with self._look() as look:
                if (
                    look is not None and self._kept is None
                ):  # others may have encoded it while this one waited
                    self._keep(look)
        return bool(self._kept)

    def _cells_of(self, clique: Clique) -> NDArray[np.intp]:
        """The cell of each row."""
        shape, kept = self.domain.shape(clique), self._kept or []
        return np.concatenate(
            [np.ravel_multi_index([codes[name] for name in clique], shape) for codes in kept]
        )

    def _counts(self, look: ViewReader | None, wanted: Sequence[Clique]) -> dict[Clique, Counts]:
        """What was not counted before, in one pass; nothing is kept of rows that can change unnoticed."""
        found = self._counted.counted(wanted, lambda new: self._count(look, new))
        if self._rows is None and self._is_lasting and wanted:
            self._rows = int(found[wanted[0]].sum())
        return found

    def anticipate(self, cliques: Iterable[Clique]) -> None:
        """What will be asked later is counted in the next pass over the rows, where counts are kept at all."""
        self._counted.anticipate(self.domain.clique(clique) for clique in cliques)

    def one_question(self, cliques: Iterable[Clique]) -> AbstractContextManager[None]:
        """What this thread counts meanwhile, for one question in several looks, is counted in one pass.

        It is for rows that can change unnoticed, of which nothing is kept else: the looks are at the rows as they
        were at the first, which counts all cliques that fit into memory. Afterwards nothing is kept.
        """
        small = [clique for clique in dict.fromkeys(cliques) if self.domain.size(clique) <= DENSE_CELLS]
        return self._counted.one_question(small)

    def _count(self, look: ViewReader | None, wanted: Sequence[Clique]) -> dict[Clique, Counts]:
        """One pass over the rows, or one GROUP BY for each clique of a cover: whichever is cheaper there."""
        if look is not None and self.source.engine.remote:
            from understudy.table.inside import group_counts, grouped_cover

            cover = grouped_cover(self.source, self.domain, wanted, self.unit)
            if cover is not None:
                return group_counts(look, self.domain, cover, wanted, self.unit)
        touched = self.domain.clique({name for clique in wanted for name in clique})
        return self._count_codes(wanted, self._batches(look, touched))

    def _count_codes(self, wanted: Sequence[Clique], batches: Iterator[Codes]) -> dict[Clique, Counts]:
        touched = self.domain.clique({name for clique in wanted for name in clique})
        position = {name: i for i, name in enumerate(touched)}
        counter = MarginalCounter(
            self.domain.shape(touched), [tuple(position[name] for name in clique) for clique in wanted]
        )
        for batch in batches:
            counter.add([batch[name] for name in touched], rows=_rows(batch))
        tables = counter.tables()
        return {clique: tables[tuple(position[name] for name in clique)] for clique in wanted}

    def _check_cells(self, cliques: Iterable[Clique]) -> None:
        distinct = set(cliques)
        cells = sum(self.domain.size(clique) for clique in distinct)
        if cells > CELL_LIMIT:
            raise TooLargeError(f"counting {len(distinct)} marginals at once", cells=cells, limit=CELL_LIMIT)

    def check_size(self, marginals: Sequence[Marginal]) -> None:
        """Refuse what `sums_of` could not hold, or does not belong here. Reads no data."""
        if any(marginal.domain != self.domain for marginal in marginals):
            raise QueryError("the question is about another domain")
        counted = [m for m in marginals if m.moment is None]
        self._check_cells(m.clique for m in counted if self.domain.size(m.clique) <= DENSE_CELLS)
        self._check_cells(grouped_by(m) for m in marginals if m.moment is not None)

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> Counts:
        """For each cell the sum of its rows' weights, in steps of 1/resolution, each weight rounded to one."""
        return self.sums_of([marginal], resolution=resolution)[0]

    def sums_of(self, marginals: Sequence[Marginal], *, resolution: int = 1) -> list[Counts]:
        """The sums of many marginals: one pass for all small cliques, and one for each that is too large."""
        self.check_size(marginals)
        if any(marginal.moment is not None for marginal in marginals):
            return self._with_moments(marginals, resolution)
        if len(marginals) == 1 and self._in_memory():
            known = self._known(marginals[0], resolution)
            if known is not None:
                return [known]
        with self._look() as look:
            return self._summed(look, marginals, resolution)

    def refined(self, domain: Domain) -> Truth:
        """The same rows, counted in the cells of a domain with more edges (`domain.refinement`).

        It shares the source and its lock, keeps no codes, and goes with this one when that is closed. Of a person
        with too many rows it keeps as many in each declared cell as this one does.
        """
        if self._finer is None or self._finer.domain != domain:
            unit = None if self.unit is None else replace(self.unit, cells=self.domain)
            finer = Truth(self.source, domain, unit)
            finer._lock = self._lock
            self._finer = finer
        return self._finer

    def step_tables(self, marginal: Marginal) -> list[StepTable]:
        """For each cell of a marginal the steps of the measure of its quantile, and how many rows lie at each."""
        from understudy.table.moments import step_tables

        self.check_size([marginal])
        with self._look() as look:
            if look is not None:
                return step_tables(look, marginal, self.unit)
            with self.source.look() as values:
                return step_tables(values, marginal, self.unit)

    def _with_moments(self, marginals: Sequence[Marginal], resolution: int) -> list[Counts]:
        """Sums of which some are moments: all in one look, at one state of the table."""
        from understudy.table.moments import moment_sums

        places = [i for i, marginal in enumerate(marginals) if marginal.moment is not None]
        counted = [i for i in range(len(marginals)) if i not in places]
        with self._look() as look:
            found = dict(
                zip(counted, self._summed(look, [marginals[i] for i in counted], resolution), strict=True)
            )
            wanted = [marginals[i] for i in places]
            if look is not None:
                moments = moment_sums(look, wanted, self.unit, resolution=resolution)
            else:  # what is kept in memory are codes, and a measure's values are in the table alone
                with self.source.look() as values:
                    moments = moment_sums(values, wanted, self.unit, resolution=resolution)
        found.update(zip(places, moments, strict=True))
        return [found[i] for i in range(len(marginals))]

    def _summed(
        self, look: ViewReader | None, marginals: Sequence[Marginal], resolution: int
    ) -> list[Counts]:
        dense = {m.clique for m in marginals if self.domain.size(m.clique) <= DENSE_CELLS}
        counts = self._counts(look, sorted(dense)) if dense else {}
        return [
            self._weigh(marginal, counts[marginal.clique], resolution)
            if marginal.clique in counts
            else self._sums_by_row(look, marginal, resolution)
            for marginal in marginals
        ]

    def _weigh(self, marginal: Marginal, counts: Counts, resolution: int) -> Counts:
        if not marginal.where.factors:  # every row counts, and the clique is that of the cells
            return counts.astype(np.int64) * resolution
        steps = np.rint(marginal.where.weights(marginal.clique) * resolution).astype(np.int64)
        summed = tuple(i for i, name in enumerate(marginal.clique) if name not in marginal.by)
        return (counts * steps).sum(axis=summed, dtype=np.int64)

    def _sums_by_row(self, look: ViewReader | None, marginal: Marginal, resolution: int) -> Counts:
        if look is not None and self.source.engine.remote:
            from understudy.table.inside import grouped_sums

            summed = grouped_sums(look, self.source, marginal, self.unit, resolution=resolution)
            if summed is not None:
                return summed
        total = np.zeros(marginal.size, np.int64)
        for batch in self._batches(look, marginal.clique):
            rows = _rows(batch)
            cell = np.zeros(rows, np.intp)
            for name in marginal.by:
                cell = cell * self.domain[name].size + batch[name]
            steps = np.rint(np.broadcast_to(marginal.where.row_weights(batch), rows) * resolution)
            np.add.at(total, cell, steps.astype(np.int64))
        return total.reshape(marginal.shape)

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """Rates over a clique; the uniform law when the table is empty."""
        counts = self.count(clique)
        n = int(counts.sum())
        return counts / n if n else np.full(counts.shape, 1 / counts.size)

    @contextmanager
    def _look(self) -> Iterator[ViewReader | None]:
        """A look at the table; there is nothing to read with where all codes are in memory."""
        with self._lock:
            self._check_open()
            self._looks += 1
            if self._kept:
                self.source.check_unchanged()
                yield None
                self.source.check_unchanged()
                return
            with self.source.look() as look:
                yield look
            # Kept for the next process, where that is permitted, once the look has ended at its first rows.
            if self._unsaved and self._copy is not None and self.version is not None and self._kept:
                self._copy.save(self.version, self.domain, self._kept)
            self._unsaved = False

    def _batches(self, look: ViewReader | None, clique: Clique) -> Iterator[Codes]:
        clique = clique or self.domain.names[:1]  # an engine streams at least one column
        again = self._looks > 1 or self._copy is not None
        if look is not None and self._kept is None and again and self._is_lasting:
            self._keep(look)
        if look is None or self._kept:
            return iter(self._kept or ())
        return look.batches(self.domain, clique, self.unit)

    def _keep(self, look: ViewReader) -> None:
        """Encode the whole table into memory, if it fits; else remember that it does not."""
        room = CACHE_BYTES
        kept: list[Codes] = []
        for batch in look.batches(self.domain, self.domain.names, self.unit):
            room -= sum(codes.nbytes for codes in batch.values())
            if room < 0:
                self._kept = []
                return
            kept.append({name: codes.copy() for name, codes in batch.items()})
        self._kept = kept
        self._unsaved = self._copy is not None


def _rows(batch: Codes) -> int:
    """The number of rows in a batch."""
    return len(next(iter(batch.values())))
