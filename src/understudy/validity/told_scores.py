"""What a holdout has told, and what it tells next: at most so many scores, each kept before it leaves.

The mode says the next step from the memory of all steps before it, whoever was told them. The step is the only
thing that is ever released about a score; it is kept in the journal first, and what cannot be kept was not
said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from understudy.errors import HandleClosedError, ParameterError
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.journal import Journal
from understudy.noise.samplers import NoiseSource
from understudy.validity.first_score import FirstScoreDecides
from understudy.validity.ladder import FreeLadder
from understudy.validity.metric import Area, Metric
from understudy.validity.modes import HoldoutMode, SealedLook, check_worth
from understudy.validity.noise_filter import NoiseFilter
from understudy.validity.scope import Way, about
from understudy.validity.score import JournaledScore, Memory, Score, read_all, say_all


class ToldScores:
    """Scores by one `metric`, told by one `mode`, at most `queries` of them, and counted in one `journal`.

    `noise` is where random numbers come from. `tolerance` is the largest width that a mode may have which the
    first score decides on; `has_features` says whether predictions can be made by somebody who knows the rows.
    """

    def __init__(
        self,
        journal: Journal,
        mode: HoldoutMode,
        metric: Metric | Area,
        queries: int,
        *,
        noise: NoiseSource,
        tolerance: float,
        has_features: bool,
    ) -> None:
        self.metric = metric
        self.queries = queries
        self._mode = mode
        self._each, self._besides = metric.asked
        self._noise = noise
        self._tolerance = tolerance
        self._has_features = has_features
        self._lock = AskingLock("holdout")
        self._memory = Memory()
        self._ways: set[str] = set()
        self._unprevented: set[str] = set()
        self._journal = journal
        self._catch_up()

    @property
    def mode(self) -> HoldoutMode:
        """How scores are told. Under "auto" a `FirstScoreDecides`, where the first score has still to decide."""
        if isinstance(self._mode, FirstScoreDecides):
            with self._lock:  # another process may have been told the first score
                self._catch_up()
        return self._mode

    @property
    def left(self) -> int:
        """How many scores the certificate still covers, after all that any process was given under its file."""
        with self._lock:
            self._catch_up()
            return self.queries - self._scores(self._memory)

    def history(self) -> list[tuple[str, Score]]:
        """All scores that were given, in order, each with the label under which it was asked for."""
        memory, told, ways = Memory(), [], set()
        for step in self._journal.all():
            ways.add(_way(step))
            try:
                said = read_all(self.mode, self.metric, step, memory)
            except HandleClosedError:
                continue
            told.append((step.get("label", ""), self._scored(said, memory, ways)))
        return told

    @property
    def least_scale(self) -> float | None:
        """The least scale of noise that the next score may have, by the mode's cap; None where there is no choice.

        A score by a metric of several means asks for so much noise on each.
        """
        noise: NoiseFilter | None = getattr(self.mode, "filter", None)
        if noise is None:
            return None
        with self._lock:
            self._catch_up()
            means = self._each + (0 if self._memory.once else self._besides)
            return noise.least_scale(self._memory.heard.units, means)

    def _check_scale(self, scale: float) -> None:
        """Refuse a scale that the next score may not have, before anything is done for it."""
        noise: NoiseFilter | None = getattr(self.mode, "filter", None)
        if noise is None:
            raise ParameterError(
                f"the noise of the mode {self.mode.name} is fixed: leave `scale` out, or use the mode bounded"
            )
        with self._lock:
            self._catch_up()
            means = self._each + (0 if self._memory.once else self._besides)
            noise.admit(self._memory.heard.units, scale, means)

    def _tell(
        self,
        looks: Sequence[SealedLook],
        how: dict[str, Any],
        scale: float | None = None,
        guess_rows: int | None = None,
    ) -> Score:
        """Say what the mode says of all looks of a score; `how` it was asked for is kept with the answer."""
        if scale is not None:
            self._check_scale(scale)
        looks = [replace(look, scale=scale) for look in looks]
        kept = {name: value for name, value in how.items() if value}
        with self._lock:
            while True:
                self._catch_up()
                told = self._scores(self._memory)
                if told >= self.queries:
                    raise HandleClosedError(
                        f"all {self.queries} scores were given: the certificate covers no more. New rows make a "
                        f"new holdout"
                    )
                # What is drawn counts once it is kept: where another process spoke first, or the journal cannot be
                # written, nothing was said, and the noisy threshold that the journal holds stays the one.
                drawn = self._memory.copy()
                mode, decided = self._mode_for(looks[0], guess_rows)
                if len(looks) == 1:
                    step = mode.say(looks[0], drawn.heard, noise=self._noise) | kept | decided
                else:
                    parts, first = looks[: self._each], looks[self._each :]
                    step = say_all(mode, parts, first, drawn, noise=self._noise) | kept | decided
                secret = {} if isinstance(self._mode, FreeLadder) else drawn.heard.secret
                if self._journal.add(f"score {told + 1}", step, hidden=json.dumps(secret).encode()):
                    self._mode = mode
                    self._memory.heard.secret = drawn.heard.secret
                    self._asked_by(step)
                    said = read_all(self._mode, self.metric, step, self._memory)
                    return self._scored(said, self._memory, self._ways)

    def _mode_for(self, look: SealedLook, guess_rows: int | None) -> tuple[HoldoutMode, dict[str, str]]:
        """The mode of the next score, and what its step says of it: the first one decides where that is open.

        Raises a `RefusedError` where the mode that it would take is wider than the tolerance.
        """
        if not isinstance(self._mode, FirstScoreDecides):
            return self._mode, {}
        taken = self._mode.settled(look, guess_rows)
        check_worth(taken, self._tolerance)
        return taken, {"mode": taken.name}

    def _scored(self, said: JournaledScore, memory: Memory, ways: set[str]) -> Score:
        left = self.queries - self._scores(memory)
        scope = about(ways, has_features=self._has_features)
        return Score(said.value, said.width, said.source, left, scope, said.interval, self.metric.scale)

    def _scores(self, memory: Memory) -> int:
        """How many scores were told."""
        return ceil(max(memory.heard.asked - self._besides, 0) / self._each)

    def _asked_by(self, step: dict[str, Any]) -> None:
        self._ways.add(_way(step))
        self._unprevented.update(step.get("unprevented", ()))

    def _catch_up(self) -> None:
        before = self._journal.length
        for step in self._journal.later():
            if isinstance(self._mode, FirstScoreDecides):
                self._mode = self._mode.told(step)
            self._asked_by(step)
            try:
                read_all(self._mode, self.metric, step, self._memory)
            except HandleClosedError:  # it halted there, and says so to whoever asks next
                continue
        if self._journal.length > before:
            # A noisy threshold belongs to the holdout, not to this process: it is never drawn again.
            self._memory.heard.secret = json.loads(self._journal.hidden)


def _way(step: dict[str, Any]) -> str:
    """How a step was asked for. Version 0.1 did not say: what holds for predictions holds in any case."""
    return step.get("way", Way.PREDICTIONS)
