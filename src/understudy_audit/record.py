"""An audit that can be stopped at any time and gone on with: line by line in a file.

    the plan → which pairs of a subject looked worst → the events of each pair → counts of them, stage by stage

How many draws there will be is fixed before any is made. Counts are looked at when 1/8, 1/2 and all of them are
in, and the error is shared out among these three: so a run that was stopped, for whatever reason, has bounds that
hold together. Events are in the file before the draws begin that they are counted on. A stage that was stopped
half-way is drawn anew. Files of one plan about different subjects may be put one after the other into one. One
process writes a file at a time; a file that is no record of this plan is refused and left as it is.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

import understudy
from understudy.errors import ParameterError
from understudy.noise.samplers import NoiseSource
from understudy_audit.events import OutputEvent, as_plain, from_plain
from understudy_audit.privacy import (
    FAMILY_ERROR,
    Pair,
    PairFinding,
    Subject,
    Verdict,
    count_events,
    findings_of,
    learn_events,
    learnt_from,
    tests_of,
    worst_looking,
)
from understudy_audit.registry import MOST_SUBJECTS, Effort

CHECKPOINTS = (Fraction(1, 8), Fraction(1, 2), Fraction(1))
"""The parts of the planned draws after which bounds are stated."""

SUBJECT_ERROR = FAMILY_ERROR / MOST_SUBJECTS


def plan_of(effort: str, samples: int | None) -> dict[str, Any]:
    """What a record is about: how much is drawn, of which code, on which versions of what it calls."""
    needed = {name: version(name) for name in ("numpy", "scipy", "numba")}
    about = {"understudy": understudy.__version__, "code": code_digest(), "python": python_version()}
    return about | needed | {"effort": effort, "samples": samples}


def code_digest() -> str:
    """A name for the program's code: counts of another one are no evidence about this one."""
    digest, home = sha256(), Path(understudy.__file__).parent
    for path in sorted(home.rglob("*.py")):
        digest.update(f"{path.relative_to(home).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class PairRecord:
    """What is known of one pair: its events, and how often each came up, for each stage that is done."""

    events: list[OutputEvent]
    stages: list[NDArray[np.int64]] = field(default_factory=list)


@dataclass
class SubjectRecord:
    """Which pairs of a subject were chosen, and what is known of them."""

    chosen: list[int] | None = None
    pairs: dict[int, PairRecord] = field(default_factory=dict)


class Record:
    """A file of lines of JSON, each written once; a file that may not grow is only read, and stays as it is.

    Without a path all is kept in memory.
    """

    def __init__(self, plan: dict[str, Any], path: Path | None = None, *, may_grow: bool = True) -> None:
        self._file: BinaryIO | None = None
        self._subjects: dict[str, SubjectRecord] = {}
        if path is None:
            return
        if may_grow:
            self._file = _opened(path)
        try:
            self._begin(path, plan)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, plan: dict[str, Any]) -> None:
        text = path.read_bytes() if path.exists() else b""
        whole = text.rfind(b"\n") + 1
        if text:
            self._read(path, text[:whole], plan)
        if self._file is not None:
            self._file.truncate(whole)  # a last line that was cut off
            if not whole:
                self._write(plan)

    def close(self) -> None:
        """Let another process write."""
        if self._file is not None:
            self._file.close()

    def subject(self, name: str) -> SubjectRecord:
        return self._subjects.setdefault(name, SubjectRecord())

    def choose(self, name: str, chosen: Sequence[int]) -> None:
        self._write({"subject": name, "chosen": list(chosen)})
        self.subject(name).chosen = list(chosen)

    def learn(self, name: str, pair: int, events: Sequence[OutputEvent]) -> None:
        self._write({"subject": name, "pair": pair, "events": [as_plain(event) for event in events]})
        self.subject(name).pairs[pair] = PairRecord(list(events))

    def count(self, name: str, pair: int, hits: NDArray[np.int64]) -> None:
        stages = self.subject(name).pairs[pair].stages
        self._write({"subject": name, "pair": pair, "stage": len(stages), "hits": hits.tolist()})
        stages.append(hits)

    def enter(self, line: dict[str, Any]) -> None:
        """A line that another process has made."""
        self._take(line)
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self._file.flush()

    def _read(self, path: Path, text: bytes, plan: dict[str, Any]) -> None:
        """All lines that are whole."""
        try:
            lines: list[dict[str, Any]] = [dict(json.loads(line)) for line in text.splitlines()]
            if not lines or "subject" in lines[0]:
                raise ParameterError(f"{path} does not begin with the plan of an audit: take another file")
            for line in lines:
                if "subject" in line:
                    self._take(line)
                elif line != plan:
                    raise ParameterError(f"the record was begun with another plan, {line}: take another file")
        except ParameterError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ParameterError(f"{path} is not the record of an audit") from error

    def _take(self, line: dict[str, Any]) -> None:
        """A line about a subject; each thing is told once, and stages in their order."""
        known = self.subject(line["subject"])
        twice = ParameterError(f"the record tells twice of {line['subject']}: one file for each subject")
        if "chosen" in line:
            if known.chosen is not None:
                raise twice
            known.chosen = line["chosen"]
        elif "events" in line:
            if line["pair"] in known.pairs:
                raise twice
            known.pairs[line["pair"]] = PairRecord([from_plain(event) for event in line["events"]])
        else:
            stages = known.pairs[line["pair"]].stages
            if line["stage"] != len(stages) or len(stages) == len(CHECKPOINTS):
                raise twice
            stages.append(np.array(line["hits"], np.int64))


def _opened(path: Path) -> BinaryIO:
    """The file, to be added to by nobody else as long as it is open."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise ParameterError(f"no record can be kept in {path}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise ParameterError(
            f"another audit is writing {path}: wait for it, or take another file (--hours 0 reports what is there)"
        ) from error
    return file


@dataclass(frozen=True)
class ResumableAudit:
    """An audit of one subject that goes on from a record, and leaves off when `goes_on` says so."""

    subject: Subject
    effort: Effort
    record: Record
    checkpoints: tuple[Fraction, ...] = CHECKPOINTS
    error: float = SUBJECT_ERROR

    @property
    def steps(self) -> int:
        """Stages of all pairs; learning counts as one."""
        return self.planned * (1 + len(self.checkpoints))

    @property
    def planned(self) -> int:
        return min(self.effort.pairs, len(self.effort.considered(len(self.subject.pairs()))))

    def run(self, noise: NoiseSource, *, goes_on: Callable[[], bool], done: Callable[[int], None]) -> Verdict:
        """Everything that is left to do; `done` hears of each step, those of earlier sittings at once."""
        pairs, known = list(self.subject.pairs()), self.record.subject(self.subject.name)
        if known.chosen is None and goes_on():
            places = self.effort.considered(len(pairs))
            candidates = [pairs[place] for place in places]
            worst = worst_looking(candidates, keep=self.effort.pairs, pilot=self.effort.pilot, noise=noise)
            self.record.choose(self.subject.name, [places[i] for i in worst])
        chosen = known.chosen or []
        done(sum(1 + len(pair.stages) for pair in known.pairs.values()))
        each = self._each(pairs, chosen)
        for place in chosen:
            self._pair(place, pairs[place], each, noise, goes_on, done)
        return self.verdict()

    def _each(self, pairs: Sequence[Pair], chosen: Sequence[int]) -> float:
        """The error of one bound: all tests of all chosen pairs, at every checkpoint."""
        return self.error / max(1, tests_of([pairs[i] for i in chosen])) / len(self.checkpoints)

    def _pair(
        self,
        place: int,
        pair: Pair,
        each: float,
        noise: NoiseSource,
        goes_on: Callable[[], bool],
        done: Callable[[int], None],
    ) -> None:
        name, known = self.subject.name, self.record.subject(self.subject.name).pairs
        if place not in known:
            if not goes_on():
                return
            draws = learnt_from(self.effort.samples)
            self.record.learn(name, place, learn_events(pair, draws=draws, error=each, noise=noise))
            done(1)
        found = known[place]
        while len(found.stages) < len(self.checkpoints) and goes_on():
            stage = len(found.stages)
            draws = self._counted(stage + 1) - self._counted(stage)
            self.record.count(name, place, count_events(pair, found.events, draws=draws, noise=noise))
            done(1)

    def _counted(self, stages: int) -> int:
        """Draws on each table that are counted when so many stages are done."""
        whole = self.effort.samples - learnt_from(self.effort.samples)
        return int(whole * self.checkpoints[stages - 1]) if stages else 0

    def verdict(self) -> Verdict:
        """What the record says now; of a pair that is not complete, at its last checkpoint."""
        pairs, known = list(self.subject.pairs()), self.record.subject(self.subject.name)
        each = self._each(pairs, known.chosen or [])
        findings: list[PairFinding] = []
        for place, found in known.pairs.items():
            trials = self._counted(len(found.stages))
            if trials:
                hits = np.sum(found.stages, axis=0)
                findings += findings_of(pairs[place], found.events, hits, trials=trials, error=each)
        return Verdict(
            self.subject.name,
            self.subject.path,
            self.effort.samples,
            self.error,
            len(self.effort.considered(len(pairs))),
            tuple(findings),
            self.planned,
        )
