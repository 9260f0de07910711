"""Which files a server hands out as parts of releases."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from understudy.server.problems import Problem
from understudy.server.served_releases import ServedReleases


def test_only_folders_with_a_certificate_are_releases(tmp_path: Path):
    for name in ("told", "rows"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.html").write_text(name)
    (tmp_path / "told/certificate.json").write_text("{}")
    shelf = ServedReleases(tmp_path)
    assert [found["name"] for found in shelf.listed()] == ["told"]
    assert shelf.file("told", "report.html")[0].read_text() == "told"
    with pytest.raises(Problem, match="no such release"):
        shelf.file("rows", "report.html")


def test_two_releases_that_are_started_under_one_name_at_once_are_one(tmp_path: Path, monkeypatch):
    """The first is not among the children yet while its process is being made."""
    made = []

    async def slowly(*words, **given):
        made.append(words)
        await asyncio.sleep(0.01)
        raise OSError("no process")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    shelf = ServedReleases(tmp_path)

    async def main():
        def start(name):
            declaration = tmp_path / "understudy.yml"
            return shelf.start(name, table="t", declaration=declaration, by="cy", epsilon=1.0, options={})

        told = await asyncio.gather(*(start(name) for name in "aab"), return_exceptions=True)
        again = await asyncio.gather(start("a"), return_exceptions=True)
        return [*told, *again]

    first, second, other, again = asyncio.run(main())
    assert isinstance(second, Problem)
    assert second.status == 409
    assert all(isinstance(error, OSError) for error in (first, other, again))  # the name is free again
    assert len(made) == 3
