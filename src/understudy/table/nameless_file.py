"""A file that has no name: only this process can read it, and it is gone with the process, however that ends."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from typing import IO


class NamelessFile:
    """A file without a name in the system's folder for temporary ones, open for writing as `file`.

    `place` is a path by which this process, and no other, can read what was written and `flush`ed. The space on
    the disk is given back by `close`, when the object is forgotten, or when the process ends, be it by a kill.
    """

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile("w+b")  # noqa: SIM115  # closed by `close`
        handle = os.dup(self.file.fileno())
        self._let_go: Callable[[], None] = weakref.finalize(self, _closed, self.file, handle)
        self.place = f"/proc/self/fd/{handle}"
        if not os.path.exists(self.place):  # no such folder on this system
            self.place = f"/dev/fd/{handle}"

    def close(self) -> None:
        """Give the file up. Closing twice does nothing."""
        self._let_go()


def _closed(file: IO[bytes], handle: int) -> None:
    file.close()
    os.close(handle)
