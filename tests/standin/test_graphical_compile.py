"""Compiled loops: loaded only when needed, and running also where nothing can be kept."""

from __future__ import annotations

import subprocess
import sys

import numba
import pytest

from understudy.standin.graphical.compile import compiled


def test_importing_the_package_does_not_load_the_compiler():
    check = "import sys, understudy; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.parametrize("writable", [True, False])
def test_code_runs_whether_or_not_it_can_be_kept(monkeypatch, writable):
    asked = []
    njit = numba.njit

    def recorded(*, fastmath, cache=False):
        asked.append(cache)
        if cache and not writable:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(fastmath=fastmath)

    monkeypatch.setattr(numba, "njit", recorded)
    assert compiled(lambda x: x + 1)(2) == 3
    assert asked == ([True] if writable else [True, False])
