"""Which exact counts are kept, and for how long: what is asked round after round is counted once.

Of rows whose every change is noticed, as those of a file, counts are kept from look to look, those that were used
last, and what was announced is counted along with the next pass. Of rows that can change unnoticed, as those of a
database, nothing is kept between questions; within one, all looks are at the rows as they were at its first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain

COUNTED_CELLS = 1 << 23
"""Cells of counts that are kept."""

Counts = NDArray[np.int64]

Pass = Callable[[Sequence[Clique]], dict[Clique, Counts]]
"""Counts the rows in the cells of several cliques, in one pass over them."""


class KeptCounts:
    """The counts of one table that were taken before: as sensitive as its rows, and only a `Truth` holds them.

    `lasting` says whether every change of the rows is noticed before the next look.
    """

    def __init__(self, domain: Domain, *, lasting: bool) -> None:
        self._domain = domain
        self._is_lasting = lasting
        self._kept: OrderedDict[Clique, Counts] = OrderedDict()
        self._expected: tuple[Clique, ...] = ()
        self._question = threading.local()

    def __len__(self) -> int:
        """How many cliques there are counts of."""
        return len(self._kept)

    def forget(self) -> None:
        """Let go of every count."""
        self._kept.clear()

    def anticipate(self, cliques: Iterable[Clique]) -> None:
        """What will be asked later is counted in the next pass over the rows, where counts are kept at all."""
        self._expected = tuple(cliques)

    def counted(self, wanted: Sequence[Clique], count: Pass) -> dict[Clique, Counts]:
        """Counts of at least the wanted cliques: those that are kept, and the others from one pass."""
        if not self._is_lasting:
            return self._of_question(wanted, count)
        found = {clique: self._kept[clique] for clique in wanted if clique in self._kept}
        new = [clique for clique in wanted if clique not in found]
        if new:
            expected, self._expected = self._expected, ()
            found |= count([*new, *self._taken_along(new, expected, self._kept)])
        for clique in (*(clique for clique in found if clique not in wanted), *wanted):
            found[clique].flags.writeable = False
            self._kept[clique] = found[clique]
            self._kept.move_to_end(clique)
        cells = sum(table.size for table in self._kept.values())
        while cells > COUNTED_CELLS:
            cells -= self._kept.popitem(last=False)[1].size
        return found

    @contextmanager
    def one_question(self, cliques: Sequence[Clique]) -> Iterator[None]:
        """What this thread counts meanwhile is counted in one pass, with the given cliques, and then forgotten."""
        if getattr(self._question, "held", None) is not None:  # a part of a question that is being answered
            yield
            return
        self._question.held = None if self._is_lasting else ([*cliques], dict[Clique, Counts]())
        try:
            yield
        finally:
            self._question.held = None

    def _of_question(self, wanted: Sequence[Clique], count: Pass) -> dict[Clique, Counts]:
        """Counts of rows that can change: those of the question that this thread answers are kept for it."""
        held = getattr(self._question, "held", None)
        if held is None:
            return count(wanted)
        expected, known = held
        new = [clique for clique in wanted if clique not in known]
        if new:
            new += self._taken_along(new, expected, known)
            expected.clear()
            known |= count(new)
        return {clique: known[clique] for clique in wanted}

    def _taken_along(
        self, new: Sequence[Clique], expected: Iterable[Clique], known: Iterable[Clique]
    ) -> list[Clique]:
        """Those of the expected cliques that are counted with new ones, as far as their counts have room."""
        room = COUNTED_CELLS // 2 - sum(map(self._domain.size, new))
        seen, taken = {*new, *known}, []
        for clique in dict.fromkeys(expected):
            if clique not in seen and (room := room - self._domain.size(clique)) >= 0:
                taken.append(clique)
        return taken
