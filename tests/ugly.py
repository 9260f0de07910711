"""A table as ugly as real ones are, with its truth beside it: for tests of how files are taken in."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TOWNS = ("Zürich", "Genève", "Orléans", "Bree")


@dataclass(frozen=True)
class Ugly:
    """What is written, and what it means: `early` people joined before 2018, `rich` ones earn 50,000 or more."""

    lines: tuple[str, ...]
    rows: int
    early: int
    undated: int
    rich: int
    unpaid: int
    ageless: int
    towns: dict[str, int]

    def text(self, *, header: bool = True, end: str = "\n") -> str:
        return end.join(self.lines if header else self.lines[1:]) + end


HEADER = "id;joined;pay;share;age;zip;town;active"


def ugly(rows: int = 2000, *, seed: int = 0, blank: bool = True, ragged: int = 0) -> Ugly:
    """Semicolons, days as 31/12/2024 or 0000-00-00, pay as € 1.234,50, shares as 13,5%, N/A for ages, zip codes.

    With blank lines between some rows, and `ragged` lines that lack their last fields.
    """
    draw = np.random.default_rng(seed)
    lines = [HEADER]
    towns: dict[str, int] = dict.fromkeys(TOWNS, 0)
    early = undated = rich = unpaid = ageless = 0
    for i in range(rows):
        day = dt.date(2014, 1, 1) + dt.timedelta(days=int(draw.integers(0, 3650)))
        dated, paid, aged = draw.random(3) > (0.02, 0.01, 0.01)
        cents = int(draw.integers(100_000, 9_999_999))
        town = TOWNS[int(draw.integers(len(TOWNS)))]
        early += int(dated and day < dt.date(2018, 1, 1))
        undated += int(not dated)
        rich += int(paid and cents >= 5_000_000)
        unpaid += int(not paid)
        ageless += int(not aged)
        towns[town] += 1
        fields = [
            f"P{i:06}",
            f"{day:%d/%m/%Y}" if dated else "0000-00-00",
            _euros(cents) if paid else "n/a",
            f"{int(draw.integers(0, 1000)) / 10}".replace(".", ",") + "%",
            str(int(draw.integers(18, 90))) if aged else "N/A",
            f"{int(draw.integers(0, 20)):05}",
            town,
            "true" if draw.random() < 0.5 else "false",
        ]
        lines.append(";".join(fields[:-1] if i < ragged else fields))
        if blank and i % 500 == 7:
            lines.append("")
    return Ugly(tuple(lines), rows, early, undated, rich, unpaid, ageless, towns)


def _euros(cents: int) -> str:
    """An amount as it is written in much of Europe.

    >>> _euros(123450)
    '€ 1.234,50'
    """
    whole = f"{cents // 100:,}".replace(",", ".")
    return f"€ {whole},{cents % 100:02}"


def write_ugly(
    path: Path, table: Ugly, *, encoding: str = "cp1252", mark: bytes = b"", header: bool = True
) -> Path:
    """The table as a file in an encoding, after a byte order mark."""
    path.write_bytes(mark + table.text(header=header, end="\r\n").encode(encoding))
    return path
