"""Examples are found where there are some, and a module without any is still imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FILES = {
    "right.py": '"""\n>>> 1 + 1\n2\n"""\n',
    "wrong.py": '"""\n>>> 1 + 1\n3\n"""\n',
    "plain.py": '"""Nothing to run."""\n\nfrom pathlib import Path\n\nPath("imported").touch()\n',
    "broken.py": '"""Nothing to run."""\n\nimport no_such_module_as_this\n',
    "test_plain.py": "def test_nothing():\n    pass\n",
}


def _run(folder: Path, *names: str) -> str:
    """What pytest says of these files, with the plugin and with nothing else of this suite."""
    for name in names:
        (folder / name).write_text(FILES[name], encoding="utf-8")
    words = [
        "-q",
        "-p",
        "examples_sought",
        "--disable-plugin-autoload",
        "--doctest-modules",
        "--import-mode=importlib",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-c", os.devnull, "--rootdir", str(folder), *names],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_examples_run_and_modules_without_any_are_imported(tmp_path):
    said = _run(tmp_path, "right.py", "wrong.py", "plain.py", "test_plain.py")
    assert "1 failed, 2 passed" in said
    assert "FAILED wrong.py::wrong" in said
    assert (tmp_path / "imported").exists()


def test_a_module_without_examples_that_cannot_be_imported_is_an_error(tmp_path):
    said = _run(tmp_path, "right.py", "broken.py")
    assert "ERROR broken.py" in said
    assert "no_such_module_as_this" in said
