"""What a piece of Python prints in processes that order sets in other ways."""

from __future__ import annotations

import os
import subprocess
import sys


def printed_in_every_order(code: str, orders: tuple[str, ...] = ("1", "2")) -> set[bytes]:
    """All that `code` printed, run once for each seed of Python's hashes; one text, if no order shows."""
    return {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": order, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            timeout=120,
        ).stdout
        for order in orders
    }
