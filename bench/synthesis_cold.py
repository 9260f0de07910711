"""What a person waits for: `understudy release` of a table from the shell, first with nothing compiled at hand.

Nothing means neither machine code nor bytecode, of the program or of what it imports: more than a first run pays
where the installer has compiled the packages.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from pyarrow import csv

from bench.clock import of_child
from bench.synthesis_tables import Sheet

WHEN = ("first run", "second run")


def _project(sheet: Sheet, folder: Path) -> None:
    csv.write_csv(sheet.frame, folder / "table.csv")
    attributes = {
        name: {"type": "integer", "bounds": [0, size - 1]}
        for name, size in zip(sheet.domain.names, sheet.domain.shape(), strict=True)
    }
    declared = {
        "understudy": 1,
        "name": sheet.name,
        "source": "table.csv",
        "neighbours": "add-remove",
        "budget": {"epsilon": 4, "delta": 1e-9},
        "attributes": attributes,
    }
    (folder / "understudy.yml").write_text(json.dumps(declared))  # JSON is YAML


def cold(sheet: Sheet, epsilon: float) -> dict[str, float]:
    """CPU seconds of the whole command, with empty caches and again."""
    program = shutil.which("understudy", path=str(Path(sys.executable).parent)) or "understudy"
    found = {}
    with tempfile.TemporaryDirectory() as place:
        _project(sheet, Path(place))
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        kept |= {"NUMBA_CACHE_DIR": f"{place}/machine", "PYTHONPYCACHEPREFIX": f"{place}/bytecode"}
        for when in WHEN:
            command = [
                program,
                "release",
                "--epsilon",
                str(epsilon),
                "--max-cells",
                "10000",
                "--yes",
                "--json",
            ]
            found[when] = of_child([*command, "--out", when.replace(" ", "-")], cwd=place, env=kept)
    return found
