"""What is installed is what is here: wheel and source archive hold every module, and nothing of a machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built from a copy of the sources."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("distribution")
    source = folder / "source"
    keep = shutil.ignore_patterns("__pycache__", ".*", "demo", "site", "build", "dist")
    shutil.copytree(ROOT, source, ignore=keep)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "built")]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return folder / "built"


def modules() -> set[str]:
    return {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and path.suffix in {".py", ".typed", ".css", ".gz", ".html", ".js", ".sql", ".svg"}
    }


def test_the_wheel_holds_every_module_and_nothing_else(built: Path):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    described = {name for name in names if ".dist-info/" in name}
    assert names - described == modules()


def test_the_wheel_has_the_program_and_its_licence(built: Path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        told = {
            Path(name).name: archive.read(name).decode() for name in archive.namelist() if "dist-info" in name
        }
    assert "understudy = understudy.cli.start:main" in told["entry_points.txt"]
    assert "Apache License" in told["LICENSE"]
    extras = set(re.findall(r"^Provides-Extra: (\S+)", told["METADATA"], re.MULTILINE))
    assert {"audit", "pandas", "polars", "postgres", "spark", "validity"} <= extras


def test_the_source_archive_has_what_tests_and_documents_need(built: Path):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {f"src/{name}" for name in modules()} <= names
    assert {"Makefile", "LICENSE", "README.md", "docs/ledger.md", "tests/test_distribution.py"} <= names


def test_the_container_installs_what_the_project_declares():
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    extras = re.search(r"\[([\w,]+)\]\"", text)
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert extras is not None
    for extra in extras[1].split(","):
        assert re.search(rf"^{extra} = \[", declared, re.MULTILINE)
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split())
