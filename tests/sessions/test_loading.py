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


def test_a_session_is_opened_without_scipy_and_without_a_compiler() -> None:
    """Bounds are evaluated, and a model is fitted, when a question needs it: a server starts without either."""
    program = (
        "import sys, understudy.sessions.session, understudy.server.gate\n"
        "print(*sorted({'scipy', 'numba', 'understudy.standin'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
