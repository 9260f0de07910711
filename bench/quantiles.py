"""Intervals of quantiles beside those that a user of OpenDP can state, at the same price.

Run: python -m bench.quantiles [--repetitions 5] [--peers FOLDER] [--python PYTHON] [--only WORD]

Ages and hours of adult, and lognormal incomes; one row added or removed; the median alone, and all nine deciles
at once, with an interval for each, all of which hold together with probability 19/20. The table at hand has ages
in 32 codes: `age in days` spreads the rows of each code evenly over its 840 days, by a fixed seed. Prices are such
that intervals are wider than a step, but for hours.

**The fair peer.** OpenDP 0.16's quantile is a number without an interval, and its helpers for accuracy speak of
noise that is added, not of quantiles. Its user can state an interval in these ways, all of which are given the
number of rows for free:

scores   Three private quantiles, each at a third of the price: one at the level itself, and two at levels that are
         moved outwards by as many ranks as the theorem of the exponential mechanism says that a draw is off by at
         most, (2Δ/ε)(ln k + ln 1/β), with k candidates at the full resolution. (For pure ε the program permutes
         and flips, which is no worse.) This is what this program sells, an estimate and an interval, made of
         OpenDP's quantile by its own theorem: the bar is against it.
ends     The same without the estimate: two draws, each at half of the price. Narrower, and a number in the middle
         is all that is known of the quantile itself.
tree     A noisy tree of counts over all steps, with the branching factor that OpenDP recommends, made consistent
         by its own post-processing. Its library states no error of a sum of leaves. It is given the deviation of
         its own noise, found by running it on an empty table, and the very test that this program uses: from
         either side up to the first cut that fails. That is an interval that nobody but this program offers.

`understudy` is this program through a project and SQL, with the estimate and the interval for one price. Widths
are means over levels and repetitions, in the unit of the column, and in *ranks*: the rows between the ends that
are not at the quantile's own value. Where the quantile is a value that many rows have (40 hours), an interval that
is this very value has a width of 0 in both, and no method can be narrower; where it is one step, the step decides
and not the noise. A ratio of such widths says little, so a bar is set only where the peer's interval is two steps
wide or more and holds about as often as it promises. (The score of OpenDP's quantile counts the rows below a
candidate and those above it. Where many rows have one value, its neighbours may score better than the value that
is the quantile, and intervals by the theorem then miss it.) `one draw` is how far the peer's estimate is off, 19
times of 20, at its third of the price: what an interval would be if one knew the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.measures import environment
from bench.tables import NotAtHand, load
from bench.verdict import Verdict, at_most, not_run, shown, verdict
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.project import Project

SCRIPT = Path(__file__).with_name("quantiles_peer.py")
BETA = 0.05
DECILES = tuple(i / 10 for i in range(1, 10))
DAYS = 840
LIMIT = 0.5

Whole = NDArray[np.int64]
Ends = NDArray[np.float64]
"""For each repetition and level the lower end, the estimate and the upper end, in steps."""


@dataclass(frozen=True)
class Subject:
    """A column of whole steps from 0 to `steps`, of which each is `unit` wide, and what its quantiles may cost."""

    name: str
    rows: Whole
    steps: int
    unit: float
    rho: float
    epsilon: float


def subjects() -> list[Subject]:
    draw = np.random.default_rng(2)
    income = np.clip(np.rint(draw.lognormal(10, 1, 50_000) / 10), 0, 100_000).astype(np.int64)
    found = [Subject("lognormal income", income, 100_000, 10.0, 0.0025, 0.1)]
    codes = load("adult").codes
    days = codes["age"] * DAYS + draw.integers(0, DAYS, codes["age"].size)
    found.append(Subject("age in days", days, 32 * DAYS - 1, 1.0, 0.0025, 0.1))
    found.append(Subject("hours in codes", codes["hours-per-week"], 31, 1.0, 0.0001, 0.01))
    return found


def ours(subject: Subject, levels: Sequence[float], currency: str, repetitions: int) -> Ends:
    """What this program tells: through a project, in SQL."""
    domain = Domain((Bins.measure("x", 0, subject.steps, resolution=1),))
    budget = Budget.of(50, 1e-9) if currency == "rho" else Budget.of(50)
    declared = Declaration(
        name="t", source=SourceSpec("t"), domain=domain, budget=budget, neighbours=Neighbours.ADD_REMOVE
    )
    asked = ", ".join(f"quantile_cont(x, {level}) AS q{i}" for i, level in enumerate(levels))
    price = Fraction(str(getattr(subject, currency)))
    with Project.frame(pd.DataFrame({"x": subject.rows}), declared) as project:
        told = [
            project.sql(
                f"SELECT {asked} FROM t",
                rho=price if currency == "rho" else None,
                epsilon=price if currency == "epsilon" else None,
                beta=BETA,
            ).cells[0]
            for _ in range(repetitions)
        ]
    return np.array([[[cell.low, cell.value, cell.high] for cell in cells] for cells in told], np.float64)


def told_by(
    way: str, python: Path, subject: Subject, levels: Sequence[float], currency: str, repetitions: int
) -> Ends:
    """What OpenDP tells in one of its three ways."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(map(str, subject.rows.tolist())))
        file.flush()
        price = [currency, str(getattr(subject, currency)), str(BETA), str(repetitions)]
        given = [way, file.name, str(subject.steps), *price, *map(str, levels)]
        run = subprocess.run([str(python), str(SCRIPT), *given], capture_output=True, text=True, check=False)
    line = next((line for line in run.stdout.splitlines() if line.startswith("JSON")), None)
    if line is None:
        raise OSError(run.stderr.strip().splitlines()[-1][:200] if run.stderr.strip() else "nothing was told")
    return np.array(json.loads(line[4:]), np.float64)


def held(subject: Subject, levels: Sequence[float], told: Ends) -> float:
    """The part of repetitions in which every interval holds the quantile."""
    true = np.quantile(subject.rows, levels)
    return float(np.all((told[:, :, 0] <= true) & (true <= told[:, :, 2]), axis=1).mean())


def ranks(subject: Subject, levels: Sequence[float], told: Ends) -> float:
    """The mean number of rows between the ends, ends included, that are not at the quantile's own value."""
    ordered = np.sort(subject.rows)
    inside = np.searchsorted(ordered, told[:, :, 2], "right") - np.searchsorted(
        ordered, told[:, :, 0], "left"
    )
    true = np.quantile(subject.rows, levels)
    own = np.searchsorted(ordered, true, "right") - np.searchsorted(ordered, true, "left")
    holds = (told[:, :, 0] <= true) & (true <= told[:, :, 2])
    return float((inside - np.where(holds, own, 0)).mean())


@dataclass(frozen=True)
class Measured:
    """How wide the intervals of one way are: in the unit of the column, in steps, in ranks; how often all hold."""

    width: float
    steps: float
    ranks: float
    held: float

    @classmethod
    def of(cls, subject: Subject, levels: Sequence[float], told: Ends) -> Measured:
        steps = float((told[:, :, 2] - told[:, :, 0]).mean())
        return cls(steps * subject.unit, steps, ranks(subject, levels, told), held(subject, levels, told))

    def line(self, way: str) -> str:
        return f"    {way:18}{self.width:>12.4g}{self.ranks:>12.4g} ranks   {self.held:.0%} held"


def compared(
    subject: Subject, levels: Sequence[float], currency: str, python: Path | None, repetitions: int
) -> list[Verdict]:
    many = "the median" if len(levels) == 1 else f"{len(levels)} deciles"
    name = f"{many} of {subject.name}, {currency} {getattr(subject, currency):g}"
    mine = Measured.of(subject, levels, ours(subject, levels, currency, 4 * repetitions))
    print(f"{name}\n{mine.line('understudy')}", flush=True)
    if python is None:
        return [not_run(name, "OpenDP is not at hand")]
    peers: dict[str, Measured] = {}
    for way in ("scores", "ends", "tree"):
        try:
            told = told_by(way, python, subject, levels, currency, repetitions)
        except OSError as problem:
            return [not_run(name, str(problem)[:160])]
        peers[way] = Measured.of(subject, levels, told)
        part = f"   ours is {mine.width / peers[way].width:.2f} of it" if peers[way].width else ""
        print(f"{peers[way].line(f'opendp, {way}')}{part}", flush=True)
        if way == "scores":
            off = np.abs(told[:, :, 1] - np.quantile(subject.rows, levels)) * subject.unit
            print(
                f"    {'one draw':18}{2 * np.quantile(off, 0.95):>12.4g}   (nobody could state it)",
                flush=True,
            )
    return [judged(name, mine, peers["scores"])]


def judged(name: str, mine: Measured, peer: Measured) -> Verdict:
    """The bar, where the peer's interval is one of more than a step and holds as often as it promises."""
    if peer.held < 1 - BETA - 0.25:
        return not_run(
            name, f"the peer's intervals held {peer.held:.0%} of the time, and promise {1 - BETA:.0%}"
        )
    if peer.steps < 2:
        return not_run(
            name, f"intervals of {mine.steps:.2g} and {peer.steps:.2g} steps: the resolution decides"
        )
    return verdict(name, mine.width / peer.width, at_most(LIMIT, "{:.2f}"))


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--peers", type=Path, default=Path(tempfile.gettempdir()) / "understudy-peers")
    parser.add_argument("--only", default="", help="of the columns, those whose name has this word in it")
    parser.add_argument("--python", type=Path, help="the Python of an environment that has OpenDP")
    given = parser.parse_args(arguments)
    try:
        found = [subject for subject in subjects() if given.only in subject.name]
    except NotAtHand as missing:
        return shown(not_run("intervals of quantiles", str(missing)))
    python: Path | None = given.python
    if python is None:
        try:
            python = environment("opendp", given.peers)
        except (OSError, subprocess.CalledProcessError):
            python = None
    verdicts: list[Verdict] = []
    for subject in found:
        for levels in ((0.5,), DECILES):
            for currency in ("rho", "epsilon"):
                verdicts += compared(subject, levels, currency, python, given.repetitions)
    return shown(*verdicts)


if __name__ == "__main__":
    main(sys.argv[1:])
