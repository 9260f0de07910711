"""Examples in docstrings are looked for in the files that have some; every other module is imported, and no more.

To find examples, pytest walks through all that a module defines and parses every docstring. Most modules have no
example, which their text shows at once: an example begins with a prompt. They are imported all the same, so that a
module that cannot be imported is an error of the run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

PROMPT = b">>>"


class ImportedModule(pytest.Module):
    """A module without examples: collecting it imports it."""

    def collect(self) -> Iterator[pytest.Item]:
        _ = self.obj
        return iter(())


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    found: list[pytest.Collector] = yield
    if file_path.suffix != ".py" or PROMPT in file_path.read_bytes():
        return found
    return [
        ImportedModule.from_parent(parent, path=file_path)
        if isinstance(collector, DoctestModule)
        else collector
        for collector in found
    ]
