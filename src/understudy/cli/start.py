"""The entry of the program `understudy`: it imports almost nothing, so that Ctrl-C is understood at once."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

INTERRUPTED = 130


def main() -> None:
    """Run the program, and leave with the exit status 130 where it was interrupted, at whatever point.

    An interrupted process leaves at once: it waits for no thread that is still counting, and Python does not end
    it by the signal, as it does where the interruption met code that was made of text (a dataclass, for instance).
    Everything that a command has written is on disk by then, and what it has said is flushed here.

    The linear algebra runs in one thread unless OPENBLAS_NUM_THREADS says otherwise: the matrices are small, and
    its other threads wait for the first one at full speed, which has cost 48 times the CPU seconds of one thread.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported, below
    try:
        from understudy.cli.app import main as run

        run()
    except KeyboardInterrupt:  # before a command was under way
        sys.stderr.write("understudy: interrupted; nothing was charged\n")
    except SystemExit as stop:
        if stop.code != INTERRUPTED:
            raise
    else:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)
