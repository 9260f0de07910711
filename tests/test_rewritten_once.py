"""What a worker rewrites ahead is what pytest would have rewritten, and every file is some worker's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

import rewritten_once


def test_every_file_is_in_one_share(tmp_path: Path) -> None:
    files = [tmp_path / f"test_{i}.py" for i in range(10)]
    for i, path in enumerate(files):
        path.write_text("#" * i)
    shares = [rewritten_once.share_of([*files, files[0]], worker, 3) for worker in range(3)]
    assert sorted(path for share in shares for path in share) == sorted(files)
    assert [len(share) for share in shares] == [4, 3, 3]


def test_what_is_kept_is_what_pytest_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "test_sum.py"
    path.write_text("def test_sum():\n    assert sum([1, 2]) == 4\n")
    plain = compile(path.read_text(), str(path), "exec")
    rewritten_once.rewrite_ahead(path, request.config)
    code = rewrite._read_pyc(path, rewritten_once.kept(path))
    assert code is not None
    assert code == rewrite._rewrite_test(path, request.config)[1]
    assert code != plain
    written = rewritten_once.kept(path).stat().st_mtime_ns
    rewritten_once.rewrite_ahead(path, request.config)
    assert rewritten_once.kept(path).stat().st_mtime_ns == written
    path.write_text("def test_sum():\n    assert sum([1, 3]) == 4\n")
    assert rewrite._read_pyc(path, rewritten_once.kept(path)) is None


@pytest.mark.parametrize(
    "content", [b"def (", b"\xff\xfe", b"x = '\x00'"], ids=["syntax", "encoding", "null"]
)
def test_what_cannot_be_rewritten_is_left_to_the_collection(
    tmp_path: Path, request: pytest.FixtureRequest, content: bytes
) -> None:
    path = tmp_path / "test_wrong.py"
    path.write_bytes(content)
    rewritten_once.rewrite_ahead(path, request.config)
    assert not rewritten_once.kept(path).exists()


def test_files_of_tests_are_found_below_what_is_to_be_collected(request: pytest.FixtureRequest) -> None:
    here = Path(__file__)
    config = request.config
    found = set(rewritten_once.test_files(config))
    assert {path.name.startswith("test_") for path in found} <= {True}
    assert here in found or not any(
        here.is_relative_to(config.invocation_params.dir / given.partition("::")[0]) for given in config.args
    )
