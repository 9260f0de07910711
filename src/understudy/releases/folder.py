"""A release on disk: a folder that appears complete or not at all, and what it takes to read it back.

synthetic.parquet   rows in the source's columns
synthetic.csv       the same rows as text, where that was asked for
answers.parquet     every cell of the workload, and of what was measured beside it: marginal, labels, value, error,
                    low and high (the ends of its interval), basis
certificate.json    mechanism, theorem, parameters, cost, requests to the ledger, domain, version
standin.npz         the stand-in itself
sums.npz            what answers ranges, where they were measured
report.html         the same for people
README.md           for whoever receives it: what is in it, what the bars mean, how to cite it
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from understudy.domain.domain import Domain
from understudy.domain.plain import domain_digest, domain_from_plain
from understudy.errors import RefusedError, SourceError
from understudy.query.projection import Projection
from understudy.releases.csv_rows import write_csv
from understudy.releases.files import (
    ANSWERS,
    CERTIFICATE,
    FILES,
    README,
    REPORT,
    STANDIN,
    SUMS,
    SYNTHETIC,
    SYNTHETIC_CSV,
)
from understudy.releases.range_sums import RangeSums
from understudy.releases.readme import MARK, readme
from understudy.releases.run import MarginalAnswer
from understudy.releases.stored import from_arrays

FORMAT = 1


# ---- a folder, whole or not at all


@contextmanager
def whole(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """A new folder to write into; it takes its place under its name when everything in it is on disk."""
    check_free(folder, force=force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = beside(folder, "partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed while it wrote
    partial.mkdir()
    try:
        yield partial
        for path in (*partial.iterdir(), partial):
            _sync(path)
        check_free(folder, force=force)
        old = beside(folder, "old")
        if folder.exists():
            _remove(old)
            os.replace(folder, old)
        os.replace(partial, folder)
        _sync(folder.parent)
        _remove(old)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Remove the files of a release, and their folder when nothing else is in it."""
    for name in FILES:
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except FileNotFoundError:
        return
    except OSError:
        raise RefusedError(
            "the folder of the release holds what is no part of a release",
            remedy="move that elsewhere",
            detail=f"{folder} holds what is no part of a release: move it elsewhere",
        ) from None


def beside(folder: Path, what: str) -> Path:
    """A hidden sibling of a folder, on the same disk."""
    folder = folder.absolute()
    return folder.with_name(f".{folder.name}.{what}")


def check_free(folder: Path, *, force: bool = False) -> None:
    """Refuse to overwrite a folder, unless `force` says so and it is a release."""
    if not folder.exists():
        return
    if not force:
        raise RefusedError(
            "there is a release of this name already",
            remedy="take another name",
            detail=f"{folder} exists already: name another folder, or replace it with `force=True`",
        )
    if folder.is_symlink() or not folder.is_dir() or not _is_release(folder):
        raise RefusedError(
            "what has this name is no release, so it is not replaced",
            detail=f"{folder} is not the folder of a release, so it is not replaced",
        )
    own = FILES if _is_own_readme(folder / README) else FILES - {README}
    foreign = sorted({path.name for path in folder.iterdir()} - own)
    if foreign:
        named = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise RefusedError(
            "the folder of the release holds what is no part of a release, so it is not replaced",
            detail=f"{folder} holds what is no part of a release ({named}), so it is not replaced: move it "
            "elsewhere",
        )


def _is_release(folder: Path) -> bool:
    """Whether a folder is empty, or has the certificate of a release."""
    if not any(folder.iterdir()):
        return True
    try:
        certificate = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(certificate, dict) and {"format", "domain", "answers"} <= certificate.keys()


def _is_own_readme(path: Path) -> bool:
    """Whether a page was written with a release: one that somebody put there is theirs."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline().strip() == MARK
    except (OSError, ValueError):
        return False


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# ---- the answers


def answers_table(domain: Domain, answers: Sequence[MarginalAnswer]) -> pa.Table:
    """One row for each cell of the workload."""
    if not answers:
        return pa.table({name: pa.array([], kind) for name, kind in _ANSWER_COLUMNS.items()})
    return pa.concat_tables([_answer_rows(domain, answer) for answer in answers])


_ANSWER_COLUMNS = {
    "marginal": pa.string(),
    "labels": pa.list_(pa.string()),
    "value": pa.float64(),
    "error": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "basis": pa.string(),
}


def _answer_rows(domain: Domain, answer: MarginalAnswer) -> pa.Table:
    cells = answer.counts.size
    sizes = domain.shape(answer.clique)
    words = pa.array([label for name in answer.clique for label in domain[name].labels], pa.string())
    first = (
        np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, np.int64)
    )  # where an attribute's labels begin
    places = np.indices(sizes).reshape(len(sizes), cells).T + first
    offsets = np.arange(cells + 1, dtype=np.int32) * len(sizes)
    columns = [
        pa.repeat(", ".join(answer.clique), cells),
        pa.ListArray.from_arrays(pa.array(offsets), words.take(pa.array(places.ravel().astype(np.int64)))),
        pa.array(answer.counts.ravel()),
        *(
            pa.array(np.broadcast_to(numbers, answer.counts.shape).ravel())
            for numbers in (answer.error, answer.low, answer.high)
        ),
        pa.repeat(answer.basis, cells),
    ]
    return pa.table(columns, schema=pa.schema(list(_ANSWER_COLUMNS.items())))


def answers_from_table(domain: Domain, table: pa.Table, listed: Sequence[Any]) -> tuple[MarginalAnswer, ...]:
    """The answers again; `listed` gives each one's attributes and basis, in the order of the rows.

    Releases of earlier versions tell no ends of intervals, which then lie evenly around the values.
    """
    values = table["value"].to_numpy()
    if "low" in table.column_names:
        ends = table["low"].to_numpy(), table["high"].to_numpy()
    else:
        errors = table["error"].to_numpy()
        ends = values - errors, values + errors
    answers, start = [], 0
    for entry in listed:
        clique = domain.clique(entry["by"])
        end, shape = start + domain.size(clique), domain.shape(clique)
        counts, low, high = (numbers[start:end].reshape(shape) for numbers in (values, *ends))
        answers.append(MarginalAnswer(clique, counts, low, high, entry["basis"]))
        start = end
    if start != table.num_rows:
        raise SourceError(f"{ANSWERS} does not have the cells that {CERTIFICATE} lists")
    return tuple(answers)


# ---- reading


@dataclass(frozen=True, eq=False)
class Stored:
    """What the files of a release hold."""

    certificate: dict[str, Any]
    domain: Domain
    answers: tuple[MarginalAnswer, ...]
    also: tuple[MarginalAnswer, ...]
    standin: Projection
    sums: RangeSums | None


def read(folder: Path) -> Stored:
    """The files of a release."""
    path = folder / CERTIFICATE
    try:
        certificate = json.loads(path.read_text(encoding="utf-8"))
        if certificate.get("format") != FORMAT:
            raise SourceError(f"{path}: this format is not known; this program reads format {FORMAT}")
        domain = domain_from_plain(certificate["domain"]["attributes"])
        if domain_digest(domain) != certificate["domain"]["digest"]:
            raise SourceError(f"{path}: the domain is not the one that its digest names")
        answers = answers_from_table(domain, parquet.read_table(folder / ANSWERS), certificate["answers"])
        asked = sum(not entry.get("beside") for entry in certificate["answers"])
        with open(folder / STANDIN, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            standin = from_arrays(domain, arrays)
        sums = None
        if (folder / SUMS).exists():
            cliques = tuple(answer.clique for answer in answers[:asked])
            with open(folder / SUMS, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                sums = RangeSums.from_arrays(domain, cliques, arrays)
        if not isfinite(certificate["rows"]):
            raise SourceError(f"{path}: the number of rows is not finite")
    except FileNotFoundError as error:
        raise SourceError(f"{folder} is not the folder of a release: {error.filename} is missing") from None
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
        NotImplementedError,  # a zip of another kind
        EOFError,
        OSError,
        BadZipFile,
        zlib.error,
        struct.error,
        pa.ArrowException,
    ) as error:
        raise SourceError(f"the release in {folder} cannot be read ({type(error).__name__})") from None
    return Stored(certificate, domain, answers[:asked], answers[asked:], standin, sums)


def write(
    folder: Path,
    *,
    certificate: Mapping[str, Any],
    answers: pa.Table,
    synthetic: pa.Table,
    standin: Mapping[str, Any],
    sums: Mapping[str, Any] | None,
    report: str,
    csv: tuple[Domain, pa.Table] | None,
) -> None:
    """Write the files of a release into a folder that exists; rows also as CSV where they are given for it."""
    text = json.dumps(certificate, ensure_ascii=False, indent=1, allow_nan=False)
    (folder / CERTIFICATE).write_text(text + "\n", encoding="utf-8")
    parquet.write_table(answers, folder / ANSWERS, compression="zstd")
    parquet.write_table(synthetic, folder / SYNTHETIC, compression="zstd")
    if csv is not None:
        write_csv(folder / SYNTHETIC_CSV, *csv)
    np.savez_compressed(folder / STANDIN, **standin)
    if sums is not None:
        np.savez_compressed(folder / SUMS, **sums)
    (folder / REPORT).write_text(report, encoding="utf-8")
    names = [README, *(path.name for path in folder.iterdir())]
    (folder / README).write_text(readme(certificate, text + "\n", names), encoding="utf-8")
