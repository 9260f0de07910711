"""A desk for the tests of a worker: its process starts once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from understudy.desk.desk import Desk, DeskLimits


@pytest.fixture(scope="session")
def desk() -> Iterator[Desk]:
    """One process, with less time for a statement than usual."""
    with Desk(DeskLimits(seconds=0.5, processes=1)) as opened:
        yield opened
