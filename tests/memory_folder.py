"""A folder that no disk is behind, where the system has one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def memory_folder(otherwise: Path) -> Iterator[Path]:
    """For files whose syncs a test has no part in, or that are a million; the other folder where there is none."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield otherwise
        return
    with tempfile.TemporaryDirectory(dir=shared, prefix="understudy-") as folder:
        yield Path(folder)
