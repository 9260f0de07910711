"""What a command is doing, for a person at a terminal: on the error stream, and not in the first second.

What is shown is public: the step's name, the time it took, and for a release the part of its work that is done, as
its method reports it. Nothing of it depends on the table, except through what was released and the time that it
takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from understudy.cli.terminal import columns_of
from understudy.layout import shortened

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import Task

    from understudy.releases.run import Progress

PATIENCE = 1.0
"""Seconds after which a command says what it is doing: what is faster says only what it found."""

TICK = 0.05

BESIDE = 30
"""Columns of a terminal that the bar and the times take beside the words."""

COMPILING = "compiling loops, once for this machine"
COMPILING_EACH_TIME = "compiling loops (there is no folder to keep them in)"

MADE = 0.75
"""The part of a release's bar that its method moves; drawing rows and writing the folder move the rest."""


@contextmanager
def busy(what: str, *, quiet: bool) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """While this lasts longer than a second, a person at a terminal sees what is being done and for how long.

    What is given takes it away for as long as a question is open: `with pause(): …`.
    """
    if quiet or not sys.stderr.isatty():
        yield nullcontext
        return
    with _shown(measured=False) as display:
        display.tell(what, 0.0)
        yield display.paused


def looking(question: str, before: int, of: int, doing: str = "Looking") -> str:
    """What is said while a question is answered: which of several it is, after `before` others.

    >>> looking("count", 0, 1), looking("count", 2, 9)
    ('Looking: count', 'Looking (3 of 9): count')
    """
    return f"{doing}: {question}" if of == 1 else f"{doing} ({before + 1} of {of}): {question}"


@contextmanager
def bar(what: str, *, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar for work that knows how much of it is done: call what it gives with words and a part of 1."""
    if quiet or not sys.stderr.isatty():
        yield lambda words, part: None
        return
    with _shown(measured=True) as display:
        display.tell(what, 0.0)
        yield display.tell


@contextmanager
def release_bar(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A release's bar: moved by its method to `MADE`, then by drawing rows and writing them to the end."""
    with bar("opening the table", quiet=quiet) as tell:

        def report(progress: Progress) -> None:
            tell(standing(progress), part_done(progress))

        yield report


def part_done(progress: Progress) -> float:
    """The part of a whole release that is done, from 0 to 1: that of its method, or of writing it down."""
    part = min(1.0, progress.done / progress.of) if progress.of else 1.0
    return MADE + (1 - MADE) * part if progress.stage == "writing" else MADE * part


def standing(progress: Progress) -> str:
    """Where a run stands, in a line: what is being done, what was spent, and what the method tells of itself."""
    told = [progress.what]
    if progress.spent:
        told.append(f"{progress.spent:.3g} spent")
    told += [f"{value:,} {name}" for name, value in progress.details.items() if isinstance(value, int)]
    return " · ".join(told)


@contextmanager
def _shown(*, measured: bool) -> Iterator[_Display]:
    display, over = _Display(measured=measured), Event()

    def watch() -> None:
        """Wait for a second, listening for loops that begin to be compiled in it; then draw."""
        end = monotonic() + PATIENCE
        while not over.wait(min(TICK, max(0.0, end - monotonic()))):
            _listen()
            if monotonic() >= end:
                display.start()
                return

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield display
    finally:
        over.set()
        watching.join()
        display.stop()


class _Display:
    """Words, a bar where the work is measured, and the time; drawn once it is started."""

    def __init__(self, *, measured: bool) -> None:
        self.measured = measured
        self.words, self.part = "", 0.0
        self._bars: Bars | None = None
        self._task: Any = None
        self._drawing = RLock()

    def tell(self, what: str, part: float) -> None:
        self.words, self.part = what, max(self.part, part)
        if self._bars is not None:
            self._bars.update(self._task, completed=self.part)

    def start(self) -> None:
        """Draw, and go on drawing ten times a second until `stop`."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            ProgressColumn,
            SpinnerColumn,
            TaskProgressColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars
        from rich.text import Text

        display = self

        class Words(ProgressColumn):
            """What is being done now: a question may hold what rich takes for its own marks, so no markup."""

            max_refresh = None

            def render(self, task: Task) -> Text:
                return Text(display.now(), no_wrap=True)

        measured = (BarColumn(bar_width=12), TaskProgressColumn(), TimeRemainingColumn(compact=True))
        columns = (SpinnerColumn(), Words(), *(measured if self.measured else (TimeElapsedColumn(),)))
        bars = Bars(*columns, console=Console(stderr=True), transient=True)
        self._task = bars.add_task("", total=1.0 if self.measured else None)
        bars.update(self._task, completed=self.part)
        with self._drawing:  # not while a question is open
            bars.start()
            self._bars = bars

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Draw nothing for as long as this lasts."""
        with self._drawing:
            self.stop()
            yield
            if self._bars is not None:
                self._bars.start()

    def now(self) -> str:
        """The words, or that loops are being compiled: no wider than the terminal leaves room for."""
        _listen()
        words = f"{self.words}: {_compiled[-1]}" if _compiled else self.words
        return shortened(words, max(20, (columns_of(sys.stderr) or 80) - BESIDE))


# ---- loops that are being compiled

_compiled: list[str] = []
"""One entry for each loop that is being compiled now."""

_listening = False


def _listen() -> None:
    """Hear of compilations, once numba is there: a command that needs none does not wait for it to be loaded."""
    global _listening
    events = sys.modules.get("numba.core.event")
    if _listening or events is None or not hasattr(events, "register"):
        return
    _listening = True

    class Compiling(events.Listener):  # type: ignore[name-defined,misc]
        def on_start(self, event: Any) -> None:
            cache = getattr((event.data or {}).get("dispatcher"), "_cache", None)
            kept = cache is None or type(cache).__name__ != "NullCache"
            _compiled.append(COMPILING if kept else COMPILING_EACH_TIME)

        def on_end(self, event: Any) -> None:
            if _compiled:
                _compiled.pop()

    events.register("numba:compile", Compiling())
