"""Many runs of one interaction at once: those that were told the same so far go on as one.

Between two looks a run is a function of the table and of what was released before: coins are tossed inside looks
alone. So the code between looks is run once for each distinct beginning, and the look that it comes to is drawn
once for each run: every draw is made by the mechanism's own code, and the rows that come out are independent and
have the law of single runs. That no coin is tossed anywhere else is checked: a Curator that unfolds has none to
give outside a look. (A coin from elsewhere than the Curator's source would not be seen.) A run is left after its
last look, since what it does then is told to nobody.

Runs may share more: given what was told first, the rest of a run must keep the rest of its price, whatever that
was. So a beginning can be fixed, and 100,000 runs that would all begin differently go on as one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from understudy.curator.curator import Curator
from understudy.noise.samplers import NoiseSource
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, Located, Together
from understudy_audit.events import UNSAID, Draws
from understudy_audit.scripted import LookOutcome, Over, Reached, Script, ScriptedCurator, UnfoldingError

ALONE = 2
"""So many runs that share a beginning are better run to their end one by one."""

KEPT = 512
"""So many beginnings are remembered from batch to batch."""

CHECKED = 8
"""So many complete runs of each batch are gone on with, to see that they were complete."""

Act = Callable[[Curator], Any]


@dataclass(frozen=True, eq=False)
class Unfolding:
    """Runs of `act`, each on a fresh Curator of `curator`, as rows of what they were told.

    looks   no run looks more often than that: what is told by the last look is not gone on from. Checked on some.
    width   numbers of a row; what is told beyond is left out, which makes no mechanism look worse.
    is_last whether a run is over with this outcome; where it is false it may be over as well. Checked on some.
    is_cut  runs may look more often than that, and what they are told then is left out.
    spends  no run has spent more at its last look; checked at every look.
    begun   outcomes of the first looks, the same in every run; they are not in the rows.
    """

    act: Act
    curator: Callable[[], Curator]
    looks: int
    width: int
    is_last: Callable[[Any], bool] = lambda value: False
    is_cut: bool = False
    spends: Cost | None = None
    begun: tuple[LookOutcome, ...] = ()
    _reached_before: dict[bytes, Callable[[int], list[LookOutcome]] | None] = field(default_factory=dict)
    _noise_before: list[NoiseSource] = field(default_factory=list)

    def draw(self, count: int, noise: NoiseSource) -> Draws:
        """So many independent runs, in the order of their numbers."""
        rows = np.full((count, self.width), UNSAID, np.int64)
        waiting: list[tuple[tuple[LookOutcome, ...], list[int]]] = [(self.begun, list(range(count)))]
        to_check = CHECKED
        while waiting:
            known, runs = waiting.pop()
            before = _numbers(known[len(self.begun) :])
            if len(runs) <= ALONE:
                for run in runs:
                    told = self._to_the_end(known, noise, checked=to_check > 0)
                    self._enter(rows, [run], [told])
                to_check = max(0, to_check - len(runs))
                continue
            outcomes = self._reached(known, noise)
            if outcomes is None:
                self._enter(rows, runs, [before] * len(runs))
                continue
            ended, going_on = self._divided(outcomes(len(runs)), runs, len(known) + 1)
            waiting.extend(((*known, outcome), same) for outcome, same in _grouped(going_on))
            for outcome, _ in ended[:to_check]:
                self._check_complete((*known, outcome), noise)
            to_check = max(0, to_check - len(ended))
            self._enter(rows, [run for _, run in ended], [[*before, *outcome.told] for outcome, _ in ended])
        return rows

    def _divided(
        self, drawn: list[LookOutcome], runs: list[int], looks: int
    ) -> tuple[list[tuple[LookOutcome, int]], list[tuple[LookOutcome, int]]]:
        """Runs that are over with their outcome, and runs that are not."""
        both = list(zip(drawn, runs, strict=True))
        over = [self._ends(looks, outcome.value) for outcome in drawn]
        return (
            [pair for pair, is_over in zip(both, over, strict=True) if is_over],
            [pair for pair, is_over in zip(both, over, strict=True) if not is_over],
        )

    def _ends(self, looks: int, value: Any) -> bool:
        return looks >= self.looks or self.is_last(value)

    def _enter(self, rows: Draws, runs: list[int], told: list[list[int]]) -> None:
        """What each of some runs was told, as a row."""
        lengths = {len(numbers) for numbers in told}
        if len(lengths) <= 1:
            if not told:
                return
            kept = np.array(told, np.int64)[:, : self.width]
            rows[runs, : kept.shape[1]] = kept
            return
        for run, numbers in zip(runs, told, strict=True):
            self._enter(rows, [run], [numbers])

    def _run(self, script: Script) -> None:
        self.act(ScriptedCurator(self.curator(), script, self.spends))

    def _to_the_end(self, known: tuple[LookOutcome, ...], noise: NoiseSource, *, checked: bool) -> list[int]:
        """What a run is told from the known looks on, up to its last one."""
        script = Script(known, noise, fresh=inf, ends=self._ends)
        try:
            self._run(script)
        except Over:
            if checked:
                self._check_complete(tuple(script.said), noise)
        return _numbers(script.said[len(self.begun) :])

    def _reached(
        self, known: tuple[LookOutcome, ...], noise: NoiseSource
    ) -> Callable[[int], list[LookOutcome]] | None:
        """The first look after what is known, to be drawn from; None where the run ends before.

        Looks that were reached are kept for the next batch: they are drawn from anew each time.
        """
        if self._noise_before != [noise]:
            self._reached_before.clear()
            self._noise_before[:] = [noise]
        key = pickle.dumps([outcome.value for outcome in known])
        if key not in self._reached_before:
            if len(self._reached_before) >= KEPT:
                self._reached_before.clear()
            self._reached_before[key] = self._run_to(known, noise)
        return self._reached_before[key]

    def _run_to(
        self, known: tuple[LookOutcome, ...], noise: NoiseSource
    ) -> Callable[[int], list[LookOutcome]] | None:
        try:
            self._run(Script(known, noise, fresh=0))
        except Reached as reached:
            return reached.outcomes
        return None

    def _check_complete(self, known: tuple[LookOutcome, ...], noise: NoiseSource) -> None:
        if not self.is_cut and self._run_to(known, noise) is not None:
            raise UnfoldingError(f"a run looks more than {self.looks} times")


class Beginning(NamedTuple):
    """The first looks of a run, and what they cost."""

    outcomes: tuple[LookOutcome, ...]
    spent: Cost


def beginning(act: Act, curator: Callable[[], Curator], looks: int, noise: NoiseSource) -> Beginning:
    """The first looks of one run.

    What follows costs the rest only where prices add up, and where nothing is hidden: so neither questions that
    are priced jointly nor sparse vectors are given.
    """
    script, begun = Script((), noise, fresh=inf, ends=lambda number, _: number == looks), curator()
    try:
        act(ScriptedCurator(begun, script))
    except Over:
        pass
    else:
        raise UnfoldingError(f"a run looked {len(script.said)} times, fewer than are given")
    if not all(outcome.told for outcome in script.said):
        raise UnfoldingError("a beginning with a hidden state cannot be given")
    if any(_is_located(debit.event) for debit in begun.ledger.debits()):
        raise UnfoldingError("a beginning that is priced jointly with what follows cannot be given")
    return Beginning(tuple(script.said), begun.ledger.spent)


def _is_located(event: Event) -> bool:
    parts = event.events if isinstance(event, Together) else (event,)
    return any(isinstance(part, Located) for part in parts)


def _grouped(pairs: Sequence[tuple[LookOutcome, int]]) -> Iterator[tuple[LookOutcome, list[int]]]:
    """Runs that came to the same outcome, together."""
    groups: dict[bytes, tuple[LookOutcome, list[int]]] = {}
    for outcome, run in pairs:
        groups.setdefault(pickle.dumps(outcome.value), (outcome, []))[1].append(run)
    return iter(groups.values())


def _numbers(outcomes: Iterable[LookOutcome]) -> list[int]:
    return [number for outcome in outcomes for number in outcome.told]
