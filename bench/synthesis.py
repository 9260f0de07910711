"""Synthetic data: the adaptive release beside AIM on the same engine, plain noise, and peers on the same tables.

Error is the mean over the workload (three-way marginals of at most 10,000 cells) of half the L1 distance between
normalised marginals, of the released answers and of synthetic rows, and the largest error of a cell as a rate; a
peer's answers are its rows. All our noise is exact and on whole numbers; neighbours add or remove a row; delta =
1e-9. Budgets of ours are kept in Gaussian differential privacy (`--filter gdp`), whose price of Gaussian noise is
exact, as dpsynth's AIM-GDP and SWIFT count theirs; `--filter zcdp` takes the default of a declaration, with about
a tenth less to spend, which mbi's mechanisms and our AIM, whose selections cost more in GDP, have in any case. Our
settings are chosen by the rule and never by the table. Its constants were fixed on the tables that are marked as
seen before; the others are held back. Every table of the folder UNDERSTUDY_BENCH_DATA is taken. ± is half of the
95% interval of the answers' mean over seeds, rows/answers the worst of the marginals of order 1, 2 and 3. CPU
seconds, on one thread: ours from the opened table to the answers, the median over seeds; a peer's from the table
in memory to its rows, or all that its process used until it was stopped at the limit. Peers live in environments
of their own and run at epsilon 1, on every table that they finish within the limit; AIMs of peers, which take
hours, run on adult alone unless `--limit` is given. dpsynth (SWIFT and AIM-GDP) and mbi's own mechanisms are
published as source: UNDERSTUDY_PEER_SOURCES names a folder with their checkouts.

Figures are kept in a file as they are measured, and a run that was stopped goes on; `--fresh` measures all anew.

Run: python -m bench.synthesis [--tables adult nltcs] [--epsilons 0.1 1 10] [--seeds 5] [--filter zcdp] [--ours]
                               [--wide] [--large] [--cold] [--peers all] [--fresh]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

from scipy.stats import t as student

from bench.clock import peak_mib, with_children
from bench.release_score import DELTA
from bench.synthesis_bars import OURS, Line, bars
from bench.synthesis_cold import WHEN, cold
from bench.synthesis_large import ROWS, in_fresh_process
from bench.synthesis_peer import PEERS
from bench.synthesis_peers import SCRIPT, Unavailable, package_of, run_peer, to_the_limit, version
from bench.synthesis_record import Kept, Record, age, digest, program
from bench.synthesis_score import METHODS, filter_for, methods_for, open_run, rows_off, score
from bench.synthesis_tables import SEEN, WIDE, Sheet, small_tables, table
from bench.tables import KEPT, ROOT, NotAtHand
from bench.verdict import Verdict, ended, not_run, shown
from understudy.privacy.filter import FilterName

PEERS_EPSILON = 1.0
PEER_LIMITS = {"adult": 300.0, "nltcs": 60.0, "titanic": 60.0}
"""CPU seconds that a peer may take: on adult over a hundred times ours; on the others the AIMs are not asked."""

USUAL_LIMIT = 300.0
"""CPU seconds that a peer may take on any other table."""

ENOUGH_SECONDS = 120.0
"""CPU seconds after which a method gets no further seed on a table at a price; only AIM needs them."""

JUDGED = 2000
"""Marginals of a wide table that errors are taken over."""

WIDE_AIM_LIMIT = 60.0
COLD = "adult"
"""The table whose release a person waits for."""


@dataclass(eq=False)
class Bench:
    """What is asked, the figures so far, and the lines that the bars are read off."""

    asked: argparse.Namespace
    record: Record
    lines: list[Line] = field(default_factory=list)
    large: dict[str, float] = field(default_factory=dict)

    # ---- ours

    def compare(self, sheet: Sheet, epsilon: float) -> None:
        cliques = list(sheet.workload)
        held = "seen before" if sheet.name in SEEN else "held back"
        print(f"{sheet.name} ({held}): {sheet.rows:,} rows, {len(sheet.domain)} attributes, {len(cliques)} "
              f"marginals, epsilon {epsilon:g}, ours kept by {self.asked.filter}")  # fmt: skip
        _heading()
        truth = sheet.counts(cliques)
        for name, method in methods_for(sheet, epsilon).items():
            if self.asked.ours and name in ("aim", "plain noise"):
                continue
            found: list[Kept] = []
            for seed in range(self.asked.seeds):
                if sum(kept.value["cpu"] for kept in found) < ENOUGH_SECONDS:
                    kept_by = filter_for(name, self.asked.filter)
                    measure = partial(_scored, sheet, method, epsilon, seed, truth, cliques, kept_by)
                    key = {"table": sheet.name, "method": name, "epsilon": epsilon, "seed": seed}
                    found.append(self.ours(measure, **key, filter=kept_by))
            fewer = f"  {len(found)} of {self.asked.seeds} seeds" if len(found) < self.asked.seeds else ""
            line = _mean(sheet.name, epsilon, name, [kept.value for kept in found])
            self.tell(line, fewer + age(*found))
        if epsilon == PEERS_EPSILON:
            for peer in self.peers:
                if sheet.name == "adult" or self.asked.limit or not peer.endswith("-aim"):
                    self.peer(peer, sheet)

    def ours(self, measure: Callable[[], Any], **key: Any) -> Kept:
        return self.record.measured({"code": program(), **key}, measure)

    def tell(self, line: Line, when: str = "") -> None:
        self.lines.append(line)
        ours = next((other for other in self.lines if line.beside(other, OURS)), line)
        ratio = line.rows / ours.rows if line.peer else line.answers / ours.answers
        told = [f"{'' if math.isnan(value) else f'{value:.4f}':>9}"
                for value in (line.answers, line.rows, line.largest)]  # fmt: skip
        shown = "" if math.isnan(ratio) else f"{ratio:.2f}"
        memory = f"  {line.megabytes:.0f} MB" if line.megabytes else ""
        memory += f"  ± {line.within:.4f}" if line.within else ""
        memory += f"  rows/answers {line.behind:.2f}" if not math.isnan(line.behind) else ""
        problem = f"  {line.problem}" if line.problem else ""
        print(
            f"  {line.method:16}{''.join(told)}{line.cpu:9.2f}{shown:>8}{memory}{problem}{when}", flush=True
        )

    # ---- peers

    @property
    def peers(self) -> list[str]:
        return list(PEERS) if "all" in self.asked.peers else self.asked.peers

    def peer(self, peer: str, sheet: Sheet) -> None:
        limit = self.asked.limit or PEER_LIMITS.get(sheet.name, USUAL_LIMIT)
        folder = self.asked.environments
        try:
            code = f"{version(package_of(peer), folder)} {digest(SCRIPT)}"
        except Unavailable as error:
            return self.tell(Line.without(sheet.name, PEERS_EPSILON, peer, 0.0, str(error)))
        key = {"code": code, "table": sheet.name, "peer": peer, "epsilon": PEERS_EPSILON, "limit": limit}
        found: list[Kept] = []
        for seed in range(self.asked.peer_seeds):
            at = key if seed == 0 else key | {"seed": seed}
            found.append(self.record.measured(at, lambda: self._peer(peer, sheet, limit, folder)))
            if found[-1].value["problem"]:
                break
        self.tell(_peer_line(sheet.name, peer, [kept.value for kept in found]), age(*found))

    def _peer(self, peer: str, sheet: Sheet, limit: float, folder: Path) -> dict[str, Any]:
        rho = float(open_run(sheet, PEERS_EPSILON, 0).total)
        run = run_peer(peer, sheet, epsilon=PEERS_EPSILON, delta=DELTA, rho=rho, limit=limit, folder=folder)
        rows = largest = math.nan
        if run.codes is not None:
            cliques = list(sheet.workload)
            rows, largest = rows_off(sheet, cliques, run.codes, sheet.counts(cliques))
        return {"answers": math.nan, "rows": rows, "largest": largest, "cpu": run.cpu,
                "megabytes": run.megabytes, "problem": run.problem}  # fmt: skip

    # ---- wide, large, cold

    def wide(self, name: str, epsilon: float) -> None:
        sheet = table(name)
        judged, marginals = len(_judged(sheet)), len(sheet.workload)
        print(f"{name}: {sheet.rows:,} rows, {len(sheet.domain)} attributes, {marginals:,} marginals (errors over "
              f"{judged:,}), epsilon {epsilon:g}; each in a process of its own")  # fmt: skip
        _heading()
        for method in (OURS, "plain noise", "aim"):
            kept_by = filter_for(method, self.asked.filter)
            kept = self.ours(
                lambda m=method, f=kept_by: _one_in_a_process(name, m, epsilon, f),
                table=name, method=method, epsilon=epsilon, filter=kept_by, limit=WIDE_AIM_LIMIT,
            )  # fmt: skip
            self.tell(Line(name, epsilon, method, **kept.value), age(kept))

    def ten_million(self, epsilon: float) -> None:
        in_fresh_process("generate", rows=ROWS, epsilon=epsilon)
        print(
            f"census: {ROWS:,} rows, 15 attributes, 455 marginals, epsilon {epsilon:g}, from a Parquet file"
        )
        for job in ("count", "release"):
            kept = self.ours(lambda j=job: _best_of_two(j, epsilon), job=job, rows=ROWS, epsilon=epsilon)
            found = kept.value
            print(f"  {job:8}{found['cpu']:8.2f} CPU s{found['mib']:8.0f} MB", end="")
            print("" if job == "count" else f"  mean error {found['error']:.5f}", age(kept), flush=True)
            self.large[job] = found["cpu"]

    def cold(self, sheet: Sheet) -> None:
        kept = self.ours(lambda: cold(sheet, 1.0), table=sheet.name, cold=True)
        print(f"{sheet.name}: understudy release, from the shell to the folder{age(kept)}")
        for when in WHEN:
            print(f"  {when:12}{kept.value[when]:8.1f} CPU s")


def _scored(*asked: Any) -> dict[str, float]:
    return asdict(score(*asked))


def _best_of_two(job: str, epsilon: float) -> dict[str, float]:
    return min(
        (in_fresh_process(job, rows=ROWS, epsilon=epsilon) for _ in range(2)), key=lambda found: found["cpu"]
    )


def _heading() -> None:
    print(f"  {'':16}{'answers':>9}{'rows':>9}{'largest':>9}{'CPU s':>9}{'x ours':>8}")


def _mean(name: str, epsilon: float, method: str, found: list[dict[str, float]]) -> Line:
    parts = ("answers", "rows", "largest", "behind")
    answers, rows, largest, behind = (fmean(one[part] for one in found) for part in parts)
    return Line(
        name,
        epsilon,
        method,
        answers=answers,
        rows=rows,
        largest=largest,
        cpu=median(one["cpu"] for one in found),
        behind=behind,
        within=_half_width([one["answers"] for one in found]),
    )


def _peer_line(table: str, peer: str, found: list[dict[str, Any]]) -> Line:
    """The mean over a peer's runs, or the one that did not end."""
    failed = next((one for one in found if one["problem"]), None)
    if failed is not None:
        return Line(table, PEERS_EPSILON, peer, peer=True, **failed)
    rows = [one["rows"] for one in found]
    middle = {
        "answers": math.nan,
        "rows": fmean(rows),
        "largest": fmean(one["largest"] for one in found),
        "cpu": median(one["cpu"] for one in found),
        "megabytes": max(one["megabytes"] for one in found),
    }
    return Line(table, PEERS_EPSILON, peer, peer=True, within=_half_width(rows), **middle)


def _half_width(values: Sequence[float]) -> float:
    """Half of the 95% interval of a mean, by Student's law; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    return float(student.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))


def _judged(sheet: Sheet) -> list:
    return list(sheet.workload)[:: max(1, len(sheet.workload) // JUDGED)]


def one(name: str, method: str, epsilon: float, kept_by: FilterName) -> None:
    """One release, its figures as JSON: what `wide` runs in a process of its own."""
    sheet = table(name)
    cliques = _judged(sheet)
    found = score(sheet, METHODS[method], epsilon, 0, sheet.counts(cliques), cliques, kept_by)
    print(json.dumps({**asdict(found), "megabytes": peak_mib()}))


def _one_in_a_process(name: str, method: str, epsilon: float, kept_by: FilterName) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.synthesis", "--one", name, method, str(epsilon), kept_by]
    with tempfile.TemporaryDirectory() as place:
        limit = WIDE_AIM_LIMIT if method == "aim" else 20 * WIDE_AIM_LIMIT
        ended = to_the_limit(command, limit, place, cwd=str(ROOT))
    if ended.problem:
        nothing = dict.fromkeys(("answers", "rows", "largest"), math.nan)
        return {**nothing, "cpu": ended.cpu, "megabytes": ended.megabytes, "problem": ended.problem}
    return json.loads(ended.output.strip().splitlines()[-1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tables",
        nargs="*",
        default=list(small_tables()),
        choices=small_tables(),
        help="default: all of them",
    )
    parser.add_argument("--epsilons", nargs="*", type=float, default=[1.0], help="default: 1")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--filter", choices=("gdp", "zcdp"), default="gdp", help="of our budgets; default: gdp"
    )
    parser.add_argument(
        "--ours", action="store_true", help="neither AIM nor plain noise, which ours is held against"
    )
    parser.add_argument("--wide", action="store_true", help="also 48 and 110 attributes")
    parser.add_argument("--large", action="store_true", help="also 10,000,000 rows")
    parser.add_argument("--cold", action="store_true", help="also what a first run costs")
    parser.add_argument("--peers", nargs="*", default=[], choices=[*PEERS, "all"])
    parser.add_argument("--peer-seeds", type=int, default=1, help="runs of each peer on each table")
    parser.add_argument(
        "--limit", type=float, help=f"CPU seconds that a peer may take; default: {PEER_LIMITS}"
    )
    parser.add_argument("--fresh", action="store_true", help="measure anew what was measured before")
    parser.add_argument("--environments", type=Path, default=KEPT / "peers")
    parser.add_argument("--record", type=Path, default=KEPT / "synthesis.jsonl")
    parser.add_argument(
        "--one", nargs=4, metavar=("TABLE", "METHOD", "EPSILON", "FILTER"), help=argparse.SUPPRESS
    )
    return parser


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    asked = _parser().parse_args(arguments)
    if asked.one:
        one(asked.one[0], asked.one[1], float(asked.one[2]), asked.one[3])
        sys.exit(0)  # what it found is what it printed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a peer under way is ended too
    bench = Bench(asked, Record(asked.record, fresh=asked.fresh))
    start = with_children()
    _warm_up()
    missing = []
    for name in asked.tables:
        try:
            sheet = table(name)
        except NotAtHand as error:
            missing.append(not_run(f"synthesis, {name}", str(error)))
            continue
        for epsilon in asked.epsilons:
            bench.compare(sheet, epsilon)
    if asked.wide:
        for name in WIDE:
            bench.wide(name, 1.0)
    if asked.large:
        bench.ten_million(1.0)
    if asked.cold:
        try:
            bench.cold(table(COLD))
        except NotAtHand as error:
            missing.append(not_run("synthesis, a first run", str(error)))
    print(
        f"{(with_children() - start) / 60:.0f} CPU minutes; {bench.record.reused} figures kept from an earlier run"
    )
    return shown(*bars(bench.lines, bench.large), *missing)


def _warm_up() -> None:
    """Compile once, or load what was compiled: no line of the table pays for it."""
    sheet = table("classes-12")
    for method in (OURS, "aim"):
        score(sheet, METHODS[method], 0.1, 0, sheet.counts(list(sheet.workload)), list(sheet.workload))


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
