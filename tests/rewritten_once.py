"""Assertions of tests are rewritten once for all workers: each begins with a share of the files.

pytest rewrites the assertions of a file when it is first imported, and keeps what it wrote beside the file. In a
fresh clone nothing is kept yet, and the workers of a run collect the same files in the same order at once: each
would rewrite all of them, four seconds of a core. Here each rewrites its share before it collects, and finds those
of the others. What is rewritten, and how, is the same; a file that cannot be is left to the collection.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def test_files(config: pytest.Config) -> Iterator[Path]:
    """The files of tests below what is to be collected."""
    patterns = config.getini("python_files")
    for given in config.args:
        place = config.invocation_params.dir / given.partition("::")[0]
        below = place.rglob("*.py") if place.is_dir() else [place]
        yield from (path for path in below if any(fnmatch(path.name, pattern) for pattern in patterns))


def share_of(files: Iterable[Path], worker: int, workers: int) -> list[Path]:
    """A worker's files: the largest are dealt first, so that all have about as much to do."""
    by_size = sorted(set(files), key=lambda path: (-path.stat().st_size, path))
    return by_size[worker::workers]


def kept(path: Path) -> Path:
    """Where pytest keeps a file with its assertions rewritten."""
    return rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)


def rewrite_ahead(path: Path, config: pytest.Config) -> None:
    """Rewrite a file and keep it, where that was not done before."""
    state = config.stash[rewrite.assertstate_key]
    try:
        if rewrite.try_makedirs(kept(path).parent) and rewrite._read_pyc(path, kept(path)) is None:
            read, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, read, kept(path))
    except (OSError, SyntaxError, ValueError):
        return  # the collection says so


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", None)
    state = session.config.stash.get(rewrite.assertstate_key, None)
    if worker is None or state is None or state.hook is None or sys.dont_write_bytecode:
        return
    place = int(worker["workerid"].removeprefix("gw"))
    for path in share_of(test_files(session.config), place % worker["workercount"], worker["workercount"]):
        rewrite_ahead(path, session.config)
