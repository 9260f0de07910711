"""Run the benchmarks: ``python -m bench [name …]``. Each prints its table of ratios."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = ("startup", "noise", "counting", "ledger")


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
