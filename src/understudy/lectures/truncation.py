"""The truncation mechanism: exact means, rounded to a grid.

Rounded answers are short transcripts, and short transcripts generalise (`theory.compression`). The mechanism is
not private, since two neighbouring tables can lie on two sides of a boundary: it runs only in projects that
declare `protect: validity`.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

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
        self.asked = sum(1 for _ in self._journal.later())

    def ask(self, question: Asked) -> Checked:
        """The rate of a `question`, a share of rows, rounded to the grid; a repeated question is not counted.

        Returns a `Checked`. Raises a `QueryError` where the question is not one of one number or is about another
        domain, a `ProtectionError` unless the project declares `protect: validity`, and a `HandleClosedError`
        where all queries were asked.
        """
        query = self._reader.read(question)
        marginal = Marginal.of(query)
        with self._lock:
            if (told := self._repeats.find(query.key)) is not None:
                return told
            while True:
                if self.asked >= self.queries:
                    raise HandleClosedError(
                        f"all {self.queries} queries were asked: the certificate counts no more. Another one on "
                        f"the same rows would not hold; it takes new rows"
                    )
                resolution = 1 if query.is_counting else RESOLUTION
                total = int(self.curator.exact(marginal, resolution=resolution))
                rate = Fraction(total, max(self.rows, 1) * resolution)
                cell = min(floor(rate * self.grid), self.grid - 1)
                if self._journal.add(marginal.describe(), {"cell": cell}):
                    self.asked += 1
                    middle = Fraction(2 * cell + 1, 2 * self.grid)
                    found = Checked(float(middle), 1 / (2 * self.grid), self.width, accepted=False)
                    return self._repeats.keep(query.key, found)
                self.asked += sum(1 for _ in self._journal.later())
