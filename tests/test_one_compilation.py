"""What two workers need at the same time is compiled by one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOPS = """
import numba

@numba.njit(cache=True)
def inner(x):
    return x + 1

@numba.njit(cache=True)
def outer(x):
    return inner(x) * 2
"""

WORKER = """
import pathlib, sys
sys.path[:0] = [{tests!r}, {here!r}]
import one_compilation
one_compilation.compile_once(pathlib.Path({here!r}) / "lock")
import loops
print("ready", flush=True)
sys.stdin.readline()
assert loops.outer(20) == 42
print(*(sum(f.stats.cache_misses.values()) for f in (loops.outer, loops.inner)), flush=True)
"""


def test_workers_that_need_the_same_loops_compile_them_once(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    tests = str(Path(__file__).parent)
    code = WORKER.format(tests=tests, here=str(tmp_path))
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    told = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    misses = [[int(number) for number in line] for line in told]
    assert sum(outer for outer, _ in misses) == 1
    assert sum(inner for _, inner in misses) == 1
