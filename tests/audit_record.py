"""A long run of tests that can be stopped at any time and gone on with: a plugin of pytest (`-p audit_record`).

UNDERSTUDY_AUDIT_RECORD names a file that gets a line for each test that passed: its name, how long it took, and a
digest of the code that it passed on. A test that passed on the same code is not run again; one that failed, or was
stopped half-way, is. Lines about other code stay in the file and count for nothing.

Tests of the newest bands come first (`ORDER`), and the longest, which need hours, last.
"""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parent.parent

ORDER = (
    "planned sum",
    "test_coverage_bands.py",
    "bounded_noise",
    "two looks",
    "test_coverage_purchases.py",
    "test_coverage.py::test_every",
    "test_coverage.py::test_a_broken",
    "test_cut_session.py",
)
"""What the names of tests hold that come first, in this order."""

LAST = ("ten_thousand", "a_million")
"""What the names of tests hold that come last."""


def code_state(home: Path = HOME) -> str:
    """A name for the code of the package and of its tests: what passed on other code says nothing about this."""
    digest = sha256(f"{sys.version_info[:2]} {version('numpy')}\n".encode())
    for folder in ("src", "tests"):
        for path in sorted((home / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(home).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def passed_before(record: Path, state: str) -> set[str]:
    """The tests that passed on this code; a line that was cut off counts for nothing."""
    found = set[str]()
    for line in record.read_text().splitlines() if record.exists() else ():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if told["code"] == state:
            found.add(told["test"])
    return found


def place(name: str) -> int:
    """The place of a test in the order of all, by its name."""
    if any(part in name for part in LAST):
        return len(ORDER) + 1
    return next((rank for rank, part in enumerate(ORDER) if part in name), len(ORDER))


class AuditRecord:
    """Knows which tests passed before, leaves them out, and writes down those that pass."""

    def __init__(self, config: pytest.Config, record: Path) -> None:
        self._record = record
        self._given: Any = getattr(config, "workerinput", None)  # of xdist, in a worker: one process writes
        self._state = "" if self._given else code_state()
        self._passed = set(self._given["audit"]) if self._given else passed_before(record, self._state)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Have a worker leave out what all others do, also one that begins later."""
        node.workerinput["audit"] = sorted(self._passed)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what passed before, and put the rest in order."""
        gone = [item for item in items if item.nodeid in self._passed]
        if gone:
            config.hook.pytest_deselected(items=gone)
        items[:] = sorted((i for i in items if i.nodeid not in self._passed), key=lambda i: place(i.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down a test that passed."""
        if self._given or report.when != "call" or not report.passed:
            return
        line = {"code": self._state, "test": report.nodeid, "seconds": round(report.duration, 1)}
        with self._record.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_report_header(self) -> str:
        return f"{self._record}: {len(self._passed)} tests have passed on this code ({self._state})"


def pytest_configure(config: pytest.Config) -> None:
    named = os.environ.get("UNDERSTUDY_AUDIT_RECORD")
    if named:
        config.pluginmanager.register(AuditRecord(config, Path(named).absolute()), "the record of an audit")
