"""What the own counts of questions cost, beside what the same questions cost by themselves.

The allowance compares both, question by question: a session's counts may be dearer than directly by a factor that
it has to know. A question is counted directly some time after its counts were bought, or before its later looks.
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.privacy.joint import Load
from understudy.sessions.cell_loads import is_within


class OwnPrices:
    """Of each question, by its digest, what its own counts cost and what it costs by itself.

    Promise     For every law of rows, own counts cost at most `dearest` times what the same questions cost by
                themselves, and beside that at most `unmatched` units.
    Why         Counts of a question and the question by itself are one part each, with one region or one within
                the other: then the ratio of what they cost is the same for every law, or less (`_ratio`). What is
                not so, and what was bought and is not counted directly yet, is in `unmatched` with the most that
                any law pays of it.
    Privacy     Prices are public.
    """

    def __init__(self) -> None:
        self._paid: dict[int, Load] = {}
        self._alone: dict[int, Load] = {}
        self.dearest = 1.0
        self.unmatched = 0

    def pay(self, question: int, loads: Sequence[Load]) -> None:
        """Remember counts that were bought for a question, of one look or of another."""
        known, most = self._paid.get(question), sum(map(_most, loads))
        if len(loads) != 1 or (known is not None and known[1:] != loads[0][1:]):
            self.unmatched += most
            return
        paid = loads[0] if known is None else known._replace(units=known.units + loads[0].units)
        self._paid[question] = paid
        alone = self._alone.get(question)
        if alone is None or not self._match(paid, alone):
            self.unmatched += most

    def count(self, question: int, loads: Sequence[Load]) -> None:
        """Remember what a question costs by itself, if counts were bought for it: others are answered for nothing
        and, if they are bought all the same some time, stay unmatched.
        """
        paid = self._paid.get(question)
        if paid is None or len(loads) != 1:
            return
        self._alone[question] = loads[0]
        if self._match(paid, loads[0]):
            self.unmatched -= _most(paid)

    def shared(self, question: int) -> Load | None:
        """What a single count that may be divided costs both in the session and directly; None for any other."""
        paid, alone = self._paid.get(question), self._alone.get(question)
        if paid is None or alone is None or not (paid.halved and alone.halved):
            return None
        return paid._replace(units=min(paid.units, alone.units)) if paid.region == alone.region else None

    def paid_by_some(self, question: int) -> int:
        """The most that rows of a region pay for a question that everybody pays for directly."""
        paid, alone = self._paid.get(question), self._alone.get(question)
        if paid is None or alone is None or alone.region or not paid.region:
            return 0
        return _most(paid)

    def _match(self, paid: Load, alone: Load) -> bool:
        """Compare counts with the question by itself; whether that can be done."""
        ratio = _ratio(paid, alone)
        if ratio is None:
            return False
        self.dearest = max(self.dearest, ratio * (1 + 1e-12))
        return True


def _most(load: Load) -> int:
    """The most that a law of rows pays of a load."""
    return -(-load.units // 2) if load.halved else load.units


def _ratio(paid: Load, alone: Load) -> float | None:
    """How many times as much as by itself a question's counts can cost a law of rows; None where it is not known.

    Where everybody pays for the question directly, what counts is the most that any law pays for its counts. Else
    the counts have to be of rows in the same region; if these alone are not divided, they may cost twice as much.
    """
    if alone.units <= 0:
        return 0.0 if paid.units <= 0 else None
    if not alone.region:
        return _most(paid) / alone.units
    if not is_within(paid.region, alone.region):
        return None
    return paid.units * (2 if alone.halved and not paid.halved else 1) / alone.units
