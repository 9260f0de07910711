"""A SELECT statement as a question: the marginals that it needs, and the rows that their counts give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from understudy.answer.answer import noise_together, on_population
from understudy.answer.counts import Floats, SourceCounts
from understudy.answer.sql_answer import SqlAnswer
from understudy.answer.statement_question import StatementQuestion
from understudy.query.cell_noise import CellNoise
from understudy.query.column import Column

if TYPE_CHECKING:
    from understudy.sql import CompiledSql, Estimate
    from understudy.sql.estimate import Key


@dataclass(frozen=True, eq=False)
class SelectQuestion(StatementQuestion):
    """A SELECT statement."""

    compiled: CompiledSql

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.compiled.columns

    def error(self, errors: Sequence[float], noises: Sequence[CellNoise | None] = ()) -> float:
        """How far a number of people in the answer can be off, from the errors of the marginals' cells.

        A group of several declared cells is off by more than each of them (`CompiledSql.error`).
        """
        return self.compiled.error(errors, noises)

    def with_all_rows(self) -> SelectQuestion:
        """The same statement without HAVING, ORDER BY, LIMIT and OFFSET: all groups that WHERE leaves possible."""
        return replace(self, compiled=replace(self.compiled, program=self.compiled.program.with_all_rows))

    def _evaluated(
        self, counts: SourceCounts, centres: list[Floats], widths: list[Floats]
    ) -> list[tuple[Key | Estimate, ...]]:
        """The rows; where conditions cut bins, bounds are certified ends and `discretisation` holds the bins.

        Ends that do not lie evenly around the counts come without bounds of running sums, and without noises.
        """
        above, below = _sides(counts)
        if below is None:
            throughs = [cells.through for cells in counts.cells]
            noises = [cells.noise for cells in counts.cells]
            return self.compiled.evaluate(
                centres,
                widths,
                rows=counts.rows.bound,
                throughs=throughs,
                noises=noises,
                measured=counts.is_measured,
            )
        bare = [cells.without_bins() for cells in counts.cells]
        return self.compiled.evaluate(
            centres,
            above,
            below=below,
            bare=[cells.above for cells in bare],
            bare_below=[cells.below for cells in bare],
            rows=counts.rows.bound,
            measured=counts.is_measured,
        )

    def answer(self, counts: SourceCounts) -> SqlAnswer:
        """The statement's rows.

        Their population error follows from those of the counts alone: these hold all at once except with
        probability `population_beta`, and whatever is made of counts within their errors is within its own
        (`CompiledSql.reach`). There is one only where every count has one.
        """
        centres = [cells.centre for cells in counts.cells]
        widths = [cells.half_width for cells in counts.cells]
        noises = [cells.noise for cells in counts.cells]
        told = self._evaluated(counts, centres, widths)
        answers = [cells.answer for cells in counts.cells]
        reach, beta, theorem = None, None, None
        if (expected := counts.population_widths) is not None:
            reach = tuple(
                self.compiled.reach(
                    centres,
                    widths,
                    expected,
                    rows=counts.rows.bound,
                    noises=noises,
                    measured=counts.is_measured,
                )
            )
            beta, theorem = on_population(answers)
        throughs = [cells.through for cells in counts.cells]
        above, below = _sides(counts)
        sorts = self.compiled.is_in_order(
            centres,
            above,
            below=below,
            rows=counts.rows.bound,
            throughs=throughs,
            noises=noises,
            measured=counts.is_measured,
        )
        return SqlAnswer(
            text=self.text,
            columns=self.compiled.columns,
            cells=tuple(told),
            cost=counts.cost,
            beta=counts.beta,
            sources=tuple(answer.source for answer in answers),
            population_error=reach,
            population_beta=beta,
            population_theorem=theorem,
            order=None if sorts is None else "certified" if sorts else "uncertified",
            noise=noise_together(answer.noise for answer in answers),
        )


def _sides(counts: SourceCounts) -> tuple[list[Floats], list[Floats] | None]:
    """How far the table's counts can be above the centres, and how far below where that is not the same."""
    above = [cells.above for cells in counts.cells]
    if all(cells.below is cells.above for cells in counts.cells):
        return above, None
    return above, [cells.below for cells in counts.cells]
