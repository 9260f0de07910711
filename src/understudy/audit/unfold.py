"""Many runs of one interaction at once: those that were told the same so far go on as one.

Between two looks a run is a function of the table and of what was released before: coins are tossed inside looks
alone. So the code between looks is run once for each distinct beginning, and the look that it comes to is drawn
once for each run: every draw is made by the mechanism's own code, and the rows that come out are independent and
have the law of single runs. That no coin is tossed anywhere else is checked: a Curator that unfolds has none to
give outside a look. A run is left after its last look, since what it does then is told to nobody.

Runs may share more: given what was told first, the rest of a run must keep the rest of its price, whatever that
was. So a beginning can be fixed, and 100,000 runs that would all begin differently go on as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from understudy.answer import Answer
from understudy.audit.events import Draws
from understudy.audit.neighbours import whole_numbers
from understudy.audit.privacy import UNSAID
from understudy.curator import Curator, Result
from understudy.errors import UnderstudyError
from understudy.ledger.interface import Debit
from understudy.mechanism.look import Look
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse, SparseState, SparseStates
from understudy.noise import NoiseSource
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.query.marginal import Marginal

if TYPE_CHECKING:
    from understudy.table.truth import Truth

ALONE = 2
"""So many runs that share a beginning are better run to their end one by one."""

KEPT = 512
"""So many beginnings are remembered from batch to batch."""

CHECKED = 8
"""So many complete runs of each batch are gone on with, to see that they were complete."""

Act = Callable[[Curator], Any]


class UnfoldingError(UnderstudyError):
    """A run did something that runs which are unfolded must not do."""


class Outcome(NamedTuple):
    """What a look came to: its value, and the numbers of it that an analyst sees."""

    value: Any
    told: tuple[int, ...]


Draws1 = Callable[[int], Sequence[Any]]
"""So many independent values of one look."""


class _Reached(BaseException):
    """A run came to a look whose outcome is not known. No error: nothing that is run may catch it."""

    def __init__(self, outcomes: Callable[[int], list[Outcome]]) -> None:
        super().__init__()
        self.outcomes = outcomes


class _Over(BaseException):
    """A run was told all that it will be told. No error: nothing that is run may catch it."""


Ends = Callable[[int, Any], bool]
"""Whether a run is over with its so-manieth look, of this outcome."""


class _Script:
    """The outcomes of a run's looks: those that are known, then fresh ones, or an end at the first unknown one.

    fresh  how many looks there may be beyond the known ones
    ends   with which of them the run is left; the rest of it tells nothing
    """

    def __init__(
        self,
        known: tuple[Outcome, ...],
        noise: NoiseSource,
        *,
        fresh: float,
        ends: Ends = lambda number, value: False,
    ) -> None:
        self.said = list(known)
        self._place = 0
        self._noise = noise
        self._most = len(known) + fresh
        self._ends = ends
        self._is_looking = False

    def words(self, count: int) -> NDArray[np.uint64]:
        """The coins of a look, as a source of noise; there are none outside."""
        if not self._is_looking:
            raise UnfoldingError("a coin was tossed outside a look")
        return self._noise.words(count)

    def outcome(self, look: Draws1, shown: Callable[[Any], Any] = lambda value: value) -> Any:
        """The outcome of the next look; `shown` says what of it an analyst sees."""
        if self._place == len(self.said):
            if self._place == self._most:
                raise _Reached(lambda times: self._drawn(look, times, shown))
            self.said += self._drawn(look, 1, shown)
            if self._ends(len(self.said), self.said[-1].value):
                raise _Over
        self._place += 1
        return self.said[self._place - 1].value

    def _drawn(self, look: Draws1, times: int, shown: Callable[[Any], Any]) -> list[Outcome]:
        self._is_looking = True
        try:
            values = look(times)
        finally:
            self._is_looking = False
        return [Outcome(value, _told(shown(value))) for value in values]


class UnfoldingCurator(Curator):
    """A Curator whose looks take their outcomes from a script; all else is the Curator's own.

    A look is drawn many times at once where its mechanism can do that: noise on one long array of the same counts
    over and over, or the mechanism's own `release_many`; else it is looked many times.
    """

    def __init__(self, plain: Curator, script: _Script) -> None:
        truth = _TiledTruth(plain._truth)
        super().__init__(cast("Truth", truth), plain.ledger, plain.declaration, noise=script)
        self._script = script
        self._tiled = truth
        self._many: Callable[[Callable[[], Any], int], Sequence[Any]] | None = None

    def measure_all(self, marginals: Sequence[Marginal], **options: Any) -> list[Answer]:
        self._many = self._tiled_values
        return super().measure_all(marginals, **options)

    def run(self, look: Look, **options: Any) -> Any:
        release_many = getattr(look, "release_many", None)
        if release_many is not None:
            self._many = lambda _, times: release_many(
                self._truth.sums_of(list(look.marginals)), times, noise=self._noise
            )
        return super().run(look, **options)

    def _tiled_values(self, look: Callable[[], list[list[int]]], times: int) -> list[list[list[int]]]:
        """What `measure_all` says of the counts over and over is what it says of them, over and over."""
        self._tiled.copies = times
        try:
            flat = look()
        finally:
            self._tiled.copies = 1
        parts = [np.array(numbers, np.int64).reshape(times, -1).tolist() for numbers in flat]
        return [list(row) for row in zip(*parts, strict=True)]

    def _paid(
        self, event: Event, question: str, request: str | None, analyst: str, look: Callable[[], Result]
    ) -> tuple[Debit, Result]:
        many, self._many = self._many, None

        def values(times: int) -> Sequence[Any]:
            return [look() for _ in range(times)] if many is None else many(look, times)

        return super()._paid(event, question, request, analyst, lambda: self._script.outcome(values))

    def _sparse_vector(
        self, threshold: int, epsilon: Fraction, hits: int, *, numeric: bool
    ) -> AboveThreshold | NumericSparse:
        mechanism = super()._sparse_vector(threshold, epsilon, hits, numeric=numeric)
        return cast("AboveThreshold", _ScriptedSparse(mechanism, self._script))


class _TiledTruth:
    """A table's counts, as often over as is wanted."""

    def __init__(self, truth: Any) -> None:
        self._truth = truth
        self.copies = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._truth, name)

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> NDArray[np.int64]:
        return self.sums_of([marginal], resolution=resolution)[0]

    def sums_of(self, marginals: Sequence[Marginal], *, resolution: int = 1) -> list[NDArray[np.int64]]:
        found = self._truth.sums_of(marginals, resolution=resolution)
        if self.copies == 1:
            return found
        return [np.tile(counts, (self.copies,) + (1,) * np.ndim(counts)) for counts in found]


class _ScriptedSparse:
    """A sparse vector whose thresholds and answers take their outcomes from a script."""

    def __init__(self, mechanism: AboveThreshold | NumericSparse, script: _Script) -> None:
        self._mechanism = mechanism
        self._script = script
        self.event = mechanism.event
        self.hits = mechanism.hits

    def open(self, *, noise: NoiseSource) -> SparseState:
        def values(times: int) -> list[SparseState]:
            opened = self._mechanism.open_many(times, noise=noise).noisy_threshold
            return [SparseState(threshold) for threshold in opened.tolist()]

        return self._script.outcome(values, lambda _: [])

    def ask(self, state: SparseState, value: int, *, noise: NoiseSource) -> tuple[Any, SparseState]:
        def values(times: int) -> list[tuple[Any, SparseState]]:
            many = SparseStates(
                np.full(times, state.noisy_threshold, np.int64), np.full(times, state.above, np.int64)
            )
            answers: list[Any]
            if isinstance(self._mechanism, NumericSparse):
                above, numbers, after = self._mechanism.ask_many(many, value, noise=noise)
                told = iter(numbers.tolist())
                answers = [next(told) if one else None for one in above]
            else:
                above, after = self._mechanism.ask_many(many, value, noise=noise)
                answers = above.tolist()
            # Nobody reads the threshold of a handle that is closed: runs that differ in it alone are alike.
            thresholds = np.where(after.above < self.hits, after.noisy_threshold, 0).tolist()
            states = zip(answers, thresholds, after.above.tolist(), strict=True)
            return [(answer, SparseState(t, hits, state.asked + 1)) for answer, t, hits in states]

        return self._script.outcome(values, lambda both: both[0])


@dataclass(frozen=True, eq=False)
class Unfolding:
    """Runs of `act`, each on a fresh Curator of `curator`, as rows of what they were told.

    looks   no run looks more often than that: what is told by the last look is not gone on from. Checked on some.
    width   numbers of a row; what is told beyond is left out, which makes no mechanism look worse.
    is_last whether a run is over with this outcome; where it is false it may be over as well. Checked on some.
    begun   outcomes of the first looks, the same in every run; they are not in the rows.
    """

    act: Act
    curator: Callable[[], Curator]
    looks: int
    width: int
    is_last: Callable[[Any], bool] = lambda value: False
    begun: tuple[Outcome, ...] = ()
    _reached_before: dict[str, Callable[[int], list[Outcome]] | None] = field(default_factory=dict)
    _noise_before: list[NoiseSource] = field(default_factory=list)

    def draw(self, count: int, noise: NoiseSource) -> Draws:
        """So many independent runs, in the order of their numbers."""
        rows = np.full((count, self.width), UNSAID, np.int64)
        waiting: list[tuple[tuple[Outcome, ...], list[int]]] = [(self.begun, list(range(count)))]
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
        self, drawn: list[Outcome], runs: list[int], looks: int
    ) -> tuple[list[tuple[Outcome, int]], list[tuple[Outcome, int]]]:
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

    def _run(self, script: _Script) -> None:
        self.act(UnfoldingCurator(self.curator(), script))

    def _to_the_end(self, known: tuple[Outcome, ...], noise: NoiseSource, *, checked: bool) -> list[int]:
        """What a run is told from the known looks on, up to its last one."""
        script = _Script(known, noise, fresh=inf, ends=self._ends)
        try:
            self._run(script)
        except _Over:
            if checked:
                self._check_complete(tuple(script.said), noise)
        return _numbers(script.said[len(self.begun) :])

    def _reached(
        self, known: tuple[Outcome, ...], noise: NoiseSource
    ) -> Callable[[int], list[Outcome]] | None:
        """The first look after what is known, to be drawn from; None where the run ends before.

        Looks that were reached are kept for the next batch: they are drawn from anew each time.
        """
        if self._noise_before != [noise]:
            self._reached_before.clear()
            self._noise_before[:] = [noise]
        key = repr([outcome.value for outcome in known])
        if key not in self._reached_before:
            if len(self._reached_before) >= KEPT:
                self._reached_before.clear()
            self._reached_before[key] = self._run_to(known, noise)
        return self._reached_before[key]

    def _run_to(
        self, known: tuple[Outcome, ...], noise: NoiseSource
    ) -> Callable[[int], list[Outcome]] | None:
        try:
            self._run(_Script(known, noise, fresh=0))
        except _Reached as reached:
            return reached.outcomes
        return None

    def _check_complete(self, known: tuple[Outcome, ...], noise: NoiseSource) -> None:
        if self._run_to(known, noise) is not None:
            raise UnfoldingError(f"a run looks more than {self.looks} times")


class Beginning(NamedTuple):
    """The first looks of a run, and what they cost."""

    outcomes: tuple[Outcome, ...]
    spent: Cost


def beginning(act: Act, curator: Callable[[], Curator], looks: int, noise: NoiseSource) -> Beginning:
    """The first looks of one run."""
    script, begun = _Script((), noise, fresh=inf, ends=lambda number, _: number == looks), curator()
    if looks:
        try:
            act(UnfoldingCurator(begun, script))
        except _Over:
            return Beginning(tuple(script.said), begun.ledger.spent)
        raise UnfoldingError(f"a run looked {len(script.said)} times, fewer than are given")
    return Beginning((), begun.ledger.spent)


def _grouped(pairs: Sequence[tuple[Outcome, int]]) -> Iterator[tuple[Outcome, list[int]]]:
    """Runs that came to the same outcome, together."""
    groups: dict[str, tuple[Outcome, list[int]]] = {}
    for outcome, run in pairs:
        groups.setdefault(repr(outcome.value), (outcome, []))[1].append(run)
    return iter(groups.values())


def _numbers(outcomes: Iterable[Outcome]) -> list[int]:
    return [number for outcome in outcomes for number in outcome.told]


def _told(value: Any) -> tuple[int, ...]:
    return (value,) if type(value) is int else tuple(whole_numbers(value))
