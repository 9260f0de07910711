"""What a program that answers questions loads before it can begin."""

from __future__ import annotations

import subprocess
import sys


def test_sessions_and_boards_load_without_the_statistics_of_scipy() -> None:
    program = (
        "import sys, understudy.sessions.session, understudy.validity.board\n"
        "print([name for name in ('scipy.stats',) if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
