"""The releases that a server shows: folders that `understudy release` wrote, and the runs that make new ones.

A release is made by a child process with the program's own command, so that a fit of many minutes neither holds
the server's interpreter nor its memory, and goes on from its ledger where it was interrupted.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.releases.files import (
    ANSWERS,
    CERTIFICATE,
    README,
    REPORT,
    STANDIN,
    SUMS,
    SYNTHETIC,
    SYNTHETIC_CSV,
)
from understudy.server.logs import LOG
from understudy.server.problems import Problem
from understudy.server.release_answers import ReleaseAnswers

SHOWN = {
    REPORT: "text/html; charset=utf-8",
    CERTIFICATE: "application/json",
    ANSWERS: "application/vnd.apache.parquet",
    SYNTHETIC: "application/vnd.apache.parquet",
    SYNTHETIC_CSV: "text/csv; charset=utf-8",
    README: "text/markdown; charset=utf-8",
    STANDIN: "application/octet-stream",
    SUMS: "application/octet-stream",
}
"""The files of a release that are sent, with their types: all of it, so that `Release.load` opens the copy.

Nothing in them is computed from the table: only from what was paid for and released.
"""

MOST_RUNS = 2
"""Releases that are made at once."""

MOST_REMEMBERED = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(slots=True)
class ReleaseRun:
    """A child process that makes a release. `state` is running, done or failed; `said` the end of what it said."""

    name: str
    table: str
    by: str
    terms: dict[str, Any]
    began: float = field(default_factory=time.time)
    ended: float | None = None
    state: str = "running"
    said: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class ServedReleases:
    """The folder of releases, None where the server has none, and the runs of this process.

    `answers` answers questions from the releases of the folder.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.answers = ReleaseAnswers(self)
        self.runs: dict[str, ReleaseRun] = {}
        self._starting: set[str] = set()
        self._children: dict[str, tuple[asyncio.subprocess.Process, asyncio.Task[None]]] = {}

    def listed(self) -> list[dict[str, Any]]:
        """Every whole release by its name, with what its certificate says of method, price and error."""
        if self._folder is None or not self._folder.is_dir():
            return []
        found: list[dict[str, Any]] = []
        for folder in sorted(self._folder.iterdir()):
            if not _NAME.fullmatch(folder.name) or not (folder / CERTIFICATE).is_file():
                continue
            try:
                certificate = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
                told = {
                    key: certificate.get(key) for key in ("method", "privacy", "cost", "beta", "workload")
                }
            except (OSError, ValueError, AttributeError, RecursionError):
                continue
            files = [name for name in SHOWN if (folder / name).is_file()]
            found.append({"name": folder.name, "files": files, **told})
        return found

    def file(self, name: str, file: str) -> tuple[Path, str]:
        """The path and the type of a release's file; a `Problem` 404 where there is none that is shown."""
        is_there = (
            self._folder is not None
            and _NAME.fullmatch(name) is not None
            and (self._folder / name / CERTIFICATE).is_file()
        )
        what = "This release has no such file." if is_there else "There is no such release."
        missing = Problem(404, "no-release", what, hint="The list of releases names them.")
        if self._folder is None or not _NAME.fullmatch(name) or file not in SHOWN:
            raise missing
        path = (self._folder / name / file).resolve()
        whole = path.with_name(CERTIFICATE).is_file()  # else the folder is no release, whatever lies in it
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file() or not whole:
            raise missing
        return path, SHOWN[file]

    async def start(
        self,
        name: str,
        *,
        table: str,
        declaration: Path,
        by: str,
        epsilon: float,
        options: Mapping[str, str],
        sure: bool = False,
    ) -> ReleaseRun:
        """Start a release in a child process; a `Problem` where the name is taken or too many are running.

        `options` are further options of `understudy release`, by their names. One that would take more than a
        quarter of the budget is refused by the child unless the custodian is `sure`.
        """
        if self._folder is None:
            raise Problem(
                409,
                "no-releases",
                "This server has no folder for releases.",
                hint="Set `releases:` in server.yml.",
            )
        if not _NAME.fullmatch(name):
            raise Problem(
                422,
                "parameter",
                "A release's name has letters, digits and the marks . _ -",
                hint="Rename it.",
            )
        if (self._folder / name).exists() or name in self._children or name in self._starting:
            raise Problem(409, "taken", "There is a release of that name.", hint="Take another name.")
        if len(self._children) + len(self._starting) >= MOST_RUNS:
            raise Problem(
                429,
                "running",
                f"{MOST_RUNS} releases are being made.",
                hint="Wait for one of them.",
                retry_after=60.0,
            )
        words = [
            sys.executable, "-m", "understudy", "release", "--project", str(declaration),
            "--out", str(self._folder / name), "--epsilon", repr(epsilon),
            *(["--yes"] if sure else []),
        ]  # fmt: skip
        words += [f"--{option}={value}" for option, value in options.items()]
        run = ReleaseRun(name, table, by, {"epsilon": epsilon, **options})
        self._starting.add(name)  # others are answered while the child is being made
        try:
            child = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        finally:
            self._starting.discard(name)
        self.runs[name] = run
        while len(self.runs) > MOST_REMEMBERED:
            del self.runs[next(iter(self.runs))]
        self._children[name] = child, asyncio.create_task(self._followed(run, child))
        return run

    async def _followed(self, run: ReleaseRun, child: asyncio.subprocess.Process) -> None:
        assert child.stderr is not None
        said = b""
        while line := await child.stderr.read(4096):
            said = (said + line)[-4000:]
        status = await child.wait()
        run.state = "done" if status == 0 else "failed"
        run.ended, run.said = time.time(), said.decode(errors="replace")
        del self._children[run.name]
        LOG.info(
            "release", extra={"release": run.name, "table": run.table, "state": run.state, "status": status}
        )

    async def close(self) -> None:
        """Stop the children; each has its purchases in the ledger and can be begun again under its folder."""
        running = list(self._children.values())
        for child, _ in running:
            child.terminate()
        for _, task in running:
            await task
