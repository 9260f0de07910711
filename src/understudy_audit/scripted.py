"""A Curator whose looks take their outcomes from a script: those that are known, then fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.charge_terms import ChargeTerms
from understudy.curator.charged_access import Paid
from understudy.curator.curator import Curator
from understudy.curator.prepared_measurement import PreparedMeasurement
from understudy.errors import UnderstudyError
from understudy.mechanism.look import Look
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse, SparseState, SparseStates
from understudy.noise.samplers import NoiseSource
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.query.marginal import Marginal
from understudy_audit.neighbours import whole_numbers

if TYPE_CHECKING:
    from understudy.table.truth import Truth


class UnfoldingError(UnderstudyError):
    """A run did something that runs which are unfolded must not do."""


class LookOutcome(NamedTuple):
    """What a look came to: its value, and the numbers of it that an analyst sees."""

    value: Any
    told: tuple[int, ...]


Draws1 = Callable[[int], Sequence[Any]]
"""So many independent values of one look."""


class Reached(BaseException):
    """A run came to a look whose outcome is not known. No error: nothing that is run may catch it."""

    def __init__(self, outcomes: Callable[[int], list[LookOutcome]]) -> None:
        super().__init__()
        self.outcomes = outcomes


class Over(BaseException):
    """A run was told all that it will be told. No error: nothing that is run may catch it."""


Ends = Callable[[int, Any], bool]
"""Whether a run is over with its so-manieth look, of this outcome."""


class Script:
    """The outcomes of a run's looks: those that are known, then fresh ones, or an end at the first unknown one.

    fresh  how many looks there may be beyond the known ones
    ends   with which of them the run is left; the rest of it tells nothing
    """

    def __init__(
        self,
        known: tuple[LookOutcome, ...],
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
                raise Reached(lambda times: self._drawn(look, times, shown))
            self.said += self._drawn(look, 1, shown)
            if self._ends(len(self.said), self.said[-1].value):
                raise Over
        self._place += 1
        return self.said[self._place - 1].value

    def _drawn(self, look: Draws1, times: int, shown: Callable[[Any], Any]) -> list[LookOutcome]:
        self._is_looking = True
        try:
            values = look(times)
        finally:
            self._is_looking = False
        return [LookOutcome(value, _told(shown(value))) for value in values]


class ScriptedCurator(Curator):
    """A Curator whose looks take their outcomes from a script; all else is the Curator's own.

    A look is drawn many times at once where its mechanism can do that: noise on one long array of the same counts
    over and over, or what the mechanism of a look draws by the same values; else it is looked many times.
    """

    def __init__(self, plain: Curator, script: Script, spends: Cost | None = None) -> None:
        truth = _TiledTruth(plain._truth)
        super().__init__(cast("Truth", truth), plain.ledger, plain.declaration, noise=script)
        self._script = script
        self._spends = spends
        self._tiled = truth
        self._many: Callable[[Callable[[], Any], int], Sequence[Any]] | None = None

    def perform(self, prepared: PreparedMeasurement, **options: Any) -> list[Answer]:
        self._many = self._tiled_values
        return super().perform(prepared, **options)

    def _buy(self, look: Look, **options: Any) -> Paid:
        def many(_: Callable[[], Any], times: int) -> Sequence[Any]:
            counts = self._truth.sums_of(list(look.marginals))
            return look.mechanism.draw_many(look.values(counts), times, noise=self._noise)

        self._many = many
        return super()._buy(look, **options)

    def _tiled_values(self, look: Callable[[], list[list[int]]], times: int) -> list[list[list[int]]]:
        """What `perform` says of the counts over and over is what it says of them, over and over."""
        self._tiled.copies = times
        try:
            flat = look()
        finally:
            self._tiled.copies = 1
        parts = [np.array(numbers, np.int64).reshape(times, -1).tolist() for numbers in flat]
        return [list(row) for row in zip(*parts, strict=True)]

    def _paid(self, event: Event, question: str, terms: ChargeTerms, look: Callable[[], Any]) -> Paid:
        many, self._many = self._many, None

        def values(times: int) -> Sequence[Any]:
            return [look() for _ in range(times)] if many is None else many(look, times)

        def outcome() -> Any:
            if self._spends is not None and self.ledger.spent.units > self._spends.units:
                raise UnfoldingError(f"a run spent {self.ledger.spent}, not {self._spends} at most")
            return self._script.outcome(values)

        return super()._paid(event, question, terms, outcome)

    def _sparse_vector(
        self, threshold: int, epsilon: Fraction, hits: int, *, numeric: bool, share: Fraction
    ) -> AboveThreshold | NumericSparse:
        mechanism = super()._sparse_vector(threshold, epsilon, hits, numeric=numeric, share=share)
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

    def __init__(self, mechanism: AboveThreshold | NumericSparse, script: Script) -> None:
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


def _told(value: Any) -> tuple[int, ...]:
    return (value,) if type(value) is int else tuple(whole_numbers(value))
