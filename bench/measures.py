"""Averages of a measure in groups beside OpenDP and Tumult, at the same ρ, and beside what can be computed.

Run: python -m bench.measures [--repetitions 20] [--peers FOLDER]

avg(age) by sex x education on adult (32 groups, ages as codes from 0 to 31), one row added or removed. Each peer
runs in an environment of its own under FOLDER, made when it is not there. The error is the mean over groups of
at least 200 people, and over repetitions, of the distance from the table's average. `computed` are noises that
anybody could draw: sum and count at equal parts, or at the best parts for these very averages, which nobody
knows before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.tables import NotAtHand, folder, load
from bench.verdict import Verdict, at_most, not_run, shown, verdict
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.project import Project

PACKAGES = {
    "opendp": ("opendp[polars]==0.16.*", "pandas"),
    "tumult": ("tmlt.analytics==0.21.*", "setuptools", "pandas"),
}
RHO = 0.02
HIGH = 31
LEAST = 200
GROUPS = ("sex", "education")
SCRIPT = Path(__file__).with_name("measures_peer.py")

Floats = NDArray[np.float64]


def environment(package: str, peers: Path) -> Path:
    """The Python of a peer's environment, which is made on the first use."""
    python, done = peers / package / "bin" / "python", peers / package / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(peers / package)], check=True)
        subprocess.run([str(python), "-m", "pip", "-q", "install", *PACKAGES[package]], check=True)
        done.touch()
    return python


def told_by(peer: str, peers: Path, repetitions: int, shape: tuple[int, ...]) -> Floats:
    """The averages that a peer tells: one table for each repetition; NaN where it tells none."""
    python = environment(peer.partition("-")[0], peers)
    given = [str(folder() / "adult.csv"), "age", "0", str(HIGH), str(RHO), str(repetitions), *GROUPS]
    run = subprocess.run(
        [str(python), str(SCRIPT), peer, *given], capture_output=True, text=True, check=False
    )
    line = next((line for line in run.stdout.splitlines() if line.startswith("JSON")), None)
    if line is None:
        raise OSError(run.stderr.strip().splitlines()[-1][:200] if run.stderr.strip() else "nothing was told")
    found = np.full((repetitions, *shape), np.nan)
    for i, rows in enumerate(json.loads(line[4:])["told"]):
        for group, value in rows:
            found[(i, *group)] = np.nan if value is None else value
    return found


def ours(frame: pd.DataFrame, repetitions: int, shape: tuple[int, ...]) -> Floats:
    """The averages of this program, through a project and SQL; and whether the bounds held is told on the way."""
    sizes = dict(zip(GROUPS, shape, strict=True))
    domain = Domain(
        (
            *(Bins.integers(name, 0, sizes[name] - 1) for name in GROUPS),
            Bins.measure("age", 0, HIGH, resolution=1),
        )
    )
    declared = Declaration(
        name="adult", source=SourceSpec("adult"), domain=domain, budget=Budget.of(50, 1e-9),
        neighbours=Neighbours.ADD_REMOVE,
    )  # fmt: skip
    found = np.full((repetitions, *shape), np.nan)
    with Project.frame(frame, declared) as project:
        for i in range(repetitions):
            told = project.sql(
                f"SELECT {', '.join(GROUPS)}, avg(age) FROM adult GROUP BY {', '.join(GROUPS)}", rho=RHO
            )
            for *group, cell in told.rows:
                found[(i, *map(int, group))] = np.nan if cell is None else cell
    return found


def computed(counts: Floats, sums: Floats, part: float, draws: int) -> Floats:
    """Averages from Gaussian noise on centred sums, at a part of ρ, and on counts, at the rest."""
    noise = np.random.default_rng(1)
    shape = (draws, *counts.shape)
    rows = counts + noise.normal(0, 1 / np.sqrt(2 * RHO * (1 - part)), shape)
    centred = sums - HIGH / 2 * counts + noise.normal(0, HIGH / 2 / np.sqrt(2 * RHO * part), shape)
    with np.errstate(all="ignore"):
        return np.clip(HIGH / 2 + centred / rows, 0, HIGH)


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--peers", type=Path, default=Path(tempfile.gettempdir()) / "understudy-peers")
    given = parser.parse_args(arguments)
    try:
        table = load("adult")
    except NotAtHand as missing:
        return shown(not_run("averages of a measure", str(missing)))
    frame = pd.DataFrame({name: table.codes[name] for name in (*GROUPS, "age")})
    shape = tuple(table.domain[name].size for name in GROUPS)
    places = tuple(frame[name].to_numpy() for name in GROUPS)
    counts, sums = np.zeros(shape), np.zeros(shape)
    np.add.at(counts, places, 1)
    np.add.at(sums, places, frame["age"].to_numpy())
    large = counts >= LEAST
    true = sums / np.maximum(counts, 1)

    def error(told: Floats) -> float:
        return float(np.nanmean(np.abs(np.clip(told, 0, HIGH) - true)[:, large]))

    best = min(error(computed(counts, sums, part, 4000)) for part in np.linspace(0.3, 0.95, 27))
    rows = {
        "understudy": error(ours(frame, given.repetitions, shape)),
        "computed, equal parts": error(computed(counts, sums, 0.5, 4000)),
        "computed, best parts": best,
    }
    found: list[Verdict] = []
    for peer in ("opendp", "opendp-centred", "tumult"):
        try:
            rows[peer] = error(told_by(peer, given.peers, given.repetitions, shape))
            name = f"avg(age) by sex x education, against {peer}"
            found.append(verdict(name, rows["understudy"] / rows[peer], at_most(1.0, "{:.3f}")))
        except (OSError, subprocess.CalledProcessError) as problem:
            found.append(not_run(f"avg(age) by sex x education, against {peer}", str(problem)[:160]))
    name = "avg(age) by sex x education, against the best parts that can be computed"
    found.append(verdict(name, rows["understudy"] / best, at_most(1.05, "{:.3f}")))
    print(f"{'':28}{'mean error (codes)':>20}   {large.sum()} groups of {LEAST} people or more, rho {RHO}")
    for name, value in rows.items():
        print(f"{name:28}{value:>20.4f}")
    return shown(*found)


if __name__ == "__main__":
    main(sys.argv[1:])
