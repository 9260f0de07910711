"""Workers that need the same machine code compile it once between them, and never wait for ever."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import warm
from compiled_once import Turns

WORKER = """
import json, sys
from pathlib import Path
import numba
from numba.core import event
from compiled_once import compiling_in_turn

sys.path.insert(0, sys.argv[2])
compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
from loops import outer
with compiling_in_turn(Path(sys.argv[1])):
    assert outer(3) == 9
print(json.dumps(compiled))
"""
LOOPS = """
import numba

@numba.njit(cache=True)
def inner(i):
    return 2 * i + 1

@numba.njit(cache=True)
def outer(n):
    total = 0
    for i in range(n):
        total += inner(i)
    return total
"""


def test_one_of_several_processes_compiles_and_the_others_read(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    workers = [warm.Process(["-c", WORKER, str(tmp_path / "turns"), str(tmp_path)]) for _ in range(3)]
    compiled = [json.loads(worker.communicate(60)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert sorted(map(sorted, compiled)) == [[], [], ["inner", "outer"]]


def test_a_turn_is_one_at_a_time_and_ends_with_the_block(tmp_path: Path) -> None:
    one, other = Turns(tmp_path), Turns(tmp_path)
    began, ended = threading.Event(), threading.Event()

    def waits() -> None:
        began.set()
        with other.of(waits):
            ended.set()

    thread = threading.Thread(target=waits)
    with one.of(waits), one.of(waits), one.of(test_a_turn_is_one_at_a_time_and_ends_with_the_block):
        thread.start()
        assert began.wait(30)
        assert not ended.wait(0.05)
    assert ended.wait(30)
    thread.join(30)
