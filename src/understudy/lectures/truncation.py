"""The truncation mechanism: exact means, rounded to a grid.

Rounded answers are short transcripts, and short transcripts generalise (`theory.compression`). The mechanism is
not private, since two neighbouring tables can lie on two sides of a boundary: it runs only in projects that
declare `protect: validity`.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

from understudy.curator.curator import Curator
from understudy.curator.of_table import curator_of
from understudy.errors import HandleClosedError, ParameterError
from understudy.lectures.asking import Asked, QueryReader, RepeatMemory
from understudy.lectures.guess_and_check import RESOLUTION, Checked
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.journal import Journal
from understudy.project import Project
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact, probability
from understudy.theory.compression import truncation_width


class Truncation:
    """Rates rounded to the middles of G cells, G chosen best for n rows and k = `queries` queries.

    `table` is the project, or its Curator. Under the same `name` it goes on where it was, in any process, since
    its answers are kept in the ledger; `analyst` is who is written down for it. `width`, `grid` (which is G) and
    `asked` can be read. Nothing is charged: exact values are rounded, which protects nobody's privacy. Raises a
    `ParameterError` where there is to be no query, or where `beta` is no probability, and a `RefusedError` where
    the number of rows is private.

    Accuracy    Within 1/(2G) of the sample, always; within `width` of the population for all k adaptive queries
                with probability 1 - β: a union over the N = Σ_{i<k} G^i queries that can be asked at all.
    """

    def __init__(
        self,
        table: Curator | Project,
        *,
        queries: int,
        beta: Number = 0.05,
        name: str = "",
        analyst: str = "",
    ) -> None:
        if queries < 1:
            raise ParameterError("give the number of queries, at least 1")
        curator = curator_of(table)
        self.curator = curator
        self._reader = QueryReader(curator)
        self._repeats: RepeatMemory[Checked] = RepeatMemory()
        self.queries = queries
        self.beta = probability(beta)
        self.rows = curator.rows
        self.width, self.grid = truncation_width(max(self.rows, 1), queries, exact(beta))
        terms = f"truncation to {self.grid} cells queries {queries} beta {self.beta}"
        self._lock = AskingLock("mechanism")
        self._journal = curator.recorded(
            terms, lambda text: Journal(curator.ledger, text, name=name, analyst=analyst)
        )
        self.asked = 0
        self._catch_up()

    def ask(self, question: Asked) -> Checked:
        """The rate of a `question`, a share of rows, rounded to the grid; a repeated question is not counted.

        Returns a `Checked`: that of before, where the question was answered before under this name. Raises a
        `QueryError` where the question is not one of one number or is about another domain, a `ProtectionError`
        unless the project declares `protect: validity`, and a `HandleClosedError` where all queries were asked.
        """
        query = self._reader.read(question)
        marginal = Marginal.of(query)
        with self._lock:
            while (told := self._repeats.find(marginal.key)) is None:
                if self.asked >= self.queries:
                    raise HandleClosedError(
                        f"all {self.queries} queries were asked: the certificate counts no more. Another one on "
                        f"the same rows would not hold; it takes new rows"
                    )
                resolution = 1 if query.is_counting else RESOLUTION
                total = int(self.curator.exact(marginal, resolution=resolution))
                rate = Fraction(total, max(self.rows, 1) * resolution)
                cell = min(floor(rate * self.grid), self.grid - 1)
                step = {"asked": marginal.key, "cell": cell}
                if self._journal.add(marginal.describe(), step):
                    return self._take(step)
                self._catch_up()
            return told

    def _catch_up(self) -> None:
        """Take every answer that was written down here or elsewhere."""
        for step in self._journal.later():
            self._take(step)

    def _take(self, step: dict[str, Any]) -> Checked:
        """Count an answer, and remember it; in journals of version 0.1 it does not say what was asked."""
        self.asked += 1
        middle = Fraction(2 * step["cell"] + 1, 2 * self.grid)
        told = Checked(float(middle), 1 / (2 * self.grid), self.width, accepted=False)
        return self._repeats.keep(step["asked"], told) if "asked" in step else told
