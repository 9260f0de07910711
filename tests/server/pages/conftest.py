"""A served town in which something has happened, one for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from page_checks import HOSTILE
from served_town import ServedTown, live, predictions, served_town


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedTown]:
    """Its labels, a submission's name and a question's reason are hostile, on every page."""
    with served_town(tmp_path_factory.mktemp("town"), rows=20_000, labels=LABELS) as served:
        live(served)
        ada = served.client("ada")
        ada.ask("count by mark", "town")
        for name in LABELS[:2]:
            address = f"/v1/boards/chronic/submissions?name={quote(name)}"
            ada("POST", address, raw=predictions(9).encode(), headers={"content-type": "text/csv"})
            ada.ask("count by mark, occupation", "town", error=60.0, why=name)
        yield served


LABELS = [text for text in HOSTILE if "\x00" not in text]
