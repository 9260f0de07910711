"""Releases that a server shows: listed, and fetched as the folders that `us.Release.load` opens."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from understudy.answer.answer import Answer
from understudy.answer.frames import as_backend
from understudy.answer.sql_answer import SqlAnswer
from understudy.client.decode import answer_from_plain, is_of_sql, sql_answer_from_plain
from understudy.client.transport import Transport, not_understood
from understudy.domain.domain import Domain
from understudy.domain.plain import domain_from_plain
from understudy.errors import ParameterError, RefusedError
from understudy.pages import notebook


class PublishedRelease:
    """A release on a server: `name`, the names of its `files`, the `method` that made it, and its privacy.

    `Connection.releases` lists them; `plain` is what the server says of one, and `transport` sends requests, which
    raise an `AccessError` or a `ServerError` as those of the connection do. `privacy` has the epsilon and the
    delta of the release, `cost` what the ledger was charged, and `beta` the probability with which some certified
    error does not hold; each is None where the certificate does not say.
    """

    def __init__(self, transport: Transport, plain: Mapping[str, Any]) -> None:
        self._transport = transport
        self.name: str = plain["name"]
        self.files: tuple[str, ...] = tuple(plain["files"])
        self.method: str = str(plain.get("method") or "")
        self.privacy: Mapping[str, Any] | None = plain.get("privacy")
        self.cost: Mapping[str, Any] | None = plain.get("cost")
        self.beta: float | None = plain.get("beta")
        self.workload: Any = plain.get("workload")

    def __repr__(self) -> str:
        return f"PublishedRelease({self.name!r}, {self.method}{_privacy_told(self.privacy, before=', ')})"

    def read(self, name: str) -> bytes:
        """The bytes of the file `name`, such as report.html; a `ParameterError` where it is none of `files`."""
        if name not in self.files:
            raise ParameterError(
                f"the release {self.name} has no file {name!r}",
                remedy=f"it has: {', '.join(self.files)}",
                suggestions=self.files,
            )
        held = BytesIO()
        self._transport.save(held, "releases", self.name, name)
        return held.getvalue()

    def certificate(self) -> dict[str, Any]:
        """What is proved about the release, by which theorem and at what price, as plain values.

        Raises a `ParameterError` where the release has no certificate.
        """
        return json.loads(self.read("certificate.json"))

    def ask(self, question: str) -> Answer | SqlAnswer:
        """The answer of the release to a `question`, worked out on the server; it costs nothing.

        Returns an `Answer`, or a `SqlAnswer` for a SELECT statement: the same that `us.Release.load` of the
        downloaded folder gives. Raises a `QueryError` where the question is not understood, and a `RefusedError`
        where the release or the answer is too large for the server.
        """
        document = self._transport.post("releases", self.name, "ask", body={"question": question})[1]
        try:
            plain = document["answer"]
            if is_of_sql(plain):
                return sql_answer_from_plain(plain, question)
            return answer_from_plain(plain, question, self._domain)
        except (LookupError, TypeError, ValueError) as error:
            raise not_understood() from error

    @cached_property
    def _domain(self) -> Domain:
        return domain_from_plain(self.certificate()["domain"]["attributes"])

    def synthetic(self, backend: str = "pyarrow") -> Any:
        """The synthetic rows, as a frame of the library `backend`: pyarrow, pandas or polars, for instance.

        Raises a `ParameterError` where the release has none, or where the library is unknown or not installed.
        """
        return self._frame("synthetic.parquet", backend)

    def answers(self, backend: str = "pyarrow") -> Any:
        """Every answer that was published, with its error, as a frame of the library `backend`.

        Raises a `ParameterError` where the release has none, or where the library is unknown or not installed.
        """
        return self._frame("answers.parquet", backend)

    def download(self, folder: str | Path) -> Path:
        """Fetch all files into a new `folder`, which appears whole or not at all; `us.Release.load` opens it.

        Returns its path. Raises a `RefusedError` where something of that name is there already.
        """
        wanted = Path(folder).absolute()
        if wanted.exists():
            raise RefusedError(
                "there is something of this name already",
                remedy="name another folder",
                detail=f"{wanted} exists already: name another folder",
            )
        wanted.parent.mkdir(parents=True, exist_ok=True)
        partial = wanted.with_name(f".{wanted.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)  # of a download that was killed
        partial.mkdir()
        try:
            for name in self.files:
                with (partial / Path(name).name).open("wb") as file:
                    self._transport.save(file, "releases", self.name, name)
            os.replace(partial, wanted)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return wanted

    def _frame(self, name: str, backend: str) -> Any:
        parquet: Any = import_module("pyarrow.parquet")  # untyped; takes a while to load
        return as_backend(parquet.read_table(BytesIO(self.read(name))), backend)

    def _repr_html_(self) -> str:
        known = {
            "method": self.method,
            "privacy": _privacy_told(self.privacy),
            "files": ", ".join(self.files),
        }
        note = (
            "Ask it with .ask(question). Fetch it with .download(folder), and open that with us.Release.load."
        )
        return notebook.panel(f"Release {self.name}", notebook.facts(known), note=note)


class PublishedReleases(Mapping[str, PublishedRelease]):
    """The releases of a server by their names: `found` is what the server listed."""

    def __init__(self, found: Mapping[str, PublishedRelease]) -> None:
        self._found = dict(found)

    def __getitem__(self, name: str) -> PublishedRelease:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"PublishedReleases({', '.join(self._found)})"

    def _repr_html_(self) -> str:
        rows = [[one.name, one.method, _privacy_told(one.privacy)] for one in self._found.values()]
        return notebook.panel("Releases", notebook.table(["name", "method", "privacy"], rows))


def _privacy_told(told: Mapping[str, Any] | None, *, before: str = "") -> str:
    """The epsilon and the delta of a release in words; nothing where its certificate does not say."""
    epsilon = told.get("epsilon") if isinstance(told, Mapping) else None
    if told is None or epsilon is None:
        return ""
    delta = told.get("delta")
    return f"{before}epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")
