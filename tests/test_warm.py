"""A process that begins warm ends, writes and dies as one of its own interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex

import pytest

import warm

CODES = [
    "import sys; print(sys.argv[1:]); sys.stderr.write('told'); sys.exit(3)",
    "import sys; sys.exit('words')",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "import atexit, threading; atexit.register(print, 'last'); threading.Timer(0.05, print, ['late']).start()",
    "import os; print(os.getcwd(), os.environ.get('WORD'), 'HOME' in os.environ)",
    "open('absent')",
]


@pytest.mark.parametrize("code", CODES)
def test_it_ends_as_a_fresh_interpreter_does(code, tmp_path):
    words, environment = ["-c", code, "one", "two words"], {"WORD": "é"}
    cold = subprocess.run(
        [sys.executable, "-X", "utf8", *words], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    found = warm.completed(words, cwd=tmp_path, env=environment)
    assert (found.returncode, found.stdout) == (cold.returncode, cold.stdout)
    assert found.stderr.splitlines()[-1:] == cold.stderr.splitlines()[-1:]


def test_it_takes_signals_and_tells_its_end():
    process = warm.Process(["-c", "import time; print('begun', flush=True); time.sleep(60)"])
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGKILL)
    assert process.communicate(timeout=30) == ("", None)
    assert process.returncode == process.wait() == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)  # nobody else has its id by now: nothing is sent


@pytest.mark.parametrize(("code", "status"), [("print(6 * 7)", 0), ("raise SystemExit(4)", 4)])
def test_a_program_stands_in_for_python(code, status, tmp_path: Path):
    warm.program(tmp_path / "python")
    done = subprocess.run([tmp_path / "python", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "" if status else "42\n")


def test_every_process_has_its_own_coins():
    """Forks of one process must not share the state of a generator of noise."""
    code = "from understudy.noise.samplers import SystemNoise; print(SystemNoise().words(4).tolist())"
    assert warm.completed(["-c", code]).stdout != warm.completed(["-c", code]).stdout


USE = """
import sys, warm
warm.IMPORTED = ()
print(warm.completed(["-c", "print('begun')"]).stdout, end="")
print(warm._address(), flush=True)
sys.stdin.readline()
print(warm.completed(["-c", "print(6 * 7)"]).stdout, end="")
"""


def test_workers_of_one_run_share_what_waits_and_it_ends_with_the_last_of_them():
    environment = {**os.environ, "PYTEST_XDIST_TESTRUNUID": token_hex(16)}
    environment["PYTHONPATH"] = os.pathsep.join(warm.PLACES)
    with ExitStack() as open_processes:
        users = [
            open_processes.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", USE],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in "abc"
        ]
        heard = [user.stdout for user in users if user.stdout is not None]
        said = [[stream.readline(), stream.readline().strip()] for stream in heard]
        assert len(said) == 3
        assert {begun for begun, _ in said} == {"begun\n"}
        (address,) = {address for _, address in said}
        for user in users:  # the one that started it may be the first that ends
            assert Path(address).exists()
            assert user.communicate("\n", timeout=60) == ("42\n", None)
            assert user.returncode == 0
        assert not Path(address).parent.exists()
