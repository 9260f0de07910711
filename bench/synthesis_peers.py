"""Peers in environments of their own: made when asked for, run with a limit of time, never part of the program."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyarrow import csv

from bench.synthesis_tables import Codes, Sheet

PACKAGES = {"dpmm": "dpmm", "opendp": "opendp[mbi]", "smartnoise": "smartnoise-synth"}
SCRIPT = Path(__file__).with_name("synthesis_peer.py")


@dataclass(frozen=True)
class PeerRun:
    """What a peer made, or why it made nothing; `cpu` is what it used until it ended or was stopped."""

    peer: str
    cpu: float
    megabytes: float
    codes: Codes | None
    problem: str = ""


def environment(package: str, folder: Path) -> Path:
    """The Python of a peer's environment, installed on the first use."""
    python = folder / package / "bin" / "python"
    uv = shutil.which("uv") or str(Path(".tools/bin/uv").resolve())
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", str(folder / package)], check=True)
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", str(python), PACKAGES[package]], check=True
        )
    return python


def run_peer(
    peer: str, sheet: Sheet, *, epsilon: float, delta: float, rho: float, limit: float, folder: Path
) -> PeerRun:
    """One peer on one table, stopped after `limit` seconds."""
    try:
        python = environment(peer.split("-")[0], folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return PeerRun(peer, 0.0, 0.0, None, f"not installed ({type(error).__name__})")
    with tempfile.TemporaryDirectory() as place:
        table, domain, out = (Path(place) / name for name in ("table.csv", "domain.json", "out.csv"))
        csv.write_csv(sheet.frame, table)
        domain.write_text(json.dumps(dict(zip(sheet.domain.names, sheet.domain.shape(), strict=True))))
        numbers = [repr(float(value)) for value in (epsilon, delta, rho)]
        command = [str(python), str(SCRIPT), peer, str(table), str(domain), *numbers, str(out)]
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
        before, start = _children(), time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, env={**os.environ, **threads}
            )
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - start
            return PeerRun(peer, _children() - before, 0.0, None, f"stopped after {seconds:.0f} s")
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return PeerRun(peer, _children() - before, 0.0, None, last[:100])
        told = json.loads(done.stdout.strip().splitlines()[-1])
        made = csv.read_csv(out)
        codes = {a: np.clip(made[a].to_numpy().astype(np.int64), 0, sheet.domain[a].size - 1)
                 for a in sheet.domain.names}  # fmt: skip
        return PeerRun(peer, told["cpu"], told["megabytes"], codes)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
