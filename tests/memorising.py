"""Estimators that remember the rows they are shown, for the next one to be right on them and wrong elsewhere.

Labels are `label_of` a row, which everybody knows. They are in a module, so that a new process can load them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SEEN: set[float] = set()
"""Rows that were seen in this process."""


def label_of(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] > 0).astype(np.int64)


@dataclass
class Memoriser:
    """Predicts nothing of use, and remembers the rows: in this process, in itself, and in files."""

    folder: str = ""
    seen: tuple[float, ...] = ()

    def predict(self, X):
        SEEN.update(X[:, 0].tolist())
        self.seen = tuple(X[:, 0].tolist())
        if self.folder:
            self._write(Path(self.folder))
        return np.zeros(len(X), np.int64)

    def _write(self, folder: Path) -> None:
        for attempt in (
            lambda: (folder / "seen.txt").write_text(repr(self.seen)),
            lambda: (folder / "name of a folder").mkdir(),
            lambda: os.symlink("rows", folder / "link"),
            lambda: Path("here.txt").write_text("rows"),
        ):
            try:
                attempt()
            except OSError:
                continue


@dataclass
class Turncoat:
    """Right on rows that were remembered, wrong on all others."""

    memoriser: Memoriser

    def predict(self, X):
        known = SEEN | set(self.memoriser.seen)
        right = np.isin(X[:, 0], list(known))
        return np.where(right, label_of(X), 1 - label_of(X))


@dataclass
class Failing:
    """Right about labels where no row is above a bound; fails else, loudly."""

    bound: float

    def predict(self, X):
        if (X[:, 0] > self.bound).any():
            raise ValueError(f"a row has {X[:, 0].max()}")
        return label_of(X)


@dataclass
class Shaped:
    """Predictions of any shape and type."""

    shape: str

    def predict(self, X):
        given = {
            "short": np.zeros(3),
            "cube": np.zeros((len(X), 1, 1)),
            "objects": np.array([object()] * len(X)),
            "text": label_of(X).astype(str).astype(object),
            "endless": np.zeros(len(X) * 10_000),
        }
        return given[self.shape]


@dataclass
class Prober:
    """Is right if it could do what it tried, and wrong if not."""

    what: str
    port: int = 0

    def predict(self, X):
        return label_of(X) if getattr(self, self.what)() else 1 - label_of(X)

    def environment(self) -> bool:
        return "UNDERSTUDY_SECRET" in os.environ

    def crowd(self) -> bool:
        return "memorising_was_here" in sys.modules

    def connects(self) -> bool:
        with socket.socket() as phone:
            phone.settimeout(5)
            return phone.connect_ex(("127.0.0.1", self.port)) == 0

    def folder(self) -> bool:
        return bool(os.listdir("."))

    def reads(self) -> bool:
        return bool(sys.stdin.read())

    def writes(self) -> bool:
        try:
            return bool(Path("anything").write_text("x"))
        except OSError:
            return False

    def leaves_a_child(self) -> bool:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60.25)"])
        return True

    def clings(self) -> bool:
        """A session of its own, no signal at its parent's end: as much as a process can do to live on."""
        import ctypes

        ctypes.CDLL(None).prctl(1, 0)
        with contextlib.suppress(OSError):
            os.setsid()
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(name, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(61.25)"], start_new_session=True)
        time.sleep(61)
        return True

    def sleeps(self) -> bool:
        time.sleep(60)
        return True
