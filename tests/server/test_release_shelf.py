"""Which files a server hands out as parts of releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.server.problems import Problem
from understudy.server.release_shelf import ReleaseShelf


def test_only_folders_with_a_certificate_are_releases(tmp_path: Path):
    for name in ("told", "rows"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.html").write_text(name)
    (tmp_path / "told/certificate.json").write_text("{}")
    shelf = ReleaseShelf(tmp_path)
    assert [found["name"] for found in shelf.listed()] == ["told"]
    assert shelf.file("told", "report.html")[0].read_text() == "told"
    with pytest.raises(Problem, match="no such file"):
        shelf.file("rows", "report.html")
