"""CPU seconds, of all threads together: of jobs that take turns, of many things done, and of a child."""

from __future__ import annotations

import resource
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

Jobs = Mapping[str, Callable[[], object]]
Result = TypeVar("Result")
Thing = TypeVar("Thing")


def clocked(job: Callable[[], Result]) -> tuple[Result, float]:
    """What a job returns, and what it took."""
    start = process_time()
    result = job()
    return result, process_time() - start


def turns(jobs: Jobs, repetitions: int, *, warm: bool = False) -> dict[str, list[float]]:
    """Each job's times. The jobs take turns, so that a slow spell of the machine hits all.

    `warm` runs a job untimed before every time: all find their own memory in the cache, as far as it fits.
    """
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repetitions):
        for name, job in jobs.items():
            if warm:
                job()
            times[name].append(clocked(job)[1])
    return times


def medians(jobs: Jobs, repetitions: int) -> dict[str, float]:
    return {name: statistics.median(times) for name, times in turns(jobs, repetitions).items()}


def bests(jobs: Jobs, repetitions: int, *, warm: bool = False) -> dict[str, float]:
    """What each needs, without what a shared machine adds."""
    return {name: min(times) for name, times in turns(jobs, repetitions, warm=warm).items()}


def median(job: Callable[[], object], repetitions: int) -> float:
    return medians({"": job}, repetitions)[""]


def best(job: Callable[[], object], repetitions: int) -> float:
    return bests({"": job}, repetitions)[""]


def repeated(job: Callable[[], object], times: int) -> Callable[[], None]:
    """A job too short for the clock, many times over."""

    def all_of_them() -> None:
        for _ in range(times):
            job()

    return all_of_them


def rate(do: Callable[[Thing], object], things: Sequence[Thing], rounds: int = 1) -> float:
    """How many of the things are done in a CPU second, in the best of some rounds."""

    def once() -> None:
        for thing in things:
            do(thing)

    return len(things) / min(clocked(once)[1] for _ in range(rounds))


def of_child(
    command: Sequence[str],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    silent: bool = False,
) -> float:
    """CPU seconds of a command and of all that it started and waited for; `silent` drops its warnings."""
    before = _used(resource.RUSAGE_CHILDREN)
    stderr = subprocess.DEVNULL if silent else None
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=stderr, cwd=cwd, env=env)
    return _used(resource.RUSAGE_CHILDREN) - before


def with_children() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return _used(resource.RUSAGE_SELF) + _used(resource.RUSAGE_CHILDREN)


def peak_mib() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _used(who: int) -> float:
    used: Any = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
