"""Record a run on one table, replay it on a neighbour: what an analyst can see must be the same.

Two replays of one run, each on the neighbouring table:

forced      the neighbour's Curator is made to release what the first one released. Then every later call, price,
            size, question and refusal must be the same, and so must what is made of the releases and handed over:
            anything else shows that something besides them read the data.
same coins  the neighbour's Curator gets the very words that the first one's noise was made of. An additive
            mechanism then releases values that differ by exactly what the exact values differ, so the distance of
            two releases is that of what met the noise: it must not exceed the sensitivity in the debit's event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from audit.coins import RecordingNoise, ReplayedNoise
from understudy.curator.curator import Curator
from understudy.errors import UnderstudyError
from understudy.ledger.interface import Debit, JournalStep
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import NoiseSource
from understudy.privacy.budget import Budget
from understudy.privacy.event import Event, GaussianNoise, LaplaceNoise, Located, Together
from understudy.privacy.recording import as_plain
from understudy_audit.neighbours import Rows, Setting

Act = Callable[[Curator], Any]

TRIES = 10_000
"""How often a sparse vector may be asked again for the recorded answer before the replay gives up."""

PUBLIC_STATE = b"-"
"""What journals keep as state: their answers are plans, made of public values."""


@dataclass(frozen=True)
class Call:
    """One public step of a run: what was charged, asked, kept, and how large it was."""

    kind: str
    event: str
    question: str
    cost: int
    size: int


@dataclass
class RecordedRun:
    """A run: its public calls, its released answers by debit, what it handed over, and how it ended."""

    calls: list[Call] = field(default_factory=list)
    answers: list[tuple[Event, Any]] = field(default_factory=list)
    settled: dict[int, bytes] = field(default_factory=dict)
    advanced: dict[tuple[int, int], bytes] = field(default_factory=dict)
    handed: str = ""
    ending: str = ""


class ReplayError(UnderstudyError):
    """A recorded run could not be forced onto the neighbouring table."""


class RecordingLedger(MemoryLedger):
    """A ledger in memory that writes down every public step, and makes answers those of a `script`.

    `settle` keeps a debit's first answer and releases nothing else: a script is as if that one had come first. A
    sparse vector's answer that is not the script's is refused as if another process had come first, so that the
    handle draws again.
    """

    def __init__(self, budget: Budget, *, script: RecordedRun | None = None) -> None:
        super().__init__(budget)
        self.run = RecordedRun()
        self._script = script
        self._tries = 0

    def charge(
        self,
        event: Event,
        *,
        question: str,
        request: str,
        analyst: str = "",
        hidden: bytes | None = None,
        step: JournalStep | None = None,
    ) -> Debit:
        debit = super().charge(
            event, question=question, request=request, analyst=analyst, hidden=hidden, step=step
        )
        if step is not None:  # a plan, made of public values, that is kept with the debit
            self._note("advance", event, f"{step.question} {step.text.decode()}", 0, 1)
        if not debit.repeated:
            self._note("charge", event, question, debit.cost.units, 0)
        return debit

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        own = answer
        if self._script is not None:
            answer = self._script.settled.get(debit.number, answer)
        kept = super().settle(debit, answer, hidden=hidden)
        self.run.settled[debit.number] = kept
        if hidden is None:
            self.run.answers.append((debit.event, json.loads(kept)))
            # The size of what this table would have released: it is seen as well.
            self._note("settle", debit.event, debit.question, 0, _count(json.loads(own)))
        return kept

    def advance(self, debit: Debit, *, step: int, question: str, answer: bytes, state: bytes) -> bool:
        wanted = None if self._script is None else self._script.advanced.get((debit.number, step))
        if wanted is not None and state != PUBLIC_STATE and not _alike(wanted, answer):
            self._tries += 1
            if self._tries > TRIES:
                raise ReplayError("the recorded answer does not come up on the neighbouring table")
            return False
        done = super().advance(debit, step=step, question=question, answer=answer, state=state)
        if done:
            self.run.advanced[debit.number, step] = answer
            shown = question if state != PUBLIC_STATE else f"{question} {answer.decode()}"
            self._note("advance", debit.event, shown, 0, 1)
        return done

    def _note(self, kind: str, event: Event, question: str, cost: int, size: int) -> None:
        self.run.calls.append(Call(kind, json.dumps(as_plain(event)), question, cost, size))


def _alike(wanted: bytes, answer: bytes) -> bool:
    """Whether two answers of a sparse vector are the same, or both are numbers: a number is a released value."""
    one, two = json.loads(wanted), json.loads(answer)
    if isinstance(one, bool) or one is None:
        return one == two
    return isinstance(two, int) and not isinstance(two, bool)


def _count(told: Any) -> int:
    return sum(map(_count, told)) if isinstance(told, list) else 1


def perform(
    setting: Setting, rows: Rows, act: Act, noise: NoiseSource, script: RecordedRun | None = None
) -> RecordedRun:
    """One run over a table; what `act` returns, and how it ended, are part of what an analyst sees."""
    ledger = RecordingLedger(setting.budget, script=script)
    curator = setting.curator(rows, noise=noise, ledger=ledger)
    try:
        ledger.run.handed = digest(act(curator))
        ledger.run.ending = f"done, {ledger.spent.units} spent"
    except ReplayError:
        raise
    except Exception as error:
        ledger.run.ending = f"{type(error).__name__}: {error}; {ledger.spent.units} spent"
    return ledger.run


def digest(value: Any) -> str:
    """A name for plain values and arrays, nested; equal for equal ones, to the last bit."""
    return sha256(_bits(value)).hexdigest()


def _bits(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} ".encode() + value.tobytes()
    if isinstance(value, dict):
        return _bits([[key, value[key]] for key in sorted(value)])
    if isinstance(value, list | tuple):
        return b"[" + b",".join(_bits(part) for part in value) + b"]"
    return repr(value).encode()


@dataclass(frozen=True)
class Difference:
    """What a replay showed that it must not."""

    kind: str
    detail: str


def control_flow(
    setting: Setting, first: Rows, second: Rows, act: Act, *, noise: NoiseSource
) -> list[Difference]:
    """Run on one table, force the same releases on the other, and compare all that is public."""
    recorded = perform(setting, first, act, noise)
    return differences(recorded, perform(setting, second, act, noise, script=recorded))


def differences(recorded: RecordedRun, replayed: RecordedRun) -> list[Difference]:
    """All that is public of a run, against that of the one that was forced to follow it."""
    found = [
        Difference("call", f"step {i + 1}: {one} / {two}")
        for i, (one, two) in enumerate(zip(recorded.calls, replayed.calls, strict=False))
        if one != two
    ]
    if len(recorded.calls) != len(replayed.calls):
        found.append(Difference("length", f"{len(recorded.calls)} steps / {len(replayed.calls)} steps"))
    if recorded.handed != replayed.handed:
        found.append(Difference("handed over", "the same releases were made into something else"))
    if recorded.ending != replayed.ending:
        found.append(Difference("ending", f"{recorded.ending} / {replayed.ending}"))
    return found


def sensitivities(
    setting: Setting, first: Rows, second: Rows, act: Act, *, noise: NoiseSource
) -> tuple[list[Difference], int]:
    """Run both tables on the same coins: how far releases are apart, against what each debit says.

    The comparison stops where a release that was chosen after seeing another one is reached, since the two runs
    may have parted; also how many releases were compared.
    """
    tape = RecordingNoise(noise)
    recorded = perform(setting, first, act, tape)
    replayed = perform(setting, second, act, ReplayedNoise(tape.kept, beyond=noise))
    found, compared = [], 0
    for i, ((event, one), (other, two)) in enumerate(zip(recorded.answers, replayed.answers, strict=False)):
        if event != other:
            break
        for noise_event, a, b in _additive(event, one, two):
            compared += 1
            moved = [y - x for x, y in zip(a, b, strict=True)]
            if not _within(noise_event, moved):
                found.append(Difference("sensitivity", f"release {i + 1} moved by {moved}: {noise_event}"))
    return found, compared


def _additive(
    event: Event, one: Any, two: Any
) -> Iterator[tuple[LaplaceNoise | GaussianNoise, list[int], list[int]]]:
    """The parts of a release that are exact values plus noise, with the event of each.

    A sensitivity that is no whole number belongs to values measured in units of their own noise (`JointStrategy`):
    releases do not show those, and they are passed over here.
    """
    if isinstance(event, Together):
        if isinstance(one, list) and len(one) == len(event.events):
            for part, a, b in zip(event.events, one, two, strict=True):
                yield from _additive(part, a, b)
        return
    noise = event.noise if isinstance(event, Located) else event
    if isinstance(noise, LaplaceNoise | GaussianNoise) and isinstance(one, list):
        flat, other = list(_flat(one)), list(_flat(two))
        bound = noise.l1 if isinstance(noise, LaplaceNoise) else noise.l2_squared
        if len(flat) == len(other) and bound.denominator == 1:
            yield noise, flat, other


def _flat(told: Sequence[Any]) -> Iterator[int]:
    for part in told:
        if isinstance(part, list):
            yield from _flat(part)
        else:
            yield int(part)


def _within(event: LaplaceNoise | GaussianNoise, moved: Sequence[int]) -> bool:
    if isinstance(event, LaplaceNoise):
        return Fraction(sum(abs(step) for step in moved)) <= event.l1
    return Fraction(sum(step * step for step in moved)) <= event.l2_squared
