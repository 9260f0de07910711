"""One server with a Postgres door for all tests of a process: they ask, and change nothing of each other's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served_wire import WireTown, served_wire


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireTown]:
    with served_wire(tmp_path_factory.mktemp("wire") / "town") as served:
        yield served
