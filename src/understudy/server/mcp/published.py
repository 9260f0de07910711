"""Parts of a release as an agent reads them: the certificate, and pages of its answers or synthetic rows.

All of it was paid for and published: nothing here is computed from a table, and nothing is charged.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from understudy.answer.plain import plain_scalar
from understudy.releases.files import ANSWERS, CERTIFICATE, SYNTHETIC
from understudy.server.problems import Problem
from understudy.server.served_releases import ServedReleases

MOST_FIELD = 20_000
"""Characters of one field of a certificate; longer ones are named and left to HTTP, which sends whole files."""

BATCH = 8192

PART_FILES = {"certificate": CERTIFICATE, "answers": ANSWERS, "synthetic": SYNTHETIC}


def read_part(
    releases: ServedReleases, release: str, *, part: str, marginal: str | None, after: int, limit: int
) -> dict[str, Any]:
    """A part of a release; a `Problem` 404 where there is no such release, or no such marginal in it."""
    path, _ = releases.file(release, PART_FILES[part])
    told = {"release": release, "part": part}
    if part == "certificate":
        return told | _certificate(path)
    if marginal is not None and part != "answers":
        raise Problem(
            422,
            "arguments",
            "Only answers have marginals.",
            hint="Read the part `answers`, or leave `marginal` out.",
        )
    return told | _page(path, marginal, after, limit)


def _certificate(path: Path) -> dict[str, Any]:
    whole = json.loads(path.read_text(encoding="utf-8"))
    short = {name: value for name, value in whole.items() if len(json.dumps(value)) <= MOST_FIELD}
    return {"certificate": short, "left_out": [name for name in whole if name not in short]}


def _page(path: Path, marginal: str | None, after: int, limit: int) -> dict[str, Any]:
    """Rows `after` to `after + limit` of a file; with a marginal, of its answers alone."""
    parquet: Any = import_module("pyarrow.parquet")  # untyped; takes a while to load
    rows: list[dict[str, Any]] = []
    passed = 0
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH):
            found = batch if marginal is None else _of_marginal(batch, _attributes(marginal))
            first = min(max(after - passed, 0), len(found))
            rows += found.slice(first, limit + 1 - len(rows)).to_pylist()
            passed += len(found)
            if len(rows) > limit:
                break
        total = file.metadata.num_rows if marginal is None else None
    if marginal is not None and not passed:
        raise Problem(
            404,
            "no-marginal",
            "This release has no answers of that marginal.",
            hint="Its certificate lists what was answered.",
        )
    return {
        "rows": [{name: plain_scalar(value) for name, value in row.items()} for row in rows[:limit]],
        "total": total,
        "next": after + limit if len(rows) > limit else None,
    }


def _of_marginal(batch: Any, wanted: list[str]) -> Any:
    """The rows of a batch that are of one marginal; its name stands in every row."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    names = batch.column("marginal")
    same = [name for name in names.unique().to_pylist() if _attributes(name) == wanted]
    return batch.filter(compute.is_in(names, value_set=arrow.array(same, arrow.string())))


def _attributes(marginal: str) -> list[str]:
    """The attributes of a marginal, in whatever order and with whatever spaces its name was written."""
    return sorted(part.strip() for part in marginal.split(","))
