"""The emulated catalog and its twin, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from catalog_twin import TABLES, Emulated, emulated, twin
from understudy.desk.desk import Desk, DeskLimits
from understudy.server.pg.catalog.catalog import Catalog

__all__ = ["emulated", "twin"]


@pytest.fixture(scope="session")
def impatient() -> Iterator[Emulated]:
    """The same catalog at a desk that gives a statement little time."""
    with Desk(DeskLimits(seconds=0.4, processes=1)) as desk:
        yield Emulated(Catalog(TABLES), desk)
