"""Peers in environments of their own: made when asked for, run to a limit of CPU time; no part of the program."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import psutil
from pyarrow import csv

from bench.synthesis_record import digest
from bench.synthesis_tables import Sheet
from bench.tables import Codes

PACKAGES = {
    "dpmm": ("dpmm",),
    "dpsynth": (
        "jax[cpu]==0.11.0",
        "mbi>=2.0",
        "dp-accounting",
        "pandas",
        "attrs",
        "absl-py",
        "more-itertools",
        "networkx",
        "scipy",
        "tqdm",
        "pydantic",
        "pyyaml",
        "etils[epath]",
    ),
    "mbi": ("mbi>=2.0", "jax[cpu]", "pandas", "scipy", "networkx", "matplotlib"),
    "opendp": ("opendp[mbi]", "pandas"),  # its marginals need pandas, which its extra does not name
    "smartnoise": ("smartnoise-synth",),
}
PYTHONS = {"dpsynth": "3.12"}
"""The Python that a peer asks for, where it is not the one that runs this."""

SOURCES = "UNDERSTUDY_PEER_SOURCES"
"""Names a folder with a checkout of each peer that is published as source alone, under the peer's own name."""

FROM_SOURCE = ("dpsynth", "mbi")
"""Peers whose mechanisms are on no package index: github.com/google/dpsynth and github.com/ryan112358/mbi."""

SCRIPT = Path(__file__).with_name("synthesis_peer.py")

WALL = 12
"""A peer that does not get a twelfth of a core, or sleeps, is stopped as well: nothing here waits for ever."""

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class Unavailable(Exception):
    """A peer that cannot be installed here, with the reason."""


@dataclass(frozen=True)
class PeerRun:
    """What a peer made, or why it made nothing; `cpu` is what it used until it ended or was stopped."""

    peer: str
    cpu: float
    megabytes: float
    codes: Codes | None
    problem: str = ""


def package_of(peer: str) -> str:
    return peer.split("-")[0]


@cache
def environment(package: str, folder: Path) -> Path:
    """The Python of a peer's environment, installed on the first use."""
    python = folder / package / "bin" / "python"
    done = folder / package / "installed"
    uv = shutil.which("uv") or str(Path(__file__).resolve().parents[1] / ".tools" / "bin" / "uv")
    if done.exists():
        return python
    for command in (
        [uv, "venv", "--quiet", "--allow-existing", *_python(package), str(folder / package)],
        [uv, "pip", "install", "--quiet", "--python", str(python), *PACKAGES[package]],
    ):
        try:
            made = subprocess.run(command, capture_output=True, text=True, timeout=1200)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"not installed: {error}"[:160]) from error
        if made.returncode:
            raise Unavailable(f"not installed: {_reason(made.stderr)}")
    done.touch()
    return python


def _python(package: str) -> list[str]:
    return ["--python", PYTHONS[package]] if package in PYTHONS else []


def source(package: str) -> Path | None:
    """The checkout of a peer that is published as source alone, None for others; raises where it is missing."""
    if package not in FROM_SOURCE:
        return None
    given = os.environ.get(SOURCES)
    found = Path(given or "") / package
    if not given or not found.is_dir():
        raise Unavailable(
            f"published as source alone: set {SOURCES} to a folder with its checkout in {package}/"
        )
    return found.resolve()


@cache
def version(package: str, folder: Path) -> str:
    """What is installed: the peer's version and a digest of all that came with it."""
    checkout = source(package)
    uv = shutil.which("uv") or str(Path(__file__).resolve().parents[1] / ".tools" / "bin" / "uv")
    frozen = subprocess.run(
        [uv, "pip", "freeze", "--python", str(environment(package, folder))],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    name = re.split(r"[\[]", PACKAGES[package][0])[0]
    own = next((line for line in frozen.splitlines() if line.startswith(f"{name}==")), name)
    own += "" if checkout is None else f", source {digest(checkout)}"
    return f"{own} #{hashlib.sha256(frozen.encode()).hexdigest()[:8]}"


def run_peer(
    peer: str, sheet: Sheet, *, epsilon: float, delta: float, rho: float, limit: float, folder: Path
) -> PeerRun:
    """One peer on one table, stopped after `limit` CPU seconds of it and all its children."""
    try:
        checkout = source(package_of(peer))
        python = environment(package_of(peer), folder)
    except Unavailable as error:
        return PeerRun(peer, 0.0, 0.0, None, str(error))
    with tempfile.TemporaryDirectory() as place:
        table, domain, out = (Path(place) / name for name in ("table.csv", "domain.json", "out.csv"))
        csv.write_csv(sheet.frame, table)
        domain.write_text(json.dumps(dict(zip(sheet.domain.names, sheet.domain.shape(), strict=True))))
        numbers = [repr(float(value)) for value in (epsilon, delta, rho)]
        ended = to_the_limit(
            [str(python.absolute()), str(SCRIPT), peer, str(table), str(domain), *numbers, str(out)],
            limit,
            place,
            settings={} if checkout is None else {"PEER_SOURCE": str(checkout)},
        )
        if ended.problem:
            return PeerRun(peer, ended.cpu, ended.megabytes, None, ended.problem)
        told = json.loads(ended.output.strip().splitlines()[-1])
        made = csv.read_csv(out)
        codes = {a: np.clip(made[a].to_numpy().astype(np.int64), 0, sheet.domain[a].size - 1)
                 for a in sheet.domain.names}  # fmt: skip
        return PeerRun(peer, told["cpu"], told["megabytes"], codes)


@dataclass(frozen=True)
class Ended:
    """How a process ended: what it used, what it said, and what went wrong, if anything."""

    cpu: float
    megabytes: float
    output: str
    problem: str


def to_the_limit(
    command: Sequence[str],
    limit: float,
    place: str,
    *,
    cwd: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command and stop it, with its children, after so many CPU seconds; what it says goes to `place`."""
    told, complaints = Path(place) / "stdout", Path(place) / "stderr"
    start, cpu, megabytes = time.monotonic(), 0.0, 0.0
    with told.open("w") as stdout, complaints.open("w") as stderr:
        child = subprocess.Popen(
            command,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **ONE_THREAD, **(settings or {})},
            cwd=cwd or place,
        )
        try:
            while child.poll() is None:
                seconds, memory = _used(child.pid)
                cpu, megabytes = max(cpu, seconds), max(megabytes, memory)
                wall = time.monotonic() - start
                if cpu > limit or wall > WALL * limit:
                    why = f"the limit of {limit:.0f} CPU s" if cpu > limit else f"{wall:.0f} s of waiting"
                    return Ended(cpu, megabytes, "", f"stopped at {why}")
                time.sleep(0.2)
        finally:
            _stop(child)
    problem = f"failed: {_reason(complaints.read_text())}" if child.returncode else ""
    return Ended(cpu, megabytes, told.read_text(), problem)


def _used(pid: int) -> tuple[float, float]:
    """CPU seconds and megabytes of a process and its living children, and the seconds of those that ended."""
    cpu = memory = 0.0
    try:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            times = process.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
            memory += process.memory_info().rss / 2**20
    except psutil.Error:
        pass
    return cpu, memory


def _stop(child: subprocess.Popen) -> None:
    """End a process and all that it started, if it has not ended."""
    with suppress(psutil.Error):
        for process in psutil.Process(child.pid).children(recursive=True):
            with suppress(psutil.Error):
                process.kill()
    child.kill()
    child.wait()


def _reason(complaint: str) -> str:
    """The line of a traceback that says most: the last one with a sentence in it."""
    lines = [line.strip() for line in complaint.strip().splitlines() if re.search(r"\w+ \w+", line)]
    return (lines or ["no message"])[-1][:120]
