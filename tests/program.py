"""The installed program, run as a person or a script would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("understudy")


def run(*arguments: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """It must end with that status, and never show its insides."""
    done = subprocess.run([str(PROGRAM), *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done
