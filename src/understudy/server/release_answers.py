"""Questions to the releases that a server shows: answered from published numbers, for nothing.

A release is public, so an answer from it looks at no table and charges no ledger. What a question may ask for is
limited all the same, since the server's memory is everybody's: releases of many megabytes are left to whoever
downloads them, a few are held ready, and an answer has a limited number of rows.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from understudy.answer.plain import without_infinity
from understudy.errors import SourceError, TooLargeError
from understudy.releases.files import ANSWERS, CERTIFICATE, STANDIN, SUMS
from understudy.server.inquiry import check_question
from understudy.server.problems import Problem

if TYPE_CHECKING:
    from understudy.releases.release import Release
    from understudy.server.served_releases import ServedReleases

MOST_HELD = 4
"""Releases that are held ready; the one that was asked longest ago is dropped for another."""

MOST_BYTES = 64 << 20
"""Of the files of a release that answers are made of. They are compressed: in memory it may be ten times that."""

MOST_CELLS = 50_000
"""Cells of one answer."""

_READ = (CERTIFICATE, ANSWERS, STANDIN, SUMS)

_Stamp = tuple[tuple[str, int, int], ...]


class ReleaseAnswers:
    """Answers from the releases of a server. May be asked by several threads at once."""

    def __init__(self, releases: ServedReleases) -> None:
        self._releases = releases
        self._held: OrderedDict[str, tuple[_Stamp, Release]] = OrderedDict()
        self._opening = Lock()

    def answer(self, name: str, question: str) -> dict[str, Any]:
        """The answer of a release to a question, as plain values: what `understudy ask --release` prints as JSON.

        A `Problem` 404 where there is no such release, 413 where the release is too large for the server,
        and 422 where the question is not understood or has too many cells.
        """
        check_question(question)
        release = self.opened(name)
        try:
            told = release.answer(question, max_cells=MOST_CELLS)
        except TooLargeError as error:
            raise Problem(
                422,
                error.code,
                error.problem,
                hint="Ask about fewer attributes or fewer of their values, or download the release and ask "
                "it: `understudy ask --release FOLDER`.",
                more={"cells": error.cells, "limit": error.limit},
            ) from None
        return without_infinity(
            {
                "release": name,
                "table": release.certificate["table"],
                "question": question,
                "beta": release.beta,
                "answer": told.as_dict(),
            }
        )

    def opened(self, name: str) -> Release:
        """A release of the server, held ready for the next question. One that was made anew is opened again."""
        certificate, _ = self._releases.file(name, CERTIFICATE)
        stamp = _stamp(certificate.parent)
        with self._opening:  # one after the other: two at once would take twice the memory
            held = self._held.get(name)
            if held is None or held[0] != stamp:
                self._held.pop(name, None)
                self._held[name] = stamp, _loaded(certificate.parent)
                while len(self._held) > MOST_HELD:
                    self._held.popitem(last=False)
            self._held.move_to_end(name)
            return self._held[name][1]


def _stamp(folder: Path) -> _Stamp:
    """Size and time of the files that answers are made of; a `Problem` 413 where they are too large."""
    found = [(path.name, path.stat()) for path in (folder / name for name in _READ) if path.is_file()]
    if sum(told.st_size for _, told in found) > MOST_BYTES:
        raise Problem(
            413,
            "release-too-large",
            "This release is too large to be asked on the server.",
            hint="Download its files, and ask them with `understudy ask --release FOLDER`.",
        )
    return tuple((name, told.st_size, told.st_mtime_ns) for name, told in found)


def _loaded(folder: Path) -> Release:
    from understudy.releases.release import Release  # loads what a server without releases never needs

    try:
        return Release.load(folder)
    except (SourceError, OSError, ValueError, LookupError) as error:
        raise Problem(
            409,
            "release-damaged",
            "This release cannot be read.",
            hint="Tell the custodian: its folder on the server is damaged, or of a later version.",
        ) from error
