"""Settings for the whole suite."""

from __future__ import annotations

import gc
import os
from pathlib import Path

# Tables of tests are small: a second thread of the linear algebra only waits, and burns its core while it does.
# This has to be said before numpy is imported; processes that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# Wall time is nobody's fault on a shared machine; the seed is fixed so that a red run can be repeated.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("house")

# Next to nothing that collection makes is garbage, and there is a gigabyte of it: the collector of garbage would
# walk through it dozens of times. `pytest_collection_finish` lets it work again.
gc.disable()


FIRST = (
    "table/test_engines.py",
    "table/test_moments.py",
    "table/test_spark.py",
    "server/pages/test_browser.py",
    "audit/test_privacy.py",
    "audit/test_mutants.py",
    "audit/test_all_neighbours.py",
    "audit/test_audit_command.py",
    "ledger/test_power_cut.py",
    "server/pg/test_other_programs.py",
    "releases/test_release_command.py",
    "test_tutorials.py",
)
"""Files with the longest tests, below the folder of this file: they begin first, so that no worker of several ends
long after the others with one of them. Those that need Spark follow each other: one worker starts it for all."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first; and tests marked `slow` wait for an audit (`make audit` and its relatives)."""
    rank = {Path(__file__).parent / name: place for place, name in enumerate(FIRST)}
    gone = [str(path) for path in rank if not path.exists()]
    if gone:
        raise pytest.UsageError(f"FIRST in {__file__} names files that do not exist: {', '.join(gone)}")
    items.sort(key=lambda item: rank.get(item.path, len(rank)))
    if os.environ.get("UNDERSTUDY_AUDIT"):
        return
    for item in items:
        for mark in item.iter_markers("slow"):
            item.add_marker(pytest.mark.skip(reason=f"{mark.args[0]}: set UNDERSTUDY_AUDIT"))


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not walk through it again and again.

    Of what tests make, most is garbage soon: 2,000 new objects at a time are still in the processor's cache when
    it walks through them, 10,000 are not; and all that is left is looked through as rarely as with 10,000. To look
    for garbage once before would take a second of each worker, and there is next to none.
    """
    gc.freeze()
    gc.set_threshold(2_000, 10, 50)
    gc.enable()


def _lacking(reporter: pytest.TerminalReporter) -> list[str]:
    """Why tests were skipped for want of something; the long ones, which wait for an audit, want nothing."""
    reasons = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
    return [reason for reason in reasons if "UNDERSTUDY_AUDIT" not in reason]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("UNDERSTUDY_NO_SKIP") and _lacking(terminalreporter):
        terminalreporter.write_line("UNDERSTUDY_NO_SKIP is set: a skipped test is a failure", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("UNDERSTUDY_NO_SKIP") and reporter and _lacking(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
