"""The notebook of the examples runs, in a kernel of its own, against a server of the tests."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pyarrow.parquet as parquet

from served import config, serving, tokens
from understudy_demo import town

NOTEBOOK = Path(__file__).resolve().parent.parent.parent / "examples" / "notebook.ipynb"
MOST_BYTES = 80_000


def shapes(notebook) -> list[list[str]]:
    """What kinds of outputs each cell has, but for a word of matplotlib's on a slow machine without its cache."""
    return [
        [one.output_type for one in cell.outputs if "building the font cache" not in one.get("text", "")]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    parquet.write_table(town.people(20_000, seed=7), tmp_path / "town.parquet")
    (tmp_path / "understudy.yml").write_text(town.declaration("town.parquet"))
    configured = config(tmp_path, tables={"town": tmp_path / "understudy.yml"})
    (token,) = tokens(configured, "ada")
    stored = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.from_dict(stored)
    with serving(configured) as service:
        monkeypatch.setenv("UNDERSTUDY_URL", f"http://127.0.0.1:{service.addresses['http'].port}")
        monkeypatch.setenv("UNDERSTUDY_TOKEN", token)
        monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
        # On a busy machine a kernel starts and speaks later than nbclient waits by itself, and in several pieces.
        patience = {"timeout": 300, "startup_timeout": 300, "iopub_timeout": 300}
        client = nbclient.NotebookClient(run, kernel_name="python3", coalesce_streams=True, **patience)
        client.execute()
    assert shapes(run) == shapes(stored), "what is stored is what comes out"
    pictures = [output.data for cell in run.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("image/svg+xml" in data for data in pictures) == 2, "bars, with a rule for each error"
    words = "".join(
        output.text for cell in run.cells for output in cell.get("outputs", []) if "text" in output
    )
    assert "refused: 'f' is not a declared value of sex" in words
    assert "repeat for 0.0" in words


def test_what_is_stored_is_small_and_holds_no_token():
    text = NOTEBOOK.read_text()
    assert len(text) < MOST_BYTES
    assert "us_" not in text
    stored = nbformat.reads(text, as_version=4)
    nbformat.validate(stored)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
