"""The leaderboards of a server: opened when they are first asked for, and scored one submission at a time.

A submission is written to disk as it arrives and removed when it was scored. It stands on the board under the
name of the analyst, who comes from the token, and a name of its own.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.errors import ParameterError, SourceError
from understudy.server.gate import Gate
from understudy.server.inquiry import is_text
from understudy.server.problems import Problem, away
from understudy.server.tokens import Caller

if TYPE_CHECKING:
    from understudy.validity.board import Board

MOST_NAME = 80

KINDS = {
    "text/csv": ".csv",
    "application/vnd.apache.parquet": ".parquet",
    "application/octet-stream": ".parquet",
}
"""The types of a submission, and the endings by which a board reads them."""


class ServedBoards:
    """The boards of a gate, by the names of their files."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._paths = {path.stem: path for path in gate.config.boards}
        self._open: dict[str, Board] = {}
        self._lock = threading.Lock()

    async def listed(self, caller: Caller) -> list[dict[str, Any]]:
        """The boards, and how many submissions each still takes."""

        def told() -> list[dict[str, Any]]:
            return [self._line(name) for name in self._paths]

        return await self._gate.on_free(caller, told)

    async def standings(self, caller: Caller, name: str) -> dict[str, Any]:
        """A board: its terms, and every score that was given."""
        self._check(name)

        def told() -> dict[str, Any]:
            board = self._board(name)
            return {**self._line(name), "standings": [standing.as_dict() for standing in board.show()]}

        return await self._gate.on_free(caller, told)

    async def submit(
        self,
        caller: Caller,
        name: str,
        *,
        label: str,
        kind: str,
        guess: float | None,
        parts: AsyncIterator[bytes],
    ) -> dict[str, Any]:
        """Score a submission that arrives in parts; returns its standing.

        Raises a `Problem`: 403 for a read-only token, 415 for an unknown type, 422 where the submission is
        malformed (it is not counted then), 409 where the board gives no more scores.
        """
        self._gate.admit(caller)
        self._check(name)
        if caller.read_only:
            raise Problem(
                403, "read-only", "A read-only token submits nothing.", hint="Submit with another token."
            )
        if kind not in KINDS:
            raise Problem(
                415, "content-type", "A submission is a CSV or a Parquet file.",
                hint=f"Send one of the types {', '.join(KINDS)}.",
            )  # fmt: skip
        if not is_text(label) or not label.isprintable() or len(label) > MOST_NAME:
            raise Problem(
                422, "parameter", f"A name has at most {MOST_NAME} printable characters.", hint="Rename it."
            )
        with tempfile.TemporaryDirectory(dir=self._gate.config.folder, prefix=".upload-") as folder:
            file = Path(folder) / f"submission{KINDS[kind]}"
            with file.open("wb") as written:
                async for part in parts:
                    written.write(part)
            shown = f"{caller.analyst}: {label}" if label else caller.analyst

            def scored() -> dict[str, Any]:
                return self._board(name).score(file, name=shown, guess=guess).as_dict()

            return await self._gate.on_looks(caller, scored, alone=f"board/{name}")

    def close(self) -> None:
        for board in self._open.values():
            board.close()

    def _check(self, name: str) -> None:
        if name not in self._paths:
            raise Problem(
                404,
                "no-board",
                "There is no such board here.",
                hint="See /v1/boards.",
                suggestions=sorted(self._paths),
            )

    def _board(self, name: str) -> Board:
        from understudy.validity.board import Board  # late: most servers have no boards, and it loads scipy

        with self._lock:
            if name not in self._open:
                try:
                    self._open[name] = Board(self._paths[name])
                except (SourceError, ParameterError) as error:
                    raise away() from error
            return self._open[name]

    def _line(self, name: str) -> dict[str, Any]:
        board = self._board(name)
        terms, holdout = board.terms, board.holdout
        return {
            "name": name,
            "metric": holdout.metric.text,
            "mode": holdout.mode.name,
            "id": terms.id,
            "queries": terms.queries,
            "left": holdout.left,
            "rows": holdout.rows,
            "beta": terms.beta,
            "needs_guess": board.needs_guess,
        }
