"""A release: a stand-in with the answers of a workload and what is proved of them; asking it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.cut_bins import CutBins
from understudy.answer.limits import MAX_CELLS, check_cells
from understudy.answer.reader import Asked, QuestionReader
from understudy.answer.sql_answer import SqlAnswer
from understudy.domain.domain import Domain
from understudy.memory import default_limit
from understudy.pages import notebook
from understudy.privacy.cost import ZCDP, Cost, PureDP
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection
from understudy.query.refined import least_refined
from understudy.releases import folder as files
from understudy.releases.agreement import agreeing_rows
from understudy.releases.column_storage import as_stored, framed
from understudy.releases.cut_bins import cut_counts
from understudy.releases.demand import row_bytes
from understudy.releases.run import MarginalAnswer, Progress, Sums
from understudy.releases.stored import as_arrays
from understudy.releases.synthetic import MAX_ROWS, Codes, Within, as_rule, as_table

Cells = NDArray[np.float64]

SOURCES = {"measured": "measured", "certified": "checked", "bounded": "checked"}
"""An answer's source, by the basis of the release's answer that it comes from."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A public stand-in for a table, with the workload's answers and what is proved about them.

    `understudy.release` makes one, and `Release.load` reads a saved one. It is made of released numbers alone: to
    ask it, sample it and show it costs nothing. All answers with a finite error hold together, except with the
    probability `beta` of the certificate.

    domain       the declared attributes and their cells
    standin      the model that answers where nothing was measured, and that synthetic rows are drawn from
    rows         how many people it stands for
    answers      the workload's marginals, each with its numbers and their errors, in people
    certificate  in plain values what is proved, by which theorem, at what price, and which requests to the ledger
                 paid for it
    sums         answers questions beyond single cells, with errors of their own; None where the method gives none
    also         marginals that were measured beside the workload, and answer what they contain with smaller errors
    """

    domain: Domain
    standin: Projection
    rows: float
    answers: tuple[MarginalAnswer, ...]
    certificate: dict[str, Any]
    sums: Sums | None = None
    also: tuple[MarginalAnswer, ...] = ()

    def __repr__(self) -> str:
        told, count = self.certificate, len(self.answers)
        return f"Release({told['table']!r}, {told['method']}, {self.rows:,.0f} people, {count:,} marginals)"

    @property
    def beta(self) -> float:
        """The probability with which some certified error of the release does not hold."""
        return float(self.certificate["beta"])

    @property
    def rows_are_public(self) -> bool:
        """Whether everybody knows the number of rows of the table that it stands for."""
        return self.certificate["privacy"]["neighbours"] == Neighbours.REPLACE

    # ---- asking

    @overload
    def answer(self, query: Marginal | LinearQuery, *, max_cells: int = ...) -> Answer: ...

    @overload
    def answer(self, query: str, *, max_cells: int = ...) -> Answer | SqlAnswer: ...

    def answer(self, query: Asked, *, max_cells: int = MAX_CELLS) -> Answer | SqlAnswer:
        """Answer ``count age < 30 by sex``, ``share …``, a SELECT statement, a marginal or a linear query.

        `query` is any of these. Returns a `SqlAnswer` for a SELECT statement (see `sql`), else an `Answer`: counts
        in people, shares as fractions, with their error where the release certifies one. All errors of a release
        hold together except with its `beta`, and asking costs nothing. Conditions may cut bins anywhere
        (`counts`). Where the number of rows is private, shares are of the number that the release certifies, with
        the errors of both. Raises a `QueryError` where it is not understood, its `TooLargeError` where it has
        more than `max_cells` cells, and a `ParameterError` where that is no number of cells.
        """
        asked = self._reader.read(query)
        check_cells(asked.marginals, max_cells)
        return asked.answer(self.counts(asked.marginals))

    def sql(self, text: str) -> SqlAnswer:
        """Answer a SELECT statement, `text`, with aggregates over the released table, under the table's name.

        Costs nothing. Bounds follow from those of the marginals that the statement needs; where one of these is
        uncertified, from the declaration alone. Raises a `QueryError` where the statement is not understood.
        """
        asked = self._reader.select(text)
        return asked.answer(self.counts(asked.marginals))

    def counts(self, marginals: Sequence[Marginal]) -> SourceCounts:
        """Counts of `marginals`, in people, with their errors where the release certifies them. Costs nothing.

        A question that answered marginals contain is added up from their cells, and so are the ends of their
        intervals. All of them hold together, so the truth lies in all these intervals at once: the answer is the
        value with the shortest one, moved into what the intervals have in common, whose ends are `low` and `high`.
        Any other question is put to the stand-in alone: its answer is `uncertified`, and its error infinite. One
        that cuts bins is `uncertified` too, with certified ends where the release certifies the bins around it,
        and the bins' part apart (`cut_bins`).
        """
        public = self.rows_are_public
        rows = RowBounds(self.rows, self.rows) if public else RowBounds(0.0, inf)
        return SourceCounts(tuple(map(self._counted, marginals)), rows, self.beta, self._nothing)

    def _counted(self, marginal: Marginal) -> CellCounts:
        marginal = least_refined(marginal, self.domain)
        if marginal.domain != self.domain:
            return self._cut(marginal)
        known = self._best(marginal)
        most = self.rows if self.rows_are_public else None
        value, low, high = (np.clip(part, 0, most) for part in (known.counts, known.low, known.high))
        if np.isfinite(known.error).all():
            source, error = SOURCES.get(known.basis, "uncertified"), np.maximum(high - value, value - low)
        else:
            source, low, high = "uncertified", None, None
            error = np.where(np.isfinite(known.error), np.maximum(known.high - value, value - known.low), inf)
        told = Answer(
            marginal, value, error, known.counts, self._nothing, self.beta, source, low=low, high=high
        )
        return CellCounts(told, value, error, low, high)

    def _cut(self, marginal: Marginal) -> CellCounts:
        """A question that cuts bins: uncertified, with certified ends and the bins' part of what lies between."""
        value, cut = cut_counts(marginal, self.domain, self._best, self.standin)
        if self.rows_are_public:
            finite = np.isfinite(cut.high)
            most = np.where(finite, np.minimum(cut.high, self.rows), cut.high)
            value, cut = (
                np.minimum(value, self.rows),
                CutBins.beyond(np.minimum(cut.low, most), most, cut.own),
            )
        error = np.maximum(cut.high - value, value - cut.low)
        told = Answer(marginal, value, error, value, self._nothing, self.beta, "uncertified", cut_bins=cut)
        return CellCounts(told, value, error, cut_bins=cut)

    @cached_property
    def _reader(self) -> QuestionReader:
        public = self.rows_are_public
        tables = {self.certificate["table"]}
        return QuestionReader(
            self.domain, tables=tables, rows_public=public, counts_everyone=not public, refines=True
        )

    @property
    def _nothing(self) -> Cost:
        """The price of an answer: none, in the currency in which the release was paid."""
        return PureDP(0) if self.certificate["cost"]["currency"] == PureDP.currency else ZCDP(0)

    def _best(self, marginal: Marginal) -> MarginalAnswer:
        """What the answered marginals that contain the question say of it, all of them together."""
        wanted = set(marginal.clique)
        found = [
            known
            for answer in sorted((*self.answers, *self.also), key=lambda answer: answer.counts.size)
            if wanted <= set(answer.clique)
            for known in self._added_up(marginal, answer)
        ]
        summed = self.sums.answer(marginal) if self.sums is not None else None
        if summed is not None:
            value, error = summed
            found.append(MarginalAnswer.around(marginal.by, value, error, "measured"))
        if not found:
            value = marginal.answer(self.standin) * self.rows
            return MarginalAnswer.around(marginal.by, value, np.full(value.shape, inf), "uncertified")
        best = min(found, key=lambda known: (known.high - known.low).max(initial=0.0))
        low, high, basis = best.low, best.high, best.basis
        for other in found:
            if ((other.low > low) | (other.high < high)).any():
                low, high = np.maximum(low, other.low), np.minimum(high, other.high)
                basis = basis if basis == other.basis else "certified"
        # Where the ends cross an error bar did not hold, or rounding touched it: what lies between them is left.
        low, high = np.minimum(low, high), np.maximum(low, high)
        return MarginalAnswer(marginal.by, np.clip(best.counts, low, high), low, high, basis)

    def _added_up(self, marginal: Marginal, answer: MarginalAnswer) -> Iterator[MarginalAnswer]:
        """A question from the cells of an answered marginal: Σ w·low ≤ Σ wc ≤ Σ w·high, as w ≥ 0.

        Where the number of all rows is public, those that are not counted tell about those that are.
        """
        weights = marginal.where.weights(answer.clique)
        axes = tuple(i for i, name in enumerate(answer.clique) if name not in marginal.by)
        value, low, high = (
            _weighted(numbers, weights, axes) for numbers in (answer.counts, answer.low, answer.high)
        )
        yield MarginalAnswer(marginal.by, value, low, high, answer.basis)
        if not marginal.by and self.rows_are_public:
            value, most, least = (
                self.rows - _weighted(numbers, 1 - weights, axes)
                for numbers in (answer.counts, answer.low, answer.high)
            )
            yield MarginalAnswer(marginal.by, value, least, most, answer.basis)

    # ---- rows

    def sample(
        self,
        rows: int | None = None,
        *,
        backend: str = "pandas",
        seed: int = 0,
        within: Within | str = Within.UNIFORM,
    ) -> Any:
        """A synthetic table with the source's columns, of `rows` rows, by default `drawn_rows`.

        Returns a frame of the `backend`: `pandas`, `polars` or `arrow`, with the types of the source's columns as
        docs/release.md lists them. The same `seed` gives the same rows: nobody's privacy depends on it. `within`
        says which value of its bin an ordered attribute shows, any one with equal chance (`uniform`) or the middle
        one (`middle`). Raises a `ParameterError` for any other word, for a number of rows that is out of range,
        and where the `backend` is unknown or not installed.
        """
        drawn = self._table(self.draw(rows, seed=seed), seed, as_rule(within))
        return framed(as_stored(drawn, self.domain, self._storage), backend, self._storage)

    def draw(self, rows: int | None = None, *, seed: int = 0) -> Codes:
        """The codes of the rows of `sample`: for each attribute the number of each row's cell.

        There are `rows` of them, by default `drawn_rows`; the same `seed` gives the same ones. They agree with the
        answers as far as whole rows can (`releases.agreement`). Costs nothing. Raises a `ParameterError` for a
        number of rows that is out of range.
        """
        count = self.drawn_rows if rows is None else rows
        told = (*self.answers, *self.also)
        return agreeing_rows(self.standin, told, count, np.random.default_rng([seed, 0]))

    @property
    def drawn_rows(self) -> int:
        """How many synthetic rows are drawn where nobody says how many: one for each person.

        They are fewer where that would not fit into half of this machine's memory: a private number of people
        that was bought for very little can be off by billions.
        """
        return min(round(self.rows), default_limit() // row_bytes(self.domain), MAX_ROWS)

    @property
    def _storage(self) -> Mapping[str, str]:
        """How the source stores its columns (`table.storage`); a release of an earlier version does not say."""
        return self.certificate.get("storage", {})

    def _table(self, codes: Codes, seed: int, rule: Within) -> pa.Table:
        """Values are drawn apart from cells: another rule shows the same cells."""
        rng = np.random.default_rng([seed, 1])
        return as_table(self.domain, codes, rng, within=rule, types=self.certificate["columns"])

    # ---- files and pages

    def save(
        self,
        folder: str | Path,
        *,
        rows: int | None = None,
        seed: int = 0,
        within: Within | str = Within.UNIFORM,
        csv: bool = False,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Write synthetic.parquet, answers.parquet, certificate.json, standin.npz, report.html, README.md.

        They are the files of the new `folder`. `rows`, `seed` and `within` are those of `sample`, for the
        synthetic rows; with `csv` these are written as synthetic.csv, too. The folder appears complete or not at
        all. One that exists is refused, with a `RefusedError`, unless `force` is true, which replaces it.
        `progress` is called before each step, and at the end. Raises a `ParameterError` as `sample` does.
        """
        from understudy.releases.report import page  # with scipy, which takes a moment to load

        target = Path(folder)
        files.check_free(target, force=force)

        def tell(what: str, done: int) -> None:
            if progress is not None:
                progress(Progress(what, done, 3, stage="writing"))

        tell("drawing rows", 0)
        rule, codes = as_rule(within), self.draw(rows, seed=seed)
        with files.whole(target, force=force) as partial:
            tell("writing the report", 1)
            text = page(self, codes)
            tell("writing rows and answers", 2)
            drawn = self._table(codes, seed, rule)
            files.write(
                partial,
                certificate=self.certificate,
                answers=files.answers_table(self.domain, (*self.answers, *self.also)),
                synthetic=as_stored(drawn, self.domain, self._storage),
                standin=as_arrays(self.standin, lambda: self.draw(None if self.rows >= 1 else 1, seed=seed)),
                sums=None if self.sums is None else self.sums.as_arrays(),
                report=text,
                csv=(self.domain, drawn) if csv else None,
            )
        tell("written", 3)

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """The release that `save` wrote into a `folder`.

        Raises a `SourceError` where the folder holds no release, one that is damaged, or one in another format.
        """
        read = files.read(Path(folder))
        rows = float(read.certificate["rows"])
        return cls(read.domain, read.standin, rows, read.answers, read.certificate, read.sums, read.also)

    def _repr_html_(self) -> str:
        told = self.certificate
        known = {
            "method": str(told["method"]),
            "theorem": told["theorem"] or "none",
            "people": f"{self.rows:,.0f}",
            "cost": f"{told['cost']['currency']} {told['cost']['amount']:.6g}",
            "longest error bar": self._longest_bars,
        }
        rows = [
            [
                ", ".join(answer.clique) or "everybody",
                f"{answer.counts.size:,}",
                _shown_bar(longest),
                notebook.ErrorBar(longest if isfinite(longest) else None),
            ]
            for answer in self.answers[: notebook.MOST_ROWS]
            for longest in (_longest(answer),)
        ]
        heads = ["marginal", "cells", "error bar", ""]
        found = notebook.table(heads, rows, numbers=("cells", "error bar"), total=len(self.answers))
        sure = notebook.certainty(self.beta)
        note = f"All error bars hold together with probability {sure}. Asking a release costs nothing."
        return notebook.panel(f"Release of {told['table']}", notebook.facts(known), found, note=note)

    @property
    def answered_cells(self) -> int:
        """How many numbers are answered: the workload's, and what was measured beside it."""
        return sum(answer.counts.size for answer in (*self.answers, *self.also))

    @property
    def usual_half_width(self) -> float:
        """Half of the median interval of the workload's cells, in people; infinite where half have none."""
        halves = [answer.half_width.ravel() for answer in self.answers]
        return float(np.median(np.concatenate(halves))) if halves else inf

    @property
    def largest_half_width(self) -> float:
        """Half of the longest interval of the workload's cells, in people; infinite where some have none."""
        return max(map(_longest, self.answers), default=inf)

    @property
    def largest_half_width_beside(self) -> float | None:
        """The same of the cells that are told beside the workload (`also`); None where there are none."""
        return max(map(_longest, self.also), default=None)

    @property
    def _longest_bars(self) -> str:
        """Both in words."""
        beside = self.largest_half_width_beside
        longest = _shown_bar(self.largest_half_width)
        return longest if beside is None else f"{longest} in the workload, {_shown_bar(beside)} beside it"


def _longest(answer: MarginalAnswer) -> float:
    return float(answer.half_width.max(initial=0.0))


def _shown_bar(half_width: float) -> str:
    return f"± {half_width:,.0f} people" if isfinite(half_width) else "not certified"


def _weighted(numbers: Cells, weights: Cells, axes: tuple[int, ...]) -> Cells:
    """Weighted sums; a weight of 0 also silences an infinite end of an interval."""
    used = np.where(weights > 0, numbers, 0.0)
    return np.asarray((used * weights).sum(axis=axes))
