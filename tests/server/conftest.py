"""A store whose clock the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server_clock import Clock
from understudy.server.store import ServerStore


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "server.db"


@pytest.fixture
def store(state: Path, clock: Clock) -> Iterator[ServerStore]:
    with ServerStore(state, clock=clock) as opened:
        yield opened
