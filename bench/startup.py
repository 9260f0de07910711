"""CPU seconds to import the library and to show the help, against importing numpy in the same run.

Run: python -m bench.startup [--repeats 7]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.clock import of_child
from bench.verdict import Verdict, at_most, ended, shown, verdict

REPEATS = 7
BAR = 0.4
"""CPU seconds over importing numpy."""
WITH_ENGINES = "import understudy.open"
"""Loads the engines that read tables, which have a price of their own: shown, and not judged."""


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=REPEATS)
    repeats = parser.parse_args(arguments).repeats

    def least(command: Sequence[str]) -> float:
        """What a command needs, without what the machine adds."""
        return min(of_child(command) for _ in range(repeats))

    program = str(Path(sys.executable).with_name("understudy"))
    numpy = least([sys.executable, "-c", "import numpy"])
    print(f"{'command':<22}{'CPU s':>8}{'over numpy':>12}{'x numpy':>9}")
    print(f"{'import numpy':<22}{numpy:>8.3f}")
    commands = {
        "import understudy": [sys.executable, "-c", "import understudy"],
        WITH_ENGINES: [sys.executable, "-c", "import understudy; understudy.open"],
        "understudy --help": [program, "--help"],
        "understudy ask --help": [program, "ask", "--help"],
    }
    found = []
    for name, command in commands.items():
        seconds = least(command)
        print(f"{name:<22}{seconds:>8.3f}{seconds - numpy:>+12.3f}{seconds / numpy:>9.1f}", flush=True)
        if name != WITH_ENGINES:
            found.append(
                verdict(f"startup, {name}", seconds - numpy, at_most(BAR, "{:.3f} CPU s over numpy"))
            )
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
