"""Run the benchmarks: ``python -m bench [name …] [-- option …]``. Each prints its table of ratios.

Options go to the benchmark that is named, as with ``python -m bench.NAME --help``. The last line names what was
missed, and the status is 1 if anything was.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from bench.verdict import Verdict, ended, not_run, shown

NAMES = (
    "bounded",
    "columns", "commands", "counting", "dense_gpu", "engines", "filters", "graphical", "house", "interaction",
    "latency", "ledger", "measures", "model_search", "model_utility", "mwem",
    "noise", "planned_sums", "pmw", "prefixes", "quantiles", "release_bars", "residual", "server", "sessions",
    "smalldb", "sql", "starting",
    "startup", "synthesis", "synthetic_rows", "validity", "weights",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    cut = words.index("--") if "--" in words else len(words)
    wanted, options = words[:cut] or list(NAMES), words[cut + 1 :]
    for name in wanted:
        if name not in NAMES:
            sys.exit(f"no benchmark {name!r}; there are: {', '.join(NAMES)}")
    if options and len(wanted) > 1:
        sys.exit("options are for one benchmark: name it before `--`")
    found: list[Verdict] = []
    for name in wanted:
        print(f"== {name}", flush=True)
        found += run(name, options)
        print()
    return ended(found)


def run(name: str, options: Sequence[str]) -> list[Verdict]:
    """One benchmark; where a peer that it is measured beside is not installed, it is not run."""
    try:
        benchmark = import_module(f"bench.{name}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in ("bench", "understudy"):
            raise
        return shown(not_run(name, f"{missing.name} is not installed"))
    return benchmark.main(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
