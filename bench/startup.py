"""CPU seconds to import the library and to show the help, against importing numpy in the same run."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

REPEATS = 7


def cpu_seconds(command: list[str]) -> float:
    """The least CPU time of several runs of a command: what it needs, without what the machine adds."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(REPEATS))


def main() -> None:
    program = str(Path(sys.executable).with_name("understudy"))
    numpy = cpu_seconds([sys.executable, "-c", "import numpy"])
    print(f"{'command':<22}{'CPU s':>8}{'over numpy':>12}   bar: at most 0.4 s over numpy")
    print(f"{'import numpy':<22}{numpy:>8.3f}")
    commands = {
        "import understudy": [sys.executable, "-c", "import understudy"],
        "import understudy.open": [sys.executable, "-c", "import understudy; understudy.open"],
        "understudy --help": [program, "--help"],
        "understudy ask --help": [program, "ask", "--help"],
    }
    for name, command in commands.items():
        seconds = cpu_seconds(command)
        print(f"{name:<22}{seconds:>8.3f}{seconds - numpy:>+12.3f}")


if __name__ == "__main__":
    main()
