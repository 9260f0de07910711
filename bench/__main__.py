"""Run the benchmarks: ``python -m bench [name …]``. Each prints its table of ratios."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# A benchmark is a module of this folder; one whose name has an underscore is a part of another.
NAMES = sorted(file.stem for file in Path(__file__).parent.glob("*.py") if "_" not in file.stem)


def main() -> None:
    wanted = sys.argv[1:] or NAMES
    for name in wanted:
        if name not in NAMES:
            sys.exit(f"no benchmark {name!r}; there are: {', '.join(NAMES)}")
    for name in wanted:
        print(f"== {name}")
        import_module(f"bench.{name}").main()
        print()


if __name__ == "__main__":
    main()
